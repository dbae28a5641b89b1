"""Tensors of a bundle as numpy arrays."""

from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from msdnet.bundle import Bundle

__all__ = ["read_tensors"]


def read_tensors(bundle: Bundle, name: str) -> dict[str, NDArray[Any]]:
    """The tensors of a file; what is stored in half precision is used in full."""
    try:
        tensors = safetensors.numpy.load(bundle.read(name))
    except SafetensorError as error:
        raise ValueError(f"{bundle.folder / name}: not a whole safetensors file ({error})") from error
    half = {key: value.astype(np.float32) for key, value in tensors.items() if value.dtype == np.float16}
    return {**tensors, **half}
