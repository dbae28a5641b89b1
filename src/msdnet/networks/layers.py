"""Layers that the networks are made of."""

from torch import nn

__all__ = ["Conv2d", "ConvHead", "ConvNormReLU", "Linear", "PoolHead", "norm_relu"]


class Conv2d(nn.Conv2d):
    """Starts with He's normal initialisation by fan-out; no convolution has a bias, BN follows or precedes each."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)

    def reset_parameters(self) -> None:
        nn.init.kaiming_normal_(self.weight, mode="fan_out", nonlinearity="relu")


class Linear(nn.Linear):
    """Starts with torch's own weights and a bias of zero."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.bias)


def norm_relu(channels: int) -> tuple[nn.Module, nn.Module]:
    """What comes before a convolution where maps are not yet normalised."""
    return nn.BatchNorm2d(channels), nn.ReLU(inplace=True)


class ConvNormReLU(nn.Sequential):
    """A convolution, BN and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(
            Conv2d(inputs, outputs, kernel, stride),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class ConvHead(nn.Sequential):
    """A classifier: two strided convolutions, average pooling over what is left (2x2 in the paper), linear."""

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__(
            ConvNormReLU(inputs, width, kernel=3, stride=2),
            ConvNormReLU(width, width, kernel=3, stride=2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            Linear(width, classes),
        )


class PoolHead(nn.Sequential):
    """A classifier: average pooling over the whole map, linear."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten(), Linear(inputs, classes))
