"""Labelled images to measure a model on: bytes where they are small, paths where they are files."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from msdnet.checks import check_choice
from msdnet.files.cifar import CIFAR, cifar_classes, find_cifar, read_cifar
from msdnet.files.folder import LabelledFile, divide, find_classes, find_images, find_tests, find_untrained
from msdnet.files.parts import Part, TrainedOn, fingerprint, hold_out
from msdnet.files.root import data_root

__all__ = ["FOLDER", "Labelled", "dataset_at", "open_labelled"]

FOLDER = "folder"


class Labelled(NamedTuple):
    """Images and what they show."""

    name: str
    images: Any
    """An array (N, H, W, C) of bytes, or a list of paths."""
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    held_out: str | None = None
    """The fingerprint of the held-out images, if these are they."""

    def without(self, rows: Sequence[int]) -> "Labelled":
        """The same but for some images."""
        kept = np.delete(np.arange(len(self.labels)), list(rows))
        images = self.images[kept] if isinstance(self.images, np.ndarray) else [self.images[row] for row in kept]
        return self._replace(images=images, labels=self.labels[kept])

    def check_for(self, classes: Sequence[str]) -> None:
        """Refuse images of other classes than a model knows."""
        if tuple(classes) != self.classes:
            raise ValueError(
                f"{self.name}: {len(self.classes)} classes ({_first(self.classes)}, ...) where the model knows "
                f"{len(classes)} ({_first(classes)}, ...)"
            )


def open_labelled(
    root: str | Path | None,
    dataset: str | None = None,
    *,
    part: Part = "test",
    held_out: int | None = None,
    held_out_seed: int = 0,
    classes: Sequence[str] | None = None,
    trained_on: Sequence[TrainedOn] | None = None,
) -> Labelled:
    """A part of CIFAR (in its binary layout) or of a folder of images, divided as for training.

    - held_out, held_out_seed: how many images were held out in training, and which; none: the usual number
    - classes: the names in the order of their labels, as a model has them; by default those of the folders
    - trained_on: how the models to be measured were trained on folders. As test images, all of a folder `CLASS/*` are
      then taken, of some classes or of all, unless one of them was trained on it. Without it, a tenth
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
    trained_on: Sequence[TrainedOn] | None,
) -> Labelled:
    called = root.resolve().name
    if part == "test":
        tests = find_tests(root, classes)
        if tests is not None:
            return _labelled(f"{called}, {part}", root, *tests)
        if trained_on is not None:
            names = tuple(classes or find_classes(root))
            files, total = find_untrained(root, names, trained_on)
            if trained_on and total is None:
                _tell_of_new(root, len(files))
            of_these = "all images" if total is None else _share(part, len(files), total)
            return _labelled(f"{called}, {of_these}", root, names, files)
    found = find_images(root, classes, held_out, held_out_seed)
    files = divide(root, found, None)[part]
    split = fingerprint(found.held_out) if part == "held_out" else None
    share = _share(part, len(files), len(found.training) + len(found.test))
    return _labelled(f"{called}, {share}", root, found.classes, files, split)


def _share(part: Part, images: int, total: int) -> str:
    return f"{part}: {images:,} of {total:,} images"


def _labelled(
    name: str, root: Path, classes: tuple[str, ...], files: Sequence[LabelledFile], held_out: str | None = None
) -> Labelled:
    labels = np.array([file.label for file in files], dtype=np.int64)
    return Labelled(name, [str(root / file.path) for file in files], labels, classes, held_out)


def _tell_of_new(root: Path, images: int) -> None:
    """Else whoever has renamed a folder's images would be told how good a model is on those that it was trained on."""
    warnings.warn(
        f"{root}: not the folder that the model was trained on, or changed too much since: all {images:,} images are "
        "taken, not only the tenth that training leaves for testing",
        stacklevel=4,
    )


def _first(classes: Sequence[str]) -> str:
    return ", ".join(classes[:3])
