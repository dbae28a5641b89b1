"""Easy images beside hard ones, as in figure 6 of the paper."""

import base64
import io
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from msdnet.evaluation import Evaluation
from msdnet.files import Labelled
from msdnet.pixels import opened

__all__ = ["choose", "gallery"]

_CLASSES, _EACH, _SIDE = 6, 7, 96


def gallery(evaluation: Evaluation, data: Labelled) -> str:
    """A row for each of some classes: easy images at the left, hard ones at the right."""
    rows = []
    for label, easy, hard in choose(evaluation, data.labels):
        name = escape(data.classes[label].replace("_", " "))
        rows.append(f"<tr><th>{name}</th><td>{_shown(data, easy)}</td><td>{_shown(data, hard)}</td></tr>")
    if not rows:
        return "<p>Too few images of any class to show.</p>"
    head = "<tr><th></th><th>left rightly at the first exit</th><th>the first exit was wrong, the last right</th></tr>"
    return f'<div class="wide"><table class="gallery"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def choose(
    evaluation: Evaluation, labels: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
    """Some classes, and for each the images of which the first exit was surest, and those that needed the last.

    Classes are those with most hard images, of which there are few.
    """
    first, last = evaluation.correct[:, 0], evaluation.correct[:, -1]
    hard = ~first & last
    counts = np.bincount(labels[hard], minlength=int(labels.max()) + 1)
    for label in np.argsort(-counts, kind="stable")[:_CLASSES]:
        mine = labels == label
        easy = np.flatnonzero(mine & first)
        easy = easy[np.argsort(-evaluation.confidence[easy, 0], kind="stable")]
        needed = np.flatnonzero(mine & hard)
        needed = needed[np.argsort(-evaluation.confidence[needed, -1], kind="stable")]
        if len(easy) and len(needed):
            yield int(label), easy[:_EACH], needed[:_EACH]


def _shown(data: Labelled, images: NDArray[np.intp]) -> str:
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
