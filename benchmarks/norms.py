"""Do our kernels for BN and ReLU train faster than torch's?

    python -m benchmarks.norms [--preset NAME ...] [--batch N ...] [--seconds N] [--record FILE]

For maps of several sizes: microseconds of BN and ReLU, forward and backward, in bfloat16, and the least that the GPU's
memory allows, if each map and gradient is read and written as often as it must be. Then whole training steps of
networks: images/s with torch's kernels and with ours, in turn. Needs a GPU.
"""

import os
import statistics
import tempfile
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.machine import make_parser, record
from benchmarks.throughput import endless, rate, write_random_cifar
from msdnet.data.cifar import CifarData
from msdnet.networks import kernels
from msdnet.training import load_recipe
from msdnet.training.run import make_step

# (N, C, H, W) as in MSDNets in batches of 64, and in ResNets and DenseNets in batches of 256.
SHAPES = [
    *((64, 16, 32, 32), (64, 64, 32, 32), (64, 64, 16, 16), (64, 128, 8, 8)),
    *((256, 16, 32, 32), (256, 48, 32, 32), (256, 120, 32, 32), (256, 204, 16, 16), (256, 240, 8, 8)),
]
PRESETS = ["cifar_anytime", "resnet_56", "densenet_bc_58_12"]
TIMES_IN_GRAPH, TIMED_GRAPHS = 20, 9
PASSES = 8  # forward: read twice, write; backward: read maps and gradients twice, write


def microseconds(work: Callable[[], object]) -> float:
    """Of one call, many of which are captured in a CUDA graph."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(TIMES_IN_GRAPH):
            work()
    found = []
    for _ in range(TIMED_GRAPHS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        found.append(float(start.elapsed_time(end)))
    return 1e3 * statistics.median(found) / TIMES_IN_GRAPH


def copied_per_second(device: torch.device) -> float:
    """Bytes read and written by a copy of a large tensor."""
    large = torch.empty(2**30, dtype=torch.uint8, device=device)
    other = torch.empty_like(large)
    return 2 * large.numel() / (microseconds(lambda: other.copy_(large)) / 1e6)


def compare_norms(shape: tuple[int, int, int, int], device: torch.device, bandwidth: float) -> dict[str, Any]:
    layer = nn.BatchNorm2d(shape[1], device=device)
    maps = torch.randn(shape, device=device, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    maps.requires_grad_()
    above = torch.randn_like(maps)

    def both_ways(norm: Callable[[], Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(norm(), [maps, layer.weight, layer.bias], above)

    return {
        "shape": shape,
        "torch_us": microseconds(both_ways(lambda: torch.relu_(layer(maps)))),
        "ours_us": microseconds(both_ways(lambda: kernels.norm(maps, layer, relu=True))),
        "least_us": 1e6 * PASSES * maps.numel() * maps.element_size() / bandwidth,
    }


def images_per_second(preset: str, batch_size: int, seconds: float, data: CifarData, whose: str) -> float:
    os.environ["MSDNET_KERNELS"] = whose
    step = make_step(preset, load_recipe("compare").in_batches(batch_size), data, data.device)
    batch = next(endless(data, batch_size))
    return rate(step, repeat(batch), batch_size, seconds, data.device)


def compare_steps(preset: str, batch_size: int, seconds: float, data: CifarData) -> dict[str, Any]:
    rates = {whose: images_per_second(preset, batch_size, seconds, data, whose) for whose in ("torch", "own")}
    again = images_per_second(preset, batch_size, seconds, data, "torch")
    torchs = (rates["torch"] + again) / 2
    return {
        "preset": preset,
        "batch": batch_size,
        "torch_images_per_second": torchs,
        "own_images_per_second": rates["own"],
        "own_over_torch": rates["own"] / torchs,
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", nargs="*", default=PRESETS)
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()

    device = torch.device("cuda")
    bandwidth = copied_per_second(device)
    print(f"copies {bandwidth / 1e12:.2f} TB/s")
    norms = []
    for shape in SHAPES:
        norms.append(found := compare_norms(shape, device, bandwidth))
        told = ", ".join(f"{whose} {found[f'{whose}_us']:.1f} us" for whose in ("torch", "ours", "least"))
        print(f"{shape}: {told}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write_random_cifar(Path(folder))
        data = CifarData("cifar100", folder, device=device)
    steps = []
    for preset in options.preset:
        for batch_size in options.batch:
            steps.append(found := compare_steps(preset, batch_size, options.seconds, data))
            print(
                f"{preset}, batch {batch_size}: torch {found['torch_images_per_second']:,.0f}, own "
                f"{found['own_images_per_second']:,.0f} images/s, {found['own_over_torch']:.2f} times",
                flush=True,
            )
    record(options.record, device, benchmark="norms", copied_per_second=bandwidth, norms=norms, steps=steps)


if __name__ == "__main__":
    main()
