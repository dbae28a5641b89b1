"""How much faster do MSDNets train if their maps are filled up to 8, 16, 24, ... channels? Ratios, measured in one run.

    python -m benchmarks.padding [--preset NAME ...] [--growth N ...] [--batch N ...] [--precision NAME] [--rounds N]
                                 [--record FILE]

Each round takes some steps with padded maps and without, in an order that alternates; a ratio is the median over
rounds. On a GPU a step is one graph, on a processor it is not compiled.
"""

import statistics
import time
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from benchmarks.machine import make_parser, record
from benchmarks.throughput import wait
from msdnet.config import MSDNetConfig
from msdnet.data.base import Batch
from msdnet.networks import MSDNet, create_network
from msdnet.networks.padded import padded
from msdnet.presets import preset_config
from msdnet.training import load_recipe
from msdnet.training.step import GraphedStep, Step
from msdnet.training.streams import ScalesSideBySide

PRESETS = ["cifar_batch_4", "cifar_anytime_7", "cifar_anytime"]
GROWTHS = [15]
"""Of `cifar_anytime_7`, whose own is 6: odd ones are slowest. The ablation's MSDNet has 15."""


class PlainStep(Step):
    """Without padding."""

    def _quickest(self, network: nn.Module) -> nn.Module:
        return network


class PaddedStep(Step):
    """With padding."""

    def _quickest(self, network: nn.Module) -> nn.Module:
        return padded(network) if isinstance(network, MSDNet) else network


class PlainGraphedStep(GraphedStep):
    """Without padding, in one graph."""

    def _quickest(self, network: nn.Module) -> nn.Module:
        return ScalesSideBySide(network) if isinstance(network, MSDNet) else network


class PaddedGraphedStep(GraphedStep):
    """With padding, in one graph."""

    def _quickest(self, network: nn.Module) -> nn.Module:
        return ScalesSideBySide(padded(network)) if isinstance(network, MSDNet) else network


WAYS: dict[str, dict[str, type[Step]]] = {
    "cpu": {"plain": PlainStep, "padded": PaddedStep},
    "cuda": {"plain": PlainGraphedStep, "padded": PaddedGraphedStep},
}


def make_step(config: MSDNetConfig, kind: type[Step], precision: torch.dtype, device: torch.device) -> Step:
    torch.manual_seed(0)
    network: Any = create_network(config, classes=100)
    network = network.to(device).to(memory_format=torch.channels_last)
    return kind(network, load_recipe("compare"), (32, 32), precision=precision)


def seconds(step: Step, batch: Batch, steps: int, device: torch.device) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        step(batch, 0.01)
    wait(device)
    return (time.perf_counter() - start) / steps


def measure(
    config: MSDNetConfig, batch_size: int, precision: torch.dtype, rounds: int, device: torch.device
) -> dict[str, Any]:
    images = torch.randn(batch_size, 3, 32, 32, device=device).to(memory_format=torch.channels_last)
    batch = Batch(images, torch.randint(0, 100, (batch_size,), device=device))
    steps = {way: make_step(config, kind, precision, device) for way, kind in WAYS[device.type].items()}
    each = 30 if device.type == "cuda" else 1
    times: dict[str, list[float]] = {way: [] for way in steps}
    for round_ in range(-1, rounds):  # the first is not counted
        for way in steps if round_ % 2 else reversed(steps):
            took = seconds(steps[way], batch, each, device)
            times[way] += [took] if round_ >= 0 else []
    ratios = [slow / quick for slow, quick in zip(times["plain"], times["padded"], strict=True)]
    rates = {f"{way}_images_per_second": batch_size / statistics.median(times[way]) for way in steps}
    gain = {"times_as_fast": statistics.median(ratios), "quartiles": statistics.quantiles(ratios, n=4)[::2]}
    return {"batch": batch_size} | rates | gain


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", nargs="*", default=PRESETS)
    parser.add_argument("--growth", type=int, nargs="*", default=GROWTHS)
    parser.add_argument("--batch", type=int, nargs="+", default=[32])
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 3  # as in training
    networks = {name: preset_config(name) for name in options.preset}
    usual = preset_config("cifar_anytime_7")
    networks |= {f"cifar_anytime_7, growth {growth}": replace(usual, growth=growth) for growth in options.growth}
    results = []
    for name, config in networks.items():
        for batch_size in options.batch:
            found = measure(config, batch_size, getattr(torch, options.precision), options.rounds, device)
            results.append({"network": name} | found)
            rates = ", ".join(f"{way} {found[f'{way}_images_per_second']:,.0f}" for way in WAYS[device.type])
            print(f"{name}, batch {batch_size}: {rates} images/s; {found['times_as_fast']:.2f} times", flush=True)
    setting = {"precision": options.precision, "rounds": options.rounds}
    record(options.record, device, benchmark="padding", **setting, results=results)


if __name__ == "__main__":
    main()
