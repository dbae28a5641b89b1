"""What the extra `train` brings, and what to say where it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TRAIN", "install", "needed_for"]

TRAIN = {"torch": "torch", "torchvision": "torchvision", "onnx": "onnx", "pooch": "pooch", "sklearn": "scikit-learn"}
"""Modules, and what these are called where they are installed from."""


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
        if error.name not in TRAIN:
            raise
        raise ImportError(f"{what} needs {TRAIN[error.name]}: {install('train')}") from error
