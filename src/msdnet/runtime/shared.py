"""A budget that the images of several calls share."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import get_args

from msdnet.amounts import counted
from msdnet.checks import check_choice
from msdnet.pixels import Unreadable
from msdnet.policy import Answers, SpendingRule, Unit
from msdnet.runtime.batching import Work, answers
from msdnet.runtime.engine import Engine
from msdnet.runtime.forks import call_after_fork
from msdnet.runtime.images import Images, batches, count_of
from msdnet.runtime.result import Collected, Result

__all__ = ["SharedBudget", "Stopwatch"]


class Stopwatch:
    """Seconds that it has run, in all: `with` starts it and stops it."""

    def __init__(self) -> None:
        # Seconds of before, and since when it is running: replaced together, since other threads may look at it.
        self._run: tuple[float, float | None] = (0.0, None)

    def __enter__(self) -> None:
        self._run = (self(), time.perf_counter())

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """If it runs."""
        self._run = (self(), None)

    def __call__(self) -> float:
        before, since = self._run
        return before + (0.0 if since is None else time.perf_counter() - since)


class SharedBudget:
    """One budget for the images of several calls: what the first images leave over is there for later ones.

    `Model.shared_budget` makes it. Calls of several threads take turns; the time between two calls is not counted.
    """

    def __init__(
        self,
        engine: Engine,
        classes: tuple[str, ...],
        rule: SpendingRule,
        *,
        batch: int,
        clock: Stopwatch,
        budget: float | None,
        unit: Unit = "multiply-adds",
    ) -> None:
        self._engine, self._classes, self._rule = engine, classes, rule
        self._batch, self._clock, self._budget = batch, clock, budget
        self._unit: Unit = unit
        self._work = Work(engine)
        self._make_ready()
        call_after_fork(self._make_ready)

    def _make_ready(self) -> None:
        """For a first call; in a forked process none is under way, whatever there was in its parent."""
        self._clock.stop()
        self._one_call = threading.Lock()
        self._caller: int | None = None

    @property
    def seconds(self) -> float:
        """That all calls took so far, reading included."""
        return self._clock()

    @property
    def images(self) -> int:
        """That were taken up so far. All of them were answered, but for calls that ended with an error."""
        return self._work.images

    @property
    def spent(self) -> float:
        """On all of them, answered or not: multiply-adds, or seconds where the budget is time."""
        return self._clock() if self._unit == "seconds" else float(self._work.cost)

    @property
    def left(self) -> float | None:
        """Of their budgets, for those that come next; less than nothing where more was spent. None without a budget."""
        return None if self._budget is None else self.images * self._budget - self.spent

    def __repr__(self) -> str:
        scale, unit = (1e3, "ms") if self._unit == "seconds" else (1e-6, "M multiply-adds")
        of = "" if self._budget is None else f" of {scale * self.images * self._budget:,.1f}"
        return f"<msdnet.SharedBudget: {counted(self.images, 'image')}, {scale * self.spent:,.1f}{of} {unit} spent>"

    def classify(
        self,
        images: Images,
        *,
        probabilities: bool = False,
        watch: Callable[[Answers], None] | None = None,
        unreadable: Unreadable = "fatal",
    ) -> Result:
        """Classify some more images; all arguments as those of `Model.classify`."""
        check_choice("unreadable", unreadable, get_args(Unreadable))
        engine, count = self._engine, count_of(images)
        rows = (
            self._batch if count is None else min(self._batch, max(count, 1))
        )  # for which there is space at each exit
        asked, time_asked = (None, self._budget) if self._unit == "seconds" else (self._budget, None)
        unread: dict[int, str] = {}
        with self._my_turn(), self._clock:
            if self._work.images:
                self._rule.resume(self._work.rows)
            collected = Collected(
                engine.costs, self._classes, keep_probabilities=probabilities, budget=asked, time_budget=time_asked
            )
            given = batches(images, engine.images, rows, None if unreadable == "fatal" else unread)
            for answered in answers(engine, given, self._rule, batch=rows, unread=unread, work=self._work):
                collected.add(answered)
                if watch is not None:
                    watch(answered)
            collected.add_unread(unread)
        return collected.result()

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        """After those of other threads; a call inside another would wait for itself."""
        me = threading.get_ident()
        if self._caller == me:
            raise RuntimeError("classify was called by the images, or the watch, of a call that has not ended yet")
        with self._one_call:
            self._caller = me
            try:
                yield
            finally:
                self._caller = None
