"""How fast does training run? Images per second, end to end with augmentation, on the device that is there.

    python -m benchmarks.throughput [--preset NAME] [--batch N ...] [--seconds N] [--record FILE]

The images are random bytes in CIFAR's layout: the speed does not depend on what they show. For each batch size:
seconds to the first step, images/s, the share of time that is not the step itself (data, counting, launching),
and the peak of the device's memory. On a GPU, also what the kernels of a step are for.
"""

import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import make_parser, record
from msdnet.data.base import Batch, Epoch
from msdnet.data.cifar import CifarData
from msdnet.files import CIFAR
from msdnet.training import load_recipe
from msdnet.training.run import make_step
from msdnet.training.step import Step


def write_random_cifar(folder: Path) -> None:
    layout = CIFAR["cifar100"]
    (folder / layout.folder).mkdir()
    (folder / layout.folder / layout.names_file).write_text("\n".join(f"class {i}" for i in range(100)))
    records = torch.randint(0, 256, (50_000, layout.record_bytes), dtype=torch.uint8)
    records[:, :2] %= 100
    records.numpy().tofile(folder / layout.folder / "train.bin")


def endless(data: CifarData, batch_size: int) -> Iterator[Batch]:
    for epoch in count():
        yield from data.training_batches(Epoch(batch_size, seed=0, number=epoch))


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(preset: str, batch_size: int, seconds: float, data: CifarData) -> dict[str, Any]:
    device = data.device
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    step = make_step(preset, load_recipe("fast"), data, device)
    batches = endless(data, batch_size)
    batch = next(batches)
    step(batch, 0.01)
    wait(device)
    first_step = time.perf_counter() - started
    result = {
        "batch": batch_size,
        "first_step_seconds": first_step,
        "images_per_second": rate(step, batches, batch_size, seconds, device),
        "step_only_images_per_second": rate(step, iter(lambda: batch, None), batch_size, seconds, device),
    }
    result["share_outside_step"] = max(0.0, 1 - result["images_per_second"] / result["step_only_images_per_second"])
    if device.type == "cuda":
        result["peak_memory_gib"] = torch.cuda.max_memory_reserved() / 2**30
    return result


# What a kernel is for, by a word in its name; the first that fits counts. Ours (networks/kernels.py) have plain names.
OURS = {"_sum", "_normalise", "_sum_gradients", "_gradients"}
KINDS = {
    "batch_norm": "batch normalisation",
    "batch_normalization": "batch normalisation",
    "CatArray": "concatenation",
    "Padding": "padding of channels for cuDNN",
    "wgrad": "convolution",
    "dgrad": "convolution",
    "fprop": "convolution",
    "conv": "convolution",
    "gemm": "convolution",
    "cutlass": "convolution",
    "nchw": "change of layout",
    "add": "addition of gradients",
    "copy": "copies and casts",
    "Memset": "copies and casts",
    "clamp": "ReLU",
    "threshold": "ReLU",
}


def profile(preset: str, batch_size: int, data: CifarData) -> dict[str, float]:
    """Milliseconds of one step by what the GPU's kernels are for, the longest first."""
    step = make_step(preset, load_recipe("fast"), data, data.device)
    batch = next(endless(data, batch_size))
    for _ in range(3):
        Step.__call__(step, batch, 0.01)  # without the graph, which hides the kernels' names
    wait(data.device)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        Step.__call__(step, batch, 0.01)
        wait(data.device)
    times: dict[str, float] = {}
    for event in profiler.key_averages():
        kind = next((kind for word, kind in KINDS.items() if word in event.key), "the rest")
        kind = "batch normalisation and ReLU" if event.key in OURS else kind
        times[kind] = times.get(kind, 0.0) + event.self_device_time_total / 1e3
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def rate(step: Any, batches: Iterator[Batch], batch_size: int, seconds: float, device: torch.device) -> float:
    for _ in range(3):
        step(next(batches), 0.01)
    wait(device)
    started, steps = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        for _ in range(5):
            step(next(batches), 0.01)
        steps += 5
        wait(device)
    return steps * batch_size / (time.perf_counter() - started)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="cifar_anytime_7")
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256, 512, 1024])
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        write_random_cifar(Path(folder))
        data = CifarData("cifar100", folder, device=device)
    results = []
    for batch_size in options.batch:
        result = measure(options.preset, batch_size, options.seconds, data)
        results.append(result)
        print(
            ", ".join(
                f"{key} {value:,.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in result.items()
            )
        )
    profiles = {size: profile(options.preset, size, data) for size in options.batch} if device.type == "cuda" else {}
    for size, times in profiles.items():
        shares = ", ".join(f"{kind} {time / sum(times.values()):.0%}" for kind, time in times.items())
        print(f"batch {size}, kernels of one step, {sum(times.values()):.1f} ms in a row: {shares}")
    record(options.record, device, benchmark="throughput", preset=options.preset, results=results, kernel_ms=profiles)


if __name__ == "__main__":
    main()
