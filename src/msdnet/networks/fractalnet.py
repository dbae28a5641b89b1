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

from msdnet.networks.chance import Chance
from msdnet.networks.layers import Conv2d, Layers, PoolHead
from msdnet.networks.staged import StagedNetwork, State
from msdnet.systems import FractalNetConfig

__all__ = ["DropPath", "FractalNet"]

_IMAGES, _DRAWN = "images", "drawn"

Join: TypeAlias = Callable[[Sequence[Tensor]], Tensor]
"""Makes one map of those that the deepest columns have made, the deepest last."""


class FractalNet(StagedNetwork):
    """A fractal network, built from its config.

    Exit k answers by column k, computed from the images anew, and the last exit by all columns together; all share one
    classifier. In training, all answer by the one network that drop-path has drawn for each image, and the last alone
    has gradients, since it would be the same loss over and over.
    """

    config: FractalNetConfig
    chance: Chance

    def __init__(self, config: FractalNetConfig) -> None:
        super().__init__()
        self.config = config
        self.exit_count = config.columns + 1
        self.chance = Chance()
        inputs = (config.input_channels, *config.widths[:-1])
        self.blocks = nn.ModuleList(
            _Block(config.columns, *shape, self.chance)
            for shape in zip(inputs, config.widths, config.dropouts, strict=True)
        )
        self.heads = nn.ModuleList([PoolHead(config.widths[-1], config.classes)])

    def start(self, images: Tensor, *, lazy: bool) -> State:
        return State(exits_done=0, maps={_IMAGES: images}, lazy=lazy)

    def advance(self, state: State) -> tuple[Tensor, State]:
        self.check_not_done(state)
        exit, maps = state.exits_done, dict(state.maps)
        last = exit + 1 == self.exit_count
        if self.training:
            if exit == 0:
                images = maps.pop(_IMAGES)
                drop_path = DropPath(self.config, self.chance, images=len(images), device=images.device)
                maps[_DRAWN] = self._answer(self._join_columns(images, drop_path))
            logits = maps[_DRAWN] if last else maps[_DRAWN].detach()
        else:
            images = maps[_IMAGES]
            logits = self._answer(self._join_columns(images, _mean) if last else self._one_column(images, exit))
        return logits, State(exit + 1, {} if last else maps, state.lazy)

    def cost_alone(self, image_size: int | tuple[int, int]) -> int:
        """The last exit takes all columns, joined, and nothing of what single columns have made before."""
        *_, before, whole = self.costs(image_size, lazy=False)
        return whole - before

    def _answer(self, maps: Tensor) -> Tensor:
        logits: Tensor = self.heads[0](maps)
        return logits

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

    def __init__(self, columns: int, inputs: int, width: int, dropout: float, chance: Chance) -> None:
        super().__init__()
        self.columns = nn.ModuleList(
            nn.Sequential(*(_conv(width if number else inputs, width, dropout, chance) for number in range(2**column)))
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


def _conv(inputs: int, outputs: int, dropout: float, chance: Chance) -> nn.Module:
    lose = _Dropout(dropout, chance) if dropout else nn.Identity()
    return Layers(Conv2d(inputs, outputs, kernel=3), lose, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class _Dropout(nn.Module):
    """Torch's own cannot be told where to draw from."""

    def __init__(self, share: float, chance: Chance) -> None:
        super().__init__()
        self.share, self.chance = share, chance

    def forward(self, maps: Tensor) -> Tensor:
        if not self.training:
            return maps
        kept = 1 - self.share
        return maps * self.chance.ones(kept, like=maps) * (1 / kept)


def _mean(maps: Sequence[Tensor]) -> Tensor:
    return maps[0] if len(maps) == 1 else reduce(torch.add, maps) * (1 / len(maps))


class DropPath:
    """Joins for one batch. For some images each join drops some of its maps, others follow one column all the way.

    It is drawn for each image, so that BN sees all of these networks in each batch, as it does when it answers.
    """

    def __init__(self, config: FractalNetConfig, chance: Chance, *, images: int, device: torch.device) -> None:
        self.drop, self.chance, self.images, self.device = config.path_drop, chance, images, device
        self.follows_one = chance.uniform(images, 1, device=device) < config.one_column_share
        self.column = self._one_of(config.columns)

    def __call__(self, maps: Sequence[Tensor]) -> Tensor:
        if len(maps) == 1:
            return maps[0]
        weights = self.weights(len(maps)).to(maps[0].dtype)[:, :, None, None, None].unbind(dim=1)
        return reduce(torch.add, map(torch.mul, maps, weights))

    def weights(self, count: int) -> Tensor:
        """Of the maps of the deepest columns, (images, count): 1 in all for each image."""
        kept = self.chance.uniform(self.images, count, device=self.device) >= self.drop
        kept = kept | (~kept.any(dim=1, keepdim=True) & self._one_of(count))
        one = self.column[:, -count:]
        one = one | ~one.any(dim=1, keepdim=True)  # where the column has no part in a join, nothing depends on it
        chosen = torch.where(self.follows_one, one, kept)
        return chosen / chosen.sum(dim=1, keepdim=True)

    def _one_of(self, count: int) -> Tensor:
        """A mask (images, count) of one that is drawn for each image."""
        drawn = self.chance.whole(self.images, 1, below=count, device=self.device)
        return torch.arange(count, device=self.device) == drawn
