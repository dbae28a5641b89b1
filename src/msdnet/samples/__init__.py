"""Real images that come with the package: the first 1,000 of CIFAR-10's test set, in its order."""

import json
from importlib import resources

import numpy as np
from PIL import Image

from msdnet.files import SIDE, Labelled

__all__ = ["cifar10"]

_COLUMNS = 40  # images in a row of the sprite


def cifar10() -> Labelled:
    """The images, their labels, and the names of the classes.

    >>> cifar10().images.shape
    (1000, 32, 32, 3)
    """
    folder = resources.files("msdnet.samples")
    facts = json.loads((folder / "cifar10.json").read_text(encoding="utf-8"))
    with (folder / "cifar10.webp").open("rb") as file, Image.open(file) as sprite:
        pixels = np.asarray(sprite.convert("RGB"))
    rows = len(facts["labels"]) // _COLUMNS
    images = pixels.reshape(rows, SIDE, _COLUMNS, SIDE, 3).swapaxes(1, 2).reshape(-1, SIDE, SIDE, 3)
    return Labelled(facts["name"], images, np.array(facts["labels"]), tuple(facts["classes"]))
