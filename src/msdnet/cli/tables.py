"""Tables of plain text: what is printed is what a file or a class is called.

rich would read `[old]` in a cell as markup, and `:cat:` as a picture of one.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["plain_console", "print_table"]


def plain_console(*, stderr: bool = False) -> "Console":
    """A console that takes every text as it is."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def print_table(table: "Table") -> None:
    plain_console().print(table)
