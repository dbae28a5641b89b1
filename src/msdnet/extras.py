"""What extras bring, and what to say where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["BROUGHT_BY", "Brought", "install", "needed_for"]


class Brought(NamedTuple):
    """What to install for a module."""

    package: str
    extra: str
    """The smallest that has it."""


BROUGHT_BY = {
    "torch": Brought("torch", "train"),
    "torchvision": Brought("torchvision", "train"),
    "onnx": Brought("onnx", "train"),
    "pooch": Brought("pooch", "train"),
    "sklearn": Brought("scikit-learn", "sklearn"),
}
"""By the name of the module."""


def install(extra: str) -> str:
    """What to do about an extra that is missing."""
    return f"install msdnet with the extra {extra} (in a clone: pip install '.[{extra}]')"


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Say how to get what is imported inside and missing.

    Any other module that is missing is a fault of ours, or of the installation: no extra would mend it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        brought = BROUGHT_BY.get(error.name or "")
        if brought is None:
            raise
        raise ImportError(f"{what} needs {brought.package}: {install(brought.extra)}") from error
