import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open

from msdnet.training import checkpoint
from msdnet.training.checkpoint import load_facts, load_tensors, save_tensors


def test_tensors_and_facts_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"x": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), "n": torch.tensor(3)}
    save_tensors(path, tensors, {"epoch": 3, "names": ["a", "b"]})
    loaded, facts = load_tensors(path)
    assert facts == {"epoch": 3, "names": ["a", "b"]}
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert list(tmp_path.iterdir()) == [path], "nothing is left behind"


def test_tensors_that_share_memory_are_written_each(tmp_path: Path) -> None:
    """As the one head of several exits, in a network of one's own."""
    weight = torch.randn(3, 2)
    save_tensors(tmp_path / "a.safetensors", {"first": weight, "second": weight}, {})
    loaded, _ = load_tensors(tmp_path / "a.safetensors")
    assert torch.equal(loaded["first"], weight)
    assert torch.equal(loaded["second"], weight)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_the_previous_file_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.ones(1)}, {})

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OSError, match=r"cannot be written \(No space left on device\); the previous a.safetensors is untouched"
    ):
        save_tensors(path, {"x": torch.zeros(1)}, {})
    monkeypatch.undo()
    assert load_tensors(path)[0]["x"] == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[: len(content) // 2], "not a whole safetensors file"),
        (lambda _content: b"", "not a whole safetensors file"),
        (lambda content: content.replace(b'"format":"1"', b'"format":"9"'), "format 9 is newer"),
        (lambda content: content.replace(b'"format":"1"', b'"fromat":"1"'), "was not written by msdnet"),
    ],
)
def test_refuses_damaged_files(tmp_path: Path, damage: Any, message: str) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.ones(100)}, {})
    path.write_bytes(damage(path.read_bytes()))
    for load in (load_tensors, load_facts):
        with pytest.raises(ValueError, match=message):
            load(path)


def test_refuses_what_is_not_there(tmp_path: Path) -> None:
    for load in (load_tensors, load_facts):
        with pytest.raises(FileNotFoundError, match="no such file"):
            load(tmp_path / "a.safetensors")


def test_facts_are_read_without_the_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def header_alone(path: Path, framework: str) -> Iterator[SimpleNamespace]:
        with safe_open(path, framework) as file:
            yield SimpleNamespace(metadata=file.metadata)

    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.ones(1)}, {"epoch": 3})
    monkeypatch.setattr(checkpoint, "safe_open", header_alone)
    assert load_facts(path) == {"epoch": 3}
    with pytest.raises(AttributeError):
        load_tensors(path)
