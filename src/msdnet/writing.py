"""Files and folders that are whole or not there, so that a kill at any moment, or a full disk, loses nothing.

Knows bytes and places; nothing of what is written.
"""

import errno
import glob
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["check_free", "is_disk_full", "new_folder", "told_of", "write_atomically", "write_output"]

# After so long nobody still writes to a scratch file or folder: its writer was killed.
_ABANDONED_SECONDS = 3600

# Of a name, in that of its scratch file: at four bytes each, with what is added, fewer than the 255 a name may have.
_KEPT_CHARACTERS = 50


def write_atomically(path: Path, content: bytes, *, new: bool = False) -> None:
    """Put a whole file in place at once; if that fails, what was there is still there.

    With `new` the file must not be there yet: of several processes that try, one succeeds.
    """
    try:
        (_create if new else _replace)(path, content)
    except FileExistsError:
        raise
    except OSError as error:
        kept = f"; the previous {path.name} is untouched" if path.exists() else ""
        raise type(error)(f"{path}: cannot be written ({error.strerror or error}){kept}") from error
    _sync_folder(path.parent)


def is_disk_full(error: BaseException | None) -> bool:
    """Whether something could not be written for want of space, whatever was told of it since."""
    if error is None:
        return False
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or is_disk_full(error.__cause__)


def write_output(path: Path, content: bytes) -> None:
    """The same for a file that somebody has named, and which keeps its permissions.

    A pipe, a terminal, a link (/dev/stdout is one), or a file that nothing can be put beside is written in place; one
    that may not be written to is refused.
    """
    replaceable = path.is_file() and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    if path.is_symlink() or (path.exists() and not replaceable):
        path.write_bytes(content)
    else:
        write_atomically(path, content)


def check_free(folder: Path) -> None:
    if folder.exists() or folder.is_symlink():
        raise FileExistsError(f"{folder}: is there already; remove it or choose another place")


@contextmanager
def told_of(path: Path) -> Iterator[None]:
    """What the system refuses is told by the name that was asked for, not by that of a scratch file beside it."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A scratch folder to fill, which then takes its place at once; where something fails, nothing is left of it.

    Of several that make the same folder, one succeeds.
    """
    check_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _clear_abandoned(folder)
    with told_of(folder):
        made = tempfile.TemporaryDirectory(
            prefix=f"{_scratch_name(folder)}.", suffix=".partial", dir=folder.parent, ignore_cleanup_errors=True
        )
    with made as own:
        scratch = Path(own, folder.name)  # inside, since others may not look into what tempfile makes
        scratch.mkdir()
        try:
            yield scratch
        except OSError as error:
            if is_disk_full(error) and error.filename is None:
                raise type(error)(error.errno, error.strerror, str(folder)) from error
            raise
        try:
            scratch.rename(folder)
        except OSError:
            check_free(folder)
            raise
    _sync_folder(folder.parent)


def _create(path: Path, content: bytes) -> None:
    """A scratch file that is whole takes a second name, which is exclusive, where the file system has hard links."""
    with _scratch(path, content) as scratch:
        try:
            os.link(scratch, path)
        except FileExistsError:
            raise
        except OSError:
            _create_in_place(path, content)


def _create_in_place(path: Path, content: bytes) -> None:
    """Under its own name from the start: nothing else is exclusive on every file system.

    The price is that a kill at this very moment may leave a part of it.
    """
    with path.open("xb") as file:
        try:
            _write(file, content)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _replace(path: Path, content: bytes) -> None:
    with _scratch(path, content) as scratch:
        with suppress(OSError):  # there may be none before it, and some file systems have no permissions
            shutil.copymode(path, scratch)
        scratch.replace(path)


@contextmanager
def _scratch(path: Path, content: bytes) -> Iterator[Path]:
    """A file of one's own, so that no other process writes into it; whatever happens, it is gone afterwards."""
    _clear_abandoned(path)
    # Chance, since processes in two containers that share a folder may have the same number.
    scratch = path.with_name(f"{_scratch_name(path)}.{secrets.token_hex(4)}.partial")
    try:
        with scratch.open("xb") as file:
            _write(file, content)
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)


def _scratch_name(path: Path) -> str:
    """How the names of its scratch files and folders begin."""
    return f".{path.name[:_KEPT_CHARACTERS]}"


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _clear_abandoned(path: Path) -> None:
    """Remove the scratch files and folders of killed processes, so that kills leave no heap of them.

    That goes by age: whether a process still runs cannot be told where machines or containers share a folder.
    """
    for scratch in path.parent.glob(f"{glob.escape(_scratch_name(path))}.*partial"):
        with suppress(OSError):  # another process may have been faster
            if time.time() - scratch.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(scratch) if scratch.is_dir() else scratch.unlink()


def _sync_folder(folder: Path) -> None:
    """Make a new name last through a power cut, where the file system can; the file itself is in place by now."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
