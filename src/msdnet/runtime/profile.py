"""How long each stage takes on this machine."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msdnet.checks import whole_numbers
from msdnet.runtime.engine import Engine

__all__ = ["Profile", "StageTimes", "profile", "time_stages"]


@dataclass(frozen=True)
class StageTimes:
    """Seconds that each stage takes for a batch, its answer included."""

    rows: int
    typical: tuple[float, ...]
    """The median of several runs."""
    careful: tuple[float, ...]
    """What nine runs of ten stay below: to be counted on where a deadline must hold."""

    @property
    def costs(self) -> tuple[float, ...]:
        """Seconds of one image to reach each exit, when it comes with so many others."""
        return tuple((np.cumsum(self.typical) / self.rows).tolist())


@dataclass(frozen=True)
class Profile:
    """Stage times for some sizes of batches."""

    batches: tuple[StageTimes, ...]

    def at(self, rows: int) -> StageTimes:
        """The times of the largest measured batch of at most so many rows, else of the smallest."""
        by_rows = sorted(self.batches, key=lambda times: times.rows)
        fitting = [times for times in by_rows if times.rows <= rows]
        return fitting[-1] if fitting else by_rows[0]

    def __repr__(self) -> str:
        lines = ["stage times in ms, for a whole batch (an image of it)"]
        for times in self.batches:
            stages = "  ".join(f"{1e3 * t:.2f} ({1e3 * t / times.rows:.3f})" for t in times.typical)
            lines.append(f"batch {times.rows}: {stages}")
        return "\n".join(lines)


def profile(engine: Engine, batch_sizes: Sequence[int], *, seconds: float = 1.0) -> Profile:
    """Run all stages over and over, for about so many seconds at each size of batch, and at least five times."""
    sizes = sorted(set(whole_numbers("batch_sizes", batch_sizes)))
    return Profile(tuple(_measure(engine, rows, seconds) for rows in sizes))


def _measure(engine: Engine, rows: int, seconds: float) -> StageTimes:
    images = np.random.default_rng(0).integers(0, 256, (rows, *engine.images.shape), dtype=np.uint8)
    time_stages(engine, images)  # the first is slower: memory is found, kernels are chosen
    runs: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(runs) < 5 or time.perf_counter() < end:
        runs.append(time_stages(engine, images))
    stages = list(zip(*runs, strict=True))
    typical = tuple(statistics.median(times) for times in stages)
    return StageTimes(rows, typical, tuple(float(np.quantile(times, 0.9)) for times in stages))


def time_stages(engine: Engine, images: NDArray[np.uint8]) -> list[float]:
    """Seconds of each stage in one run of all; the first includes the preparation of the images."""
    times = []
    start = time.perf_counter()
    state = engine.begin(images)
    for _ in range(engine.exit_count):
        _, state = engine.advance(state)
        now = time.perf_counter()
        times.append(now - start)
        start = now
    return times
