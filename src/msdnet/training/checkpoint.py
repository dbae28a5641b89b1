"""Files that are whole or not there: tensors and facts, written so that a kill at any moment loses nothing.

Weights are safetensors and facts are JSON, so that reading a file never runs code from it.
"""

import glob
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

__all__ = ["load_facts", "load_tensors", "save_tensors", "write_atomically"]

# The version of what is inside; a file of a newer one is refused.
FORMAT = 1

# After so long nobody still writes to a scratch file: its writer was killed.
_ABANDONED_SECONDS = 3600


def write_atomically(path: Path, content: bytes, *, new: bool = False) -> None:
    """Put a whole file in place at once; if that fails, what was there is still there.

    With `new` the file must not be there yet: of several processes that try, one succeeds.
    """
    try:
        (_create if new else _replace)(path, content)
    except FileExistsError:
        raise
    except OSError as error:
        kept = f"; the previous {path.name} is untouched" if path.exists() else ""
        raise OSError(f"{path}: cannot be written ({error.strerror or error}){kept}") from error
    _sync_folder(path.parent)


def _create(path: Path, content: bytes) -> None:
    """Under its own name from the start: nothing else is exclusive on every file system (some have no hard links).

    The price is that a kill at this very moment may leave a part of it.
    """
    with path.open("xb") as file:
        try:
            _write(file, content)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _replace(path: Path, content: bytes) -> None:
    """By way of a scratch file of this process alone, so that no other writes into it."""
    _clear_abandoned(path)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with scratch.open("wb") as file:
            _write(file, content)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _clear_abandoned(path: Path) -> None:
    """Remove the scratch files of killed processes, so that kills leave no heap of them.

    That goes by age: whether a process still runs cannot be told where machines or containers share a folder.
    """
    for scratch in path.parent.glob(f".{glob.escape(path.name)}.*partial"):
        with suppress(OSError):  # another process may have been faster
            if time.time() - scratch.stat().st_mtime > _ABANDONED_SECONDS:
                scratch.unlink()


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    header = {"format": str(FORMAT), "facts": json.dumps(facts)}
    write_atomically(path, safetensors.torch.save(plain, metadata=header))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with _opened(path) as file:
        facts = _facts(path, file)
        return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118  (it is no mapping)


def load_facts(path: Path) -> dict[str, Any]:
    """What is written beside the tensors, which are not read."""
    with _opened(path) as file:
        return _facts(path, file)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError as error:
        raise ValueError(f"{path}: not a whole safetensors file ({error})") from error


def _facts(path: Path, file: Any) -> dict[str, Any]:
    header = file.metadata() or {}
    if not header.get("format", "").isdigit() or "facts" not in header:
        raise ValueError(f"{path}: was not written by msdnet")
    if int(header["format"]) > FORMAT:
        raise ValueError(f"{path}: format {header['format']} is newer than this version of msdnet reads ({FORMAT})")
    return dict(json.loads(header["facts"]))


def _sync_folder(folder: Path) -> None:
    """Make a new name last through a power cut, where the file system can; the file itself is in place by now."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
