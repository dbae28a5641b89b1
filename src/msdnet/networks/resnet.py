"""Residual networks for small images (He et al., 2016), if asked with intermediate classifiers or stochastic depth."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from msdnet.networks.chain import Chain, cut
from msdnet.networks.chance import Chance
from msdnet.networks.layers import Conv2d, ConvNormReLU, Layers, PoolHead, head_on_the_way
from msdnet.systems import ResNetConfig

__all__ = ["ResNet"]

_WIDTHS = (16, 32, 64)  # channels at 32, 16 and 8 pixels, where images have 32


class ResNet(Chain):
    """A residual network, built from its config; the block that makes a map coarser is the first of its group."""

    def __init__(self, config: ResNetConfig) -> None:
        chance = Chance() if config.survival < 1 else None
        blocks = list(_blocks(config, chance))
        stages = cut(blocks, config.exits)
        stages[0].insert(0, ConvNormReLU(config.input_channels, _WIDTHS[0], kernel=3))
        heads: list[nn.Module] = [
            head_on_the_way(blocks[number - 1].outputs, config.head_width, config.classes) for number in config.exits
        ]
        super().__init__(config, stages, [*heads, PoolHead(_WIDTHS[-1], config.classes)])
        self.chance = chance


def _blocks(config: ResNetConfig, chance: Chance | None) -> Iterator["_Block"]:
    inputs = _WIDTHS[0]
    for number, survival in enumerate(config.survivals):
        width = _WIDTHS[number // config.blocks]
        yield _Block(inputs, width, survival, chance)
        inputs = width


class _Block(nn.Module):
    """Two 3x3 convolutions, BN after each, beside a shortcut; ReLU after their sum.

    Where channels double, height and width are halved; the shortcut takes every second pixel and leaves the new
    channels zero, so that it has no parameters. Stochastic depth: in some training steps the convolutions are left out.
    """

    def __init__(self, inputs: int, outputs: int, survival: float, chance: Chance | None) -> None:
        super().__init__()
        self.outputs, self.survival, self.chance = outputs, survival, chance
        stride = 1 if inputs == outputs else 2
        self.branch = Layers(
            ConvNormReLU(inputs, outputs, kernel=3, stride=stride),
            Conv2d(outputs, outputs, kernel=3),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = (
            nn.Identity()
            if inputs == outputs
            else nn.Sequential(
                nn.AvgPool2d(kernel_size=1, stride=2),
                nn.ConstantPad3d((0, 0, 0, 0, 0, outputs - inputs), 0),  # (before, after) of width, height, channels
            )
        )

    def forward(self, maps: Tensor) -> Tensor:
        made = self.branch(maps)
        if self.chance is not None:
            made = made * (self._survives(made, self.chance) if self.training else self.survival)
        return torch.relu(self.shortcut(maps) + made)

    def _survives(self, made: Tensor, chance: Chance) -> Tensor:
        """1 or 0, for the whole batch."""
        return (chance.uniform(device=made.device) < self.survival).to(made.dtype)
