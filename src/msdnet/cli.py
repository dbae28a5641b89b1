"""The `msdnet` command. What a command needs beyond the small install is imported inside it."""

from pathlib import Path
from typing import Annotated

import typer

import msdnet

__all__ = ["app", "main"]

app = typer.Typer(
    help="Image classification under a budget: one network with many exits.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an error that a user can mend is one line on stderr."""
    try:
        app()
    except (ValueError, TypeError, ImportError, OSError) as error:
        typer.echo(f"msdnet: {error}", err=True)
        raise SystemExit(1) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"msdnet {msdnet.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def presets() -> None:
    """List the networks that are known by name.

    Example: msdnet presets
    """
    from rich.console import Console
    from rich.table import Table

    table = Table("preset", "layers", "scales", "classes", "exits at layers", box=None)
    for name, config in msdnet.PRESETS.items():
        exits = " ".join(str(layer) for layer in config.exit_layers)
        table.add_row(name, str(config.depth), str(config.scales), str(config.classes), exits)
    Console().print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A preset; see `msdnet presets`.")],
    svg: Annotated[Path | None, typer.Option(help="Also draw the grid into this SVG file.")] = None,
) -> None:
    """Show a network's grid: which stage computes which cell (layer, scale), and where the exits are.

    Example: msdnet show cifar_anytime --svg grid.svg
    """
    from msdnet.drawing import draw_svg, draw_text
    from msdnet.plan import Grid

    grid = Grid(msdnet.preset_config(name))
    typer.echo(f"{name}: {len(grid.exits)} exits, {grid.config.depth} layers, {grid.config.scales} scales\n")
    typer.echo(draw_text(grid))
    if svg is not None:
        svg.write_text(draw_svg(grid, title=name))
        typer.echo(f"\nwrote {svg}")
