"""Errors keep the file and the reason apart, and are told in the same words wherever they come from."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from msdnet.errors import FileError, NewerFormatError, of_file, path_of, reason_of, text_of
from msdnet.pixels import BadPixelError, check_pixels

PATH = Path("a/run.json")


@pytest.mark.parametrize(
    ("error", "path", "reason"),
    [
        (FileError(PATH, "not JSON"), PATH, "not JSON"),
        (FileNotFoundError(2, "No such file or directory", str(PATH)), PATH, "No such file or directory"),
        (FileNotFoundError("a: no run is there"), None, "a: no run is there"),
        (OSError(9, "Bad file descriptor"), None, "Bad file descriptor"),
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


def test_a_copy_of_an_error_about_a_pixel_says_the_same() -> None:
    images = np.zeros((3, 2, 2, 1))
    images[1] = 255
    with pytest.raises(BadPixelError) as raised:
        check_pixels("X", images)
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (str(copied), copied.row) == ("floating-point X must be from 0 to 1, got 0 to 255", 1)


def test_what_is_refused_of_a_file_is_told_as_of_it_once() -> None:
    once = r"^a/run.json: seed must be a number$"
    with pytest.raises(FileError, match=once), of_file(Path("other")), of_file(PATH):
        raise TypeError("seed must be a number")
    with pytest.raises(FileNotFoundError), of_file(PATH):
        raise FileNotFoundError("which is not wrong with what it holds")
