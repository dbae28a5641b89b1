"""Easy images beside hard ones (figure 6): nothing is trained, it takes a model and labelled images."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msdnet.evaluation import evaluate, where_left
from msdnet.files import Labelled
from msdnet.machine import describe_machine
from msdnet.report.charts import Pictures
from msdnet.report.gallery import Chosen, choose, easy_and_hard, even_budget, find_labels, gallery_chart
from msdnet.reproduce.measurement import save_result
from msdnet.runtime import Model
from msdnet.tables import from_mapping, make_tuples, read_as

__all__ = [
    "GALLERY",
    "GALLERY_MODEL",
    "GALLERY_TITLE",
    "Gallery",
    "ShownClass",
    "fingerprint",
    "gallery_name",
    "make_gallery",
    "read_gallery",
]

GALLERY, GALLERY_TITLE = "gallery", "Easy and hard images of a model"
GALLERY_MODEL = "cifar10-anytime"
_LONGEST_NAME = 100  # bytes, of 255 that a file system takes
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class ShownClass:
    """A class of the gallery. Images are told by their numbers in the data."""

    name: str
    images: int
    """That there are."""
    left_rightly: int
    """At the first exit; some of them are `easy`."""
    needed_the_last: int
    """The first exit was wrong, they left at the last, and it was right; some of them are `hard`."""
    easy: tuple[int, ...]
    hard: tuple[int, ...]

    def __post_init__(self) -> None:
        make_tuples(self, "easy", "hard")


@dataclass(frozen=True, kw_only=True)
class Gallery:
    """Which images a model let go rightly at its first exit, and which it got wrong there and let go at its last."""

    format: int = FORMAT
    model: str
    fingerprint: str
    """Of the model."""
    data: str
    images: int
    budget: float
    """Multiply-adds per image on average, by the paper's policy."""
    left: tuple[int, ...]
    """Images that left at each exit."""
    right: tuple[int, ...]
    """Of these, how many rightly."""
    asked: tuple[str, ...] = ()
    """Classes that were asked for; without any, those are shown that tell most."""
    classes: tuple[ShownClass, ...]
    shown_sha256: str
    """Of the images that are shown, by which others of the same name and number are told from them."""
    made_by: Mapping[str, Any]

    def __post_init__(self) -> None:
        make_tuples(self, "left", "right", "asked")
        known = (c if isinstance(c, ShownClass) else from_mapping(ShownClass, c, "a class") for c in self.classes)
        object.__setattr__(self, "classes", tuple(known))

    def save(self, path: Path) -> None:
        save_result(path, asdict(self))

    def chart(self, data: Labelled) -> Pictures:
        """Drawn from the images that it was made of."""
        if other := self._of_other_images(data):
            raise ValueError(f"the gallery is {other}")
        chosen = [Chosen(data.classes.index(one.name), one.easy, one.hard) for one in self.classes]
        return gallery_chart(f"Easy and hard images of {self.model}: {self.data}", chosen, data)

    def made_otherwise(self, model: Model, data: Labelled, classes: Sequence[str]) -> str:
        """How it came about, if not by this model from these images with these classes asked for; else nothing."""
        if self.fingerprint != model.bundle.fingerprint:
            return f"by another {self.model} than this"
        if other := self._of_other_images(data):
            return other
        asked = _names(find_labels(classes, data), data)
        return "" if asked == self.asked else f"{_said(self.asked)}, not {_said(asked)}"

    def _of_other_images(self, data: Labelled) -> str:
        if (data.name, len(data.labels)) != (self.data, self.images):
            return f"of {self.data} ({self.images:,} images), not of {data.name} ({len(data.labels):,})"
        same = self.shown_sha256 == fingerprint(data, self.classes)
        return "" if same else f"of other images than these of the name {self.data}"


def make_gallery(model: Model, data: Labelled, classes: Sequence[str] = ()) -> Gallery:
    """Ask every exit about every image.

    - classes: to be shown; by default those that tell most
    """
    manifest, wanted = model.manifest, find_labels(classes, data)
    if manifest.exit_count == 1:
        raise ValueError(f"{manifest.name} has one exit: easy and hard images are told apart by a first and a last")
    if manifest.held_out is None:
        raise ValueError(f"{manifest.name} has no held-out confidences, so no image can leave early; export it anew")
    evaluation, budget = evaluate(model, data), even_budget(model.costs)
    exits = evaluation.exit_indices(budget, method="paper")
    rightly = where_left(evaluation.correct, exits)
    found = easy_and_hard(evaluation, exits)
    shown = tuple(
        ShownClass(
            name=data.classes[one.label],
            images=int((data.labels == one.label).sum()),
            left_rightly=int(found.easy[data.labels == one.label].sum()),
            needed_the_last=int(found.hard[data.labels == one.label].sum()),
            easy=tuple(one.easy),
            hard=tuple(one.hard),
        )
        for one in choose(found, data.labels, wanted)
    )
    return Gallery(
        model=manifest.name,
        fingerprint=model.bundle.fingerprint,
        data=data.name,
        images=len(data.labels),
        budget=budget,
        left=tuple(np.bincount(exits, minlength=manifest.exit_count).tolist()),
        right=tuple(np.bincount(exits[rightly], minlength=manifest.exit_count).tolist()),
        asked=_names(wanted, data),
        classes=shown,
        shown_sha256=fingerprint(data, shown),
        made_by=describe_machine(),
    )


def gallery_name(model: Model, data: Labelled, classes: Sequence[str] = ()) -> str:
    """Of its files: by the model, if it is not that of the package, and by the classes that are asked for."""
    name = model.manifest.name
    parts = (GALLERY, *([] if name == GALLERY_MODEL else [name]), *_names(find_labels(classes, data), data))
    whole = re.sub(r"[^\w.-]+", "-", "_".join(parts)).encode()
    if len(whole) <= _LONGEST_NAME:
        return whole.decode()
    return f"{whole[:_LONGEST_NAME].decode(errors='ignore')}_{hashlib.sha256(whole).hexdigest()[:8]}"


def read_gallery(path: Path) -> Gallery:
    """What was made before; `FileNotFoundError` if nothing was."""
    return read_as(Gallery, path, FORMAT)


def fingerprint(data: Labelled, classes: Sequence[ShownClass]) -> str:
    """Of the images that are shown of these classes, and of their labels."""
    told = hashlib.sha256()
    for index in (index for one in classes for index in (*one.easy, *one.hard)):
        image = data.images[index]
        told.update(Path(image).read_bytes() if isinstance(image, str | Path) else np.asarray(image).tobytes())
        told.update(data.classes[data.labels[index]].encode())
    return told.hexdigest()


def _names(labels: Sequence[int], data: Labelled) -> tuple[str, ...]:
    return tuple(data.classes[label] for label in labels)


def _said(asked: Sequence[str]) -> str:
    """As it is typed."""
    return f"with --class {' --class '.join(map(shlex.quote, asked))}" if asked else "without --class"
