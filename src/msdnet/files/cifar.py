"""CIFAR-10 and CIFAR-100 in their official binary layout.

A record is one label byte (CIFAR-10) or a coarse and a fine one (CIFAR-100), then 3,072 bytes: the red, the
green and the blue plane of a 32x32 image. Nothing is unpickled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msdnet.files.root import data_root, download_folder
from msdnet.naming import Registry
from msdnet.places import instead_of_folder

__all__ = ["CIFAR", "SIDE", "CifarLayout", "cifar_classes", "find_cifar", "read_cifar", "refuse_pickled_cifar"]

SIDE = 32


@dataclass(frozen=True)
class CifarLayout:
    """Where the records of a CIFAR release are, and what is published about them."""

    folder: str
    python_folder: str
    """Of the release for Python: pickles, which are not read."""
    train_files: tuple[str, ...]
    test_files: tuple[str, ...]
    names_file: str
    label_bytes: int
    records_per_file: tuple[int, int]
    """Images in each training file and in each test file."""
    mean: tuple[float, ...]
    """Of the channels, for pixels between 0 and 1."""
    std: tuple[float, ...]
    url: str
    md5: str
    held_out: int = 5_000
    """Training images that the paper keeps apart."""

    @property
    def record_bytes(self) -> int:
        return self.label_bytes + 3 * SIDE * SIDE


CIFAR: Registry[CifarLayout] = Registry("CIFAR data set")
CIFAR.register(
    "cifar10",
    CifarLayout(
        folder="cifar-10-batches-bin",
        python_folder="cifar-10-batches-py",
        train_files=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        test_files=("test_batch.bin",),
        names_file="batches.meta.txt",
        label_bytes=1,
        records_per_file=(10_000, 10_000),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        md5="c32a1d4ab5d03f1284b67883e8d87530",
    ),
)
CIFAR.register(
    "cifar100",
    CifarLayout(
        folder="cifar-100-binary",
        python_folder="cifar-100-python",
        train_files=("train.bin",),
        test_files=("test.bin",),
        names_file="fine_label_names.txt",
        label_bytes=2,
        records_per_file=(50_000, 10_000),
        mean=(0.5071, 0.4865, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
        url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        md5="03b5dce01913d631647c71ecec9e9cb8",
    ),
)


def find_cifar(
    layout: CifarLayout, root: str | Path | None, fetch: Callable[[CifarLayout], Path] | None = None
) -> Path:
    """The layout's folder below (or at) the root, below MSDNET_DATA, or else where it was downloaded, or is now."""
    given = data_root(root)
    if given is None and fetch is not None:
        return fetch(layout)
    place = given or download_folder()
    for folder in [] if place is None else [place / layout.folder, place]:
        if (folder / layout.names_file).is_file():
            return folder
    if given is not None:
        refuse_pickled_cifar(given, layout)
    or_fetch = "leave both out to download it" if fetch is not None else f"to be had at {layout.url}"
    raise FileNotFoundError(
        f"{_looked_in(given, layout)}; --data or MSDNET_DATA must name the folder that holds {layout.folder}/, CIFAR "
        f"in the official binary layout ({or_fetch})"
    )


def refuse_pickled_cifar(place: Path, wanted: CifarLayout | None = None) -> None:
    """Tell somebody who has CIFAR's release for Python, at this place or in a folder there, which one is read."""
    for layout in [wanted] if wanted is not None else [one for _, one in CIFAR.items()]:
        # The same files by the same names, but for their ending: `train`, or `data_batch_1` and so on.
        pickles = [Path(name).stem for name in (*layout.train_files, *layout.test_files)]
        for folder in (place, place / layout.python_folder):
            named = folder.name == layout.python_folder and folder.is_dir()
            if named or all((folder / name).is_file() for name in pickles):
                raise ValueError(
                    f"{folder}: CIFAR's release for Python, which is pickled and so not read; the binary release, "
                    f"{layout.folder}/, is: {layout.url}"
                )


def _looked_in(given: Path | None, layout: CifarLayout) -> str:
    """Where it was looked for in vain."""
    if given is None:
        return "no data are named or were downloaded: there is no --data, and MSDNET_DATA is not set"
    return f"{given}: no {layout.folder}/{layout.names_file} here" if given.is_dir() else instead_of_folder(given)


def cifar_classes(layout: CifarLayout, folder: Path) -> tuple[str, ...]:
    return tuple(name for name in (folder / layout.names_file).read_text(encoding="utf-8").splitlines() if name)


def read_cifar(layout: CifarLayout, folder: Path, *, test: bool) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (N, 32, 32, 3) as bytes and labels (N) of the training or the test files."""
    files = layout.test_files if test else layout.train_files
    expected, classes = layout.records_per_file[test], cifar_classes(layout, folder)
    records = np.concatenate([_read_records(folder / name, layout, expected) for name in files])
    labels = records[:, layout.label_bytes - 1].astype(np.int64)
    if labels.max() >= len(classes):
        raise ValueError(f"{folder}: label {labels.max()} where there are {len(classes)} classes")
    planes = records[:, layout.label_bytes :].reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def _read_records(path: Path, layout: CifarLayout, expected: int) -> NDArray[np.uint8]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: missing; {layout.folder} must hold it")
    size, needed = path.stat().st_size, expected * layout.record_bytes
    if size != needed:
        raise ValueError(f"{path}: {size} bytes where {expected} records take {needed}: truncated, or another file")
    return np.fromfile(path, dtype=np.uint8).reshape(-1, layout.record_bytes)
