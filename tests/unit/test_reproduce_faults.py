"""Experiments where something is at fault that no system can help: the data, the disk, another process."""

import dataclasses
import errno
import fcntl
import os
from collections.abc import Generator
from pathlib import Path
from typing import IO

import pytest

from msdnet.data import UnreadableImageError
from msdnet.errors import FileError, NewerFormatError
from msdnet.reproduce.drawing import measured_of
from msdnet.training import DivergenceError, Interrupted
from msdnet.training.distributed import is_first
from msdnet.training.side_by_side import Done
from tests.unit.test_reproduce import CLASSES, MANY_EXITS, RESNET, SMALL, paint_images, workshop


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return paint_images(tmp_path / "images")


@pytest.fixture
def damaged(whole: Path) -> Path:
    """Of the images to test with, one cannot be read, which cannot be seen by its size."""
    image = whole / "val/class1/3.png"
    image.write_bytes(bytes(image.stat().st_size))
    return whole


def test_an_unreadable_image_ends_it_at_once_and_can_be_skipped_by_all(damaged: Path, tmp_path: Path) -> None:
    said: list[str] = []
    here = workshop(damaged, tmp_path, said)
    with pytest.raises(UnreadableImageError, match=r"val/class1/3.png: .*--skip-unreadable"):
        here.carry_out([RESNET, MANY_EXITS])
    assert sum(here.shelf.training_standing(one) == "trained" for one in (RESNET, MANY_EXITS)) == 1, "and none after it"
    assert not any("failed" in line for line in said), "it is no system's fault"
    skips = dataclasses.replace(here, data=dataclasses.replace(here.data, unreadable="skip"))
    with pytest.warns(UserWarning, match=r"unreadable image .*val/class1/3.png"):
        assert skips.carry_out(SMALL.subjects) == []
    assert "resnet: images of the part test that could not be read and are left out: 1" in said
    assert not any("of the part held_out" in line for line in said), "of which all can be read"
    found = measured_of(SMALL, here.shelf)
    assert {one.images["test"] for one in found.values()} == {8 * CLASSES}
    assert [one.images["unreadable"] for one in found.values()] == [{"held_out": 0, "test": 1}] * len(found)
    assert round(found["resnet"].test_accuracy[0] * (8 * CLASSES - 1), 6).is_integer()


def test_systems_that_were_judged_by_other_images_are_not_compared(damaged: Path, tmp_path: Path) -> None:
    here = workshop(damaged, tmp_path)
    here = dataclasses.replace(here, data=dataclasses.replace(here.data, unreadable="skip"))
    with pytest.warns(UserWarning, match="unreadable image"):
        assert here.carry_out([RESNET]) == []
    paint_images(damaged)
    found = measured_of(SMALL, here.shelf)
    assert here.carry_out([MANY_EXITS], beside=found.values()) == [], "how many can be read is not known before"
    with pytest.raises(ValueError, match=r"made in another way than .*: images: unreadable"):
        measured_of(SMALL, here.shelf)


def test_a_full_disk_ends_it_and_blames_no_run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    here = workshop(whole, tmp_path, said)
    written = os.fsync

    def full(file: IO[bytes], content: bytes) -> None:
        if "checkpoint" in file.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)
        file.write(content)
        file.flush()
        written(file.fileno())

    monkeypatch.setattr("msdnet.writing._write", full)
    with pytest.raises(OSError, match=r"checkpoint.safetensors: cannot be written \(No space left on device\)$"):
        here.carry_out([RESNET, MANY_EXITS])
    assert sum(here.shelf.standing(one) == "begun" for one in (RESNET, MANY_EXITS)) == 1, "and none after it"
    monkeypatch.undo()
    assert here.carry_out([RESNET, MANY_EXITS]) == []


def test_those_under_way_beside_a_fault_are_stopped_before_it_is_told(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error would keep what tells of them, and that would keep them at work."""
    stopped = []

    def fake(*_: object, **__: object) -> Generator[Done[None], None, None]:
        try:
            yield Done(0, None, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model"))
            yield Done(1, None, None)
        finally:
            stopped.append(True)

    monkeypatch.setattr("msdnet.reproduce.workshop.together", fake)
    with pytest.raises(OSError, match="No space left") as error:
        workshop(whole, tmp_path).carry_out([RESNET, MANY_EXITS])
    assert (error.value.filename, stopped) == ("model", [True])


def test_another_process_that_trains_there_is_told_of_before_anything_else(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.unit.test_training import StopAt

    said: list[str] = []
    here = workshop(whole, tmp_path, said)
    with monkeypatch.context() as patch:
        patch.setattr("msdnet.reproduce.workshop.Lines", lambda *_: StopAt(2))
        with pytest.raises(Interrupted):
            here.carry_out([RESNET])
    said.clear()
    with (here.shelf.run_of(RESNET) / "run.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (failure,) = here.carry_out([RESNET])
    assert failure.why == f"{here.shelf.run_of(RESNET)}: another process is training here"
    assert not any("goes on" in line for line in said)


def test_of_several_processes_the_first_alone_speaks(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("msdnet.reproduce.workshop.is_first", lambda: False)
    assert workshop(whole, tmp_path, said).carry_out([RESNET]) == []
    assert said == []


def test_a_rank_without_others_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some clusters set it for processes that torchrun did not start: it was silent, and nothing came of it."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert is_first()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert not is_first()
    monkeypatch.setenv("WORLD_SIZE", "")
    with pytest.raises(ValueError, match="WORLD_SIZE must be a number, as torchrun sets it; got ''"):
        is_first()


def test_a_run_that_may_not_be_written_to_is_not_called_damaged(whole: Path, tmp_path: Path) -> None:
    here = workshop(whole, tmp_path)
    path = here.shelf.run_of(RESNET) / "checkpoint.safetensors"
    assert here.shelf.reason(RESNET, PermissionError(f"{path}: cannot be written")) == f"{path}: cannot be written"
    diverged = DivergenceError(f"the loss is nan; the last good checkpoint is {path}")
    assert here.shelf.reason(RESNET, diverged) == str(diverged), "the run is named, and it is whole"
    assert "trained anew" in here.shelf.reason(RESNET, FileError(path, "not a whole safetensors file"))


def test_a_run_of_a_newer_version_is_not_called_damaged(whole: Path, tmp_path: Path) -> None:
    here = workshop(whole, tmp_path)
    path = here.shelf.run_of(RESNET) / "checkpoint.safetensors"
    newer, damaged = NewerFormatError(path, "format 9 is newer"), FileError(path, "not what was written")
    assert here.shelf.reason(RESNET, newer) == f"{path}: format 9 is newer"
    assert here.shelf.reason(RESNET, damaged).endswith("it would be trained anew")
