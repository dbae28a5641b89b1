"""The parts of a data set, which never mix."""

import hashlib
import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

__all__ = ["Part", "TrainedOn", "Unreadable", "fingerprint", "hold_out"]

Part = Literal["train", "held_out", "test"]
Unreadable = Literal["fatal", "skip"]
"""What an image that cannot be read means: the end, or a warning."""


class TrainedOn(NamedTuple):
    """Which images of a folder were held out when a model was trained on it, as its bundle has it."""

    sha256: str
    """The fingerprint of the held-out images."""
    held_out: int | None = None
    """How many were asked for, if any number was."""
    seed: int = 0


def hold_out(size: int, count: int, seed: int) -> tuple[int, ...]:
    """Which of `size` images to hold out: the same on every machine and with every version of every library."""
    if not 0 < count < size:
        raise ValueError(f"held-out images must be at least 1 and fewer than the {size} training images, got {count}")
    keys = sorted(range(size), key=lambda index: hashlib.sha256(f"{seed}/{index}".encode()).digest())
    return tuple(sorted(keys[:count]))


def fingerprint(indices: Sequence[int]) -> str:
    """Of the images that are held out: the same for the same ones."""
    return hashlib.sha256(json.dumps(list(indices)).encode()).hexdigest()
