"""How fast is training on a processor, by which precision and whose kernels? Ratios, each measured in one run.

    python -m benchmarks.processor [--preset NAME ...] [--batch N] [--rounds N] [--record FILE]

Each round takes a step in every way, in an order that alternates; a ratio is the median over rounds. Nothing is
compiled beforehand: the first compiled step tells how long that takes.
"""

import os
import statistics
import tempfile
import time
from typing import Any

import torch

from benchmarks.machine import make_parser, record
from msdnet.data.base import Batch
from msdnet.networks import create_network
from msdnet.training import load_recipe
from msdnet.training.step import CompiledStep, Step

PRESETS = ["cifar_small", "cifar_anytime_7", "cifar_anytime", "resnet_20", "densenet_bc_28_12", "imagenet_4"]
WAYS: dict[str, tuple[type[Step], torch.dtype]] = {
    "float32": (Step, torch.float32),
    "bfloat16": (Step, torch.bfloat16),
    "compiled": (CompiledStep, torch.bfloat16),
}
COMPARED = {"bfloat16": "float32", "compiled": "bfloat16"}
"""Each with what it is faster than."""


def make_step(preset: str, way: str, side: int) -> Step:
    kind, precision = WAYS[way]
    torch.manual_seed(0)
    network: Any = create_network(preset, classes=100)
    network = network.to(memory_format=torch.channels_last)
    return kind(network, load_recipe("compare"), (side, side), precision=precision)


def seconds(step: Step, batch: Batch) -> float:
    start = time.perf_counter()
    step(batch, 0.01)
    return time.perf_counter() - start


def measure(preset: str, batch_size: int, rounds: int) -> dict[str, Any]:
    side = 224 if preset.startswith("imagenet") else 32
    images = torch.randn(batch_size, 3, side, side).to(memory_format=torch.channels_last)
    batch = Batch(images, torch.randint(0, 100, (batch_size,)))
    steps = {way: make_step(preset, way, side) for way in WAYS}
    first = {way: seconds(step, batch) for way, step in steps.items()}
    times: dict[str, list[float]] = {way: [] for way in steps}
    for round_ in range(-1, rounds):  # the first is not counted
        for way in steps if round_ % 2 else reversed(steps):
            took = seconds(steps[way], batch)
            times[way] += [took] if round_ >= 0 else []
    found: dict[str, Any] = {"preset": preset, "seconds_to_compile": first["compiled"]}
    found |= {f"{way}_images_per_second": batch_size / statistics.median(times[way]) for way in steps}
    for way, other in COMPARED.items():
        ratios = [slow / quick for slow, quick in zip(times[other], times[way], strict=True)]
        found[f"{way}_over_{other}"] = statistics.median(ratios)
        found[f"{way}_over_{other}_quartiles"] = statistics.quantiles(ratios, n=4)[::2]
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()

    results = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for preset in options.preset:
            results.append(found := measure(preset, options.batch, options.rounds))
            rates = ", ".join(f"{way} {found[f'{way}_images_per_second']:.0f}" for way in WAYS)
            gains = [f"{way} {found[f'{way}_over_{other}']:.2f} times {other}" for way, other in COMPARED.items()]
            print(
                f"{preset}: {rates} images/s; {', '.join(gains)}; compiled in {found['seconds_to_compile']:.0f} s",
                flush=True,
            )
    setting = {"batch": options.batch, "rounds": options.rounds}
    record(options.record, torch.device("cpu"), benchmark="processor", **setting, results=results)


if __name__ == "__main__":
    main()
