"""Labelled images to measure a model on: bytes where they are small, paths where they are files."""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from msdnet.amounts import counted
from msdnet.checks import check_choice
from msdnet.files.cifar import CIFAR, cifar_classes, find_cifar, read_cifar
from msdnet.files.folder import (
    LAYOUTS,
    LabelledFile,
    divide,
    find_classes,
    find_images,
    find_tests,
    find_untrained,
    fingerprint_of_files,
)
from msdnet.files.parts import Part, fingerprint, hold_out
from msdnet.files.root import data_root
from msdnet.pixels import check_pixels
from msdnet.places import instead_of_folder

__all__ = ["FOLDER", "Labelled", "check_labels", "class_names", "dataset_at", "open_labelled"]

FOLDER = "folder"


@dataclass(frozen=True, eq=False)
class Labelled:
    """Images and what they show. `data[:100]` are the first of them, `data[data.labels == 3]` those of a class.

    >>> squares = Labelled("squares", np.zeros((3, 8, 8, 3), np.uint8), [0, 1, 1], ["red", "blue"])
    >>> squares[1:]
    <msdnet.files.Labelled 'squares': 2 images of 2 classes>
    """

    name: str
    images: Any
    """An array (N, H, W, C) of bytes, or of numbers from 0 to 1; or a list of paths, or of pictures."""
    labels: NDArray[np.int64]
    """(N), each the number of a class, from 0."""
    classes: tuple[str, ...]
    held_out: str | None = None
    """The fingerprint of the held-out images, if these are they, all of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", class_names(self.classes))
        labels = np.asarray(self.labels)
        self._check(labels)
        object.__setattr__(self, "labels", labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice | Sequence[int] | NDArray[Any]) -> "Labelled":
        """Some of the images: a slice, a mask or indices."""
        if isinstance(rows, int | np.integer):
            raise TypeError(
                f"one image is data.images[{rows}], and its label data.labels[{rows}]; data[...] takes several"
            )
        chosen = rows if isinstance(rows, slice) else np.asarray(rows) if len(rows) else slice(0)
        kept = np.arange(len(self))[chosen]
        images = self.images[kept] if isinstance(self.images, np.ndarray) else [self.images[row] for row in kept]
        return replace(self, images=images, labels=self.labels[kept], held_out=None)

    def __repr__(self) -> str:
        classes = counted(len(self.classes), "class", "classes")
        return f"<msdnet.files.Labelled {self.name!r}: {counted(len(self), 'image')} of {classes}>"

    def without(self, rows: Sequence[int]) -> "Labelled":
        """The same but for some images."""
        return self[np.delete(np.arange(len(self)), list(rows))] if len(rows) else self

    def check_for(self, classes: Sequence[str]) -> None:
        """Refuse images of other classes than a model knows."""
        if tuple(classes) != self.classes:
            raise ValueError(
                f"{self.name}: {len(self.classes)} classes ({_first(self.classes)}, ...) where the model knows "
                f"{len(classes)} ({_first(classes)}, ...)"
            )

    def _check(self, labels: NDArray[Any]) -> None:
        if isinstance(self.images, np.ndarray):
            if self.images.ndim != 4:
                raise ValueError(f"{self.name}: images must be (N, height, width, channels), got {self.images.shape}")
            check_pixels("images", self.images)
        elif not isinstance(self.images, Sequence) or isinstance(self.images, str | bytes):
            kind = type(self.images).__name__
            raise TypeError(f"{self.name}: images must be an array, or a list of paths or pictures, got {kind}")
        check_labels(f"{self.name}: labels", labels, len(self.images), len(self.classes))


def class_names(classes: Sequence[str]) -> tuple[str, ...]:
    """The names; a text, though it is a sequence of letters, is one name."""
    names = tuple(classes)
    if isinstance(classes, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"classes must be names, in the order of their labels, got {classes!r}")
    return names


def check_labels(name: str, labels: NDArray[Any], images: int, classes: int) -> None:
    """One for each image, the number of its class."""
    if labels.shape != (images,):
        shape = labels.shape if labels.ndim != 1 else len(labels)
        raise ValueError(f"{name} must be one for each of {images:,} images, got {shape}")
    if not len(labels):
        return
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"{name} must be whole numbers, each that of a class, got {labels.dtype}")
    if not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"{name} must be from 0 to {classes - 1}, got {labels.min()} to {labels.max()}")


def open_labelled(
    root: str | Path | None,
    dataset: str | None = None,
    *,
    part: Part = "test",
    held_out: int | None = None,
    held_out_seed: int = 0,
    classes: Sequence[str] | None = None,
    trained_on: Sequence[Collection[str]] | None = None,
) -> Labelled:
    """A part of CIFAR (in its binary layout) or of a folder of images, divided as for training.

    With `part="held_out"` they are in the order in which a bundle keeps what its exits made of them (`Model.held_out`).
    They are the same images if `held_out` is the `held_out_sha256` of the model's provenance.

    - held_out, held_out_seed: how many images were held out in training, and which; none: the usual number
    - classes: the names in the order of their labels, as a model has them; by default those of the folders
    - trained_on: what the models to be measured tell of the folders that they were trained on (`trained_on` of
      `msdnet.evaluation`). As test images, all of a folder `CLASS/*` are then taken, of some classes or of all, unless
      one of them was trained on it. Without it, a tenth
    """
    check_choice("part", part, get_args(Part))
    kind = dataset or dataset_at(root, classes)
    check_choice("dataset", kind, [*CIFAR, FOLDER])
    if kind == FOLDER:
        place = data_root(root)
        if place is None:
            raise ValueError("the folder of images must be named (--data), got nothing")
        return _of_folder(place, part, held_out, held_out_seed, classes, trained_on)
    layout = CIFAR[kind]
    folder = find_cifar(layout, root)
    images, labels = read_cifar(layout, folder, test=part == "test")
    names = cifar_classes(layout, folder)
    if part == "test":
        return Labelled(f"{kind} {part}", images, labels, names)
    indices = hold_out(len(images), layout.held_out if held_out is None else held_out, held_out_seed)
    chosen = np.zeros(len(images), dtype=bool)
    chosen[list(indices)] = True
    rows = chosen if part == "held_out" else ~chosen
    split = fingerprint(indices) if part == "held_out" else None
    return Labelled(f"{kind} {part}", images[rows], labels[rows], names, split)


def dataset_at(root: str | Path | None, classes: Sequence[str] | None = None) -> str:
    """What kind of data is at a place: CIFAR by its files, else a folder of images.

    - classes: those that are looked for, which decide where there are both
    """
    place = data_root(root)
    if place is None:
        return "cifar100"
    if not place.is_dir():
        raise FileNotFoundError(
            f"{instead_of_folder(place)}; expected one with a folder of images for each class, or with CIFAR's binary "
            "files"
        )
    found = [
        name
        for name, layout in CIFAR.items()
        if (place / layout.folder).is_dir() or (place / layout.names_file).is_file()
    ]
    if len(found) > 1 and classes is not None:
        known = {name: cifar_classes(CIFAR[name], find_cifar(CIFAR[name], place)) for name in found}
        found = [name for name in found if known[name] == tuple(classes)] or found
    if len(found) > 1:
        raise ValueError(f"{place}: holds {' and '.join(found)}; say which by --dataset")
    return found[0] if found else FOLDER


def _of_folder(
    root: Path,
    part: Part,
    held_out: int | None,
    held_out_seed: int,
    classes: Sequence[str] | None,
    trained_on: Sequence[Collection[str]] | None,
) -> Labelled:
    called = root.resolve().name
    if part == "test":
        tests = find_tests(root, classes)
        if tests is not None:
            return _labelled(f"{called}, {part}", root, *tests)
        if trained_on is not None:
            names = tuple(classes or find_classes(root))
            files, total = find_untrained(root, names, trained_on)
            if not files and total is None:
                raise ValueError(f"{root}: no images in folders that are called like classes; {LAYOUTS}")
            if trained_on and total is None:
                _tell_of_new(root, len(files), known=any(trained_on))
            of_these = "all images" if total is None else _share(part, total)
            return _labelled(f"{called}, {of_these}", root, names, files)
    found = find_images(root, classes, held_out, held_out_seed)
    files = divide(root, found, None)[part]
    split = None
    if part == "held_out":
        split = fingerprint_of_files(found.held_out, [file.path for file in files])
    share = _share(part, len(found.training) + len(found.test))
    return _labelled(f"{called}, {share}", root, found.classes, files, split)


def _share(part: Part, total: int) -> str:
    return f"the {part.replace('_', '-')} part of {total:,} images"


def _labelled(
    name: str, root: Path, classes: tuple[str, ...], files: Sequence[LabelledFile], held_out: str | None = None
) -> Labelled:
    labels = np.array([file.label for file in files], dtype=np.int64)
    return Labelled(name, [str(root / file.path) for file in files], labels, classes, held_out)


def _tell_of_new(root: Path, images: int, *, known: bool) -> None:
    """Else whoever has renamed a folder's images would be told how good a model is on those that it was trained on.

    - known: whether a model tells what it was trained on by names
    """
    why = (
        f"not the folder that the model was trained on, or changed too much since: all {images:,} images are taken, "
        "not only the tenth that training leaves for testing"
        if known
        else f"all {images:,} images are taken, since the model does not tell which it was trained on"
    )
    warnings.warn(f"{root}: {why} (on images that it was trained on, accuracies are too high)", stacklevel=4)


def _first(classes: Sequence[str]) -> str:
    return ", ".join(classes[:3])
