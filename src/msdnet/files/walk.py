"""The images below a folder: found in one way for training and for classifying."""

import os
from collections.abc import Callable, Iterator

from msdnet.pixels import ENDINGS, OTHER_ENDINGS

__all__ = ["images_below"]


def images_below(
    folder: str, refused: Callable[[OSError], object] | None = None, *, above: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Paths that begin as the folder was given, in order; those of formats that are not read among them.

    Links are followed, but not back to where one came from. What is hidden is left out.

    - refused: told of folders that may not be looked into
    - above: the folders that led here, as they really are
    """
    here = os.path.realpath(folder)
    if here in above:
        return
    try:
        with os.scandir(folder) as found:
            entries = sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        if refused is not None:
            refused(error)
        return
    folders = []
    for entry in entries:
        if _is_folder(entry):
            folders.append(entry.path)
        elif entry.name.lower().endswith((*ENDINGS, *OTHER_ENDINGS)):
            yield entry.path
    for path in folders:
        yield from images_below(path, refused, above=above | {here})


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """A link to itself, or to where one may not look, is not: it is told of when it is read."""
    try:
        return entry.is_dir()
    except OSError:
        return False
