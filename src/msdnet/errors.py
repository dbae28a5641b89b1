"""Errors that keep the file they are about apart from what is wrong with it: nobody has to take a text apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

__all__ = [
    "DamagedError",
    "FileError",
    "NewerFormatError",
    "newer_format",
    "of_file",
    "path_of",
    "reason_of",
    "text_of",
]


class FileError(ValueError):
    """What a file holds is not what it should."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class DamagedError(FileError):
    """The file is cut off, or not at all what it is called: nothing in it can be used."""


class NewerFormatError(FileError):
    """Nothing is wrong with the file: it takes a newer version of msdnet."""


def newer_format(version: float, newest: int) -> str:
    """What is said of such a file, or of a text that is in none."""
    return f"format {version} is newer than this version of msdnet reads ({newest})"


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """What is refused inside is wrong with this file."""
    try:
        yield
    except FileError:
        raise
    except (TypeError, ValueError) as error:
        raise FileError(path, str(error)) from error


def path_of(error: BaseException) -> Path | None:
    """The file that an error is about, where it keeps that by itself: ours may, and the system's."""
    if isinstance(error, FileError):
        return error.path
    return Path(error.filename) if _of_system(error) else None


def reason_of(error: BaseException) -> str:
    """What is wrong, without the file that the error keeps by itself, or the number that the system gives its own."""
    if isinstance(error, FileError):
        return error.why
    return str((isinstance(error, OSError) and error.strerror) or error)


def text_of(error: BaseException) -> str:
    """In words: the file and the reason, without the number that the system gives its own errors.

    >>> text_of(FileNotFoundError(2, "No such file or directory", "a.json"))
    'a.json: No such file or directory'
    """
    if isinstance(error, FileError):
        return str(error)
    return f"{error.filename}: {error.strerror}" if _of_system(error) else reason_of(error)


def _of_system(error: BaseException) -> TypeGuard[OSError]:
    """Whether it has a file and a reason: ours of the same kind are a sentence."""
    return isinstance(error, OSError) and isinstance(error.filename, str)
