"""CIFAR-10 and CIFAR-100 in their official binary layout, held on the device and augmented there.

A record is one label byte (CIFAR-10) or a coarse and a fine one (CIFAR-100), then 3,072 bytes: the red, the
green and the blue plane of a 32x32 image. Nothing is unpickled. All images stay on the device as bytes;
padding, cropping, flipping and normalising are a few vectorised operations there.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from msdnet.data.base import Batch, Epoch, ImageData, Normalisation, Part, hold_out
from msdnet.naming import Registry

__all__ = ["CIFAR", "CifarData", "CifarLayout"]

SIDE = 32
PADDING = 4  # zeros on each side of a training image, before a random 32x32 crop


@dataclass(frozen=True)
class CifarLayout:
    """Where the records of a CIFAR release are, and what is published about them."""

    folder: str
    train_files: tuple[str, ...]
    test_files: tuple[str, ...]
    names_file: str
    label_bytes: int
    records_per_file: tuple[int, int]
    """Images in each training file and in each test file."""
    normalisation: Normalisation
    url: str
    md5: str

    @property
    def record_bytes(self) -> int:
        return self.label_bytes + 3 * SIDE * SIDE


CIFAR: Registry[CifarLayout] = Registry("CIFAR data set")
CIFAR.register(
    "cifar10",
    CifarLayout(
        folder="cifar-10-batches-bin",
        train_files=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        test_files=("test_batch.bin",),
        names_file="batches.meta.txt",
        label_bytes=1,
        records_per_file=(10_000, 10_000),
        normalisation=Normalisation(mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)),
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        md5="c32a1d4ab5d03f1284b67883e8d87530",
    ),
)
CIFAR.register(
    "cifar100",
    CifarLayout(
        folder="cifar-100-binary",
        train_files=("train.bin",),
        test_files=("test.bin",),
        names_file="fine_label_names.txt",
        label_bytes=2,
        records_per_file=(50_000, 10_000),
        normalisation=Normalisation(mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762)),
        url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        md5="03b5dce01913d631647c71ecec9e9cb8",
    ),
)


class CifarData(ImageData):
    """One of the two CIFAR data sets, on a device.

    Read from `root` or from the folder that the environment variable MSDNET_DATA names (either may be the
    layout's own folder or the one that holds it); downloaded once where neither is given. `subset` trains
    on the first so many training images only, for a quick try.
    """

    def __init__(
        self,
        name: str = "cifar100",
        root: str | Path | None = None,
        *,
        device: torch.device | str = "cpu",
        held_out: int = 5_000,
        held_out_seed: int = 0,
        subset: int | None = None,
    ) -> None:
        self.name = name
        self.layout = CIFAR[name]
        self.folder = _find_folder(self.layout, root)
        self.device = torch.device(device)
        self.normalisation = self.layout.normalisation
        self.image_shape = (3, SIDE, SIDE)
        self.classes = _read_names(self.folder / self.layout.names_file)
        self.held_out_seed = held_out_seed
        images, labels = self._read("train")
        self.held_out_indices = hold_out(len(images), held_out, held_out_seed)
        is_held_out = torch.zeros(len(images), dtype=torch.bool)
        is_held_out[list(self.held_out_indices)] = True
        rows = (~is_held_out).nonzero()[:, 0][:subset]
        # (N, 40, 40, 3): padded once, so that a crop is nothing but an index.
        self._padded = functional.pad(images[rows], (0, 0, PADDING, PADDING, PADDING, PADDING)).to(self.device)
        self._images = {"train": images[rows], "held_out": images[is_held_out]}
        self._labels = {"train": labels[rows].to(self.device), "held_out": labels[is_held_out].to(self.device)}

    def size(self, part: Part) -> int:
        return len(self._test[0]) if part == "test" else len(self._images[part])

    def training_batches(self, epoch: Epoch) -> Iterator[Batch]:
        size = self.size("train")
        order, generator = epoch.order(size)
        # Rows of (image, top, left, flip), all of an epoch at once: the device waits for nothing between steps.
        corners = torch.randint(0, 2 * PADDING + 1, (size, 2), generator=generator)
        flips = torch.randint(0, 2, (size, 1), generator=generator)
        draws = torch.cat([order[:, None], corners, flips], dim=1).to(self.device, non_blocking=True)
        for draw in epoch.shares(draws):
            yield Batch(self._crop(draw), self._labels["train"][draw[:, 0]])

    def batches(self, part: Part, batch_size: int) -> Iterator[Batch]:
        images, labels = self._test if part == "test" else (self._images[part], self._labels[part])
        for start in range(0, len(images), batch_size):
            pixels = images[start : start + batch_size].to(self.device).permute(0, 3, 1, 2)
            yield Batch(self.normalisation(pixels), labels[start : start + batch_size])

    def _crop(self, draw: Tensor) -> Tensor:
        """Crops of padded images, some mirrored: (B, 4) draws to (B, 3, 32, 32) in channels-last layout."""
        image, top, left, flip = draw.T
        across = torch.arange(SIDE, device=self.device)
        rows = top[:, None] + across
        columns = left[:, None] + torch.where(flip[:, None].bool(), SIDE - 1 - across, across)
        pixels = self._padded[image[:, None, None], rows[:, :, None], columns[:, None, :]]
        return self.normalisation(pixels.permute(0, 3, 1, 2))

    @cached_property
    def _test(self) -> tuple[Tensor, Tensor]:
        """Read only when asked for: training never opens the test files."""
        images, labels = self._read("test")
        return images, labels.to(self.device)

    def _read(self, part: Part) -> tuple[Tensor, Tensor]:
        """Images (N, 32, 32, 3) as bytes and labels (N) of the training or the test files."""
        files = self.layout.test_files if part == "test" else self.layout.train_files
        expected = self.layout.records_per_file[part == "test"]
        records = torch.cat([_read_records(self.folder / name, self.layout, expected) for name in files])
        labels = records[:, self.layout.label_bytes - 1].long()
        if int(labels.max()) >= len(self.classes):
            raise ValueError(f"{self.folder}: label {int(labels.max())} where there are {len(self.classes)} classes")
        planes = records[:, self.layout.label_bytes :].view(-1, 3, SIDE, SIDE)
        return planes.permute(0, 2, 3, 1).contiguous(), labels


def _find_folder(layout: CifarLayout, root: str | Path | None) -> Path:
    """The layout's folder below (or at) the root, below MSDNET_DATA, or else in the download cache."""
    given = root or os.environ.get("MSDNET_DATA")
    if given is None:
        from msdnet.data.download import fetch_cifar

        return fetch_cifar(layout)
    candidates = [Path(given) / layout.folder, Path(given)]
    for folder in candidates:
        if (folder / layout.names_file).is_file():
            return folder
    raise FileNotFoundError(
        f"{given}: no {layout.folder}/{layout.names_file} here; --data or MSDNET_DATA must name the folder that "
        f"holds {layout.folder}/ in the official binary layout (leave both out to download it)"
    )


def _read_names(path: Path) -> tuple[str, ...]:
    return tuple(name for name in path.read_text().splitlines() if name)


def _read_records(path: Path, layout: CifarLayout, expected: int) -> Tensor:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: missing; {layout.folder} must hold it")
    size, needed = path.stat().st_size, expected * layout.record_bytes
    if size != needed:
        raise ValueError(f"{path}: {size} bytes where {expected} records take {needed}: truncated, or another file")
    data = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)
    return data.view(-1, layout.record_bytes)
