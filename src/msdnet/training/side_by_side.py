"""Several trainings at once in one process, since a small network leaves much of a GPU idle.

Each has a thread and a CUDA stream of its own. A GPU may load code when a kernel runs for the first time, which is not
allowed while another thread captures a graph: whatever may be new is therefore done `ALONE`.
"""

import shlex
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import torch

from msdnet.device import side_stream
from msdnet.training.distributed import several_processes

__all__ = ["ALONE", "Done", "Interrupted", "Job", "SharedTime", "StopSignal", "together"]

T = TypeVar("T")

ALONE = threading.RLock()
"""Held by the thread that opens data, builds a network, begins an epoch (and captures a graph), evaluates or saves."""


class SharedTime:
    """Divides time among those that run side by side: while n do, each takes 1/n of it.

    All shares add up to the time in which anyone ran.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._running, self._since = 0, clock()
        self._share = 0.0  # of someone who has run from the start: the sum of dt / n

    @contextmanager
    def running(self) -> Iterator[Callable[[], float]]:
        """Whoever is inside runs, and can ask for its share so far, in seconds."""
        begun = self._share_now(joining=1)
        try:
            yield lambda: self._share_now() - begun
        finally:
            self._share_now(joining=-1)

    def _share_now(self, joining: int = 0) -> float:
        with self._lock:
            now = self._clock()
            if self._running:
                self._share += (now - self._since) / self._running
            self._since = now
            self._running += joining
            return self._share


class Interrupted(Exception):  # noqa: N818  (not an error: it was asked to stop)
    """Something was stopped by a signal: a training after saving a checkpoint, anything else with nothing to save."""

    def __init__(self, message: str, signal_number: int, run: Path | None = None) -> None:
        super().__init__(message, signal_number, run)
        self.message, self.signal_number, self.run = message, signal_number, run

    def told(self, command: str) -> str:
        """What was stopped and, of a run that was saved, how the command of this name goes on with it."""
        going_on = "" if self.run is None else f"; go on with: {command} train --resume {shlex.quote(str(self.run))}"
        return f"{self.message}{going_on}"

    def __str__(self) -> str:
        return self.told("msdnet")


class StopSignal:
    """Which signal has asked to stop what is under way: 0 if none has."""

    def __init__(self) -> None:
        self.number = 0
        self._listening = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """SIGINT and SIGTERM end trainings after the step that is under way; a second one ends them at once.

        Python hears signals in the main thread alone: in any other, and where this listens already, it does nothing.
        """
        if self._listening or threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, _frame: FrameType | None) -> None:
            self.number = number
            for either, handler in before.items():
                signal.signal(either, handler)

        handlers = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        # None is a handler that was there before Python, which could not be put back.
        before = {number: handler for number, handler in handlers.items() if handler is not None}
        for number in before:
            signal.signal(number, note)
        self._listening = True
        try:
            yield
        finally:
            self._listening = False
            for number, handler in before.items():
                signal.signal(number, handler)

    def heeded(self, things: Iterable[T]) -> Iterator[T]:
        """The things one by one; once a signal asks to stop, `Interrupted` instead of the next."""
        for thing in things:
            if self.number:
                raise Interrupted(f"stopped by {signal.Signals(self.number).name}", self.number)
            yield thing


Job: TypeAlias = Callable[[StopSignal], T]
"""Something to do, until it is asked to stop."""


class Done(NamedTuple, Generic[T]):
    """What came of a job."""

    place: int
    """Of the job among all."""
    result: T | None
    error: Exception | None


def together(jobs: Sequence[Job[T]], *, at_once: int, device: torch.device) -> Generator[Done[T], None, None]:
    """Do jobs, so many at once, and tell of each when it is done. One that fails does not stop the others.

    A signal stops them all: those under way save what they have, and `Interrupted` is raised when the last has. A
    second signal does not wait for what is one at a time, which needs no threads. Closing this stops them, too.
    """
    stop = StopSignal()
    with stop.noted():
        yield from _one_by_one(jobs, stop) if at_once == 1 else _in_threads(jobs, stop, at_once, device)
    if stop.number:
        name = signal.Signals(stop.number).name
        message = f"stopped by {name}; trainings under way are saved, and the same command goes on with what is left"
        raise Interrupted(message, stop.number)


def _one_by_one(jobs: Sequence[Job[T]], stop: StopSignal) -> Iterator[Done[T]]:
    for place, job in enumerate(jobs):
        if stop.number:
            return
        try:
            result = job(stop)
        except Interrupted as stopped:
            stop.number = stopped.signal_number  # which another process may have heard
            return
        except Exception as error:
            if several_processes():
                raise  # the others know nothing of it: torchrun ends them all, and the same command goes on
            yield Done(place, None, error.with_traceback(None))
        else:
            yield Done(place, result, None)


def _in_threads(jobs: Sequence[Job[T]], stop: StopSignal, at_once: int, device: torch.device) -> Iterator[Done[T]]:
    free = list(range(at_once))

    def work(job: Job[T]) -> T:
        if stop.number:
            raise Interrupted("not begun", stop.number)
        thread = free.pop()
        try:
            with torch.cuda.stream(side_stream(device, f"training {thread}")):
                return job(stop)
        finally:
            free.append(thread)

    with ThreadPoolExecutor(at_once) as threads:
        places: dict[Future[T], int] = {threads.submit(work, job): place for place, job in enumerate(jobs)}
        try:
            for future in _as_they_end(list(places)):
                place, error = places.pop(future), future.exception()
                if isinstance(error, Interrupted):
                    stop.number = error.signal_number
                elif error is None:
                    yield Done(place, future.result(), None)
                elif isinstance(error, Exception):
                    yield Done(place, None, error.with_traceback(None))  # which would keep all that the job had
                else:
                    raise error
        except BaseException:  # whoever listened has gone: the rest is to stop as if asked to
            stop.number = stop.number or signal.SIGTERM
            raise


def _as_they_end(futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """Waiting now and then comes to an end by itself, since a signal that reached another thread does not end it."""
    left = set(futures)
    while left:
        ended, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        yield from ended
