"""The contract that everything which classifies keeps, whatever network or library is below it.

    begin(images)        -> state
    advance(state)       -> probabilities of the next exit, state
    launch(state)        -> the same, to be called for later
    keep(state, rows)    -> state with those rows only
    costs                -> multiply-adds to reach each exit, cumulative

A room gathers rows of several states until a batch is full. Knows arrays, what images a network takes, and how logits
become probabilities; nothing of files, budgets or thresholds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msdnet.bundle import ImageSpec
from msdnet.policy import soften

__all__ = ["Array", "Engine", "Launched", "Probabilities", "Room", "Rows", "State"]

Array: TypeAlias = Any
"""Of numpy or of torch; the first dimension is the batch."""
Rows: TypeAlias = NDArray[np.integer]
Probabilities: TypeAlias = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class State:
    """How far a batch has come: what stages yet to run will read."""

    exits_done: int
    rows: int
    maps: Mapping[Hashable, Array]


Launched: TypeAlias = Callable[[], tuple[Probabilities, State]]
"""A stage that was started. Called, it waits for the end: the probabilities (N, classes), and the state after it."""


class Engine(ABC):
    """Runs a network stage by stage. As text it is what people are told of it.

    - costs: multiply-adds to reach each exit, cumulative
    - images: what it takes
    - temperatures: by which logits are divided before they become probabilities
    """

    best_batch: int
    """Rows that make good use of the machine."""
    ahead = 0
    """Stages to launch before the result of the last is asked for, so that the machine is never idle; none where a
    launch is itself the computation."""

    def __init__(self, costs: Sequence[int], images: ImageSpec, temperatures: Sequence[float]) -> None:
        self.costs = tuple(costs)
        self.images = images
        self.temperatures = tuple(temperatures)

    @property
    def options(self) -> dict[str, Any]:
        """With which, and with its bundle, another like it is made."""
        return {}

    @property
    def exit_count(self) -> int:
        return len(self.costs)

    @abstractmethod
    def begin(self, images: NDArray[Any]) -> State:
        """The state before the first stage, of pixels (N, height, width, channels): bytes, or numbers from 0 to 1."""

    @abstractmethod
    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        """Run the next stage: its logits (N, classes), and the state after it."""

    def advance(self, state: State) -> tuple[Probabilities, State]:
        """Run the next stage: the probabilities (N, classes) that its exit gives, and the state after it."""
        return self.launch(state)()

    def launch(self, state: State) -> Launched:
        """Start the next stage. Its rows must stay as they are until its result was asked for."""
        self.check_not_done(state)
        logits, after = self.logits(state)
        result = soften(logits, self.temperatures[state.exits_done]), after
        return lambda: result

    def check_not_done(self, state: State) -> None:
        if state.exits_done == self.exit_count:
            raise ValueError(f"all {self.exit_count} exits have answered: there is no stage left to run")

    def keep(self, state: State, rows: Rows | NDArray[np.bool_]) -> State:
        """The state of some rows alone: those that a mask has true, or those with the given indices, in their order."""
        chosen: NDArray[Any] = np.asarray(rows) if len(rows) else np.empty(0, dtype=np.int64)
        if chosen.ndim != 1 or (chosen.dtype != np.bool_ and not np.issubdtype(chosen.dtype, np.integer)):
            raise TypeError(f"rows must be a mask (bool) or indices (int), got {chosen.dtype} {chosen.shape}")
        if chosen.dtype == np.bool_:
            if len(chosen) != state.rows:
                raise ValueError(f"rows must have an entry for each of {state.rows} rows, got a mask of {len(chosen)}")
            chosen = np.flatnonzero(chosen)
        if len(chosen) and not -state.rows <= chosen.min() <= chosen.max() < state.rows:
            raise IndexError(f"rows must be among the {state.rows} of the state, got {chosen.min()} to {chosen.max()}")
        chosen = np.where(chosen < 0, chosen + state.rows, chosen)
        room = Room(self, max(len(chosen), 1))
        room.add(state, chosen)
        return room.take()

    @abstractmethod
    def empty(self, like: Array, rows: int) -> Array:
        """Space for so many rows of a map."""

    @abstractmethod
    def copy_rows(self, sources: Sequence[Array], rows: Rows, targets: Sequence[Array]) -> None:
        """Copy the given rows of some maps, each into a space of just that size."""


class Room:
    """Rows of several states that wait for the same stage. Its memory is used again and again."""

    def __init__(self, engine: Engine, capacity: int) -> None:
        self.capacity = capacity
        self.rows = 0
        self._engine = engine
        self._exits_done = 0
        self._space: dict[Hashable, Array] = {}

    @property
    def full(self) -> bool:
        return self.rows == self.capacity

    def add(self, state: State, rows: Rows) -> int:
        """Let in as many of these rows as fit, the first ones; how many that were."""
        entering = rows[: self.capacity - self.rows]
        self._exits_done = state.exits_done
        for name, source in state.maps.items():
            if name not in self._space:
                self._space[name] = self._engine.empty(source, self.capacity)
        places = slice(self.rows, self.rows + len(entering))
        self._engine.copy_rows(list(state.maps.values()), entering, [self._space[name][places] for name in state.maps])
        self.rows += len(entering)
        return len(entering)

    def take(self) -> State:
        """All that wait. The state is good until the next row is let in."""
        state = State(self._exits_done, self.rows, {name: space[: self.rows] for name, space in self._space.items()})
        self.rows = 0
        return state
