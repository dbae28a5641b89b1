"""How much faster does training run in bfloat16 than in float32? Ratios, each measured in one run.

    python -m benchmarks.precision [--preset NAME ...] [--batch N] [--rounds N] [--record FILE]

Each round takes a step in both, in an order that alternates; the ratio is the median over rounds.
"""

import os
import statistics
import time
from typing import Any

import torch

from benchmarks.machine import make_parser, record
from msdnet.data.base import Batch
from msdnet.device import pick_device, training_precision
from msdnet.networks import create_network
from msdnet.training import load_recipe
from msdnet.training.step import Step

PRESETS = ["cifar_small", "cifar_anytime_7", "cifar_anytime", "resnet_20", "densenet_bc_28_12", "imagenet_4"]


def make_step(preset: str, precision: str, side: int, device: torch.device) -> Step:
    os.environ["MSDNET_PRECISION"] = precision
    torch.manual_seed(0)
    network: Any = create_network(preset, classes=100)
    network = network.to(device).to(memory_format=torch.channels_last)
    return Step(network, load_recipe("compare"), (side, side))


def seconds(step: Step, batch: Batch) -> float:
    start = time.perf_counter()
    step(batch, 0.01)
    float(step.loss)  # waits for a GPU
    return time.perf_counter() - start


def measure(preset: str, batch_size: int, rounds: int, device: torch.device) -> dict[str, Any]:
    side = 224 if preset.startswith("imagenet") else 32
    images = torch.randn(batch_size, 3, side, side, device=device).to(memory_format=torch.channels_last)
    batch = Batch(images, torch.randint(0, 100, (batch_size,), device=device))
    steps = {precision: make_step(preset, precision, side, device) for precision in ("float32", "bfloat16")}
    times: dict[str, list[float]] = {precision: [] for precision in steps}
    for round_ in range(-1, rounds):  # the first is not counted
        for precision in steps if round_ % 2 else reversed(steps):
            took = seconds(steps[precision], batch)
            times[precision] += [took] if round_ >= 0 else []
    ratios = [full / half for full, half in zip(times["float32"], times["bfloat16"], strict=True)]
    rates = {f"{precision}_images_per_second": batch_size / statistics.median(times[precision]) for precision in steps}
    quartiles = statistics.quantiles(ratios, n=4)[::2]
    return {"preset": preset, **rates, "times_as_fast": statistics.median(ratios), "quartiles": quartiles}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()

    device = pick_device()
    os.environ.pop("MSDNET_PRECISION", None)
    usual = str(training_precision(device)).removeprefix("torch.")
    print(f"here training runs in {usual}")
    results = []
    for preset in options.preset:
        results.append(found := measure(preset, options.batch, options.rounds, device))
        rates = ", ".join(f"{name} {found[f'{name}_images_per_second']:.0f}" for name in ("float32", "bfloat16"))
        print(f"{preset}: {rates} images/s, {found['times_as_fast']:.2f} times as fast", flush=True)
    setting = {"batch": options.batch, "rounds": options.rounds, "usual": usual}
    record(options.record, device, benchmark="precision", **setting, results=results)


if __name__ == "__main__":
    main()
