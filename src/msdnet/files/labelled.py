"""Labelled images to measure a model on: bytes where they are small, paths where they are files."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msdnet.files.cifar import CIFAR, cifar_classes, find_cifar, read_cifar
from msdnet.files.folder import divide, find_images
from msdnet.files.parts import Part, hold_out

__all__ = ["FOLDER", "Labelled", "dataset_at", "open_labelled"]

FOLDER = "folder"
CIFAR_HELD_OUT = 5_000


class Labelled(NamedTuple):
    """Images and what they show."""

    name: str
    images: Any
    """An array (N, H, W, C) of bytes, or a list of paths."""
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

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
) -> Labelled:
    """A part of CIFAR (in its binary layout) or of a folder of images, divided as for training."""
    kind = dataset or dataset_at(root)
    if kind == FOLDER:
        return _of_folder(Path(root or os.environ["MSDNET_DATA"]), part, held_out, held_out_seed, classes)
    layout = CIFAR[kind]
    folder = find_cifar(layout, root)
    images, labels = read_cifar(layout, folder, test=part == "test")
    if part != "test":
        chosen = np.zeros(len(images), dtype=bool)
        chosen[list(hold_out(len(images), held_out or CIFAR_HELD_OUT, held_out_seed))] = True
        rows = chosen if part == "held_out" else ~chosen
        images, labels = images[rows], labels[rows]
    return Labelled(f"{kind} {part}", images, labels, cifar_classes(layout, folder))


def dataset_at(root: str | Path | None) -> str:
    """What kind of data is at a place: CIFAR by its files, else a folder of images."""
    place = root or os.environ.get("MSDNET_DATA")
    if place is None:
        return "cifar100"
    found = [
        name
        for name, layout in CIFAR.items()
        if (Path(place) / layout.folder).is_dir() or (Path(place) / layout.names_file).is_file()
    ]
    if len(found) > 1:
        raise ValueError(f"{place}: holds {' and '.join(found)}; say which by --dataset")
    return found[0] if found else FOLDER


def _of_folder(
    root: Path, part: Part, held_out: int | None, held_out_seed: int, classes: Sequence[str] | None
) -> Labelled:
    found = find_images(root, classes, held_out, held_out_seed)
    files = divide(root, found, None)[part]
    labels = np.array([file.label for file in files], dtype=np.int64)
    return Labelled(f"{root.resolve().name} {part}", [str(root / file.path) for file in files], labels, found.classes)


def _first(classes: Sequence[str]) -> str:
    return ", ".join(classes[:3])
