"""Tables and progress bars of plain text: what is printed is what a file or a class is called.

rich would read `[old]` in a cell as markup, and `:cat:` as a picture of one.
"""

import os
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

__all__ = ["bar", "on_terminal", "plain_console", "print_table", "progress_bar"]

ENDLESS = 10_000  # columns


def plain_console(*, stderr: bool = False) -> "Console":
    """A console that takes every text as it is; in a file or a pipe a line is as long as it needs to be."""
    from rich.console import Console

    has_width = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    width, height = (None, None) if has_width else (ENDLESS, 25)  # rich wants both, or finds its own
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width, height=height)


def on_terminal() -> bool:
    """Whether somebody sees both what is printed and what is told beside it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))


def progress_bar(*, quiet: bool = False, counting: bool = False) -> "Progress":
    """On stderr and only on a terminal; gone at the end.

    - counting: nobody knows how much is to come, and the description tells how much is done
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console, said = plain_console(stderr=True), TextColumn("{task.description}", markup=False)
    rest = (BarColumn(), TimeElapsedColumn()) if counting else Progress.get_default_columns()[1:]
    return Progress(said, *rest, console=console, transient=True, disable=quiet or not console.is_terminal)


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
