"""CIFAR-10 and CIFAR-100, held on the device and augmented there.

All images stay on the device as bytes; padding, cropping, flipping and normalising are a few vectorised operations
there.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from msdnet.data.base import Batch, Epoch, ImageData, Normalisation
from msdnet.data.download import fetch_cifar
from msdnet.files import CIFAR, SIDE, Part, cifar_classes, find_cifar, hold_out, read_cifar

__all__ = ["CifarData"]

PADDING = 4  # zeros on each side of a training image, before a random 32x32 crop


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
        self.folder = find_cifar(self.layout, root, fetch_cifar)
        self.device = torch.device(device)
        self.normalisation = Normalisation(self.layout.mean, self.layout.std)
        self.image_shape = (3, SIDE, SIDE)
        self.classes = cifar_classes(self.layout, self.folder)
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
        images, labels = read_cifar(self.layout, self.folder, test=part == "test")
        return torch.from_numpy(images), torch.from_numpy(labels)
