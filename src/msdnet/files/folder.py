"""Images in folders named for their classes: found and divided into parts."""

import hashlib
import heapq
import os
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msdnet.checks import check_whole
from msdnet.files.cifar import refuse_pickled_cifar
from msdnet.files.parts import Part, fingerprint, hold_out
from msdnet.files.walk import images_below
from msdnet.naming import a_few
from msdnet.pixels import ENDINGS, FORMATS, OTHER_ENDINGS
from msdnet.places import instead_of_folder

__all__ = [
    "DividedFolder",
    "LabelledFile",
    "composed",
    "digest",
    "divide",
    "find_classes",
    "find_images",
    "find_tests",
    "find_untrained",
    "fingerprint_of_files",
    "some_names",
]

LAYOUTS = "expected train/CLASS/* and val/CLASS/* (or test/CLASS/*), or CLASS/* alone, with two or more classes"

TEST_SHARE = HELD_OUT_SHARE = 0.1
MANY, HELD_OUT_OF_MANY = 1_000_000, 50_000  # the paper's held-out set of ImageNet

NAMES = 32  # enough to tell whether most of a training's images are there, and few enough for a manifest


class LabelledFile(NamedTuple):
    """An image and what it shows."""

    path: str
    """From the root on, with slashes: the same on every machine."""
    label: int


class DividedFolder(NamedTuple):
    """All images of a folder, divided once."""

    classes: tuple[str, ...]
    training: list[LabelledFile]
    test: list[LabelledFile]
    held_out: tuple[int, ...]
    """Which of the training files."""


def find_images(root: Path, classes: Sequence[str] | None, held_out: int | None, seed: int) -> DividedFolder:
    divided = _training_folder(root) != root
    return (_find_divided if divided else _find_whole)(root, classes, held_out, seed)


def find_classes(root: Path) -> tuple[str, ...]:
    """The classes of a folder's training images, without looking at these."""
    return tuple(_class_names(_training_folder(root)))


def _training_folder(root: Path) -> Path:
    """The one that holds the class folders: train/, or all of it, where train/ is a class like any other."""
    if not root.is_dir():
        raise FileNotFoundError(f"{instead_of_folder(root)}; {LAYOUTS}")
    refuse_pickled_cifar(root)
    train, tests = root / "train", [root / "val", root / "test"]
    divided = train.is_dir() and (bool(_class_names(train)) or any(folder.is_dir() for folder in tests))
    return train if divided else root


def find_tests(root: Path, classes: Sequence[str] | None) -> tuple[tuple[str, ...], list[LabelledFile]] | None:
    """The classes and images of `val/` or `test/`, where there is one: nothing then needs to be divided.

    Without `train/` beside it, it must be all there is.
    """
    training = _training_folder(root)
    if training == root and (len(_class_names(root)) != 1 or len(_test_folders(root)) != 1):
        return None
    tests = _test_folder(root)
    names = tuple(classes or _class_names(tests if training == root else training))
    return names, _scan(root, tests, names)


def find_untrained(
    root: Path, classes: Sequence[str], trained_on: Sequence[Collection[str]]
) -> tuple[list[LabelledFile], int | None]:
    """The images of `CLASS/*`, of some classes or of all, that none of the trainings has seen.

    Where one of them was on this folder: those that it left for testing, and how many images there are in all. A file's
    name decides, so that files which were added since move no other. Of a folder that is new to all: every image, None.

    - trained_on: for each training, `some_names` of its images, of which most are there if it was on this folder
    """
    files = _scan(root, root, tuple(classes))
    here = {f"{digest(file.path):016x}" for file in files}
    if not any(2 * len(here.intersection(names)) > len(names) for names in trained_on):
        return files, None
    return [file for file in files if _fraction(file.path) < TEST_SHARE], len(files)


def some_names(paths: Iterable[str]) -> tuple[str, ...]:
    """Digests of a few of the names, the same ones whatever their order: by these a folder is known again."""
    return tuple(f"{name:016x}" for name in heapq.nsmallest(NAMES, map(digest, paths)))


def fingerprint_of_files(indices: Sequence[int], paths: Iterable[str]) -> str:
    """Of images that are held out, by their names as well: where files were added, removed or renamed, others have the
    same numbers.
    """
    return fingerprint([*indices, *map(digest, paths)])


def _test_folders(root: Path) -> list[Path]:
    return [folder for folder in (root / "val", root / "test") if folder.is_dir() and _class_names(folder)]


def _test_folder(root: Path) -> Path:
    tests = _test_folders(root)
    if len(tests) != 1:
        raise ValueError(f"{root}: {'both' if tests else 'neither'} of val/ and test/ with class folders; {LAYOUTS}")
    return tests[0]


def _find_divided(root: Path, classes: Sequence[str] | None, held_out: int | None, seed: int) -> DividedFolder:
    classes, training = _labelled(root, root / "train", classes)
    tests = _test_folder(root)
    test = _scan(root, tests, classes)
    tested = {file.label for file in test}
    untested = [name for label, name in enumerate(classes) if label not in tested]
    if untested:
        warnings.warn(
            f"{tests}: no images of {_some(untested)}, so what is measured says nothing of these", stacklevel=2
        )
    share = HELD_OUT_OF_MANY if len(training) > MANY else max(1, round(HELD_OUT_SHARE * len(training)))
    count = share if held_out is None else held_out
    _check_held_out(root, count, len(training))
    return DividedFolder(classes, training, test, hold_out(len(training), count, seed))


def _find_whole(root: Path, classes: Sequence[str] | None, held_out: int | None, seed: int) -> DividedFolder:
    return _divided_by_name(root, *_labelled(root, root, classes), held_out, seed)


def _divided_by_name(
    root: Path, classes: tuple[str, ...], files: list[LabelledFile], held_out: int | None, seed: int
) -> DividedFolder:
    parts: tuple[list[LabelledFile], list[LabelledFile]] = ([], [])
    for file in files:
        parts[_fraction(file.path) < TEST_SHARE].append(file)
    training, test = parts
    keys = [_fraction(f"{seed}/{file.path}") for file in training]
    limit = HELD_OUT_SHARE
    if held_out is not None:
        _check_held_out(root, held_out, len(training))
        limit = sorted(keys)[held_out]
    return DividedFolder(classes, training, test, tuple(index for index, key in enumerate(keys) if key < limit))


def _check_held_out(root: Path, count: int, training: int) -> None:
    check_whole("held_out", count)
    if count >= training:
        raise ValueError(f"held_out must be fewer than the {training} training images in {root}, got {count}")


def _labelled(root: Path, folder: Path, classes: Sequence[str] | None) -> tuple[tuple[str, ...], list[LabelledFile]]:
    """The classes of a folder with training images, and its files."""
    found = _class_names(folder)
    if len(found) < 2:
        raise ValueError(f"{folder}: {f'only one class, {found[0]!r}' if found else 'no class folders'}; {LAYOUTS}")
    missing = [name for name in classes or () if composed(name) not in found]
    if missing:
        raise ValueError(f"{folder}: no folder for {_some(missing)} of the {len(classes or ())} classes")
    names = tuple(classes or found)
    return names, _scan(root, folder, names)


def _scan(root: Path, folder: Path, classes: tuple[str, ...]) -> list[LabelledFile]:
    """The images in the class folders of a folder, by path."""
    labels = {composed(name): label for label, name in enumerate(classes)}
    found = _class_folders(folder)
    unknown = [name for name in found if name not in labels]
    if unknown:
        raise ValueError(f"{folder}: {_some(unknown)} not among the {len(classes)} classes: {_some(classes)}")
    files = [
        LabelledFile(path, labels[name]) for name, of_class in found.items() for path in _image_paths(root, of_class)
    ]
    others = [file.path for file in files if file.path.lower().endswith(OTHER_ENDINGS)]
    files = [file for file in files if file.path.lower().endswith(ENDINGS)] if others else files
    with_images = {file.label for file in files}
    empty = [name for name in found if labels[name] not in with_images]
    if empty:
        raise ValueError(f"{folder}: no images in {_some(empty)}; expected files that end in {' '.join(ENDINGS)}")
    if others:
        told = (
            f"{others[0]} is left out"
            if len(others) == 1
            else f"{len(others):,} files are left out, {others[0]} among them"
        )
        warnings.warn(f"{folder}: {told}: of images, {', '.join(FORMATS)} are read", stacklevel=2)
    return sorted(files, key=lambda file: (composed(file.path), file))


def _class_names(folder: Path) -> list[str]:
    return list(_class_folders(folder))


def _class_folders(folder: Path) -> dict[str, Path]:
    """By the names of the classes: a model that was trained on one system finds them on another."""
    found: dict[str, Path] = {}
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.name.startswith("."):
            name = composed(entry.name)
            if name in found:
                raise ValueError(
                    f"{folder}: two folders are called {name!r}, in two spellings of its accents; join them"
                )
            found[name] = entry
    return dict(sorted(found.items()))


def _image_paths(root: Path, folder: Path) -> Iterator[str]:
    """From the root on."""
    above, below = folder.relative_to(root).as_posix(), len(str(folder))
    for path in images_below(str(folder), _raise):
        yield above + path[below:].replace(os.sep, "/")


def _raise(error: OSError) -> None:
    raise error


def divide(root: Path, found: DividedFolder, subset: int | None) -> Mapping[Part, list[LabelledFile]]:
    held_out = set(found.held_out)
    parts: dict[Part, list[LabelledFile]] = {
        "train": [file for index, file in enumerate(found.training) if index not in held_out],
        "held_out": [found.training[index] for index in found.held_out],
        "test": found.test,
    }
    for part, files in parts.items():
        if not files:
            total = len(found.training) + len(found.test)
            hint = "; hold out more when training (--held-out)" if part == "held_out" else ""
            raise ValueError(f"{root}: {total} images are too few to divide, none falls to the part {part!r}{hint}")
    labels = {file.label for file in parts["train"]}
    untrained = [name for label, name in enumerate(found.classes) if label not in labels]
    if untrained:
        raise ValueError(f"{root}: no image of {_some(untrained)} is left to train on; add images or hold out fewer")
    if subset is not None and subset < len(parts["train"]):
        parts["train"] = [parts["train"][index] for index in hold_out(len(parts["train"]), subset, seed=0)]
    return parts


def _some(names: Sequence[str]) -> str:
    """A few of the names."""
    return a_few(map(repr, names))


def digest(text: str) -> int:
    """64 bits that depend on the text alone; a file's name need not be valid Unicode."""
    return int.from_bytes(hashlib.sha256(os.fsencode(composed(text))).digest()[:8])


def composed(name: str) -> str:
    """One form of a name for all systems: of an accented letter some make two characters. On the way to them an image
    must not change from part to part, nor a class become another.
    """
    return unicodedata.normalize("NFC", name)


def _fraction(text: str) -> float:
    return digest(text) / 2**64
