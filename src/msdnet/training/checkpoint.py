"""Tensors and facts in files that are whole or not there.

Weights are safetensors and facts are JSON, so that reading a file never runs code from it.
"""

import errno
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from msdnet.checks import check_same
from msdnet.errors import DamagedError, NewerFormatError, newer_format, of_file
from msdnet.writing import write_atomically

__all__ = ["check_same_run", "load_facts", "load_tensors", "save_tensors"]

# The version of what is inside; a file of a newer one is refused.
FORMAT = 1


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    stored = Counter(tensor.data_ptr() for tensor in plain.values())
    # What two names share, such as a head of several exits, is written by each of them: the format knows no sharing.
    plain = {name: tensor.clone() if stored[tensor.data_ptr()] > 1 else tensor for name, tensor in plain.items()}
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


def check_same_run(path: Path, known: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Refuse a file that was written, as it says itself, by another run than that whose facts these are."""
    with of_file(path):
        for name in ("network", "recipe", "seed"):
            both = known.get(name), facts[name]
            check_same(f"made with another {name}", *both, places=(f"in the {path.stem}", "in the run"))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError as error:
        raise DamagedError(path, f"not a whole safetensors file ({error})") from error


def _facts(path: Path, file: Any) -> dict[str, Any]:
    header = file.metadata() or {}
    if not header.get("format", "").isdigit() or "facts" not in header:
        raise DamagedError(path, "was not written by msdnet")
    if int(header["format"]) > FORMAT:
        raise NewerFormatError(path, newer_format(int(header["format"]), FORMAT))
    return dict(json.loads(header["facts"]))
