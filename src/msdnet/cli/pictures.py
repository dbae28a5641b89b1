"""From what people type to pictures: files, folders, patterns, or what comes in by a pipe."""

import codecs
import errno
import glob
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TypeAlias

__all__ = ["FoundImage", "NamedImage", "check_streams", "find_pictures"]

PIPE = "-"
_AT_ONCE = 8192  # bytes of a pipe: some hundred paths
_TOGETHER = 256  # pictures: full batches at most stages, and soon answered
_IGNORED = "only the first picture of a pipe is read; to classify several, send their paths"
# Where a PNG or JPEG file ends and another begins. (A thumbnail within a file is followed by something else.)
_SECOND = re.compile(rb"(?:IEND\xaeB`\x82|\xff\xd9)(?:\xff\xd8\xff|\x89PNG\r\n)")
_NO_TEXT = re.compile(rb"[\x01-\x08\x0e-\x1f\x7f]")

FoundImage: TypeAlias = tuple[str, str | IO[bytes]]
"""A name, and what it stands for: a path, or a file in memory."""
NamedImage: TypeAlias = tuple[str, str | IO[bytes] | OSError]
"""The same, or the error that came instead."""


def check_streams(given: Sequence[str]) -> None:
    """Refuse what would be read from nowhere, or written to nowhere: before the work is done."""
    if sys.stdout is None:
        raise ValueError("the standard output is closed: nobody would see the answers")
    if PIPE in given and sys.stdin is None:
        raise ValueError(f"{PIPE} stands for the standard input, which is closed")


def find_pictures(given: Sequence[str], nothing: Callable[[str], object]) -> Iterator[list[NamedImage]]:
    """Pictures in groups that are answered together: some of those that are found, or what a pipe brings as it comes.

    Folders are gone through, with all below them but what is hidden.

    - nothing: told of folders and patterns in which there are no pictures
    """
    if PIPE not in given:
        yield from _grouped(_found(given, nothing))
        return
    for text in given:
        yield from _piped(sys.stdin.fileno(), nothing) if text == PIPE else _grouped(_found([text], nothing))


def _grouped(pictures: Iterable[NamedImage]) -> Iterator[list[NamedImage]]:
    coming = iter(pictures)
    while group := list(itertools.islice(coming, _TOGETHER)):
        yield group


def _found(given: Iterable[str], nothing: Callable[[str], object]) -> Iterator[NamedImage]:
    for text in given:
        if os.path.isdir(text):  # noqa: PTH112  (false, not an error, where one may not look)
            yield from _or_nothing(_below(text), text, nothing)
        elif not os.path.exists(text) and glob.has_magic(text):  # noqa: PTH110
            yield from _or_nothing(_matching(text), text, nothing)
        else:
            yield text, _held(text)


def _or_nothing(pictures: Iterator[NamedImage], where: str, nothing: Callable[[str], object]) -> Iterator[NamedImage]:
    first = next(pictures, None)
    if first is None:
        nothing(where)
        return
    yield first
    yield from pictures


def _matching(pattern: str) -> Iterator[NamedImage]:
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207  (patterns may be absolute)
        if not Path(name).is_dir():
            yield name, name
        elif "**" not in pattern:  # which has found what is below by itself
            yield from _below(name)


def _held(path: str) -> str | IO[bytes] | OSError:
    """The content of a pipe that was named, as `<(curl ...)` does: it can be read only once. A file is read later."""
    try:
        return io.BytesIO(Path(path).read_bytes()) if Path(path).is_fifo() else _there(path)
    except OSError as error:
        return error


def _there(path: str) -> str | OSError:
    """A path of which nobody knows what it was to be, where there is nothing."""
    return path if os.path.lexists(path) else FileNotFoundError(errno.ENOENT, "no such file or folder")


def _below(folder: str) -> Iterator[NamedImage]:
    """Pictures of formats that are not read as well: each is to be answered or named."""
    from msdnet.files import images_below

    refused: list[NamedImage] = []
    for path in images_below(folder, lambda error: refused.append((error.filename, error))):
        yield path, path
    yield from refused


def _piped(pipe: int, nothing: Callable[[str], object]) -> Iterator[list[NamedImage]]:
    """One picture; or paths, as soon as they are there: nobody knows whether more will come."""
    from msdnet.pixels import is_picture

    content = _beginning(pipe)
    if is_picture(content):
        content += sys.stdin.buffer.read()
        yield [(PIPE, io.BytesIO(content)), *([(PIPE, OSError(errno.EINVAL, _IGNORED))] if _goes_on(content) else [])]
    elif _is_list(content):
        for names in _listed(pipe, content.removeprefix(codecs.BOM_UTF8)):
            yield from _grouped(_named(names, nothing))
    else:
        yield [(PIPE, OSError(errno.EINVAL, "neither a picture nor a list of paths"))]


def _goes_on(content: bytes) -> bool:
    """Whether a second picture follows. Phones put a picture of depths or lights after a JPEG: that is part of it."""
    second = _SECOND.search(content)
    return second is not None and b"MPF\0" not in content[: second.start()]


def _beginning(pipe: int) -> bytes:
    """Enough to tell a picture from paths. A pipe may bring less at first; but a short path must not wait for more."""
    from msdnet.pixels import HEAD

    content = more = os.read(pipe, _AT_ONCE)
    while more and len(content) < HEAD and b"\n" not in content and not _ends_a_path(content):
        more = os.read(pipe, _AT_ONCE)
        content += more
    return content


def _ends_a_path(content: bytes) -> bool:
    """Whether a zero ends the path of a file that is there; in the head of a picture it ends none."""
    path, zero, _ = content.partition(b"\0")
    return bool(path and zero) and os.path.lexists(path)


def _is_list(content: bytes) -> bool:
    """Whether it may be paths: hardly a name has what is no text, though one that is there may."""
    return not _NO_TEXT.search(content) or any(map(os.path.lexists, content.split(_separator(content) or b"\n")))


def _separator(content: bytes) -> bytes:
    """What ends a path, once there is an end: where there are zeros (`find -print0`), lines are parts of names."""
    return next((end for end in (b"\0", b"\n") if end in content), b"")


def _listed(pipe: int, content: bytes) -> Iterator[list[str]]:
    """Names as they come. They may begin and end with spaces: only the end of the line is no part of them."""
    begun = separator = b""
    while content:
        begun += content
        separator = separator or _separator(begun)
        *whole, begun = begun.split(separator) if separator else [begun]
        yield [_name(path, separator) for path in whole]
        content = os.read(pipe, _AT_ONCE)
    yield [_name(begun, separator)]


def _name(path: bytes, separator: bytes) -> str:
    return os.fsdecode(path if separator == b"\0" else path.removesuffix(b"\r"))


def _named(names: Iterable[str], nothing: Callable[[str], object]) -> Iterator[NamedImage]:
    """What a list names: files, and folders; what looks like a pattern is a name like any other."""
    for name in filter(None, names):
        if os.path.isdir(name):  # noqa: PTH112
            yield from _or_nothing(_below(name), name, nothing)
        else:
            yield name, _there(name)
