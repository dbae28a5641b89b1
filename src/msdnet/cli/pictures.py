"""From what people type to pictures: files, folders, patterns, or what comes in by a pipe."""

import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TypeAlias

__all__ = ["NamedImage", "find_pictures"]

PIPE = "-"
_AT_ONCE = 8192  # bytes of a pipe: some hundred paths

NamedImage: TypeAlias = tuple[str, str | IO[bytes] | OSError]
"""A name, and what it stands for: a path, a file in memory, or the error that came instead."""


def find_pictures(given: Sequence[str]) -> Iterator[Iterable[NamedImage]]:
    """Pictures in groups that are answered together: all, or what a pipe brings as it comes.

    Folders are gone through, with all below them but what is hidden.
    """
    if PIPE not in given:
        yield _found(given)
        return
    for text in given:
        if text == PIPE:
            yield from _piped(sys.stdin.fileno())
        else:
            yield _found([text])


def _found(given: Iterable[str]) -> Iterator[NamedImage]:
    for text in given:
        if os.path.isdir(text):  # noqa: PTH112  (false, not an error, where one may not look)
            yield from _below(text)
        elif not os.path.exists(text) and glob.has_magic(text):  # noqa: PTH110
            for name in sorted(glob.glob(text, recursive=True)):  # noqa: PTH207  (patterns may be absolute)
                yield from _below(name) if Path(name).is_dir() else [(name, name)]
        else:
            yield text, text


def _below(folder: str) -> Iterator[NamedImage]:
    """Pictures of formats that are not read as well: each is to be answered or named."""
    from msdnet.files import images_below

    refused: list[NamedImage] = []
    for path in images_below(folder, lambda error: refused.append((error.filename, error))):
        yield path, path
    yield from refused


def _piped(pipe: int) -> Iterator[list[NamedImage]]:
    """One picture; or paths, one in a line, as soon as they are there: nobody knows whether more will come."""
    from msdnet.pixels import is_picture

    content = _beginning(pipe)
    if is_picture(content):
        yield [(PIPE, io.BytesIO(content + sys.stdin.buffer.read()))]
        return
    begun = b""
    while content:
        *lines, begun = (begun + content).split(b"\n")
        yield _paths(lines)
        content = os.read(pipe, _AT_ONCE)
    yield _paths([begun])


def _beginning(pipe: int) -> bytes:
    """Enough to tell a picture from paths. A pipe may bring less at first; but a short path must not wait for more."""
    from msdnet.pixels import HEAD

    content = more = os.read(pipe, _AT_ONCE)
    while more and len(content) < HEAD and b"\n" not in content:
        more = os.read(pipe, _AT_ONCE)
        content += more
    return content


def _paths(lines: Iterable[bytes]) -> list[NamedImage]:
    """A name may begin and end with spaces: only the end of the line is no part of it."""
    names = [os.fsdecode(line.removesuffix(b"\r")) for line in lines]
    return [(name, name) for name in names if name]
