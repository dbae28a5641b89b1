"""The parts of a data set, which never mix."""

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

__all__ = ["Part", "fingerprint", "hold_out"]

Part = Literal["train", "held_out", "test"]


def hold_out(size: int, count: int, seed: int) -> tuple[int, ...]:
    """Which of `size` images to hold out: the same on every machine and with every version of every library."""
    if not 0 < count < size:
        raise ValueError(f"held-out images must be at least 1 and fewer than the {size} training images, got {count}")
    keys = sorted(range(size), key=lambda index: hashlib.sha256(f"{seed}/{index}".encode()).digest())
    return tuple(sorted(keys[:count]))


def fingerprint(indices: Sequence[int]) -> str:
    """Of the images that are held out: the same for the same ones."""
    return hashlib.sha256(json.dumps(list(indices)).encode()).hexdigest()
