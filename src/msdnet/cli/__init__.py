"""The `msdnet` command. What a command needs beyond the small install is imported inside it."""

import io
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from msdnet.cli.budget import budget, profile
from msdnet.cli.classify import classify
from msdnet.cli.demo import demo
from msdnet.cli.export import export
from msdnet.cli.models import evaluate, models
from msdnet.cli.networks import presets, show
from msdnet.cli.report import report
from msdnet.cli.reproduce import reproduce
from msdnet.cli.train import train
from msdnet.errors import text_of
from msdnet.extras import needed_for
from msdnet.machine import local_rank
from msdnet.version import VERSION

__all__ = ["app", "main"]

USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # typer has no name of its own for it
# torch has no class of its own for it
_READER_ENDED = re.compile(r"(?:DataLoader worker .*|Pin memory thread) (?:is killed by signal|exited unexpectedly)")
PATIENCE = 10  # seconds: torchrun may look after its processes every 5

app = typer.Typer(
    help="Image classification under a budget: one network with many exits.",
    epilog="With MSDNET_TRACEBACK=1 in the environment, an error tells where it came from.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help comes in a third of the time
)
for command in (demo, classify, budget, profile, models, evaluate, report, presets, show, train, export, reproduce):
    app.command()(command)


def main() -> None:
    """Run the command line; an error that a user can mend is one line on stderr, unless MSDNET_TRACEBACK is set."""
    _escape_what_cannot_be_written()
    warnings.showwarning = _warn
    # Odd metadata of an image are no matter to its pixels. Here, once: this process is the command's own.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    try:
        with needed_for("this command"):
            _run()
    except ModuleNotFoundError:
        raise  # no extra brings it: not for a user to mend
    except (OSError, ValueError, TypeError, ImportError, ArithmeticError) as error:
        if os.environ.get("MSDNET_TRACEBACK"):
            raise
        _fail(text_of(error))
    except RuntimeError as error:
        if os.environ.get("MSDNET_TRACEBACK") or not _READER_ENDED.match(str(error)):
            raise
        _fail(
            f"a process that reads images has ended: {str(error).strip().rstrip('.')}; if memory was short, a training "
            "with fewer takes less (--workers); what it has saved is not lost (train --resume)"
        )


def _run() -> None:
    """Of several processes under torchrun, the first on a machine speaks at once; see `_after_the_first`."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or local_rank() == 0:
        app()
    else:
        with _after_the_first():
            sys.exit(app(standalone_mode=False))  # errors of usage are raised, and not told at once


@contextmanager
def _after_the_first() -> Iterator[None]:
    """What went wrong here has most likely gone wrong in the first process as well, and torchrun ends this one while it
    waits. A fault of its own is told in the end.
    """
    try:
        yield
    except Exception as error:
        time.sleep(PATIENCE)
        if isinstance(error, USAGE_ERROR):
            error.show()
            sys.exit(error.exit_code)
        raise


def _escape_what_cannot_be_written() -> None:
    """The encoding of a pipe or a file may lack a letter of some name, which is no reason to lose all answers."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"msdnet: {message}", err=True)


def _fail(message: str) -> NoReturn:
    typer.echo(f"msdnet: {message}", err=True)
    sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"msdnet {VERSION}")
        raise typer.Exit


def _import(module: str | None) -> str | None:
    """As `python -m` finds it: in this folder, or among what is installed."""
    if module is None:
        return None
    sys.path.insert(0, str(Path.cwd()))
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it was found, and what it needs was not
        hint = f"; did you mean {module.removesuffix('.py')}?" if module.endswith(".py") else ""
        raise ValueError(f"--import {module}: no module of this name is in this folder, or installed{hint}") from error
    return module


@app.callback()
def _options(
    module: Annotated[
        str | None,
        typer.Option(
            "--import", metavar="MODULE", callback=_import, help="Import this module, which defines your own network."
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself: each is a callback."""
