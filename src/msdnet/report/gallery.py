"""Easy images beside hard ones, as in figure 6 of the paper."""

import base64
import io
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from msdnet.evaluation import Evaluation
from msdnet.files import Labelled
from msdnet.pixels import opened

__all__ = ["choose", "gallery"]

_CLASSES, _EACH, _SIDE = 6, 7, 96
_COLUMNS = ("left rightly at the first exit", "the first exit was wrong, the last right")

Chosen: TypeAlias = tuple[int, NDArray[np.intp], NDArray[np.intp]]
"""A class, and the numbers of its easy and of its hard images."""


def gallery(evaluation: Evaluation, data: Labelled, wanted: Sequence[int] = ()) -> str:
    """A row for each of the wanted classes, or of some: easy images at the left, hard ones at the right."""
    chosen = list(choose(evaluation, data.labels, wanted))
    rows = [
        f"<tr><th>{escape(data.classes[label].replace('_', ' '))}</th>"
        + "".join(
            f'<td data-what="{what}">{_shown(data, images)}</td>'
            for what, images in zip(_COLUMNS, (easy, hard), strict=True)
        )
        + "</tr>"
        for label, easy, hard in chosen
    ]
    head = "".join(f"<th>{what}</th>" for what in ("", *_COLUMNS))
    table = f'<table class="gallery"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'{_missing(chosen)}<div class="wide">{table}</div>'


def _missing(chosen: Sequence[Chosen]) -> str:
    """What there is nothing of to show."""
    sentences = [
        sentence
        for sentence, images in (
            ("The first exit was right about no image of these classes.", [easy for _, easy, _ in chosen]),
            ("No image of these classes was wrong at the first exit and right at the last.", [h for *_, h in chosen]),
        )
        if not any(map(len, images))
    ]
    return "".join(f"<p>{sentence}</p>" for sentence in sentences)


def choose(evaluation: Evaluation, labels: NDArray[np.int64], wanted: Sequence[int] = ()) -> Iterator[Chosen]:
    """Some classes, and for each the images of which the first exit was surest, and those that needed the last.

    Where none are wanted, they are those with most hard images, of which there are few; then those with most images.
    """
    first, last = evaluation.correct[:, 0], evaluation.correct[:, -1]
    hard = ~first & last
    count = int(labels.max()) + 1
    needing, all_images = np.bincount(labels[hard], minlength=count), np.bincount(labels, minlength=count)
    ranked = [int(label) for label in np.lexsort((-all_images, -needing)) if all_images[label]]
    for label in wanted or ranked[:_CLASSES]:
        mine = labels == label
        easy = np.flatnonzero(mine & first)
        easy = easy[np.argsort(-evaluation.confidence[easy, 0], kind="stable")]
        needed = np.flatnonzero(mine & hard)
        needed = needed[np.argsort(-evaluation.confidence[needed, -1], kind="stable")]
        yield label, easy[:_EACH], needed[:_EACH]


def _shown(data: Labelled, images: NDArray[np.intp]) -> str:
    if not len(images):
        return "<small>none</small>"
    return "".join(f'<img src="{_uri(data.images[image])}" alt="">' for image in images)


def _uri(image: Any) -> str:
    """A picture in the page itself."""
    if isinstance(image, np.ndarray):
        picture, kind = Image.fromarray(image), "PNG"
    else:
        with opened(image) as file:
            file.draft("RGB", (_SIDE, _SIDE))
            picture, kind = file.convert("RGB"), "JPEG"
        picture.thumbnail((_SIDE, _SIDE))
    target = io.BytesIO()
    picture.save(target, kind)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(target.getvalue()).decode()}"
