"""Do several networks train faster side by side in one process than one after the other?

    python -m benchmarks.together [--preset NAME ...] [--at-once N ...] [--seconds N] [--record FILE]

As `msdnet reproduce --at-once N` does it: every network has a thread, a CUDA stream and a graph of its own, and trains
by the recipe `compare`. For each network and number at once: images/s of all together, and that over one alone. The
images are random bytes in CIFAR's layout. One alone is timed before and after the others; its mean counts.
"""

import tempfile
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import make_parser, record
from benchmarks.throughput import endless, wait, write_random_cifar
from msdnet.data.cifar import CifarData
from msdnet.training import Recipe, StopSignal, load_recipe
from msdnet.training.run import make_step
from msdnet.training.side_by_side import ALONE, together

PRESETS = ["resnet_20", "resnet_110", "densenet_bc_28_12", "cifar_batch_4"]


def rate(preset: str, recipe: Recipe, at_once: int, seconds: float, data: CifarData) -> float:
    """Images per second of so many trainings of one network together."""
    ready = threading.Barrier(at_once, timeout=300)  # should one fail before the others are ready
    steps, spent = [0] * at_once, [0.0] * at_once

    def train(place: int, _stop: StopSignal) -> None:
        batches = endless(data, recipe.batch_size)
        with ALONE:  # captures a graph
            step = make_step(preset, recipe, data, data.device)
            for _ in range(3):
                step(next(batches), 0.01)
            wait(data.device)
        ready.wait()
        started = time.perf_counter()
        while spent[place] < seconds:
            for _ in range(5):
                step(next(batches), 0.01)
            if data.device.type == "cuda":
                torch.cuda.current_stream().synchronize()  # its own
            steps[place] += 5
            spent[place] = time.perf_counter() - started

    for done in together([partial(train, place) for place in range(at_once)], at_once=at_once, device=data.device):
        if done.error is not None:
            raise done.error
    return recipe.batch_size * sum(count / time for count, time in zip(steps, spent, strict=True))


def compare(preset: str, recipe: Recipe, numbers: Sequence[int], seconds: float, data: CifarData) -> dict[str, Any]:
    def alone() -> float:
        return rate(preset, recipe, 1, seconds, data)

    before = alone()
    rates = {number: rate(preset, recipe, number, seconds, data) for number in numbers}
    one = (before + alone()) / 2
    return {
        "preset": preset,
        "batch": recipe.batch_size,
        "alone_images_per_second": one,
        "together_images_per_second": rates,
        "over_one_after_the_other": {number: found / one for number, found in rates.items()},
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    parser.add_argument("--at-once", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--batch", type=int, help="other than the recipe's")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    recipe = load_recipe("compare")
    recipe = recipe.in_batches(options.batch) if options.batch else recipe
    with tempfile.TemporaryDirectory() as folder:
        write_random_cifar(Path(folder))
        data = CifarData("cifar100", folder, device=device)
    results = []
    for preset in options.preset:
        found = compare(preset, recipe, options.at_once, options.seconds, data)
        results.append(found)
        ratios = ", ".join(f"{number} at once {gain:.2f}" for number, gain in found["over_one_after_the_other"].items())
        print(f"{preset}: alone {found['alone_images_per_second']:,.0f} images/s; times as fast: {ratios}", flush=True)
    record(options.record, device, benchmark="together", results=results)


if __name__ == "__main__":
    main()
