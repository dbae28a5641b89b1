"""Labelled images in memory, held on the device and augmented there.

All images stay as they are; padding, cropping, flipping and normalising are a few vectorised operations on the device.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from msdnet.checks import check_choice, check_whole
from msdnet.data.base import Batch, Epoch, ImageData, Normalisation, batches_at_once, in_runs
from msdnet.files import Part, check_labels, class_names, hold_out
from msdnet.pixels import check_pixels

__all__ = ["ArrayData"]

IMAGES_AT_A_TIME = 1_000  # while means are taken, in numbers eight times as large as bytes
USUAL_CHANNELS = (1, 3, 4)  # where the second axis has so many and the last has not, the channels come first
LEAST_STD = 1 / 255  # images that are all alike vary by nothing, which nothing can be divided by


class ArrayData(ImageData):
    """Images and labels that are in memory: all are for training but those held out; there are none to test.

    - images: (N, height, width, channels), bytes or floating-point numbers from 0 to 1
    - labels: (N), each the number of a class, from 0
    - classes: their names
    - held_out: how many images are held out, drawn from all alike; or which ones, by their places
    - normalisation: by default that of the training images
    - padding: zeros on each side of a training image, before a random crop; by default an eighth of its height
    - mirror: whether half of the training images are mirrored
    - subset: train on the first so many training images only, for a quick try: mix them if they are sorted by class
    """

    def __init__(
        self,
        images: ArrayLike,
        labels: ArrayLike,
        classes: Sequence[str],
        *,
        held_out: int | Sequence[int],
        held_out_seed: int = 0,
        name: str = "arrays",
        device: torch.device | str = "cpu",
        normalisation: Normalisation | None = None,
        padding: int | None = None,
        mirror: bool = True,
        subset: int | None = None,
    ) -> None:
        images, labels = np.asarray(images), np.asarray(labels)
        self.classes = class_names(classes)
        _check(images, labels, self.classes)
        if subset is not None:
            check_whole("subset", subset)
        self.name = name
        self.device = torch.device(device)
        _, height, width, channels = images.shape
        self.image_shape = (channels, height, width)
        self.held_out_seed = check_whole("held_out_seed", held_out_seed, at_least=0)
        self.held_out_indices = _held_out(len(images), held_out, self.held_out_seed)
        self._padding = height // 8 if padding is None else check_whole("padding", padding, at_least=0)
        self._mirror = mirror
        rows = {"train": np.setdiff1d(np.arange(len(images)), self.held_out_indices)[:subset]}
        rows["held_out"] = np.array(self.held_out_indices)
        self._images = {part: _pixels(images[chosen]) for part, chosen in rows.items()}
        numbers = labels.astype(np.int64)
        self._labels = {part: torch.tensor(numbers[chosen]).to(self.device) for part, chosen in rows.items()}
        self.normalisation = normalisation or _measured(self._images["train"])
        if len(self.normalisation.mean) != channels:
            raise ValueError(f"normalisation is of {len(self.normalisation.mean)} channels, and images have {channels}")
        # (N, height + 2 padding, width + 2 padding, channels): padded once, so that a crop is nothing but an index.
        self._padded = functional.pad(self._images["train"], (0, 0, *[self._padding] * 4)).to(self.device)

    def size(self, part: Part) -> int:
        return len(self._part(part)[0])

    def training_batches(self, epoch: Epoch) -> Iterator[Batch]:
        size = self.size("train")
        order, generator = epoch.order(size)
        # Rows of (image, top, left, flip), all of an epoch at once: the device waits for nothing between steps.
        corners = torch.randint(0, 2 * self._padding + 1, (size, 2), generator=generator)
        flips = torch.randint(0, 2 if self._mirror else 1, (size, 1), generator=generator)
        draws = torch.cat([order[:, None], corners, flips], dim=1).to(self.device, non_blocking=True)
        shares = epoch.shares(draws)
        for run in in_runs(shares, batches_at_once(epoch, math.prod(self.image_shape))):
            draw = torch.cat(run)
            images, labels = self._crop(draw), self._labels["train"][draw[:, 0]]
            yield from map(Batch, images.chunk(len(run)), labels.chunk(len(run)))

    def batches(self, part: Part, batch_size: int) -> Iterator[Batch]:
        images, labels = self._part(part)
        for start in range(0, len(images), batch_size):
            pixels = images[start : start + batch_size].to(self.device).permute(0, 3, 1, 2)
            yield Batch(self.normalisation(pixels), labels[start : start + batch_size])

    def _part(self, part: Part) -> tuple[Tensor, Tensor]:
        """Images (N, height, width, channels) in main memory, and labels (N) on the device."""
        check_choice("part", part, get_args(Part))
        if part == "test":
            return self._images["train"][:0], self._labels["train"][:0]
        return self._images[part], self._labels[part]

    def _crop(self, draw: Tensor) -> Tensor:
        """Crops of padded images, some mirrored: (B, 4) draws to (B, channels, height, width), channels-last."""
        image, top, left, flip = draw.T
        _, height, width = self.image_shape
        down, across = torch.arange(height, device=self.device), torch.arange(width, device=self.device)
        rows = top[:, None] + down
        columns = left[:, None] + torch.where(flip[:, None].bool(), width - 1 - across, across)
        pixels = self._padded[image[:, None, None], rows[:, :, None], columns[:, None, :]]
        return self.normalisation(pixels.permute(0, 3, 1, 2))


def _check(images: NDArray[Any], labels: NDArray[Any], classes: Sequence[str]) -> None:
    if images.ndim != 4:
        raise ValueError(f"images must have the shape (N, height, width, channels), got {images.shape}")
    if images.shape[1] in USUAL_CHANNELS and images.shape[3] not in USUAL_CHANNELS:
        raise ValueError(
            f"images must have the shape (N, height, width, channels), got {images.shape}; put the channels last"
        )
    check_pixels("images", images)
    check_labels("labels", labels, len(images), len(classes))


def _held_out(size: int, held_out: int | Sequence[int], seed: int) -> tuple[int, ...]:
    if not isinstance(held_out, Iterable):
        return hold_out(size, held_out, seed)
    places = tuple(sorted({check_whole("each of held_out", place, at_least=0) for place in held_out}))
    if not 0 < len(places) < size or places[-1] >= size:
        raise ValueError(
            f"held_out must be the places of some of {size} images, from 0, and not of all, got {held_out}"
        )
    return places


def _pixels(images: NDArray[Any]) -> Tensor:
    """Bytes, or floating-point numbers as large as bytes."""
    if images.dtype == np.uint8:
        return torch.from_numpy(images)
    return torch.from_numpy(images.astype(np.float32)) * 255


def _measured(images: Tensor) -> Normalisation:
    """Means and standard deviations of the channels of (N, height, width, channels).

    Runs know their data by these, so that they must not depend on how many threads add up: numpy has one.
    """
    sums = np.zeros((2, images.shape[-1]))
    for start in range(0, len(images), IMAGES_AT_A_TIME):
        pixels = images[start : start + IMAGES_AT_A_TIME].numpy().astype(np.float64)
        sums += [pixels.sum((0, 1, 2)), np.square(pixels).sum((0, 1, 2))]
    mean, square = sums / images[..., 0].numel() / [[255], [255**2]]
    std = np.sqrt(np.maximum(square - np.square(mean), 0)).clip(min=LEAST_STD)
    return Normalisation(tuple(mean.tolist()), tuple(std.tolist()))
