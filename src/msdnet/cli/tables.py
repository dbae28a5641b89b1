"""Tables of plain text: what is printed is what a file or a class is called. And files that are to be written.

rich would read `[old]` in a cell as markup, and `:cat:` as a picture of one.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["check_writable", "plain_console", "print_table"]


def plain_console(*, stderr: bool = False) -> "Console":
    """A console that takes every text as it is."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def print_table(table: "Table") -> None:
    plain_console().print(table)


def check_writable(file: Path, *endings: str) -> None:
    """Refuse a file that could not be written in the end: better told before the work is done."""
    if file.suffix.lower() not in endings:
        raise ValueError(f"{file}: must end in {endings[0]}, since that is what is written")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{file}: there is no folder {file.parent}")
    if file.is_dir():
        raise ValueError(f"{file}: is a folder")
