"""How much of the machine's time a training took, of which those side by side each have a share."""

import dataclasses
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msdnet.bundle import RUN
from msdnet.checks import check_number
from msdnet.tables import read_as
from msdnet.training.distributed import is_first
from msdnet.training.side_by_side import SharedTime
from msdnet.writing import write_atomically

__all__ = ["machine_seconds", "noting_time"]

_FILE = "time.json"


@dataclass(frozen=True, kw_only=True)
class _Taken:
    """By a run so far."""

    seconds: float = 0.0
    machine_seconds: float = 0.0
    """Its share of them."""

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            check_number(name, value, low=0)


@contextmanager
def noting_time(run: Path, shared: SharedTime) -> Iterator[None]:
    """Add what is done inside to what the run has taken so far."""
    before = _read(run)  # here, where it may fail: at the end its error would hide that of what is done inside
    with shared.running() as share:
        began = time.monotonic()
        try:
            yield
        finally:
            if is_first() and (run / RUN).exists():
                taken = _Taken(
                    seconds=before.seconds + time.monotonic() - began, machine_seconds=before.machine_seconds + share()
                )
                write_atomically(run / _FILE, json.dumps(dataclasses.asdict(taken)).encode())


def machine_seconds(run: Path, seconds: float) -> float:
    """A run's share of all the seconds that it took; those that were not noted count whole."""
    taken = _read(run)
    return taken.machine_seconds + max(0.0, seconds - taken.seconds)


def _read(run: Path) -> _Taken:
    path = run / _FILE
    return read_as(_Taken, path) if path.exists() else _Taken()
