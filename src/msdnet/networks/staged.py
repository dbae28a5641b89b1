"""What every network of the package has in common: it can be run as a sequence of stages.

A stage computes what lies between one exit and the next. Nothing above this contract needs to
know which network is below it, and this contract knows none of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor, nn

from msdnet.checks import check_whole
from msdnet.config import NetworkConfig
from msdnet.cost import multiply_adds, skeleton
from msdnet.networks.chance import Chance

__all__ = ["StagedNetwork", "State"]


@dataclass(frozen=True, eq=False)
class State:
    """How far a batch has come: the tensors that stages yet to run will read, and no others."""

    exits_done: int
    """Exits that have answered so far."""

    maps: Mapping[Hashable, Tensor]
    """Tensors whose first dimension is the batch, under names that only the network understands."""

    lazy: bool = True
    """Whether a stage computes just what its exit needs, or every layer up to it."""


class StagedNetwork(nn.Module, ABC):
    """A network with several exits.

    As a whole, for training: `network(images)` gives the logits of every exit. Stage by stage, for inference:

        state = network.begin(images)
        logits, state = network.advance(state)     # the first exit
        state = network.keep(state, rows)          # the rows that are not yet sure
        logits, state = network.advance(state)     # the second, for those rows alone
    """

    config: NetworkConfig
    exit_count: int
    heads: nn.ModuleList
    """The classifiers, one for each exit, or one for all. Only recipes that balance gradients need to see them."""
    chance: Chance | None = None
    """What it draws as it trains, if it does."""

    def begin(self, images: Tensor, *, lazy: bool = True) -> State:
        """The state before the first stage, of images (N, channels, height, width)."""
        self.check(images)
        return self.start(images, lazy=lazy)

    def check(self, images: Tensor) -> None:
        """Refuse images that the network is not made for."""
        if not isinstance(images, Tensor):
            raise TypeError(f"images must be a torch tensor, got {type(images).__name__}")
        if images.ndim != 4:
            raise ValueError(f"images must have shape (N, channels, height, width), got {tuple(images.shape)}")
        if not images.is_floating_point():
            raise TypeError(f"images must be floating-point numbers, normalised; got {images.dtype}")
        weights = next(self.parameters())
        if images.device != weights.device:
            raise ValueError(f"images must be on {weights.device} like the weights, got them on {images.device}")
        if images.dtype != weights.dtype and not _may_mix(images):
            raise TypeError(f"images must be {weights.dtype} like the weights, got {images.dtype}")
        channels, height, width = images.shape[1:]
        if channels != self.config.input_channels:
            raise ValueError(f"images must have {self.config.input_channels} channels (input_channels), got {channels}")
        least = self.config.smallest_side
        if min(height, width) < least:
            raise ValueError(f"images must be at least {least} pixels high and wide, got {height} x {width}")

    @abstractmethod
    def start(self, images: Tensor, *, lazy: bool) -> State:
        """The state of images that were checked; it may look at nothing but the tensor as a whole."""

    def check_not_done(self, state: State) -> None:
        if state.exits_done == self.exit_count:
            raise ValueError(f"all {self.exit_count} exits have answered: there is no stage left to run")

    @abstractmethod
    def advance(self, state: State) -> tuple[Tensor, State]:
        """Run one stage: the logits (N, classes) of the next exit, and the state after it."""

    def keep(self, state: State, rows: Tensor) -> State:
        """The state of some rows alone: those that a mask has true, or those with the given indices, in their order."""
        if not isinstance(rows, Tensor) or rows.ndim != 1 or rows.dtype not in (torch.bool, torch.int64, torch.int32):
            given = f"{rows.dtype} {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise TypeError(f"rows must be a tensor of one dimension, a mask (bool) or indices (int64); got {given}")
        count = len(next(iter(state.maps.values()), rows))
        if rows.dtype == torch.bool and len(rows) != count:
            raise ValueError(f"rows must have an entry for each of {count} rows, got a mask of {len(rows)}")
        if rows.dtype != torch.bool and state.maps and len(rows) and rows.device.type == "cpu":  # a GPU would wait
            first, last = (int(row) for row in rows.aminmax())
            if not -count <= first <= last < count:
                raise IndexError(f"rows must be among the {count} of the state, got {first} to {last}")
        return replace(state, maps={name: tensor[rows] for name, tensor in state.maps.items()})

    def forward(self, images: Tensor) -> list[Tensor]:
        """The logits (N, classes) of every exit, all layers computed whole."""
        return list(self.answers(self.begin(images, lazy=False)))

    def answers(self, state: State) -> Iterator[Tensor]:
        """The logits (N, classes) of every exit that has not answered yet."""
        while state.exits_done < self.exit_count:
            logits, state = self.advance(state)
            yield logits

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def costs(self, image_size: int | tuple[int, int], *, lazy: bool = True) -> tuple[int, ...]:
        """Multiply-adds to reach each exit, earlier heads included, for one image of that height and width."""
        height, width = _height_and_width(image_size)
        twin = skeleton(self)
        dtype = next(twin.parameters()).dtype
        image = torch.empty(1, self.config.input_channels, height, width, dtype=dtype, device="meta")
        before, state = multiply_adds(twin.begin, image, lazy=lazy)
        stages = []
        for _ in range(self.exit_count):
            cost, (_, state) = multiply_adds(twin.advance, state)
            stages.append(cost)
        stages[0] += before
        return tuple(accumulate(stages))

    def cost_alone(self, image_size: int | tuple[int, int]) -> int:
        """Multiply-adds of a network that is run as a whole, for its last exit: here all that leads to it."""
        return self.costs(image_size, lazy=False)[-1]


def _may_mix(images: Tensor) -> bool:
    """Whether autocast will bring images and weights to one precision; it leaves double precision alone."""
    kind = images.device.type
    return images.dtype != torch.float64 and kind != "meta" and torch.is_autocast_enabled(kind)


def _height_and_width(image_size: object) -> tuple[int, int]:
    sides = image_size if isinstance(image_size, tuple | list) else (image_size, image_size)
    if len(sides) != 2:
        raise ValueError(f"image_size must be a side or (height, width), got {image_size!r}")
    for side in sides:
        check_whole("image_size", side)
    return sides[0], sides[1]
