"""The grid of cells that a config describes, and which stage computes which of them.

Pure Python: knows wiring and widths, not tensors. The network is built from the grid and run
by the plan; drawings are made from both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msdnet.config import MSDNetConfig

__all__ = ["IMAGE", "Cell", "Grid", "Stage", "Wiring"]


class Cell(NamedTuple):
    """One step of the grid: layer 0 is the seed layer (the paper's first), scale 1 the finest.

    With dense connections a cell holds all that its scale has so far, the paper's [x_1, ..., x_l].
    """

    layer: int
    scale: int


# The image stands one layer before the seed layer, so that states and plans can treat it as a cell.
IMAGE = Cell(layer=-1, scale=1)


@dataclass(frozen=True)
class Wiring:
    """What a cell reads and how wide it is."""

    regular: Cell | None
    """Same scale, one layer before: read by the regular convolution h."""

    strided: Cell | None
    """The finer scale: read by the strided convolution h~ (in the seed layer, straight from above)."""

    made: int
    """Channels that the cell's own convolutions make, both halves together."""

    carried: int = 0
    """Channels taken over from `regular` as they are: the dense connection."""

    transition: int | None = None
    """Channels left by the 1x1 transition that follows, where one does."""

    @property
    def channels(self) -> int:
        """Channels that the cell hands on."""
        return self.transition or self.carried + self.made

    @property
    def reads(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in (self.regular, self.strided) if cell is not None)


@dataclass(frozen=True)
class Stage:
    """What is computed between one exit and the next."""

    computes: tuple[Cell, ...]
    """In an order in which each cell finds what it reads."""

    forgets: tuple[tuple[Cell, ...], ...]
    """After each of them, the cells that nothing reads any more."""

    exit: Cell
    """The cell that this stage's classifier reads."""

    hands_on: tuple[Cell, ...]
    """Cells computed so far that a later stage still reads."""


class Grid:
    """The cells of a network, layer by layer and fine to coarse: only those that some exit depends on."""

    def __init__(self, config: MSDNetConfig) -> None:
        self.config = config
        widths = config.widths
        self.exits = tuple(Cell(layer, self.scales_of(layer)[-1]) for layer in config.exit_layers)
        everything = {
            cell: self._wire(cell, widths)
            for layer in range(config.exits[-1] + 1)
            for cell in (Cell(layer, scale) for scale in self.scales_of(layer))
        }
        needed = _reached(self.exits, everything)
        self.cells: Mapping[Cell, Wiring] = {cell: wiring for cell, wiring in everything.items() if cell in needed}
        # Each stage computes only what its exit needs: the "diagonal blocks" of the paper.
        self.lazy_stages = self._stages([_reached([exit], self.cells) for exit in self.exits])
        # Each stage computes all the layers up to its exit's, as the released codes do.
        self.whole_stages = self._stages(
            [{cell for cell in self.cells if cell.layer <= exit.layer} for exit in self.exits]
        )

    def scales_of(self, layer: int) -> range:
        """The scales that a layer has; the last of them is where its exit sits."""
        config, blocks_done = self.config, max(layer - 1, 0) // self.config.interval
        if not config.multi_scale:
            return range(blocks_done + 1, blocks_done + 2)
        if layer == 0 or config.reduction == "none":
            dropped = 0
        elif config.reduction == "blocks":
            dropped = blocks_done
        else:
            dropped = max(config.scales - (config.depth - layer + 1), 0)
        return range(dropped + 1, config.scales + 1)

    def _wire(self, cell: Cell, widths: tuple[int, ...]) -> Wiring:
        (layer, scale), config = cell, self.config
        factor = config.channel_factors[scale - 1]
        width = widths[layer] * factor
        if layer == 0:
            regular, strided = (IMAGE, None) if scale == 1 else (None, Cell(0, scale - 1))
            return Wiring(regular, strided, made=width)
        before = self.scales_of(layer - 1)
        if scale not in before:  # one scale at a time: a strided step carries everything to the next scale
            return Wiring(regular=None, strided=Cell(layer - 1, scale - 1), made=width)
        return Wiring(
            regular=Cell(layer - 1, scale),
            strided=Cell(layer - 1, scale - 1) if scale - 1 in before else None,
            made=config.growth * factor,
            carried=widths[layer - 1] * factor if config.dense else 0,
            transition=width if layer in config.narrowing_layers else None,
        )

    def _stages(self, wanted: list[set[Cell]]) -> tuple[Stage, ...]:
        """The stages in which each exit's wanted cells are computed, save those that an earlier one has computed."""
        fresh: list[list[Cell]] = []
        for cells in wanted:
            done = {cell for stage in fresh for cell in stage}
            fresh.append([cell for cell in self.cells if cell in cells - done])
        order = [cell for stage in fresh for cell in stage]
        last_read = {source: reader for reader in order for source in self.cells[reader].reads}
        stages, at_hand = [], {IMAGE}
        for exit, computes in zip(self.exits, fresh, strict=True):
            forgets = []
            for cell in computes:
                at_hand.add(cell)
                spent = {source for source in at_hand if last_read.get(source) == cell}
                forgets.append(tuple(sorted(spent)))
                at_hand -= spent
            at_hand = {cell for cell in at_hand if cell in last_read}  # what an exit alone read is answered
            stages.append(Stage(tuple(computes), tuple(forgets), exit, tuple(sorted(at_hand))))
        return tuple(stages)


def _reached(cells: Iterable[Cell], wirings: Mapping[Cell, Wiring]) -> set[Cell]:
    """The cells that these depend on, themselves included."""
    reached: set[Cell] = set()
    frontier = list(cells)
    while frontier:
        cell = frontier.pop()
        if cell not in reached and cell != IMAGE:
            reached.add(cell)
            frontier.extend(wirings[cell].reads)
    return reached
