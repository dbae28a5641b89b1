"""Places that people name: what is wrong with one, told before the work is done that is to be written there.

Knows nothing of what is written; `msdnet.writing` writes.
"""

import os
import tempfile
from pathlib import Path

from msdnet.writing import told_of

__all__ = ["check_file_writable", "check_folder_writable", "check_svg_writable", "instead_of_folder"]


def instead_of_folder(path: Path) -> str:
    """What is at a place where a folder should be, in words: an error begins with it."""
    return f"{path}: a file, not a folder" if path.exists() else f"{path}: no such folder"


def check_folder_writable(folder: Path) -> None:
    """Refuse a folder into which nothing can be written: better told before the work is done.

    One that is not there must be possible to make; whoever writes into it makes it.
    """
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        wrong = instead_of_folder(there)
        raise NotADirectoryError(wrong if there == folder else f"{folder}: this folder cannot be made ({wrong})")
    with told_of(folder), tempfile.TemporaryFile(dir=there):
        pass


def check_file_writable(file: Path) -> None:
    """The same for a file, which may be there already and need not be a plain one; its folder must be there."""
    if file.is_dir():
        raise ValueError(f"{file}: is a folder, and a file is to be written")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{file}: there is no folder {file.parent}")
    if not file.exists():
        with told_of(file):
            check_folder_writable(file.parent)
    elif not os.access(file, os.W_OK):
        raise PermissionError(f"{file}: may not be written to")


def check_svg_writable(file: Path) -> None:
    """The same for a drawing: one by another ending would be opened as something else."""
    if file.suffix.lower() not in (".svg", ""):
        raise ValueError(f"{file}: must end in .svg, since that is what is drawn")
    check_file_writable(file)
