"""Are deadlines kept, and used? And how long does it take to ask a running classification for its newest answer?

    python -m benchmarks.deadlines [--preset NAME] [--images N] [--record FILE]

Deadlines are drawn between the times of the first and the last exit. The floor is the machine's own: the share of
plain runs through all stages, made in between, that take a millisecond longer than their median. The oracle knows when
those runs reach each exit, by their medians, and stops at the last exit that fits.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import msdnet
from benchmarks.bundles import make_bundle, make_images
from benchmarks.machine import make_parser, record
from msdnet.runtime import Model

LATE = 1e-3


def full_run(model: Model, image: Any) -> list[float]:
    """When each exit answers."""
    start = time.perf_counter()
    return [time.perf_counter() - start for _ in model.anytime(image)]


def measure_deadlines(model: Model, count: int) -> dict[str, float]:
    images, random = make_images(200), np.random.default_rng(0)
    times = model.profile([1], seconds=3.0).at(1)
    expected = np.cumsum(times.typical)
    deadlines = random.uniform(expected[0], expected[-1], count)
    over, exits, plain = [], [], []
    for number, deadline in enumerate(deadlines):
        image = images[number % len(images)]
        start = time.perf_counter()
        step = model.answer(image, deadline_ms=1e3 * deadline)
        over.append(time.perf_counter() - start - deadline)
        exits.append(step.exit)
        plain.append(full_run(model, image))
    reach = np.median(plain, axis=0)
    oracle = np.searchsorted(reach, deadlines, side="right")
    return {
        "first_exit_ms": 1e3 * float(reach[0]),
        "last_exit_ms": 1e3 * float(reach[-1]),
        "late_share": float(np.mean(np.array(over) > LATE)),
        "floor_share": float(np.mean(np.array(plain)[:, -1] > reach[-1] + LATE)),
        "exits_from_oracle": float(np.mean(np.abs(np.maximum(oracle, 1) - np.array(exits)))),
        "mean_exit": float(np.mean(exits)),
        "mean_oracle_exit": float(np.mean(oracle)),
    }


def lateness(ask: Callable[[], object], times: int) -> list[float]:
    """Wake up at a set time, ask, and look how late the answer is there: the wait for the interpreter is part of it."""
    late = []
    for _ in range(times):
        due = time.perf_counter() + 3e-4
        time.sleep(max(0.0, due - time.perf_counter()))
        ask()
        late.append(time.perf_counter() - due)
    return late


def measure_latest(model: Model, runs: int) -> dict[str, float]:
    """Ask again and again while an image is being classified in the background; the floor is to sleep and no more."""
    image = make_images(1)[0]
    asked, floor = [], []
    for _ in range(runs):
        with model.start(image) as running:
            running.wait()
            while not running.done:
                asked += lateness(running.latest, 1)
        floor += lateness(lambda: None, 4)
    return {
        "latest_median_ms": 1e3 * statistics.median(asked),
        "latest_p99_ms": 1e3 * float(np.quantile(asked, 0.99)),
        "latest_floor_p99_ms": 1e3 * float(np.quantile(floor, 0.99)),
        "latest_asked": float(len(asked)),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="cifar_anytime_7")
    parser.add_argument("--images", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = msdnet.load(make_bundle(options.preset, Path(folder) / "bundle").folder)
    result = {**measure_deadlines(model, options.images), **measure_latest(model, 300)}
    print(f"{options.preset}, {options.images} images, one at a time")
    for key, value in result.items():
        print(f"  {key:24} {value:9.4f}")
    setting = {"preset": options.preset, "images": options.images, "load": os.getloadavg()[0]}
    record(options.record, torch.device("cpu"), benchmark="deadlines", **setting, **result)


if __name__ == "__main__":
    main()
