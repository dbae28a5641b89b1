"""Errors keep the file and the reason apart, and are told in the same words wherever they come from."""

import json
import pickle
from dataclasses import dataclass
from pathlib import Path

import pytest

from msdnet.checks import read_as, read_table
from msdnet.errors import FileError, NewerFormatError, of_file, path_of, reason_of, text_of

PATH = Path("a/run.json")


@pytest.mark.parametrize(
    ("error", "path", "reason"),
    [
        (FileError(PATH, "not JSON"), PATH, "not JSON"),
        (FileNotFoundError(2, "No such file or directory", str(PATH)), PATH, "No such file or directory"),
        (FileNotFoundError("a: no run is there"), None, "a: no run is there"),
        (OSError(9, "Bad file descriptor"), None, "[Errno 9] Bad file descriptor"),
        (ValueError("a/run.json: is named in this text alone"), None, "a/run.json: is named in this text alone"),
    ],
)
def test_the_file_and_the_reason_of_an_error(error: Exception, path: Path | None, reason: str) -> None:
    assert (path_of(error), reason_of(error)) == (path, reason)
    assert text_of(error) == (reason if path is None else f"{path}: {reason}")


def test_a_copy_of_an_error_says_the_same() -> None:
    """As one that comes from another process."""
    for kind in (FileError, NewerFormatError):
        copied = pickle.loads(pickle.dumps(kind(PATH, "cut short")))
        assert type(copied) is kind
        assert (str(copied), copied.path) == ("a/run.json: cut short", PATH)


def test_what_is_refused_of_a_file_is_told_as_of_it_once() -> None:
    once = r"^a/run.json: seed must be a number$"
    with pytest.raises(FileError, match=once), of_file(Path("other")), of_file(PATH):
        raise TypeError("seed must be a number")
    with pytest.raises(FileNotFoundError), of_file(PATH):
        raise FileNotFoundError("which is not wrong with what it holds")


@dataclass(frozen=True)
class Part:
    size: int


@dataclass(frozen=True)
class Whole:
    part: Part
    format: int = 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", r"not JSON \(Expecting.*"),
        (b"\xff", r"not JSON \('utf-8' codec.*"),
        (b"[]", "must be a table of fields, got list"),
        (b"{}", "must have the field 'part'"),
        (b'{"prat": 1, "part": {"size": 1}}', "has no field 'prat'; did you mean 'part'.*"),
        (b'{"part": 1}', "part: must be a table of fields, got int"),
        (b'{"part": {"sise": 1}}', "part: has no field 'sise'; did you mean 'size'.*"),
    ],
)
def test_a_file_that_is_no_such_table_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "whole.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=rf"^{path}: {reason}$"):
        read_as(Whole, path)


def test_a_file_of_a_newer_format_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "whole.json"
    path.write_text(json.dumps({"format": 2, "part": {"size": 3}}))
    assert read_as(Whole, path, newest=2) == Whole(Part(3), 2)
    for read in (lambda: read_as(Whole, path, newest=1), lambda: read_table(path, newest=1)):
        with pytest.raises(NewerFormatError, match=r"format 2 is newer than this version of msdnet reads \(1\)$"):
            read()
