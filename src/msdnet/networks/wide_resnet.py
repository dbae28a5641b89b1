"""Wide residual networks (Zagoruyko and Komodakis, 2016) for small images."""

from torch import Tensor, nn

from msdnet.networks.chain import Chain
from msdnet.networks.layers import Conv2d, Layers, PoolHead, norm_relu
from msdnet.systems import WideResNetConfig

__all__ = ["WideResNet"]


class WideResNet(Chain):
    """A wide residual network with its one exit, built from its config."""

    def __init__(self, config: WideResNetConfig) -> None:
        widths = [16 * config.widening * 2**group for group in range(3)]
        blocks: list[nn.Module] = [Conv2d(config.input_channels, 16, kernel=3)]
        inputs = 16
        for group, width in enumerate(widths):
            for block in range(config.blocks):
                stride = 2 if group > 0 and block == 0 else 1
                blocks.append(_Block(inputs, width, stride))
                inputs = width
        head = Layers(*norm_relu(inputs), *PoolHead(inputs, config.classes))
        super().__init__(config, [nn.Sequential(*blocks)], [head])


class _Block(nn.Module):
    """Two 3x3 convolutions, each after BN and ReLU, beside a shortcut; where the width changes, a 1x1 convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.active = Layers(*norm_relu(inputs))
        self.branch = Layers(
            Conv2d(inputs, outputs, kernel=3, stride=stride),
            *norm_relu(outputs),
            Conv2d(outputs, outputs, kernel=3),
        )
        self.shortcut = None if inputs == outputs else Conv2d(inputs, outputs, kernel=1, stride=stride)

    def forward(self, maps: Tensor) -> Tensor:
        active = self.active(maps)
        kept = maps if self.shortcut is None else self.shortcut(active)
        joined: Tensor = kept + self.branch(active)
        return joined
