"""Commands that list and draw networks; none of them needs torch."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from msdnet.presets import PRESETS, preset_config
from msdnet.systems import SYSTEMS

__all__ = ["presets", "show"]


def presets() -> None:
    """List the networks that are known by name.

    Example: msdnet presets
    """
    from rich.console import Console
    from rich.table import Column, Table

    name_column, exits_column = Column("preset", no_wrap=True), Column("exits at layers", overflow="fold")
    table = Table(name_column, "layers", "scales", "classes", exits_column, box=None)
    for name, config in PRESETS.items():
        exits = " ".join(str(layer) for layer in config.exit_layers)
        table.add_row(name, str(config.depth), str(config.scales), str(config.classes), exits)
    Console().print(table)
    typer.echo(f"\nother networks: {', '.join(SYSTEMS)}")


def show(
    name: Annotated[str, typer.Argument(help="A preset; see `msdnet presets`.")],
    svg: Annotated[Path | None, typer.Option(help="Also draw the grid into this SVG file.")] = None,
) -> None:
    """Show a network's grid: which stage computes which cell (layer, scale), and where the exits are.

    Example: msdnet show cifar_anytime --svg grid.svg
    """
    from msdnet.drawing import draw_svg, draw_text
    from msdnet.plan import Grid

    grid = Grid(preset_config(name))
    if svg is not None:
        svg.write_text(draw_svg(grid, title=name))
    typer.echo(f"{name}: {len(grid.exits)} exits, {grid.config.depth} layers, {grid.config.scales} scales\n")
    typer.echo(draw_text(grid, shutil.get_terminal_size().columns))
    if svg is not None:
        typer.echo(f"\nwrote {svg}")
