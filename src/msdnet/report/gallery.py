"""Easy images beside hard ones, as in figure 6 of the paper."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from msdnet.evaluation import Evaluation
from msdnet.files import Labelled
from msdnet.naming import did_you_mean
from msdnet.pixels import opened
from msdnet.policy import halfway_budget
from msdnet.report.charts import Pictures

__all__ = ["Chosen", "choose", "easy_and_hard", "find_labels", "gallery", "gallery_chart"]

_CLASSES, _EACH, _SIDE = 6, 7, 96
_COLUMNS = ("left rightly at the first exit", "the first exit was wrong, the last right")


class Chosen(NamedTuple):
    """A class, and the numbers of some of its easy and of its hard images."""

    label: int
    easy: Sequence[int]
    hard: Sequence[int]


def gallery(evaluation: Evaluation, data: Labelled, wanted: Sequence[int] = ()) -> str:
    """A row for each of the wanted classes, or of some: easy images at the left, hard ones at the right."""
    chosen = list(choose(evaluation, data.labels, wanted))
    rows = [
        f"<tr><th>{escape(_name(data, one.label))}</th>"
        + "".join(
            f'<td data-what="{what}">{_shown(data, images)}</td>'
            for what, images in zip(_COLUMNS, (one.easy, one.hard), strict=True)
        )
        + "</tr>"
        for one in chosen
    ]
    head = "".join(f"<th>{what}</th>" for what in ("", *_COLUMNS))
    table = f'<table class="gallery"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'{_missing(chosen)}<div class="wide">{table}</div>'


def gallery_chart(title: str, chosen: Sequence[Chosen], data: Labelled) -> Pictures:
    """The same as a figure."""
    rows = [
        (_name(data, one.label), [[_uri(data.images[image]) for image in images] for images in (one.easy, one.hard)])
        for one in chosen
    ]
    return Pictures(title, _COLUMNS, rows)


def find_labels(classes: Sequence[str], data: Labelled) -> list[int]:
    """Of classes by their names."""
    for name in classes:
        if name not in data.classes:
            raise ValueError(f"no class is called {name!r}; {did_you_mean(name, data.classes)}")
    return [data.classes.index(name) for name in classes]


def _name(data: Labelled, label: int) -> str:
    return data.classes[label].replace("_", " ")


def _missing(chosen: Sequence[Chosen]) -> str:
    """What there is nothing of to show."""
    sentences: Mapping[str, list[Sequence[int]]] = {
        "No image of these classes left rightly at the first exit.": [one.easy for one in chosen],
        "No image of these classes was wrong at the first exit and right at the last.": [one.hard for one in chosen],
    }
    return "".join(f"<p>{sentence}</p>" for sentence, images in sentences.items() if not any(map(len, images)))


def choose(evaluation: Evaluation, labels: NDArray[np.int64], wanted: Sequence[int] = ()) -> Iterator[Chosen]:
    """Some classes, and for each the images that leave rightly at the first exit, at a budget half-way between the
    first exit's cost and the last's, by the paper's policy; and those that needed the last. The surest come first.

    Where none are wanted, they are those with most hard images, of which there are few; then those with most images.
    """
    easy, hard = easy_and_hard(evaluation)
    count = int(labels.max()) + 1
    needing, all_images = np.bincount(labels[hard], minlength=count), np.bincount(labels, minlength=count)
    ranked = [int(label) for label in np.lexsort((-all_images, -needing)) if all_images[label]]
    for label in wanted or ranked[:_CLASSES]:
        mine = labels == label
        yield Chosen(
            label,
            _surest(evaluation.confidence[:, 0], mine & easy),
            _surest(evaluation.confidence[:, -1], mine & hard),
        )


def easy_and_hard(evaluation: Evaluation) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which images leave rightly at the first exit, and of which it is wrong and the last exit right."""
    first, last = evaluation.correct[:, 0], evaluation.correct[:, -1]
    exits = evaluation.exits(halfway_budget(evaluation.model.costs), method="paper")
    return first & (exits == 0), ~first & last


def _surest(confidence: NDArray[np.floating], among: NDArray[np.bool_]) -> list[int]:
    images = np.flatnonzero(among)
    ordered: list[int] = images[np.argsort(-confidence[images], kind="stable")][:_EACH].tolist()
    return ordered


def _shown(data: Labelled, images: Sequence[int]) -> str:
    if not images:
        return "<small>none</small>"
    return "".join(f'<img src="{_uri(data.images[image])}" alt="">' for image in images)


def _uri(image: Any) -> str:
    """A picture in the page itself. Small ones are not packed, so that they are the same by every version of zlib."""
    target = io.BytesIO()
    if isinstance(image, np.ndarray):
        Image.fromarray(image).save(target, "PNG", compress_level=0)
        kind = "png"
    else:
        with opened(image) as file:
            file.draft("RGB", (_SIDE, _SIDE))
            picture = file.convert("RGB")
        picture.thumbnail((_SIDE, _SIDE))
        picture.save(target, "JPEG")
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(target.getvalue()).decode()}"
