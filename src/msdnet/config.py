"""What a network is: a frozen description, checked where it is made, and its JSON form.

Knows nothing of tensors, data sets or trained weights, and needs nothing but the standard library.
"""

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Literal, Self, get_args

from msdnet.checks import (
    check_choice,
    check_flag,
    check_increasing,
    check_number,
    check_whole,
    keep_checked,
    whole_numbers,
)
from msdnet.naming import Registry
from msdnet.tables import from_mapping

__all__ = [
    "MSDNetConfig",
    "NetworkConfig",
    "UnknownKindError",
    "UnknownNetwork",
    "described_network",
    "even",
    "growing",
]

Reduction = Literal["blocks", "tail", "none"]
Stem = Literal["cifar", "imagenet"]

# Halvings of the image before the finest scale: none, or the stem's stride and its pool's.
_STEM_HALVINGS: Mapping[Stem, int] = {"cifar": 0, "imagenet": 2}
# A map of 3 pixels is the least that both strided convolutions of a head still shrink: 3 -> 2 -> 1.
_LEAST_COARSEST_SIDE = 3


def even(base: int, step: int, n: int) -> tuple[int, ...]:
    """Exits at layers base, base + step, ...: n of them, as the paper's anytime networks have.

    >>> even(4, 2, 5)
    (4, 6, 8, 10, 12)
    """
    check_whole("base", base)
    check_whole("step", step)
    check_whole("n", n)
    return tuple(base + step * i for i in range(n))


def growing(n: int) -> tuple[int, ...]:
    """Exits at layers 1, 1 + 2, 1 + 2 + 3, ...: n of them, as the paper's budgeted-batch networks have.

    >>> growing(5)
    (1, 3, 6, 10, 15)
    """
    check_whole("n", n)
    return tuple(k * (k + 1) // 2 for k in range(1, n + 1))


class UnknownKindError(ValueError):
    """A network is of a kind that nothing which was imported here has made known."""


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(ABC):
    """What all networks have in common. Each kind of them has a config of its own, known in JSON by `kind`:

        class OwnConfig(NetworkConfig, kind="own"): ...

    `msdnet.register_network` says what builds the networks of a kind.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[Registry[type["NetworkConfig"]]] = Registry("kind of network")

    classes: int = 100
    """Width of every classifier's output."""

    input_channels: int = 3
    """Channels of an image: 1 for grey, 3 for colour."""

    def __init_subclass__(cls, kind: str | None = "") -> None:
        if kind == "":
            raise TypeError(f'{cls.__name__} needs a kind: class {cls.__name__}(NetworkConfig, kind="own")')
        if kind is not None:
            cls.kind = kind
            cls._kinds.register(kind, cls)

    def __post_init__(self) -> None:
        keep_checked(self, check_whole, "classes", "input_channels")

    @property
    @abstractmethod
    def exit_layers(self) -> tuple[int, ...]:
        """Layers whose classifiers are built."""

    @property
    def depth(self) -> int:
        """The number of layers: by default up to the last classifier."""
        return self.exit_layers[-1]

    @property
    def smallest_side(self) -> int:
        """The least height and width of an image."""
        return 1

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **dataclasses.asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def replaced(self, fields: Mapping[str, Any]) -> "NetworkConfig":
        """The same with other values of some fields."""
        return NetworkConfig.from_dict({**self.to_dict(), **fields})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config that `to_dict` gave; what is missing takes its default, what is unknown is refused."""
        if not isinstance(values, Mapping):
            raise TypeError(f"a network config must be a table of fields, got {type(values).__name__}")
        kind = values.get("kind", getattr(cls, "kind", MSDNetConfig.kind))
        if kind not in list(cls._kinds):
            raise UnknownKindError(
                f"a network config: kind must be one of {', '.join(cls._kinds)}; got {kind!r} "
                "(one of your own is known once the module that defines it is imported; on the command line: "
                "msdnet --import MODULE ...)"
            )
        chosen = cls._kinds[kind]
        if not issubclass(chosen, cls):
            raise TypeError(f"a network config: kind must be {cls.kind}, got {kind}")
        fields = {name: value for name, value in values.items() if name != "kind"}
        return from_mapping(chosen, fields, "a network config")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The config that `to_json` wrote."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise ValueError(f"a network config must be JSON: {error}") from error


@dataclass(frozen=True, kw_only=True)
class UnknownNetwork(NetworkConfig, kind=None):
    """What can be told of a network whose kind is not known here. To classify with a bundle, nothing more is needed."""

    table: Mapping[str, Any]
    """The config as it was written."""
    why: str
    """What was said when it was read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "kind", self.table["kind"])

    @property
    def exit_layers(self) -> tuple[int, ...]:
        raise UnknownKindError(self.why)

    @property
    def smallest_side(self) -> int:
        raise UnknownKindError(self.why)

    def to_dict(self) -> dict[str, Any]:
        return dict(self.table)


def described_network(values: Mapping[str, Any]) -> NetworkConfig:
    """The config that `to_dict` gave, or what it tells of a network whose kind is not known here."""
    try:
        return NetworkConfig.from_dict(values)
    except UnknownKindError as error:
        common: dict[str, Any] = {name: values.get(name) for name in ("classes", "input_channels")}
        return UnknownNetwork(table=values, why=str(error), **common)


@dataclass(frozen=True, kw_only=True)
class MSDNetConfig(NetworkConfig, kind="msdnet"):
    """An MSDNet. The defaults are the paper's for CIFAR; scale 1 is the finest, scale S the coarsest.

    >>> MSDNetConfig(exits=even(4, 2, 7)).depth
    16
    """

    exits: tuple[int, ...]
    """Layers that carry a classifier, increasing; the seed layer is not counted. See `even` and `growing`."""

    layers: int | None = None
    """Layers that the reduction is laid out over. By default the last exit's; none after that is built."""

    scales: int = 3
    """Number of scales S, each half as fine as the one before."""

    seed_channels: int = 16
    """Channels that the seed layer makes at the finest scale."""

    growth: int = 6
    """Channels that every further layer adds at the finest scale."""

    channel_factors: tuple[int, ...] = ()
    """By how much each scale is wider than `seed_channels` and `growth` say; by default 1, 2, 4, 4, ..."""

    bottleneck_factors: tuple[int, ...] = ()
    """Width of a unit's 1x1 convolution over that of its output, for the scale that the unit reads; 0 for none,
    a 3x3 convolution alone; by default 1, 2, 4, 4, ..."""

    stem: Stem = "cifar"
    """How the finest scale is seeded: a 3x3 convolution, or a 7x7 with stride 2 and a 3x3 max-pool with stride 2."""

    head_width: int | Literal["input"] = 128
    """Channels of a head's two convolutions, or "input" for as many as the head reads."""

    reduction: Reduction = "blocks"
    """How fine scales are given up: one after each of S blocks, over the last S - 1 layers ("tail"), or never."""

    transition_ratio: float = 0.5
    """Share of the channels that a transition keeps."""

    dense: bool = True
    """Whether a layer reads everything made before it at its scales, or only what the layer before made."""

    multi_scale: bool = True
    """Whether all scales are kept side by side, or one at a time with a strided step between blocks."""

    intermediate_classifiers: bool = True
    """Whether every exit is built, or the last one alone."""

    averaging: float | None = None
    """Outside training, an exit answers with the average of the logits so far, where exit j counts j to this power;
    by default each speaks for itself, as in the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_checked(self, check_whole, "scales", "seed_channels", "growth")
        keep_checked(self, whole_numbers, "exits", "channel_factors")
        keep_checked(self, whole_numbers, "bottleneck_factors", at_least=0)
        for name in ("channel_factors", "bottleneck_factors"):
            object.__setattr__(self, name, getattr(self, name) or _usual_factors(self.scales))
        for name in ("dense", "multi_scale", "intermediate_classifiers"):
            check_flag(name, getattr(self, name))
        if self.averaging is not None:
            object.__setattr__(self, "averaging", float(check_number("averaging", self.averaging, low=0, high=8)))
        check_choice("stem", self.stem, get_args(Stem))
        check_choice("reduction", self.reduction, get_args(Reduction))
        self._check_exits()
        self._check_factors()
        self._check_widths()

    def replaced(self, fields: Mapping[str, Any]) -> NetworkConfig:
        """The same with other values of some fields. Factors that are the usual ones follow the number of scales."""
        usual = _usual_factors(self.scales)
        following = [name for name in ("channel_factors", "bottleneck_factors") if getattr(self, name) == usual]
        return super().replaced({**dict.fromkeys(following, ()), **fields})

    def _check_exits(self) -> None:
        if not self.exits:
            raise ValueError("exits must name at least one layer, got none")
        check_increasing("exits", self.exits)
        if self.layers is None:
            return
        keep_checked(self, check_whole, "layers")
        if self.exits[-1] > self.layers:
            raise ValueError(f"exits must not lie beyond the last layer, {self.layers}; got {self.exits}")

    def _check_factors(self) -> None:
        for name in ("channel_factors", "bottleneck_factors"):
            if len(getattr(self, name)) != self.scales:
                raise ValueError(
                    f"{name} must have one entry for each of {self.scales} scales, got {getattr(self, name)}"
                )
        if not (isinstance(self.head_width, str) and self.head_width == "input"):
            keep_checked(self, check_whole, "head_width", or_else=' or "input"')
        keep_checked(self, check_number, "transition_ratio", low=0, high=1, above=True)
        if not self.multi_scale and self.reduction != "blocks":
            raise ValueError(f'reduction must be "blocks" when multi_scale is off, got {self.reduction!r}')
        for scale, factor in enumerate(self.channel_factors[1:], start=2):
            if self.multi_scale and self.growth * factor % 2:
                raise ValueError(
                    f"growth must be even at every scale but the finest, since half of it comes from the finer one; "
                    f"got growth {self.growth} x channel_factors {factor} = {self.growth * factor} at scale {scale}"
                )

    def _check_widths(self) -> None:
        if 0 in self.widths:
            raise ValueError(
                f"transition_ratio must leave at least one channel, "
                f"got {self.transition_ratio} at layer {self.widths.index(0)}"
            )

    @property
    def depth(self) -> int:
        """The number of layers L."""
        return self.exits[-1] if self.layers is None else self.layers

    @property
    def exit_layers(self) -> tuple[int, ...]:
        """Layers whose classifiers are built."""
        return self.exits if self.intermediate_classifiers else self.exits[-1:]

    @property
    def exit_shares(self) -> tuple[float, ...] | None:
        """What share its own logits have in the answer of each exit; the rest is what the exits before it answered."""
        if self.averaging is None:
            return None
        weights = [exit**self.averaging for exit in range(1, len(self.exit_layers) + 1)]
        return tuple(weight / total for weight, total in zip(weights, accumulate(weights), strict=True))

    @property
    def interval(self) -> int:
        """Layers in each of the S blocks of the reduction."""
        return math.ceil(self.depth / self.scales)

    @property
    def narrowing_layers(self) -> tuple[int, ...]:
        """Layers that end with a transition, or, one scale at a time, with the step to the next scale."""
        if not self.dense:  # nothing is concatenated, so there is nothing to merge
            return ()
        if self.reduction == "blocks":  # where a scale is given up
            return tuple(range(self.interval + 1, self.depth + 1, self.interval))
        return (self.depth // 3, 2 * self.depth // 3) if self.reduction == "tail" else ()

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels after the seed layer and after every layer up to the last exit, in units of the finest scale."""
        widths = [self.seed_channels]
        for layer in range(1, self.exits[-1] + 1):
            width = widths[-1] + self.growth if self.dense else self.growth
            widths.append(math.floor(width * self.transition_ratio) if layer in self.narrowing_layers else width)
        return tuple(widths)

    @property
    def smallest_side(self) -> int:
        """The least height and width of an image: below it the coarsest map is too small for a head."""
        halvings = _STEM_HALVINGS[self.stem] + self.scales - 1
        return ((_LEAST_COARSEST_SIDE - 1) << halvings) + 1


def _usual_factors(scales: int) -> tuple[int, ...]:
    return (1, 2, *[4] * scales)[:scales]
