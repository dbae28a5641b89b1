"""The batch engine: images leave after the exit that is sure enough of them, and the rest are gathered again.

After each stage the rows that leave are answered at once. The others wait in the next stage's room, together with
those of other batches, until there is a full batch of them; so deep stages run as efficiently as shallow ones. No more
than one batch waits at any stage, however many images there are.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msdnet.policy import Measure, SpendingRule, confidence
from msdnet.runtime.engine import Engine, Probabilities, Room, Rows, State

__all__ = ["Answers", "answers"]


class Answers(NamedTuple):
    """Some images that left together."""

    images: NDArray[np.int64]
    """Their numbers, from 0 in the order in which they came."""
    exit: int
    """Where they left, from 0."""
    confidences: NDArray[np.floating]
    probabilities: Probabilities
    """(N, classes)"""


def answers(
    engine: Engine, batches: Iterable[NDArray[np.generic]], rule: SpendingRule, *, measure: Measure, batch: int
) -> Iterator[Answers]:
    """Answers to all images of the batches, in the order in which they come about."""
    return _Cascade(engine, rule, measure, batch).run(batches)


class _Cascade:
    def __init__(self, engine: Engine, rule: SpendingRule, measure: Measure, batch: int) -> None:
        self.engine, self.rule, self.measure = engine, rule, measure
        # For each stage but the first, the rows that wait for it and the numbers of their images.
        self.rooms = [Room(engine, batch) for _ in range(engine.exit_count)]
        self.numbers: list[list[NDArray[np.int64]]] = [[] for _ in range(engine.exit_count)]

    def run(self, batches: Iterable[NDArray[np.generic]]) -> Iterator[Answers]:
        first = 0
        for images in batches:
            self.rule.arrive(len(images))
            yield from self._stage(self.engine.begin(images), np.arange(first, first + len(images)))
            first += len(images)
            if self.rule.at_a_time is not None:
                yield from self._empty_rooms()
        yield from self._empty_rooms()

    def _stage(self, state: State, numbers: NDArray[np.int64]) -> Iterator[Answers]:
        exit = state.exits_done
        probabilities, state = self.engine.advance(state)
        sure = confidence(probabilities, self.measure)
        leaves = self.rule.leaves(exit, sure, numbers)
        if leaves.any():
            yield Answers(numbers[leaves], exit, sure[leaves], probabilities[leaves])
        yield from self._send_on(state, np.flatnonzero(~leaves), numbers)

    def _send_on(self, state: State, rows: Rows, numbers: NDArray[np.int64]) -> Iterator[Answers]:
        """To the next stage's room; whenever it is full, the stage runs, and so on to the stages after it.

        Until all rows are in, nothing else may run the stage that they come from: its memory is theirs.
        """
        stage = state.exits_done
        while len(rows):
            entered = self.rooms[stage].add(state, rows)
            self.numbers[stage].append(numbers[rows[:entered]])
            rows = rows[entered:]
            if self.rooms[stage].full:
                yield from self._empty_room(stage)

    def _empty_room(self, stage: int) -> Iterator[Answers]:
        numbers, self.numbers[stage] = np.concatenate(self.numbers[stage]), []
        yield from self._stage(self.rooms[stage].take(), numbers)

    def _empty_rooms(self) -> Iterator[Answers]:
        """No more will come: each stage runs on those that wait, the first stages first."""
        for stage, room in enumerate(self.rooms):
            if room.rows:
                yield from self._empty_room(stage)
