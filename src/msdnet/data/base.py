"""What training and evaluation need of any data set: batches on a device, and three parts that never mix.

`train` is what the weights are fitted to; `held_out` is part of the training images, never augmented and
never trained on, for thresholds and for choosing between models; `test` is for the end.
Knows nothing of networks.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from msdnet.bundle import ImageSpec
from msdnet.checks import check_whole, keep_checked, numbers
from msdnet.files import Part, fingerprint

__all__ = [
    "UNREADABLE",
    "Batch",
    "Epoch",
    "ImageData",
    "Normalisation",
    "Part",
    "Shard",
    "UnreadableImageError",
    "batches_at_once",
    "in_runs",
]

T = TypeVar("T")

# The label of an image that could not be read: it counts in no loss and in no accuracy.
UNREADABLE = -1

# A GPU takes as long to crop a few small images as to crop thousands: up to so many numbers are worked on together.
NUMBERS_AT_ONCE = 2**24


class UnreadableImageError(ValueError):
    """An image that cannot be read, where that is to end the work: whoever goes on meets the same image again."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.what = f"unreadable image {path}: {why}"

    def __str__(self) -> str:
        return f"{self.what} (--skip-unreadable, or unreadable='skip' in Python, goes on without it)"


class Batch(NamedTuple):
    """Images (N, channels, height, width), normalised, and their labels (N).

    Training that mixes images makes labels (N, classes) of these: each class's share of the image.
    """

    images: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Normalisation:
    """Means and standard deviations of the channels, for pixels between 0 and 1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        keep_checked(self, numbers, "mean", low=0)
        keep_checked(self, numbers, "std", low=1e-9)
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean and std must be of as many channels, got {len(self.mean)} and {len(self.std)}")

    def __call__(self, pixels: Tensor) -> Tensor:
        """Bytes (N, channels, height, width), or numbers as large, to normalised ones, in the same memory layout."""
        scale, shift, _, _ = self._constants(pixels.device)
        return torch.addcmul(shift, pixels.float(), scale)

    def undo(self, images: Tensor) -> Tensor:
        """Normalised numbers to those between 0 and 1 that they were."""
        _, _, mean, std = self._constants(images.device)
        return torch.addcmul(mean, images, std).clamp_(0, 1)

    @cache  # noqa: B019  (a few data sets in all; a copy to a GPU for each batch would make the processor wait for it)
    def _constants(self, device: torch.device) -> tuple[Tensor, ...]:
        scale = tuple(1 / (255 * std) for std in self.std)
        shift = tuple(-m / s for m, s in zip(self.mean, self.std, strict=True))
        with torch.inference_mode(False):  # or gradients could never go through what an evaluation happened to make
            return torch.tensor([scale, shift, self.mean, self.std], device=device)[:, None, :, None, None].unbind()


@dataclass(frozen=True)
class Shard:
    """Which of several processes this is; each takes its share of every batch."""

    rank: int = 0
    world: int = 1

    def of(self, batch: Tensor) -> Tensor:
        if len(batch) % self.world:
            raise ValueError(f"batch_size must be a multiple of the {self.world} processes, got {len(batch)}")
        share = len(batch) // self.world
        return batch[self.rank * share : (self.rank + 1) * share]


@dataclass(frozen=True)
class Epoch:
    """One pass over the training images, or what is left of it, or one process's share of it."""

    batch_size: int
    number: int
    """Counted from 0."""
    seed: int = 0
    first: int = 0
    """The batch to begin with."""
    shard: Shard = Shard()

    def __post_init__(self) -> None:
        check_whole("batch_size", self.batch_size)

    def order(self, size: int) -> tuple[Tensor, torch.Generator]:
        """The order of the images, and a generator for their augmentation, from seed and number alone."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.number)
        return torch.randperm(size, generator=generator), generator

    def shares(self, rows: Tensor) -> list[Tensor]:
        """What this process takes of every full batch of the rows that is still to come."""
        batches = range(self.first, len(rows) // self.batch_size)
        return [self.shard.of(rows[k * self.batch_size : (k + 1) * self.batch_size]) for k in batches]


def batches_at_once(epoch: Epoch, numbers_each: int) -> int:
    """How many batches of an epoch are worth preparing together, if each image takes so many numbers."""
    share = epoch.batch_size // epoch.shard.world
    return max(1, NUMBERS_AT_ONCE // max(1, share * numbers_each))


def in_runs(things: Iterable[T], length: int) -> Iterator[list[T]]:
    """So many at a time, the last run as short as it comes."""
    rest = iter(things)
    while run := list(islice(rest, length)):
        yield run


class ImageData(ABC):
    """A data set of labelled images."""

    name: str
    classes: tuple[str, ...]
    image_shape: tuple[int, int, int]
    """Channels, height and width of the images in a batch."""
    resize: int | None = None
    """Shorter side to which an image that is held out, tested or classified is resized before its centre is cropped;
    by default that of the images in a batch.
    """
    normalisation: Normalisation
    held_out_indices: tuple[int, ...]
    """The images of the training set that are held out, in the set's own order."""
    held_out_seed: int

    @abstractmethod
    def size(self, part: Part) -> int:
        """The number of images in a part."""

    @property
    def some_names(self) -> tuple[str, ...]:
        """Of training images that are files: by these their folder is known again, even if it has grown."""
        return ()

    @property
    def held_out_fingerprint(self) -> str:
        """By which a run, or a model, knows the images again that it was not trained on."""
        return fingerprint(self.held_out_indices)

    @property
    def test_fingerprint(self) -> str | None:
        """Of test images that are files, by which others are told from them; a data set by name has but one test."""
        return None

    @abstractmethod
    def training_batches(self, epoch: Epoch) -> Iterator[Batch]:
        """The batches of an epoch, shuffled and augmented.

        The same epoch gives the same batches, whatever was asked for before: a run that is resumed in the
        middle sees what it would have seen. A last batch that would not be full is left out.
        """

    @abstractmethod
    def batches(self, part: Part, batch_size: int) -> Iterator[Batch]:
        """All images of a part in order, as they are, the last batch as small as it comes."""

    @property
    def resized_to(self) -> int:
        """The shorter side of an image before its centre is cropped."""
        side = min(self.image_shape[1:])
        return side if self.resize is None else check_whole("resize", self.resize, at_least=side)

    @property
    def image_spec(self) -> ImageSpec:
        """What a network takes that was trained on these images, for `msdnet.export.export_network`."""
        _, side, width = self.image_shape
        if side != width:
            raise ValueError(f"bundles are for square images, and these are {side} x {width}")
        return ImageSpec(side=side, resize=self.resized_to, **asdict(self.normalisation))

    def steps(self, batch_size: int) -> int:
        """The number of batches in an epoch."""
        return self.size("train") // batch_size
