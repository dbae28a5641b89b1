import errno
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from msdnet.training.checkpoint import load_tensors, save_tensors


def test_tensors_and_facts_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"x": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), "n": torch.tensor(3)}
    save_tensors(path, tensors, {"epoch": 3, "names": ["a", "b"]})
    loaded, facts = load_tensors(path)
    assert facts == {"epoch": 3, "names": ["a", "b"]}
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert list(tmp_path.iterdir()) == [path], "nothing is left behind"


def test_a_full_disk_leaves_the_previous_file_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.ones(1)}, {})

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

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
    with pytest.raises(ValueError, match=message):
        load_tensors(path)


def test_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_tensors(tmp_path / "a.safetensors")
