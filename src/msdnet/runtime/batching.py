"""The batch engine: images leave after the exit that is sure enough of them, and the rest are gathered again.

After each stage the rows that leave are answered at once. The others wait in the next stage's room, together with
those of other batches, until there is a full batch of them; so deep stages run as efficiently as shallow ones. No more
than one batch waits at any stage, however many images there are.

An engine that can run ahead is given its next stage before the results of the last are looked at: it need not stand
idle meanwhile. No more stages are under way than that takes.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msdnet.checks import check_choice, check_whole
from msdnet.policy import MEASURES, Answers, SpendingRule, confidence
from msdnet.runtime.engine import Engine, Launched, Room, Rows, State
from msdnet.runtime.images import among_all

__all__ = ["Work", "answers", "every_exit"]


class Work:
    """What was taken up and computed so far, whether or not an answer came of it."""

    def __init__(self, engine: Engine) -> None:
        self.rows = [0] * engine.exit_count
        """Images that each stage was launched for."""
        self._stage_costs: list[int] = np.diff(engine.costs, prepend=0).tolist()

    @property
    def images(self) -> int:
        return self.rows[0]

    @property
    def cost(self) -> int:
        """Multiply-adds."""
        return sum(rows * cost for rows, cost in zip(self.rows, self._stage_costs, strict=True))


def answers(
    engine: Engine,
    batches: Iterable[NDArray[np.generic]],
    rule: SpendingRule,
    *,
    batch: int,
    unread: Mapping[int, str] = MappingProxyType({}),
    work: Work | None = None,
) -> Iterator[Answers]:
    """Answers to all images of the batches, in the order in which they come about: each those that left together.

    - batch: images that are computed together; fewer where the rule takes fewer at a time
    - unread: the numbers of images that are not in the batches, known when those after them come: the others are
      numbered among all
    - work: to which what is done is added
    """
    if not isinstance(rule, SpendingRule):
        raise TypeError(f"a rule must be a SpendingRule (of msdnet.policy), got {rule!r}")
    check_choice("measure", rule.measure, MEASURES)
    if rule.exit_count not in (None, engine.exit_count):
        raise ValueError(f"the rule is for a network of {rule.exit_count} exits, this has {engine.exit_count}")
    rows = check_whole("batch", batch)
    if rule.at_a_time is not None:
        rows = min(rows, check_whole("at_a_time", rule.at_a_time))
    return _Cascade(engine, rule, rows, work or Work(engine)).run(batches, unread)


def every_exit(
    engine: Engine, batches: Iterable[NDArray[np.generic]], *, logits: bool = False
) -> Iterator[NDArray[np.floating]]:
    """What all exits say of each batch, nobody leaving: probabilities (N, exits, classes).

    - logits: as they come out of the network, not divided by temperatures, instead of probabilities
    """
    run = engine.logits if logits else engine.advance
    for images in batches:
        state = engine.begin(images)
        said = []
        for _ in range(engine.exit_count):
            one, state = run(state)
            said.append(one)
        yield np.stack(said, axis=1)


class _Task(NamedTuple):
    """A stage under way."""

    exit: int
    images: NDArray[np.int64]
    """Their numbers, row by row."""
    launched: Launched
    room: Room | None
    """In whose memory the rows are, until all of them are answered or sent on; none for images that have just come."""


class _Cascade:
    def __init__(self, engine: Engine, rule: SpendingRule, batch: int, work: Work) -> None:
        self.engine, self.rule, self.batch, self.work = engine, rule, batch, work
        self.under_way: deque[_Task] = deque()  # in the order in which they were launched
        # For each stage but the first, the rows that wait for it, the numbers of their images, and rooms to use again.
        self.rooms = [Room(engine, batch) for _ in range(engine.exit_count)]
        self.numbers: list[list[NDArray[np.int64]]] = [[] for _ in range(engine.exit_count)]
        self.unused: list[list[Room]] = [[] for _ in range(engine.exit_count)]

    def run(self, batches: Iterable[NDArray[np.generic]], unread: Mapping[int, str]) -> Iterator[Answers]:
        first = 0
        for images in batches:
            for start in range(0, len(images), self.batch):
                part = images[start : start + self.batch]
                numbers = among_all(np.arange(first, first + len(part)), unread)
                self.rule.arrive(numbers)
                self._launch(self.engine.begin(part), numbers)
                first += len(part)
                while len(self.under_way) > self.engine.ahead:
                    yield from self._finish()
                if self.rule.at_a_time is not None:
                    yield from self._empty_rooms()
        yield from self._empty_rooms()

    def _launch(self, state: State, numbers: NDArray[np.int64], room: Room | None = None) -> None:
        self.work.rows[state.exits_done] += len(numbers)
        self.under_way.append(_Task(state.exits_done, numbers, self.engine.launch(state), room))

    def _finish(self) -> Iterator[Answers]:
        """Answer those who leave after the stage that was launched first, and send on the others."""
        exit, numbers, launched, room = self.under_way.popleft()
        probabilities, state = launched()
        asked = Answers(numbers, exit + 1, confidence(probabilities, self.rule.measure), probabilities)
        leaves = self._leaving(asked)
        leaving = np.count_nonzero(leaves)
        if leaving:
            yield asked if leaving == len(leaves) else asked.of(leaves)
        if not leaving and self._goes_on_at_once(state):
            self._launch(state, numbers)
        elif leaving < len(leaves):
            self._send_on(state, np.flatnonzero(~leaves), numbers)
        if room is not None:
            self.unused[exit].append(room)

    def _goes_on_at_once(self, state: State) -> bool:
        """Whether a batch that nobody leaves need not be gathered: it is full, nobody waits, and nothing else will be
        under way with it, which could be gathered in the room that its maps may still be in.
        """
        return not self.engine.ahead and state.rows == self.batch and not self.rooms[state.exits_done].rows

    def _leaving(self, asked: Answers) -> NDArray[np.bool_]:
        """Which of the images leave: those that the rule says, and at the last exit all."""
        leaves: object = self.rule.leaves(asked)  # of a rule of somebody's own, anything
        if not isinstance(leaves, np.ndarray) or leaves.dtype != np.bool_ or leaves.shape != asked.images.shape:
            got = f"{leaves.dtype} {leaves.shape}" if isinstance(leaves, np.ndarray) else type(leaves).__name__
            raise TypeError(f"leaves must give one bool for each of {len(asked.images)} images, got {got}")
        return leaves if asked.exit < self.engine.exit_count else np.ones_like(leaves)

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
