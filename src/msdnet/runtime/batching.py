"""The batch engine: images leave after the exit that is sure enough of them, and the rest are gathered again.

After each stage the rows that leave are answered at once. The others wait in the next stage's room, together with
those of other batches, until there is a full batch of them; so deep stages run as efficiently as shallow ones. No more
than one batch waits at any stage, however many images there are.

An engine that can run ahead is given its next stage before the results of the last are looked at: it need not stand
idle meanwhile. No more stages are under way than that takes.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msdnet.checks import check_choice, check_whole
from msdnet.policy import MEASURES, Measure, SpendingRule, confidence
from msdnet.runtime.engine import Engine, Launched, Probabilities, Room, Rows, State

__all__ = ["Answers", "answers"]


class Answers(NamedTuple):
    """Some images that left together."""

    images: NDArray[np.int64]
    """Their numbers, from 0 in the order in which they came."""
    exit: int
    """Where they left, from 1, as people count."""
    confidences: NDArray[np.floating]
    probabilities: Probabilities
    """(N, classes)"""


def answers(
    engine: Engine, batches: Iterable[NDArray[np.generic]], rule: SpendingRule, *, measure: Measure, batch: int
) -> Iterator[Answers]:
    """Answers to all images of the batches, in the order in which they come about.

    - batch: images that are computed together; fewer where the rule takes fewer at a time
    """
    check_choice("measure", measure, MEASURES)
    rows = check_whole("batch", batch)
    if rule.at_a_time is not None:
        rows = min(rows, rule.at_a_time)
    return _Cascade(engine, rule, measure, rows).run(batches)


class _Task(NamedTuple):
    """A stage under way."""

    exit: int
    images: NDArray[np.int64]
    """Their numbers, row by row."""
    launched: Launched
    room: Room | None
    """In whose memory the rows are, until all of them are answered or sent on; none for images that have just come."""


class _Cascade:
    def __init__(self, engine: Engine, rule: SpendingRule, measure: Measure, batch: int) -> None:
        self.engine, self.rule, self.measure, self.batch = engine, rule, measure, batch
        self.under_way: deque[_Task] = deque()  # in the order in which they were launched
        # For each stage but the first, the rows that wait for it, the numbers of their images, and rooms to use again.
        self.rooms = [Room(engine, batch) for _ in range(engine.exit_count)]
        self.numbers: list[list[NDArray[np.int64]]] = [[] for _ in range(engine.exit_count)]
        self.unused: list[list[Room]] = [[] for _ in range(engine.exit_count)]

    def run(self, batches: Iterable[NDArray[np.generic]]) -> Iterator[Answers]:
        first = 0
        for images in batches:
            for start in range(0, len(images), self.batch):
                part = images[start : start + self.batch]
                self.rule.arrive(len(part))
                self._launch(self.engine.begin(part), np.arange(first, first + len(part)))
                first += len(part)
                while len(self.under_way) > self.engine.ahead:
                    yield from self._finish()
                if self.rule.at_a_time is not None:
                    yield from self._empty_rooms()
        yield from self._empty_rooms()

    def _launch(self, state: State, numbers: NDArray[np.int64], room: Room | None = None) -> None:
        self.under_way.append(_Task(state.exits_done, numbers, self.engine.launch(state), room))

    def _finish(self) -> Iterator[Answers]:
        """Answer those who leave after the stage that was launched first, and send on the others."""
        exit, numbers, launched, room = self.under_way.popleft()
        probabilities, state = launched()
        sure = confidence(probabilities, self.measure)
        leaves = self.rule.leaves(exit, sure, numbers)
        if leaves.any():
            yield Answers(numbers[leaves], exit + 1, sure[leaves], probabilities[leaves])
        self._send_on(state, np.flatnonzero(~leaves), numbers)
        if room is not None:
            self.unused[exit].append(room)

    def _send_on(self, state: State, rows: Rows, numbers: NDArray[np.int64]) -> None:
        """To the next stage's room; whenever it is full, the stage is launched."""
        stage = state.exits_done
        while len(rows):
            entered = self.rooms[stage].add(state, rows)
            self.numbers[stage].append(numbers[rows[:entered]])
            rows = rows[entered:]
            if self.rooms[stage].full:
                self._launch_room(stage)

    def _launch_room(self, stage: int) -> None:
        """Who comes next waits in another room: the memory of this one is read until the stage is finished."""
        room, numbers = self.rooms[stage], np.concatenate(self.numbers[stage])
        self.rooms[stage] = self.unused[stage].pop() if self.unused[stage] else Room(self.engine, self.batch)
        self.numbers[stage] = []
        self._launch(room.take(), numbers, room)

    def _empty_rooms(self) -> Iterator[Answers]:
        """No more will come: each stage runs on those that wait, the first stages first, when all are there."""
        for stage in range(1, self.engine.exit_count):
            while len(self.under_way) > self.engine.ahead or any(task.exit < stage for task in self.under_way):
                yield from self._finish()
            if self.rooms[stage].rows:
                self._launch_room(stage)
        while self.under_way:
            yield from self._finish()
