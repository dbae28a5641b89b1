"""Densely connected networks for small images (DenseNet-BC, Huang et al., 2017), and two forms that MSDNet's paper has.

In DenseNet* the growth doubles after each transition; DenseNet-MC has intermediate classifiers.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from msdnet.networks.chain import Chain, cut
from msdnet.networks.layers import Conv2d, Layers, PoolHead, head_on_the_way, norm_relu
from msdnet.systems import DenseNetConfig

__all__ = ["DenseNet"]

_BOTTLENECK = 4  # channels between the two convolutions of a unit, over those that it adds
_COMPRESSION = 2  # channels before a transition, over those after it


class DenseNet(Chain):
    """A densely connected network, built from its config. From unit to unit goes all that their block has so far."""

    def __init__(self, config: DenseNetConfig) -> None:
        units = list(_units(config))
        stages = cut(units, config.exits)
        stages[0].insert(0, Conv2d(config.input_channels, 2 * config.growth, kernel=3))
        on_the_way = [_head(units[number - 1], config, last=False) for number in config.exits]
        super().__init__(config, stages, [*on_the_way, _head(units[-1], config, last=True)])


def _units(config: DenseNetConfig) -> Iterator["_Unit"]:
    inputs = 2 * config.growth
    for number, growth in enumerate(config.growths):
        unit = _Unit(inputs, growth, coarser=number > 0 and number % config.units == 0)
        yield unit
        inputs = unit.outputs


class _Unit(nn.Module):
    """Adds `growth` channels to those it reads: 1x1 convolution, 3x3 convolution, BN and ReLU before each.

    A block's first unit reads what the transition leaves of the block before.
    """

    def __init__(self, inputs: int, growth: int, *, coarser: bool) -> None:
        super().__init__()
        self.transition = _Transition(inputs) if coarser else nn.Identity()
        width = inputs // _COMPRESSION if coarser else inputs
        self.make = Layers(
            *norm_relu(width),
            Conv2d(width, _BOTTLENECK * growth, kernel=1),
            *norm_relu(_BOTTLENECK * growth),
            Conv2d(_BOTTLENECK * growth, growth, kernel=3),
        )
        self.outputs = width + growth

    def forward(self, maps: Tensor) -> Tensor:
        kept = self.transition(maps)
        return torch.cat([kept, self.make(kept)], dim=1)


class _Transition(Layers):
    """Half the channels, then half the height and width."""

    def __init__(self, inputs: int) -> None:
        super().__init__(
            *norm_relu(inputs),
            Conv2d(inputs, inputs // _COMPRESSION, kernel=1),
            nn.AvgPool2d(kernel_size=2),
        )


def _head(unit: _Unit, config: DenseNetConfig, *, last: bool) -> nn.Module:
    inputs, width, classes = unit.outputs, config.head_width, config.classes
    head = PoolHead(inputs, classes) if last else head_on_the_way(inputs, width, classes)
    return Layers(*norm_relu(inputs), *head)  # what a unit makes is not yet normalised
