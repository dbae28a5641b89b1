"""One image, answered better and better until time is up: step by step, by a deadline, or until interrupted."""

import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.typing import NDArray

from msdnet.checks import check_choice
from msdnet.policy import MEASURES, Measure, confidence
from msdnet.runtime.engine import Engine, Probabilities
from msdnet.runtime.forks import call_after_fork

__all__ = ["Deadline", "Margin", "Running", "Step", "steps"]


_CAUTION = 1.25  # by how much the next stage may be slower than the ones before it let one expect


class Margin:
    """How much longer than expected a stage may take, from how deadlines were kept so far.

    Where another process wants a core, a stage now and then takes many times as long as the one before it: no pace
    tells that beforehand. What helps is to begin fewer of them. Each deadline that is missed widens the margin, each
    that is kept narrows it a little: in the long run one in twenty is missed, while there are stages to leave out.
    """

    WIDENED, NARROWED, WIDEST = 1.5, 0.98, 16.0

    def __init__(self) -> None:
        self.factor = 1.0

    def note(self, *, late: bool) -> None:
        changed = self.factor * (self.WIDENED if late else self.NARROWED)
        self.factor = min(max(changed, 1.0), self.WIDEST)


@dataclass(frozen=True, eq=False)
class Step:
    """The answer of one exit."""

    exit: int
    """From 1, as people count."""
    label: int
    name: str
    """Of the class."""
    confidence: float
    cost: int
    """Multiply-adds so far."""
    seconds: float
    """Since it was asked for, reading included."""
    probabilities: Probabilities = field(repr=False)
    """Of the classes."""


class Deadline(NamedTuple):
    """When the last answer is due."""

    end: float
    """By `time.perf_counter`."""
    stage_times: Sequence[float]
    """Seconds of each stage, by the machine's profile."""
    margin: float = 1.0
    """That a stage must fit with."""

    def allows(self, stage: int, computed: float) -> bool:
        """Whether a stage fits, from now on, after others that took so many seconds.

        The machine may be less busy than when it was profiled, or busier: if the stages so far took far less time than
        was expected of them, or more, the next one is expected to do so, too.
        """
        pace = computed / sum(self.stage_times[:stage])
        pace = max(pace, min(_CAUTION * pace, 1.0))
        return time.perf_counter() + self.margin * pace * self.stage_times[stage] <= self.end


def steps(
    engine: Engine,
    pixels: NDArray[Any],
    classes: Sequence[str],
    measure: Measure,
    deadline: Deadline | None = None,
    *,
    start: float,
) -> Generator[Step, None, None]:
    """Exit after exit. Where there is a deadline, a stage after the first starts only if that allows it.

    - start: since when the time of a step is counted (`time.perf_counter`)
    """
    check_choice("measure", measure, MEASURES)  # at once, not when the first answer is asked for
    return _steps(engine, pixels, classes, measure, deadline, start)


def _steps(
    engine: Engine,
    pixels: NDArray[Any],
    classes: Sequence[str],
    measure: Measure,
    deadline: Deadline | None,
    start: float,
) -> Generator[Step, None, None]:
    began = time.perf_counter()
    state = engine.begin(pixels[None])
    computed = time.perf_counter() - began  # without what the caller does between two answers
    for exit, cost in enumerate(engine.costs):
        if exit and deadline is not None and not deadline.allows(exit, computed):
            return
        began = time.perf_counter()
        rows, state = engine.advance(state)
        computed += time.perf_counter() - began
        probabilities = rows[0]
        label = int(probabilities.argmax())
        sure = float(confidence(probabilities, measure))
        yield Step(exit + 1, label, classes[label], sure, cost, time.perf_counter() - start, probabilities)


class Running:
    """An image being classified in the background.

    `latest()` gives the newest answer at any moment, `stop()` ends it after the stage it is in; as a context manager
    it stops at the end. So it does when the program ends.
    """

    def __init__(self, answers: Generator[Step, None, None]) -> None:
        self._answers = answers
        self._latest: Step | None = None
        self._error: BaseException | None = None
        self._first = threading.Event()
        self._stop = threading.Event()
        # No daemon: when Python ends, that would be killed in the middle of a stage, and the process with it.
        self._thread = threading.Thread(target=self._run, name="msdnet-anytime")
        self._thread.start()
        call_after_fork(self._end)

    def latest(self) -> Step | None:
        """The newest answer, none before the first. Never waits. Raises what kept it from having any answer."""
        if self._latest is None and self._error is not None:
            raise self._error
        return self._latest

    def wait(self, timeout: float | None = None) -> Step:
        """The newest answer: at once where there is one, else the first."""
        if not self._first.wait(timeout):
            raise TimeoutError(f"no exit has answered within {timeout:g} s")
        latest = self.latest()
        assert latest is not None
        return latest

    def stop(self) -> Step | None:
        """End it after the stage it is in; the last answer. Raises what went wrong on the way, if anything did."""
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._latest

    @property
    def done(self) -> bool:
        """Whether no better answer will come."""
        return not self._thread.is_alive()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    def __repr__(self) -> str:
        step = self._latest
        answer = "no answer" if step is None else f"{step.name} ({step.confidence:.0%} sure) at exit {step.exit}"
        how = "failed" if self._error is not None else "done" if self.done else "running"
        return f"<msdnet.Running: {answer}; {how}>"

    def _end(self) -> None:
        """In a forked process, which has no threads of its parent: what was answered so far is all there will be."""
        if self._latest is None and self._error is None:
            self._error = RuntimeError("a forked process cannot wait for an answer of its parent: call start in it")
        self._first = threading.Event()
        self._first.set()

    def _run(self) -> None:
        try:
            for step in self._answers:
                self._latest = step
                self._first.set()
                if self._stop.is_set() or not threading.main_thread().is_alive():
                    break
        except BaseException as error:
            self._error = error
        finally:
            self._first.set()
            self._answers.close()  # what it was in the middle of is given up, and its memory too
