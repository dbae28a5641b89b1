"""Fractal networks for small images (Larsson et al., 2017).

A block has C columns side by side; column c (from 1) is a chain of 2^(c-1) convolutions, and wherever some columns
have finished one at the same time, they go on from the mean of what they made:

    column 1    conv ---------------------------- mean
    column 2    conv -------- mean    conv ------ mean
    column 3    conv   conv   mean    conv   conv mean

A column by itself, through all blocks, is a network too. Drop-path trains these along with the whole.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

import torch
from torch import Tensor, nn

from msdnet.networks.layers import Conv2d, PoolHead
from msdnet.networks.staged import StagedNetwork, State
from msdnet.systems import FractalNetConfig

__all__ = ["DropPath", "FractalNet"]

_IMAGES, _DRAWN = "images", "drawn"

Join: TypeAlias = Callable[[Sequence[Tensor]], Tensor]
"""Makes one map of those that the deepest columns have made, the deepest last."""


class FractalNet(StagedNetwork):
    """A fractal network, built from its config.

    Exit k answers by column k, computed from the images anew, and the last exit by all columns together.
    In training, all exits answer by the one network that drop-path has drawn for the batch.
    """

    config: FractalNetConfig

    def __init__(self, config: FractalNetConfig) -> None:
        super().__init__()
        self.config = config
        self.exit_count = config.columns + 1
        inputs = (config.input_channels, *config.widths[:-1])
        self.blocks = nn.ModuleList(map(_Block, [config.columns] * len(inputs), inputs, config.widths, config.dropouts))
        self.heads = nn.ModuleList(PoolHead(config.widths[-1], config.classes) for _ in range(self.exit_count))

    def start(self, images: Tensor, *, lazy: bool) -> State:
        return State(exits_done=0, maps={_IMAGES: images}, lazy=lazy)

    def advance(self, state: State) -> tuple[Tensor, State]:
        self.check_not_done(state)
        exit, maps = state.exits_done, dict(state.maps)
        if self.training:
            if exit == 0:
                maps[_DRAWN] = self._join_columns(maps.pop(_IMAGES), DropPath(self.config, state.maps[_IMAGES].device))
            made = maps[_DRAWN]
        elif exit < self.config.columns:
            made = self._one_column(maps[_IMAGES], exit)
        else:
            made = self._join_columns(maps[_IMAGES], _mean)
        return self.heads[exit](made), State(exit + 1, maps if exit + 1 < self.exit_count else {}, state.lazy)

    def cost_alone(self, image_size: int | tuple[int, int]) -> int:
        """The last exit takes all columns, joined, and nothing of what single columns have made before."""
        *_, before, whole = self.costs(image_size, lazy=False)
        return whole - before

    def _one_column(self, maps: Tensor, column: int) -> Tensor:
        for block in self.blocks:
            maps = block.one_column(maps, column)  # type: ignore[operator]
        return maps

    def _join_columns(self, maps: Tensor, join: Join) -> Tensor:
        for block in self.blocks:
            maps = block(maps, join)
        return maps


class _Block(nn.Module):
    """Columns side by side, the shallowest first; at the end of each, height and width are halved."""

    def __init__(self, columns: int, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.columns = nn.ModuleList(
            nn.Sequential(*(_conv(width if number else inputs, width, dropout) for number in range(2**column)))
            for column in range(columns)
        )
        self.pool = nn.MaxPool2d(kernel_size=2)

    def one_column(self, maps: Tensor, column: int) -> Tensor:
        made: Tensor = self.pool(self.columns[column](maps))
        return made

    def forward(self, maps: Tensor, join: Join) -> Tensor:
        columns = [list(column) for column in self.columns]  # type: ignore[call-overload]
        steps = len(columns[-1])
        reads = [maps] * len(columns)
        for step in range(1, steps + 1):
            # A convolution of a column with n of them takes steps / n steps.
            ready = [c for c, column in enumerate(columns) if step % (steps // len(column)) == 0]
            made = [columns[c][step * len(columns[c]) // steps - 1](reads[c]) for c in ready]
            joined = join(made if step < steps else [self.pool(one) for one in made])
            reads = [joined if c in ready else read for c, read in enumerate(reads)]
        return joined


def _conv(inputs: int, outputs: int, dropout: float) -> nn.Module:
    return nn.Sequential(
        Conv2d(inputs, outputs, kernel=3), nn.Dropout(dropout), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


def _mean(maps: Sequence[Tensor]) -> Tensor:
    return maps[0] if len(maps) == 1 else reduce(torch.add, maps) * (1 / len(maps))


class DropPath:
    """Joins for one batch: each drops some of its maps by itself, or all of them follow one column of the network.

    Everything is drawn where the batch is, so that a captured graph draws anew each time that it is run.
    """

    def __init__(self, config: FractalNetConfig, device: torch.device) -> None:
        self.drop, self.device = config.path_drop, device
        self.follows_one = torch.rand((), device=device) < config.one_column_share
        self.column = self._one_of(config.columns)

    def __call__(self, maps: Sequence[Tensor]) -> Tensor:
        if len(maps) == 1:
            return maps[0]
        weights = self.weights(len(maps)).unbind()
        shares = [one * weight.to(one.dtype) for one, weight in zip(maps, weights, strict=True)]
        return reduce(torch.add, shares)

    def weights(self, count: int) -> Tensor:
        """Of the maps (count) of the deepest columns, 1 in all."""
        kept = torch.rand(count, device=self.device) >= self.drop
        kept = kept | (~kept.any() & self._one_of(count))
        one = self.column[-count:]
        one = one | ~one.any()  # where the column has no part in a join, nothing that it answers depends on it
        chosen = torch.where(self.follows_one, one, kept)
        return chosen / chosen.sum()

    def _one_of(self, count: int) -> Tensor:
        """A mask (count) of one that is drawn."""
        numbers = torch.arange(count, device=self.device)
        return torch.eq(numbers, torch.randint(count, (), device=self.device))
