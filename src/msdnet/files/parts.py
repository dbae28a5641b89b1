"""The parts of a data set, which never mix."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msdnet.checks import check_whole

__all__ = ["Part", "fingerprint", "hold_out", "hold_out_by_class", "in_words"]

Part = Literal["train", "held_out", "test"]

# What runs and results tell of their images, as somebody would call it.
_WORDS = {
    "shape": "shape of an image",
    "training": "training images",
    "held_out": "held-out images",
    "held_out_seed": "seed of the held-out images",
    "held_out_sha256": "which images are held out",
    "test": "test images",
    "test_sha256": "which images are for testing",
    "unreadable": "unreadable images",
}


def hold_out(size: int, count: int, seed: int) -> tuple[int, ...]:
    """Which of `size` images to hold out: the same on every machine and with every version of every library."""
    if check_whole("held_out", count) >= size:
        raise ValueError(f"held_out must be fewer than the {size} training images, got {count}")
    return tuple(sorted(_mixed(size, seed)[:count]))


def hold_out_by_class(labels: Sequence[int], count: int, seed: int) -> tuple[int, ...]:
    """The same, of each class its share as nearly as can be; of each, one image at least is left to train on."""
    sizes, seen = Counter(labels), defaultdict[int, int](int)
    places = []
    for order, index in enumerate(_mixed(len(labels), seed)):
        label = labels[index]
        seen[label] += 1
        if seen[label] < sizes[label]:
            # How far through its class it comes: the first ones of all then are the same share of every class.
            places.append(((seen[label] - 0.5) / sizes[label], order, index))
    if not 0 < count <= len(places):
        raise ValueError(
            f"held-out images must be at least 1 and leave each of {len(sizes)} classes one of the {len(labels)} "
            f"images to train on, so at most {len(places)}, got {count}"
        )
    return tuple(sorted(index for _, _, index in sorted(places)[:count]))


def _mixed(size: int, seed: int) -> list[int]:
    return sorted(range(size), key=lambda index: hashlib.sha256(f"{seed}/{index}".encode()).digest())


def in_words(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a run or a result tells of its images, by names for errors."""
    return {
        _WORDS.get(name, name): in_words(value) if isinstance(value, dict) else value for name, value in told.items()
    }


def fingerprint(numbers: Sequence[int]) -> str:
    """Of the images that are held out, by their numbers: the same for the same ones."""
    return hashlib.sha256(json.dumps(list(numbers)).encode()).hexdigest()
