"""Labelled images of one's own: some of them, how they are shown, and what is refused."""

from typing import Any

import numpy as np
import pytest

from msdnet.files import Labelled

IMAGES = np.arange(6, dtype=np.uint8)[:, None, None, None].repeat(4, 1).repeat(4, 2).repeat(3, 3)


def labelled(**changed: Any) -> Labelled:
    return Labelled(
        **({"name": "six", "images": IMAGES, "labels": [0, 1, 0, 1, 0, 1], "classes": ["a", "b"]} | changed)
    )


@pytest.mark.parametrize("images", [IMAGES, [f"{k}.png" for k in range(6)]], ids=["array", "paths"])
def test_some_of_the_images(images: Any) -> None:
    data = labelled(images=images, held_out="abc")
    assert (len(data), data.classes, data.labels.dtype.name) == (6, ("a", "b"), "int64")
    rows: dict[str, tuple[Any, list[int]]] = {
        "slice": (slice(1, 6, 2), [1, 3, 5]),
        "mask": (data.labels == 0, [0, 2, 4]),
        "indices": ([4, 1], [4, 1]),
        "none": (slice(0), []),
        "no indices": ([], []),
    }
    for given, expected in rows.values():
        some = data[given]
        assert list(map(str, some.images)) == [str(images[row]) for row in expected]
        assert some.labels.tolist() == [row % 2 for row in expected]
        assert (some.name, some.classes, some.held_out) == ("six", ("a", "b"), None), "no longer all held-out images"
    assert data.without([0, 5]).labels.tolist() == [1, 0, 1, 0]
    assert data.without([]).held_out == "abc"
    with pytest.raises(TypeError, match=r"one image is data\.images\[3\]"):
        data[3]  # type: ignore[index]


def test_pixels_are_not_printed() -> None:
    assert repr(labelled()) == "<msdnet.files.Labelled 'six': 6 images of 2 classes>"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": [0, 1, 0, 1, 0, 2]}, "six: labels must be from 0 to 1, got 0 to 2"),
        ({"labels": [0, 1, 0, 1, 0, -1]}, "six: labels must be from 0 to 1, got -1 to 1"),
        ({"labels": [0.0] * 6}, "six: labels must be whole numbers, each that of a class, got float64"),
        ({"labels": [0, 1]}, "six: labels must be one for each of 6 images, got 2"),
        ({"labels": [[0]] * 6}, r"six: labels must be one for each of 6 images, got \(6, 1\)"),
        ({"classes": "ab"}, "classes must be names, in the order of their labels, got 'ab'"),
        ({"classes": [0, 1]}, "classes must be names"),
        ({"images": IMAGES[0]}, r"six: images must be \(N, height, width, channels\), got \(4, 4, 3\)"),
        ({"images": IMAGES.astype(int)}, "images must be bytes"),
        ({"images": IMAGES / 2}, "floating-point images must be from 0 to 1"),
        ({"images": "photos/"}, "six: images must be an array, or a list of paths or pictures, got str"),
        ({"images": iter(IMAGES)}, "six: images must be an array, or a list"),
    ],
)
def test_refuses_what_would_be_silently_wrong(changed: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        labelled(**changed)
