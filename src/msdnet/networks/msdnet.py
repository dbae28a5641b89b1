"""MSDNet in PyTorch, to be read beside sections 3 and 4 of the paper.

A network is run as a whole (`forward`, for training) or stage by stage (`begin`, `advance`,
`keep`, for inference). Knows nothing of data sets, losses, files or thresholds.
"""

from collections.abc import Hashable, Mapping

from torch import Tensor, nn

from msdnet.config import MSDNetConfig
from msdnet.networks.layers import Concat, ConvHead, ConvNormReLU
from msdnet.networks.staged import StagedNetwork, State
from msdnet.plan import IMAGE, Cell, Grid, Wiring

__all__ = ["MSDNet"]

_ANSWER = "answer"  # so far, where exits are averaged


class _Unit(nn.Sequential):
    """The paper's h (stride 1) or h~ (stride 2): a 1x1 bottleneck (0: none), then a 3x3 convolution."""

    def __init__(self, inputs: int, bottleneck: int, outputs: int, stride: int) -> None:
        narrowing = [ConvNormReLU(inputs, bottleneck, kernel=1)] if bottleneck else []
        super().__init__(*narrowing, ConvNormReLU(bottleneck or inputs, outputs, kernel=3, stride=stride))


class _Stem(nn.Sequential):
    """The seed layer at the finest scale."""

    def __init__(self, config: MSDNetConfig, outputs: int) -> None:
        if config.stem == "cifar":
            super().__init__(ConvNormReLU(config.input_channels, outputs, kernel=3))
        else:
            super().__init__(
                ConvNormReLU(config.input_channels, outputs, kernel=7, stride=2),
                nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
            )


class _Cell(nn.Module):
    """A cell past the seed layer: what was there, the strided half, the regular half, then the transition."""

    def __init__(self, wiring: Wiring, regular: _Unit, strided: _Unit | None) -> None:
        super().__init__()
        self.dense = wiring.carried > 0
        self.regular = regular
        self.strided = strided
        halves = [wiring.made // len(wiring.reads)] * len(wiring.reads)
        self.joined = Concat(*([wiring.carried] if self.dense else []), *halves)
        self.transition = (
            None
            if wiring.transition is None
            else ConvNormReLU(wiring.carried + wiring.made, wiring.transition, kernel=1)
        )

    def forward(self, same: Tensor, finer: Tensor | None = None) -> Tensor:
        maps = [same] if self.dense else []
        if self.strided is not None:
            maps.append(self.strided(finer))
        maps.append(self.regular(same))
        joined: Tensor = self.joined(*maps)
        return joined if self.transition is None else self.transition(joined)


class MSDNet(StagedNetwork):
    """A multi-scale dense network, built from its config.

    The modules are its cells, named by layer and scale (layer 0 is the seed layer, scale 1 the finest),
    and its heads, one for each exit. Which cells there are and what each reads, its grid says.
    """

    config: MSDNetConfig

    def __init__(self, config: MSDNetConfig) -> None:
        super().__init__()
        self.config = config
        self.grid = Grid(config)
        self.exit_count = len(self.grid.exits)
        self._shares = config.exit_shares
        self.cells = nn.ModuleDict({_name(cell): _build_cell(self.grid, cell) for cell in self.grid.cells})
        self.heads = nn.ModuleList(_build_head(self.grid, cell) for cell in self.grid.exits)

    def start(self, images: Tensor, *, lazy: bool) -> State:
        return State(exits_done=0, maps={IMAGE: images}, lazy=lazy)

    def advance(self, state: State) -> tuple[Tensor, State]:
        self.check_not_done(state)
        stages = self.grid.lazy_stages if state.lazy else self.grid.whole_stages
        stage, maps = stages[state.exits_done], dict(state.maps)
        for cell, spent in zip(stage.computes, stage.forgets, strict=True):
            maps[cell] = self.compute(cell, maps)
            for source in spent:
                del maps[source]
        logits = self.heads[state.exits_done](maps[stage.exit])
        kept: dict[Hashable, Tensor] = {cell: maps[cell] for cell in stage.hands_on}
        if self._shares is not None and not self.training:  # in training each exit learns by itself
            share = self._shares[state.exits_done]
            logits = logits * share + state.maps[_ANSWER] * (1 - share) if state.exits_done else logits
            if state.exits_done + 1 < self.exit_count:
                kept[_ANSWER] = logits
        return logits, State(state.exits_done + 1, kept, state.lazy)

    def compute(self, cell: Cell, maps: Mapping[Hashable, Tensor]) -> Tensor:
        """The map of one cell, from those that it reads."""
        result: Tensor = self.cells[_name(cell)](*(maps[source] for source in self.grid.cells[cell].reads))
        return result


def _name(cell: Cell) -> str:
    return f"layer{cell.layer}_scale{cell.scale}"


def _build_cell(grid: Grid, cell: Cell) -> nn.Module:
    config, wiring = grid.config, grid.cells[cell]
    if wiring.regular == IMAGE:
        return _Stem(config, wiring.made)
    if cell.layer == 0:
        return ConvNormReLU(grid.cells[wiring.reads[0]].channels, wiring.made, kernel=3, stride=2)

    def unit(source: Cell, stride: int, keeps: float = 1.0) -> _Unit:
        inputs, outputs = grid.cells[source].channels, wiring.made // len(wiring.reads)
        bottleneck = min(int(keeps * inputs), config.bottleneck_factors[source.scale - 1] * outputs)
        return _Unit(inputs, bottleneck, outputs, stride)

    if wiring.regular is None:  # one scale at a time: the step to the next scale, narrowing as a transition does
        assert wiring.strided is not None
        return unit(wiring.strided, stride=2, keeps=config.transition_ratio if config.dense else 1.0)
    strided = None if wiring.strided is None else unit(wiring.strided, stride=2)
    return _Cell(wiring, unit(wiring.regular, stride=1), strided)


def _build_head(grid: Grid, cell: Cell) -> ConvHead:
    channels, width = grid.cells[cell].channels, grid.config.head_width
    return ConvHead(channels, channels if width == "input" else width, grid.config.classes)
