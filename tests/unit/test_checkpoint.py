import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open

from msdnet.training import checkpoint
from msdnet.training.checkpoint import load_facts, load_tensors, save_tensors, write_atomically


def test_tensors_and_facts_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"x": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), "n": torch.tensor(3)}
    save_tensors(path, tensors, {"epoch": 3, "names": ["a", "b"]})
    loaded, facts = load_tensors(path)
    assert facts == {"epoch": 3, "names": ["a", "b"]}
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert list(tmp_path.iterdir()) == [path], "nothing is left behind"


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


def test_a_full_disk_leaves_nothing_of_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"new: cannot be written \(No space left on device\)$"):
        write_atomically(tmp_path / "new", b"one", new=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_new_takes_no_ones_place(tmp_path: Path) -> None:
    path = tmp_path / "new"
    write_atomically(path, b"one", new=True)
    with pytest.raises(FileExistsError):
        write_atomically(path, b"two", new=True)
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_needs_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which exFAT and some others do not have."""
    monkeypatch.setattr(os, "link", full)
    write_atomically(tmp_path / "new", b"one", new=True)
    assert (tmp_path / "new").read_bytes() == b"one"


def while_writing(act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another process act while the next file is being written."""
    fsync, left = os.fsync, [act]

    def disturbed(descriptor: int) -> None:
        fsync(descriptor)
        if left:
            with monkeypatch.context() as patch:
                patch.setattr(os, "getpid", lambda: 1)
                left.pop()()

    monkeypatch.setattr(os, "fsync", disturbed)


def test_of_two_that_make_a_file_one_succeeds_with_its_own_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, refused = tmp_path / "new", []

    def other() -> None:
        with pytest.raises(FileExistsError) as error:
            write_atomically(path, b"two", new=True)
        refused.append(error)

    while_writing(other, monkeypatch)
    write_atomically(path, b"one", new=True)
    assert refused
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_two_that_replace_a_file_do_not_write_into_each_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.json"
    seen = []

    def other() -> None:
        write_atomically(path, b"two")
        seen.append(path.read_bytes())

    while_writing(other, monkeypatch)
    write_atomically(path, b"one")
    assert seen == [b"two"]
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_what_killed_processes_have_left_is_cleared_away(tmp_path: Path) -> None:
    path, fresh, other = tmp_path / "a.json", tmp_path / ".a.json.7.partial", tmp_path / ".b.json.8.partial"
    abandoned = [tmp_path / ".a.json.partial", tmp_path / ".a.json.8.partial"]
    for scratch in (fresh, other, *abandoned):
        scratch.touch()
    for scratch in (other, *abandoned):
        os.utime(scratch, (0, 0))
    write_atomically(path, b"one")
    assert set(tmp_path.iterdir()) == {path, fresh, other}


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
