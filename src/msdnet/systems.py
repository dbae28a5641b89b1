"""The other systems: networks that MSDNet is compared with or learns from, by name.

Knows configs only, as the presets do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from msdnet.checks import (
    check_choice,
    check_flag,
    check_increasing,
    check_number,
    check_whole,
    keep_checked,
    numbers,
    whole_numbers,
)
from msdnet.config import NetworkConfig
from msdnet.naming import Registry

__all__ = [
    "SYSTEMS",
    "DenseNetConfig",
    "EnsembleConfig",
    "FractalNetConfig",
    "ResNetConfig",
    "TorchvisionConfig",
    "WideResNetConfig",
]


@dataclass(frozen=True, kw_only=True)
class WideResNetConfig(NetworkConfig, kind="wide_resnet"):
    """A Wide ResNet for small images: three groups of blocks of two 3x3 convolutions, normalised before each."""

    layers: int = 28
    """Convolutions on the longest way, the three that widen shortcuts counted: 6 n + 4."""

    widening: int = 10
    """By how much the groups are wider than 16, 32 and 64 channels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_checked(self, check_whole, "layers", "widening")
        _check_layers(self.layers, 4)

    @property
    def depth(self) -> int:
        return self.layers

    @property
    def exit_layers(self) -> tuple[int, ...]:
        return (self.layers,)

    @property
    def smallest_side(self) -> int:
        return 4  # a pixel is left after two halvings

    @property
    def blocks(self) -> int:
        """In each of the three groups."""
        return (self.layers - 4) // 6


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(NetworkConfig, kind="resnet"):
    """A ResNet for small images: three groups of blocks of two 3x3 convolutions, normalised after each."""

    layers: int = 110
    """Layers on the longest way, the last classifier counted: 6 n + 2."""

    exits: tuple[int, ...] = ()
    """Blocks, counted from 1 through all groups, that carry a classifier; the last always does and is not named."""

    head_width: int = 128
    """Channels of the two convolutions of an intermediate classifier; 0 for none: like the last, it only pools."""

    survival: float = 1.0
    """Stochastic depth: the chance that the last block takes part in a training step; it falls in even steps from 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_checked(self, check_whole, "layers")
        keep_checked(self, check_whole, "head_width", at_least=0)
        _check_layers(self.layers, 2)
        survival = float(check_number("survival", self.survival, low=0, high=1, above=True))
        object.__setattr__(self, "survival", survival)
        object.__setattr__(self, "exits", _exits(self.exits, 3 * self.blocks, "block"))

    @property
    def depth(self) -> int:
        return self.layers

    @property
    def exit_layers(self) -> tuple[int, ...]:
        return (*(1 + 2 * block for block in self.exits), self.layers)

    @property
    def smallest_side(self) -> int:
        return 9 if self.exits and self.head_width else 4  # 3 pixels are left for a head with convolutions, or one

    @property
    def blocks(self) -> int:
        """In each of the three groups."""
        return (self.layers - 2) // 6

    @property
    def survivals(self) -> tuple[float, ...]:
        """The chance of each block."""
        count = 3 * self.blocks
        return tuple(1 - (1 - self.survival) * block / count for block in range(1, count + 1))


@dataclass(frozen=True, kw_only=True)
class DenseNetConfig(NetworkConfig, kind="densenet"):
    """A DenseNet-BC for small images: three blocks of units, each a 1x1 and a 3x3 convolution that add channels."""

    layers: int = 100
    """Layers on the longest way, the transitions and the last classifier counted: 6 n + 4."""

    growth: int = 12
    """Channels that a unit adds."""

    doubling: bool = False
    """Whether the growth doubles after each of the two transitions, as in DenseNet*."""

    exits: tuple[int, ...] = ()
    """Units, counted from 1 through all blocks, that carry a classifier; the last always does and is not named."""

    head_width: int = 128
    """Channels of the two convolutions of an intermediate classifier; 0 for none: like the last, it only pools."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_checked(self, check_whole, "layers", "growth")
        keep_checked(self, check_whole, "head_width", at_least=0)
        check_flag("doubling", self.doubling)
        _check_layers(self.layers, 4)
        object.__setattr__(self, "exits", _exits(self.exits, 3 * self.units, "unit"))

    @property
    def depth(self) -> int:
        return self.layers

    @property
    def exit_layers(self) -> tuple[int, ...]:
        """The stem is layer 1, a unit two layers, a transition one."""
        return (*(1 + 2 * unit + (unit - 1) // self.units for unit in self.exits), self.layers)

    @property
    def smallest_side(self) -> int:
        return 12 if self.exits and self.head_width else 4  # 3 pixels are left for a head with convolutions, or one

    @property
    def units(self) -> int:
        """In each of the three blocks."""
        return (self.layers - 4) // 6

    @property
    def growths(self) -> tuple[int, ...]:
        """Channels that each unit adds."""
        return tuple(self.growth << (block if self.doubling else 0) for block in range(3) for _ in range(self.units))


@dataclass(frozen=True, kw_only=True)
class FractalNetConfig(NetworkConfig, kind="fractalnet"):
    """A FractalNet for small images: blocks of columns of 1, 2, 4, ... 3x3 convolutions, each block half as fine."""

    columns: int = 3
    """Columns in each block; each is twice as deep as the one before, and has an exit. The last exit has them all."""

    widths: tuple[int, ...] = (64, 128, 256, 512, 512)
    """Channels in each block."""

    dropouts: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)
    """Share of the values that each block's convolutions lose in training."""

    path_drop: float = 0.15
    """Drop-path: the chance that a join leaves one of its columns out for a training image."""

    one_column_share: float = 0.5
    """Drop-path: the share of the training images for which one column, instead, is followed through the network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_checked(self, check_whole, "columns")
        keep_checked(self, whole_numbers, "widths")
        if not self.widths:
            raise ValueError("widths must have an entry for each block, got none")
        dropouts = tuple(
            float(check_number("each of dropouts", share, low=0, high=1, below=True))
            for share in numbers("dropouts", self.dropouts, low=0)
        )
        if len(dropouts) != len(self.widths):
            raise ValueError(f"dropouts must have one entry for each of {len(self.widths)} blocks, got {dropouts}")
        object.__setattr__(self, "dropouts", dropouts)
        for name in ("path_drop", "one_column_share"):
            object.__setattr__(self, name, float(check_number(name, getattr(self, name), low=0, high=1)))

    @property
    def depth(self) -> int:
        """Convolutions of the deepest column."""
        return len(self.widths) << (self.columns - 1)

    @property
    def exit_layers(self) -> tuple[int, ...]:
        """How deep each exit's columns are."""
        return (*(len(self.widths) << column for column in range(self.columns)), self.depth)

    @property
    def smallest_side(self) -> int:
        return 1 << len(self.widths)  # a pixel is left after as many halvings


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig(NetworkConfig, kind="ensemble"):
    """Networks that are asked one after the other, the cheapest first; the answer is the average of those so far."""

    members: tuple[NetworkConfig, ...]
    """In the order in which they are asked; each answers by its last exit. They get the ensemble's classes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        shared = {"classes": self.classes, "input_channels": self.input_channels}
        members = tuple(NetworkConfig.from_dict({**table, **shared}) for table in _tables(self.members))
        if not members:
            raise ValueError("members must be networks, got none")
        object.__setattr__(self, "members", members)

    @property
    def depth(self) -> int:
        return sum(member.depth for member in self.members)

    @property
    def exit_layers(self) -> tuple[int, ...]:
        return tuple(accumulate(member.depth for member in self.members))

    @property
    def smallest_side(self) -> int:
        return max(member.smallest_side for member in self.members)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"members": [member.to_dict() for member in self.members]}


def _tables(members: object) -> list[Mapping[str, Any]]:
    """The fields of networks, of each as it is, or as it comes from a file."""
    if not isinstance(members, list | tuple):
        raise TypeError(f"members must be a list of networks' configs, got {members!r}")
    for member in members:
        if not isinstance(member, NetworkConfig | Mapping):
            hint = f"; msdnet.presets.network_config({member!r}) is that of a name" if isinstance(member, str) else ""
            raise TypeError(f"each of members must be a network's config, got {member!r}{hint}")
    return [member.to_dict() if isinstance(member, NetworkConfig) else member for member in members]


# Those of ImageNet that the paper compares with, and their layers.
TORCHVISION_LAYERS = {
    "alexnet": 8,
    "googlenet": 22,
    "resnet_10": 10,
    "resnet_18": 18,
    "resnet_26": 26,
    "resnet_34": 34,
    "resnet_50": 50,
    "densenet_37": 37,
    "densenet_57": 57,
    "densenet_77": 77,
    "densenet_99": 99,
    "densenet_121": 121,
}


@dataclass(frozen=True, kw_only=True)
class TorchvisionConfig(NetworkConfig, kind="torchvision"):
    """A network for large images that torchvision's own classes build: AlexNet, GoogLeNet, ResNets and DenseNets."""

    name: str
    classes: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("name", self.name, TORCHVISION_LAYERS)
        if self.input_channels != 3:
            raise ValueError(f"input_channels must be 3 for torchvision's networks, got {self.input_channels}")

    @property
    def depth(self) -> int:
        return TORCHVISION_LAYERS[self.name]

    @property
    def exit_layers(self) -> tuple[int, ...]:
        return (self.depth,)

    @property
    def smallest_side(self) -> int:
        # AlexNet's pools need 63; halved five times, one pixel is left of the others' maps at 32.
        return 63 if self.name == "alexnet" else 32


def _check_layers(layers: int, beside: int) -> None:
    """Three groups of as many pairs of layers, and so many beside them."""
    if layers < 6 + beside or (layers - beside) % 6:
        some = ", ".join(str(6 * pairs + beside) for pairs in range(1, 5))
        raise ValueError(f"layers must be 6 n + {beside} ({some}, ...), got {layers}")


def _exits(exits: object, last: int, part: str) -> tuple[int, ...]:
    """Parts of a network that carry an intermediate classifier."""
    chosen = whole_numbers("exits", exits)
    check_increasing("exits", chosen)
    if chosen and chosen[-1] >= last:
        raise ValueError(f"exits must lie before the last {part}, {last}, which always has one; got {chosen}")
    return chosen


SYSTEMS: Registry[NetworkConfig] = Registry("network")

for _layers, _widening in ((16, 2), (16, 8), (28, 8), (28, 10), (40, 2), (40, 4)):
    SYSTEMS.register(f"wide_resnet_{_layers}_{_widening}", WideResNetConfig(layers=_layers, widening=_widening))

for _layers in (20, 32, 44, 56, 110):
    SYSTEMS.register(f"resnet_{_layers}", ResNetConfig(layers=_layers))
SYSTEMS.register("stochastic_110", ResNetConfig(layers=110, survival=0.5))
# Ten blocks a group, classifiers after the fourth and the eighth. Heads of 64 channels, as many as a ResNet's last maps
# have, here and in DenseNet-MC: with MSDNet's 128 they would take a quarter of the cost and a half of it.
SYSTEMS.register("resnet_mc", ResNetConfig(layers=62, exits=(4, 8, 14, 18, 24, 28), head_width=64))

# From 2e7 to 3e8 multiply-adds in about equal ratios; at the same depth, both kinds cost about the same.
for _layers in (16, 28, 58, 100):
    SYSTEMS.register(f"densenet_bc_{_layers}_12", DenseNetConfig(layers=_layers, growth=12))
for _layers in (16, 28, 58, 100):
    SYSTEMS.register(f"densenet_star_{_layers}_8", DenseNetConfig(layers=_layers, growth=8, doubling=True))
# Eight units (16 layers) a block, classifiers after the third and the sixth (layers 6 and 12).
SYSTEMS.register("densenet_mc", DenseNetConfig(layers=52, growth=11, exits=(3, 6, 11, 14, 19, 22), head_width=64))

for _columns in (3, 4):
    _fractal = FractalNetConfig(columns=_columns)
    SYSTEMS.register(f"fractalnet_{_fractal.depth}", _fractal)

for _name in TORCHVISION_LAYERS:
    SYSTEMS.register(f"imagenet_{_name}", TorchvisionConfig(name=_name))
