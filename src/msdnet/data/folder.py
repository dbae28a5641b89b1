"""Any folder of images, ImageNet among them: found, divided into parts, and read by worker processes.

Workers decode with Pillow, crop and flip, and hand on bytes; the device normalises them. A worker is told all it
needs with each request (files, labels, seeds) and remembers nothing: any batch can be made again, and the number of
workers changes no pixel. Knows files and pixels; nothing of networks or training.
"""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, get_args

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from msdnet.checks import check_choice, check_number, check_whole
from msdnet.data.base import UNREADABLE, Batch, Epoch, ImageData, Normalisation, UnreadableImageError
from msdnet.files import LabelledFile, Part, composed, digest, divide, find_images, fingerprint_of_files, some_names
from msdnet.machine import cores
from msdnet.pixels import Unreadable, centre, cropped, opened, reason, usual_resize

__all__ = ["FolderData"]

# A training crop, as for ResNets: its share of the image's area, and its width over its height.
CROP_AREA, CROP_RATIO = [0.08, 1.0], [3 / 4, 4 / 3]

PATIENCE = 1.0  # seconds


class _Sample(NamedTuple):
    """One image of a batch, as a worker is asked for it."""

    path: str
    label: int
    seed: int | None
    """Of the augmentation; none for an image as it is."""


class _Pixels(NamedTuple):
    """A batch as a worker returns it."""

    images: Tensor
    """Bytes (N, 3, height, width), channels last."""
    labels: Tensor
    unreadable: Sequence[tuple[str, str]]
    """Paths and reasons."""


class FolderData(ImageData):
    """Images in folders named for their classes: `train/CLASS/*` and `val/CLASS/*`, or `CLASS/*` alone.

    In the first layout `val` (or `test`) is the test part, and held-out images are chosen from `train` by their
    number. The second is divided by the hash of each file's name, a tenth for testing and a tenth of the rest
    held out: files can be added and no other moves from part to part.

    - crop_size: side of the images in a batch
    - resize: shorter side of a test image before its centre is cropped; by default 8/7 of crop_size, so 256 for 224
    - colour_jitter: how far brightness, contrast and saturation vary in training (the ResNet code: 0.4)
    - held_out: how many training images; by default a tenth, or 50,000 of more than a million
    - subset: train on so many images only, drawn from all of the training images, for a quick try
    - classes: the names in the order of their labels, as a trained network has them; by default sorted
    - unreadable: an image that cannot be read ends the run, or is warned of once and labelled UNREADABLE
    - workers: processes that read, 0 for none but this one; by default as many as there are cores, up to 8
    """

    normalisation = Normalisation(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))

    def __init__(
        self,
        root: str | Path,
        *,
        device: torch.device | str = "cpu",
        crop_size: int = 224,
        resize: int | None = None,
        colour_jitter: float = 0.0,
        held_out: int | None = None,
        held_out_seed: int = 0,
        subset: int | None = None,
        classes: Sequence[str] | None = None,
        unreadable: Unreadable = "fatal",
        workers: int | None = None,
    ) -> None:
        check_whole("crop_size", crop_size)
        resize = usual_resize(crop_size) if resize is None else resize
        check_whole("resize", resize, at_least=crop_size)
        check_number("colour_jitter", colour_jitter, low=0, high=1)
        check_choice("unreadable", unreadable, get_args(Unreadable))
        self.workers = min(8, cores()) if workers is None else workers
        check_whole("workers", self.workers, at_least=0)
        check_whole("held_out_seed", held_out_seed, at_least=0)
        if subset is not None:
            check_whole("subset", subset)
        self.root = Path(root)
        self.name = self.root.resolve().name
        self.device = torch.device(device)
        self.image_shape = (3, crop_size, crop_size)
        self.resize = resize
        self.unreadable = unreadable
        found = find_images(self.root, classes, held_out, held_out_seed)
        self.classes = found.classes
        self.held_out_indices = found.held_out
        self.held_out_seed = held_out_seed
        self._files = divide(self.root, found, subset)
        self._reader = _Reader(crop_size, resize, colour_jitter)
        self._idle: list[tuple[_Requests, DataLoader[_Pixels]]] = []
        self._warned_of: set[str] = set()

    def size(self, part: Part) -> int:
        return len(self._part(part))

    @property
    def some_names(self) -> tuple[str, ...]:
        return some_names(self.paths("train"))

    @property
    def held_out_fingerprint(self) -> str:
        return fingerprint_of_files(self.held_out_indices, self.paths("held_out"))

    @property
    def test_fingerprint(self) -> str:
        """By their names, labels and sizes, so that none has to be read."""
        files = ((composed(path), label, (self.root / path).stat().st_size) for path, label in self._part("test"))
        return hashlib.sha256(json.dumps(list(files)).encode()).hexdigest()

    def paths(self, part: Part) -> list[str]:
        """The files of a part in order, from the root on."""
        return [file.path for file in self._part(part)]

    def training_batches(self, epoch: Epoch) -> Iterator[Batch]:
        order, _ = epoch.order(self.size("train"))
        return self._read(
            [self._sample("train", index, _seed(epoch, index)) for index in share.tolist()]
            for share in epoch.shares(order)
        )

    def batches(self, part: Part, batch_size: int) -> Iterator[Batch]:
        check_whole("batch_size", batch_size)
        size = self.size(part)
        return self._read(
            [self._sample(part, index) for index in range(start, min(start + batch_size, size))]
            for start in range(0, size, batch_size)
        )

    def _part(self, part: Part) -> list[LabelledFile]:
        check_choice("part", part, self._files)
        return self._files[part]

    def _sample(self, part: Part, index: int, seed: int | None = None) -> _Sample:
        path, label = self._files[part][index]
        return _Sample(f"{self.root}/{path}", label, seed)

    def _read(self, samples: Iterable[list[_Sample]]) -> Iterator[Batch]:
        """Batches on the device. Workers are kept for the next epoch, unless this one is broken off."""
        requests, loader = self._idle.pop() if self._idle else self._start_workers()
        requests.samples = samples
        for images, labels, unreadable in _returned(loader):
            self._report(unreadable)
            images, labels = (tensor.to(self.device, non_blocking=True) for tensor in (images, labels))
            yield Batch(self.normalisation(images), labels)
        self._idle.append((requests, loader))

    def _start_workers(self) -> tuple["_Requests", DataLoader[_Pixels]]:
        requests = _Requests()
        loader = DataLoader(
            self._reader,
            sampler=requests,
            batch_size=None,  # a request is a whole batch
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
            worker_init_fn=_leave_group,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator(),  # else each epoch draws from torch's own, which is the caller's
        )
        return requests, loader

    def _report(self, unreadable: Iterable[tuple[str, str]]) -> None:
        for path, why in unreadable:
            unread = UnreadableImageError(path, why)
            if self.unreadable == "fatal":
                raise unread
            if path not in self._warned_of:
                self._warned_of.add(path)
                warnings.warn(unread.what, stacklevel=3)


# Reading images


def _returned(loader: DataLoader[_Pixels]) -> Iterator[_Pixels]:
    """What workers return. One that is killed while its batch is on the way is told of as torch tells of all others."""
    try:
        yield from loader
    except (ConnectionError, EOFError, FileNotFoundError) as error:
        time.sleep(PATIENCE)  # the system's word of its end comes a moment later, and torch makes an error of it here
        raise RuntimeError(f"DataLoader worker ({error!r}, while it sent a batch) exited unexpectedly") from error


class _Requests:
    """The batches to read next. A loader that keeps its workers asks anew in every epoch."""

    samples: Iterable[list[_Sample]] = ()

    def __iter__(self) -> Iterator[list[_Sample]]:
        return iter(self.samples)


class _Reader(Dataset[_Pixels]):
    """What a worker does: a list of samples to a batch of pixels."""

    def __init__(self, crop_size: int, resize: int, colour_jitter: float) -> None:
        self.crop_size = crop_size
        self.resize = resize
        jitter = v2.ColorJitter(brightness=colour_jitter, contrast=colour_jitter, saturation=colour_jitter)
        self.augment = v2.Compose([v2.RandomHorizontalFlip(), *([jitter] if colour_jitter else [])])

    def __getitem__(self, samples: list[_Sample]) -> _Pixels:
        side = self.crop_size
        labels = torch.tensor([sample.label for sample in samples])
        rows, unreadable = [], []
        for row, sample in enumerate(samples):
            try:
                rows.append(self._image(sample).tobytes())
            except Exception as error:  # decoders raise anything, from SyntaxError to struct.error
                rows.append(b"")
                labels[row] = UNREADABLE
                unreadable.append((sample.path, reason(error)))
        # In place of an unreadable image stands a readable one, which does not disturb what a network averages.
        stand_in = next(filter(None, rows), bytes(side * side * 3))
        pixels = torch.frombuffer(bytearray().join(row or stand_in for row in rows), dtype=torch.uint8)
        return _Pixels(pixels.view(-1, side, side, 3).permute(0, 3, 1, 2), labels, unreadable)

    def _image(self, sample: _Sample) -> Image.Image:
        with opened(sample.path) as image:
            if sample.seed is None:
                return cropped(image, centre(image.size, self.resize, self.crop_size), self.crop_size)
            with _seeded(sample.seed):
                top, left, height, width = v2.RandomResizedCrop.get_params(image, CROP_AREA, CROP_RATIO)
                crop = cropped(image, (left, top, left + width, top + height), self.crop_size)
                augmented: Image.Image = self.augment(crop)
                return augmented


def _seed(epoch: Epoch, index: int) -> int:
    """Of one image's augmentation in one epoch."""
    return digest(f"{epoch.seed}/{epoch.number}/{index}")


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Torch's random numbers from this seed; afterwards they go on as if nothing had been drawn."""
    generator = torch.default_generator  # torch.manual_seed would reach for the GPUs' as well
    before = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)


def _leave_group(_worker: int) -> None:
    """Ctrl-C and a signal to the whole group are for the main process, which may want to finish a step and save."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
