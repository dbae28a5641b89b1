"""Tables of plain text: what is printed is what a file or a class is called.

rich would read `[old]` in a cell as markup, and `:cat:` as a picture of one.
"""

import os
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["bar", "plain_console", "print_table"]

ENDLESS = 10_000  # columns


def plain_console(*, stderr: bool = False) -> "Console":
    """A console that takes every text as it is; in a file or a pipe a line is as long as it needs to be."""
    from rich.console import Console

    has_width = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    width, height = (None, None) if has_width else (ENDLESS, 25)  # rich wants both, or finds its own
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width, height=height)


def bar(length: int) -> str:
    """A line of blocks, or of what is drawn instead where these cannot be written."""
    block = "\u2588"
    try:
        block.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        block = "#"
    return block * length


def print_table(table: "Table") -> None:
    """Without the spaces that would fill the last column."""
    console = plain_console()
    with console.capture() as printed:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))
