"""Is running stage by stage as fast as running the whole network? Prints the ratio, measured in one run.

    python -m benchmarks.stages [--preset NAME] [--batch N] [--rounds N] [--record FILE]

Each round times both, one after the other, in an order that alternates; the ratio is the median over rounds.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.machine import make_parser, record
from msdnet import preset_config
from msdnet.networks import MSDNet, create_network


def whole(network: MSDNet, images: Tensor) -> None:
    network(images)


def staged(network: MSDNet, images: Tensor) -> None:
    state = network.begin(images)
    for _ in range(network.exit_count):
        _, state = network.advance(state)


def seconds(run: Callable[[MSDNet, Tensor], None], network: MSDNet, images: Tensor) -> float:
    start = time.perf_counter()
    run(network, images)
    return time.perf_counter() - start


@torch.inference_mode()
def measure(preset: str, batch: int, rounds: int) -> dict[str, float | list[float]]:
    torch.manual_seed(0)
    network = create_network(preset_config(preset)).eval()
    side = 224 if network.config.stem == "imagenet" else 32
    images = torch.randn(batch, 3, side, side)
    for run in (whole, staged):
        seconds(run, network, images)
    times: dict[Callable[[MSDNet, Tensor], None], list[float]] = {whole: [], staged: []}
    for round_ in range(rounds):
        for run in (whole, staged) if round_ % 2 else (staged, whole):
            times[run].append(seconds(run, network, images))
    ratios = [s / w for s, w in zip(times[staged], times[whole], strict=True)]
    return {
        "whole_ms": 1e3 * statistics.median(times[whole]),
        "staged_ms": 1e3 * statistics.median(times[staged]),
        "ratio": statistics.median(ratios),
        "ratio_quartiles": statistics.quantiles(ratios, n=4)[::2],
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="cifar_anytime")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=41)
    options = parser.parse_args()

    result = measure(options.preset, options.batch, options.rounds)
    print(f"{options.preset}, batch {options.batch}, median of {options.rounds} rounds")
    print(f"  whole            {result['whole_ms']:8.1f} ms")
    print(f"  stage by stage   {result['staged_ms']:8.1f} ms")
    print(f"  ratio            {result['ratio']:8.3f} (median over rounds of stage by stage / whole)")
    setting = {"preset": options.preset, "batch": options.batch, "rounds": options.rounds}
    record(options.record, torch.device("cpu"), benchmark="stages", **setting, **result)


if __name__ == "__main__":
    main()
