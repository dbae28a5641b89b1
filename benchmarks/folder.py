"""Does reading a folder keep up? Training images per second beside a plain torchvision pipeline, in one run.

    python -m benchmarks.folder ROOT [--workers 1 2] [--enlarge SIDE] [--rounds N] [--record FILE]

The plain pipeline is ImageFolder, the same v2 transforms to normalised numbers in the worker, and a DataLoader
that keeps its workers; both end with batches on the device. Each round reads the images once with each, one after
the other, in an order that alternates; figures are medians over rounds. A worker's own rate is images per second of
its CPU time (Linux only), which other work on the machine does not disturb. --enlarge first makes copies of some of
the images with the given side, as a camera would take them.
"""

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from benchmarks.machine import make_parser, record
from msdnet.data.base import Epoch
from msdnet.data.folder import FolderData

ENLARGED_PER_CLASS = 16

Epochs = Callable[[int], Iterable[tuple[Tensor, Tensor]]]


def plain_epochs(root: Path, workers: int, batch: int, device: torch.device) -> Epochs:
    mean, std = FolderData.normalisation.mean, FolderData.normalisation.std
    to_numbers = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)]
    transform = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *to_numbers])
    loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(
        ImageFolder(root / "train", transform),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
    )
    return lambda _: (tuple(tensor.to(device, non_blocking=True) for tensor in pair) for pair in loader)


def our_epochs(root: Path, workers: int, batch: int, device: torch.device) -> Epochs:
    data = FolderData(root, workers=workers, device=device, held_out=1)
    return lambda epoch: data.training_batches(Epoch(batch, seed=0, number=epoch))


@dataclass
class Pipeline:
    """Epochs, and what they took."""

    epochs: Epochs
    workers: set[int] = field(default_factory=set)
    rates: list[float] = field(default_factory=list)
    """Images per second."""
    worker_rates: list[float] = field(default_factory=list)
    """Images per second of the workers' CPU time."""

    def start(self) -> None:
        before = children()
        read(self.epochs(0))
        self.workers = children() - before

    def time(self, epoch: int) -> None:
        start, start_cpu = time.perf_counter(), cpu_seconds(self.workers)
        images = read(self.epochs(epoch))
        self.rates.append(images / (time.perf_counter() - start))
        self.worker_rates.append(images / (cpu_seconds(self.workers) - start_cpu))


def children() -> set[int]:
    return {child.pid for child in multiprocessing.active_children() if child.pid}


def cpu_seconds(pids: set[int]) -> float:
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


def read(epoch: Iterable[tuple[Tensor, Tensor]]) -> int:
    """The number of images of an epoch, once all are on the device."""
    images = sum(len(labels) for _, labels in epoch)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return images


def measure(root: Path, workers: int, batch: int, rounds: int, device: torch.device) -> dict[str, float]:
    plain = Pipeline(plain_epochs(root, workers, batch, device))
    ours = Pipeline(our_epochs(root, workers, batch, device))
    for pipeline in (plain, ours):
        pipeline.start()
    for round_ in range(1, rounds + 1):
        for pipeline in (plain, ours) if round_ % 2 else (ours, plain):
            pipeline.time(round_)
    return {
        "workers": workers,
        "plain_images_per_second": statistics.median(plain.rates),
        "ours_images_per_second": statistics.median(ours.rates),
        "ratio": median_ratio(ours.rates, plain.rates),
        "plain_images_per_worker_second": statistics.median(plain.worker_rates),
        "ours_images_per_worker_second": statistics.median(ours.worker_rates),
        "worker_ratio": median_ratio(ours.worker_rates, plain.worker_rates),
    }


def median_ratio(some: list[float], others: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(some, others, strict=True))


def enlarge(root: Path, side: int, target: Path) -> Path:
    for part in ("train", "val"):
        for folder in sorted(path for path in (root / part).iterdir() if path.is_dir()):
            (target / part / folder.name).mkdir(parents=True)
            for path in sorted(folder.iterdir())[: ENLARGED_PER_CLASS if part == "train" else 1]:
                image = Image.open(path).convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
                image.save(target / part / folder.name / path.name, quality=90)
    return target


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("root", type=Path, help="a folder with train/CLASS/* and val/CLASS/*")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--enlarge", type=int, metavar="SIDE")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    torch.set_num_threads(1)  # the main process has little to do, and the cores are for the workers
    with tempfile.TemporaryDirectory() as scratch:
        root = enlarge(options.root, options.enlarge, Path(scratch)) if options.enlarge else options.root
        print(f"{options.root.name}, batch {options.batch} on {options.device}, median of {options.rounds} rounds")
        results = []
        for workers in options.workers:
            result = measure(root, workers, options.batch, options.rounds, torch.device(options.device))
            results.append(result)
            print(f"  workers: {workers}")
            for kind, ratio in (("second", "ratio"), ("worker_second", "worker_ratio")):
                rates = [result[f"{name}_images_per_{kind}"] for name in ("plain", "ours")]
                print(
                    f"    images per {kind.replace('_', ' '):13}  plain {rates[0]:6.0f}, ours {rates[1]:6.0f}, "
                    f"{result[ratio]:.2f} times the plain"
                )
    names = ("batch", "rounds", "device", "enlarge")
    setting = {"images": options.root.name, **{name: getattr(options, name) for name in names}}
    record(options.record, torch.device("cpu"), benchmark="folder", **setting, results=results)


if __name__ == "__main__":
    main()
