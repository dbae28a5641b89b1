"""Easy images beside hard ones, as in figure 6 of the paper."""

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from msdnet.evaluation import Evaluation
from msdnet.files import Labelled
from msdnet.naming import did_you_mean
from msdnet.pixels import centre, cropped, opened, picture
from msdnet.report.charts import Pictures

__all__ = ["Chosen", "EasyAndHard", "choose", "easy_and_hard", "even_budget", "find_labels", "gallery", "gallery_chart"]

_CLASSES, _EACH, _SIDE = 6, 6, 96
_COLUMNS = (
    "right at the first exit, and left there",
    "wrong at the first exit and passed on; right at the last, and left there",
)
_SEED = 0


class EasyAndHard(NamedTuple):
    """Of every image, whether it was the one or the other."""

    easy: NDArray[np.bool_]
    """It left at the first exit, which was right."""
    hard: NDArray[np.bool_]
    """The first exit was wrong and not sure enough to let it go; it left at the last, which was right."""


class Chosen(NamedTuple):
    """A class, and the numbers of some of its easy and of its hard images."""

    label: int
    easy: Sequence[int]
    hard: Sequence[int]


def even_budget(costs: Sequence[int]) -> float:
    """The mean cost of an exit: with it, by the paper's policy, about as many images leave at each exit.

    Half-way on a logarithmic scale, hardly any would reach the last.
    """
    return float(np.mean(costs))


def gallery(found: EasyAndHard, data: Labelled, wanted: Sequence[int] = ()) -> str:
    """A row for each of the wanted classes, or of some: easy images at the left, hard ones at the right."""
    chosen = list(choose(found, data.labels, wanted))
    rows = [
        f"<tr><th>{escape(data.classes[one.label])}</th>"
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
        (data.classes[one.label], [[_uri(data.images[image]) for image in images] for images in (one.easy, one.hard)])
        for one in chosen
    ]
    return Pictures(title, _COLUMNS, rows)


def find_labels(classes: Sequence[str], data: Labelled) -> list[int]:
    """Of classes by their names, in which underscores may be typed as spaces; each once."""
    labels = {name.replace("_", " "): label for label, name in enumerate(data.classes)}
    labels |= {name: label for label, name in enumerate(data.classes)}
    for name in classes:
        if name not in labels:
            raise ValueError(f"no class is called {name!r}; {did_you_mean(name, data.classes)}")
    return list(dict.fromkeys(labels[name] for name in classes))


def _missing(chosen: Sequence[Chosen]) -> str:
    """What there is nothing of to show."""
    sentences = {
        "No image of these classes left at the first exit with the right answer.": [one.easy for one in chosen],
        "No image of these classes was wrong at the first exit and left at the last with the right answer.": [
            one.hard for one in chosen
        ],
    }
    return "".join(f"<p>{sentence}</p>" for sentence, images in sentences.items() if not any(map(len, images)))


def choose(found: EasyAndHard, labels: NDArray[np.int64], wanted: Sequence[int] = ()) -> Iterator[Chosen]:
    """Some classes, and for each some of its easy and of its hard images, drawn at random as in the paper.

    - wanted: without any, those that tell most
    """
    for label in wanted or _telling(found, labels)[:_CLASSES]:
        chance = np.random.default_rng((_SEED, label))  # the same images, whichever other classes are shown
        yield Chosen(label, *(_drawn(chance, (labels == label) & images) for images in found))


def _telling(found: EasyAndHard, labels: NDArray[np.int64]) -> list[int]:
    """Classes with hard images, of which there are few: first those that have easy ones, too, then those with most.

    Rows without hard images have nothing to be compared; they are shown only where there are no others.
    """
    count = int(labels.max()) + 1
    easy, hard, images = (
        np.bincount(labels[among], minlength=count) for among in (found.easy, found.hard, slice(None))
    )
    shown = next(number for number in (hard, easy, images) if number.any())
    return [int(label) for label in np.lexsort((-images, -hard, easy == 0)) if shown[label]]


def easy_and_hard(evaluation: Evaluation, exits: NDArray[np.intp]) -> EasyAndHard:
    """Of the images that are let go at these exits (N)."""
    first, last = evaluation.correct[:, 0], evaluation.correct[:, -1]
    return EasyAndHard(first & (exits == 0), ~first & (exits == evaluation.correct.shape[1] - 1) & last)


def _drawn(chance: np.random.Generator, among: NDArray[np.bool_]) -> list[int]:
    images: list[int] = chance.permutation(np.flatnonzero(among))[:_EACH].tolist()
    return images


def _shown(data: Labelled, images: Sequence[int]) -> str:
    if not images:
        return "<small>none</small>"
    return "".join(f'<img src="{_uri(data.images[image])}" alt="">' for image in images)


def _uri(image: Any) -> str:
    """A picture in the page itself. Small ones are not packed, so that they are the same by every version of zlib."""
    target = io.BytesIO()
    if isinstance(image, np.ndarray):
        picture(np.atleast_3d(image)).save(target, "PNG", compress_level=0)
        kind = "png"
    else:
        lent = isinstance(image, Image.Image)  # it stays as it is, and open
        with nullcontext(image) if lent else opened(image) as file:
            side = min(_SIDE, *file.size)
            cropped(file, centre(file.size, side, side), side, draft=not lent).save(target, "JPEG")
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(target.getvalue()).decode()}"
