"""Several trainings at once in one process, since a small network leaves much of a GPU idle.

Each has a thread and a CUDA stream of its own. A GPU may load code when a kernel runs for the first time, which is not
allowed while another thread captures a graph: whatever may be new is therefore done `ALONE`.
"""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import torch

__all__ = ["ALONE", "Done", "Interrupted", "Job", "StopSignal", "together"]

T = TypeVar("T")

ALONE = threading.RLock()
"""Held by the thread that opens data, builds a network, begins an epoch (and captures a graph), evaluates or saves."""


class Interrupted(Exception):  # noqa: N818  (not an error: the run was asked to stop, and was saved)
    """The run was stopped by a signal after saving a checkpoint."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class StopSignal:
    """Which signal has asked trainings to stop: 0 if none has."""

    def __init__(self) -> None:
        self.number = 0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """SIGINT and SIGTERM end trainings after the step that is under way; a second one ends them at once.

        Python hears signals in the main thread alone: in any other this does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, _frame: FrameType | None) -> None:
            self.number = number
            signal.signal(number, before[number])

        before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


Job: TypeAlias = Callable[[StopSignal], T]
"""Something to do, until it is asked to stop."""


class Done(NamedTuple, Generic[T]):
    """What came of a job."""

    place: int
    """Of the job among all."""
    result: T | None
    error: Exception | None


def together(jobs: Sequence[Job[T]], *, at_once: int, device: torch.device) -> Iterator[Done[T]]:
    """Do jobs, so many at once, and tell of each when it is done. One that fails does not stop the others.

    A signal stops them all: those under way save what they have, and `Interrupted` is raised when the last has.
    One at a time needs no threads.
    """
    stop = StopSignal()
    with stop.noted():
        yield from _one_by_one(jobs, stop) if at_once == 1 else _in_threads(jobs, stop, at_once, device)
    if stop.number:
        name = signal.Signals(stop.number).name
        message = f"stopped by {name}; what was under way is saved, and goes on with the same command"
        raise Interrupted(message, stop.number)


def _one_by_one(jobs: Sequence[Job[T]], stop: StopSignal) -> Iterator[Done[T]]:
    for place, job in enumerate(jobs):
        try:
            yield Done(place, job(stop), None)
        except Interrupted:
            return
        except Exception as error:
            yield Done(place, None, error)


def _in_threads(jobs: Sequence[Job[T]], stop: StopSignal, at_once: int, device: torch.device) -> Iterator[Done[T]]:
    def work(job: Job[T]) -> T:
        if stop.number:
            raise Interrupted("not begun", stop.number)
        own = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        with torch.cuda.stream(own):
            return job(stop)

    with ThreadPoolExecutor(at_once) as threads:
        places: dict[Future[T], int] = {threads.submit(work, job): place for place, job in enumerate(jobs)}
        try:
            for future in _as_they_end(places):
                error = future.exception()
                if isinstance(error, Interrupted):
                    continue
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield Done(places[future], None if error else future.result(), error)
        except BaseException:  # whoever listened has gone: the rest is to stop as if asked to
            stop.number = stop.number or signal.SIGTERM
            raise


def _as_they_end(futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """Waiting now and then comes to an end by itself, since a signal that reached another thread does not end it."""
    left = set(futures)
    while left:
        ended, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        yield from ended
