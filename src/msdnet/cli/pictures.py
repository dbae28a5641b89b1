"""From what people type to pictures: files, folders, patterns, or what comes in by a pipe."""

import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msdnet.bundle import ImageSpec

__all__ = ["Pictures", "find_pictures"]

PIPE = "-"
_MAGIC = (b"\xff\xd8", b"\x89PNG", b"RIFF", b"BM", b"GIF8")  # with which a file of these formats begins


def find_pictures(given: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Names, and what they stand for: a path, or a file in memory. Folders are gone through, with all below them."""
    for text in given:
        path = Path(text)
        if text == PIPE:
            yield from _piped(sys.stdin.buffer.read())
        elif path.is_dir():
            yield from _below(path)
        elif not path.exists() and glob.has_magic(text):
            for name in sorted(glob.glob(text, recursive=True)):  # noqa: PTH207  (patterns may be absolute)
                yield from _below(Path(name)) if Path(name).is_dir() else [(name, name)]
        else:
            yield text, text


def _below(folder: Path) -> Iterator[tuple[str, str]]:
    from msdnet.pixels import ENDINGS

    def refuse(error: OSError) -> None:
        raise error

    for where, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(ENDINGS) and not name.startswith("."):
                yield (os.path.join(where, name),) * 2  # noqa: PTH118  (as people wrote it)


def _piped(content: bytes) -> Iterator[tuple[str, Any]]:
    """One picture, or a list of paths, one in a line."""
    if content.startswith(_MAGIC):
        yield PIPE, io.BytesIO(content)
        return
    for line in content.decode(errors="surrogateescape").splitlines():
        if line.strip():
            yield line.strip(), line.strip()


class Pictures:
    """The pixels of pictures, one after the other. One that cannot be read is noted and left out."""

    def __init__(self, found: Iterable[tuple[str, Any]], spec: "ImageSpec") -> None:
        self.names: list[str] = []
        """Of those that were read, in their order."""
        self.unread: list[tuple[str, str]] = []
        """The others, and why."""
        self._found, self._spec = found, spec

    def __iter__(self) -> Iterator[Any]:
        from msdnet.runtime.images import pixels_of

        for name, source in self._found:
            try:
                pixels = pixels_of(source, self._spec)
            except (TypeError, ValueError) as error:
                self.unread.append((name, str(error).removeprefix(f"{name}: ")))
                continue
            self.names.append(name)
            yield pixels
