"""Files that are whole or not there: tensors and facts, written so that a kill at any moment loses nothing.

Weights are safetensors and facts are JSON, so that reading a file never runs code from it.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

__all__ = ["load_tensors", "save_tensors", "write_atomically"]

# The version of what is inside; a file of a newer one is refused.
FORMAT = 1


def write_atomically(path: Path, content: bytes, *, new: bool = False) -> None:
    """Put a whole file in place at once; if that fails, what was there is still there.

    With `new` the file must not be there yet: of several processes that try, one succeeds.
    """
    scratch = path.with_name(f".{path.name}.partial")  # one name, so that kills leave no heap of them
    try:
        with scratch.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if new:
            os.link(scratch, path)
            scratch.unlink()
        else:
            scratch.replace(path)
        _sync_folder(path.parent)
    except FileExistsError:
        scratch.unlink(missing_ok=True)
        raise
    except OSError as error:
        scratch.unlink(missing_ok=True)
        kept = f"; the previous {path.name} is untouched" if path.exists() else ""
        raise OSError(f"{path}: cannot be written ({error.strerror or error}){kept}") from error


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    header = {"format": str(FORMAT), "facts": json.dumps(facts)}
    write_atomically(path, safetensors.torch.save(plain, metadata=header))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (it is no mapping)
    except SafetensorError as error:
        raise ValueError(f"{path}: not a whole safetensors file ({error})") from error
    if not header.get("format", "").isdigit() or "facts" not in header:
        raise ValueError(f"{path}: was not written by msdnet")
    if int(header["format"]) > FORMAT:
        raise ValueError(f"{path}: format {header['format']} is newer than this version of msdnet reads ({FORMAT})")
    return tensors, json.loads(header["facts"])


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
