"""Commands that list and draw networks; only counting what a network costs needs torch."""

import json
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from msdnet.amounts import counted
from msdnet.bundle import MANIFEST
from msdnet.cli.inputs import read_network
from msdnet.cli.names import complete_networks
from msdnet.cli.options import Json
from msdnet.cli.tables import print_table
from msdnet.config import MSDNetConfig, NetworkConfig
from msdnet.extras import needed_for
from msdnet.naming import did_you_mean
from msdnet.places import check_svg_writable
from msdnet.presets import PRESETS, network_config
from msdnet.systems import SYSTEMS
from msdnet.writing import write_output

if TYPE_CHECKING:
    from msdnet.bundle import Manifest

__all__ = ["presets", "show"]

Name = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="A preset (`msdnet presets`), a .json file with a network's config, a model (`msdnet models`), or a "
        "bundle's folder.",
        autocompletion=complete_networks,
    ),
]
Svg = Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the grid into this SVG file.")]
ImageSize = Annotated[
    int | None,
    typer.Option(
        metavar="PIXELS",
        min=1,
        help="Also count what each exit of a network costs for images this wide; needs torch.",
    ),
]


class _Counts(NamedTuple):
    """Of a network, for images of one size."""

    costs: Sequence[int]
    whole_costs: Sequence[int]
    parameters: int


def presets(as_json: Json = False) -> None:
    """List the networks that are known by name.

    Example: msdnet presets
    """
    from rich.table import Column, Table

    if as_json:
        networks = {**PRESETS, **SYSTEMS}
        typer.echo(json.dumps([_facts(name, config) for name, config in networks.items()], indent=2))
        return
    name_column, exits_column = Column("preset", no_wrap=True), Column("exits at layers", overflow="fold")
    table = Table(name_column, "layers", "scales", "classes", exits_column, box=None)
    for name, config in PRESETS.items():
        exits = " ".join(str(layer) for layer in config.exit_layers)
        table.add_row(name, str(config.depth), str(config.scales), str(config.classes), exits)
    print_table(table)
    typer.echo(f"\nother networks: {', '.join(SYSTEMS)}")


def _facts(name: str, config: NetworkConfig) -> dict[str, Any]:
    return {
        "name": name,
        "kind": config.kind,
        "layers": config.depth,
        "scales": config.scales if isinstance(config, MSDNetConfig) else None,
        "classes": config.classes,
        "exits": list(config.exit_layers),
    }


def show(name: Name, svg: Svg = None, image_size: ImageSize = None) -> None:
    """Show a network or a model: its grid, exits and classes.

    The grid shows which stage computes which cell (layer, scale), and where the exits are; only MSDNets have one. For a
    model, also the cost and accuracy of each exit, and the classes.

    Example: msdnet show cifar_anytime --image-size 32 --svg grid.svg
    """
    from msdnet.models import find_bundle, model_names

    if svg is not None:
        check_svg_writable(svg)
    is_network = name in PRESETS or name in SYSTEMS
    path = Path(name)
    is_folder = path.is_dir() or not (path.name == name or path.suffix == ".json" or path.exists())  # or should be one
    is_model = name in model_names() or (path / MANIFEST).is_file() or (is_folder and not is_network)
    manifest = find_bundle(name).manifest if is_model else None
    if manifest is not None and image_size not in (None, manifest.images.side):
        raise ValueError(f"the model {name} has images of {manifest.images.side} pixels; --image-size is for networks")
    own = read_network(name)
    if manifest is None and own == name and not is_network:
        known = [*PRESETS, *SYSTEMS, *model_names()]
        raise ValueError(f"no network, model or folder is called {name!r}; {did_you_mean(name, known)}")
    config = network_config(own) if manifest is None else manifest.network
    if svg is not None and not isinstance(config, MSDNetConfig):
        raise ValueError(f"{name}: --svg draws the grid of an MSDNet, and this network ({config.kind}) has none")
    # Before anything is written: the size may be too small, or torch may be missing.
    counts = None if manifest is not None or image_size is None else _count(config, image_size)
    if isinstance(config, MSDNetConfig):
        _show_grid(name, config, svg)
    else:
        exits = len(config.exit_layers) if manifest is None else manifest.exit_count
        typer.echo(f"{name}: {config.kind}, {counted(exits, 'exit')}")
    if manifest is not None:
        typer.echo()
        _print_exits(manifest)
        typer.echo("\n" + textwrap.fill(f"classes: {', '.join(manifest.classes)}", shutil.get_terminal_size().columns))
    elif counts is not None:
        typer.echo()
        _print_of_exits(counts.costs, counts.whole_costs, {})
        size = f"images of {image_size} x {image_size}, {config.classes} classes"
        typer.echo(f"\n{counts.parameters / 1e6:.2f} M parameters; {size}")
    if svg is not None:
        typer.echo(f"\nwrote {svg}")


def _show_grid(name: str, config: MSDNetConfig, svg: Path | None) -> None:
    from msdnet.drawing import draw_svg, draw_text
    from msdnet.plan import Grid

    grid = Grid(config)
    if svg is not None:
        write_output(svg, draw_svg(grid, title=name).encode())
    typer.echo(f"{name}: {counted(len(grid.exits), 'exit')}, {config.depth} layers, {config.scales} scales\n")
    typer.echo(draw_text(grid, shutil.get_terminal_size().columns))


def _count(config: NetworkConfig, image_size: int) -> _Counts:
    with needed_for("--image-size"):
        from msdnet.networks import outline

        network = outline(config)
    return _Counts(network.costs(image_size), network.costs(image_size, lazy=False), network.parameter_count)


def _print_exits(manifest: "Manifest") -> None:
    accuracies = {images: found.accuracy for images, found in manifest.measured.items()}
    _print_of_exits(manifest.costs, manifest.whole_costs, accuracies)


def _print_of_exits(
    costs: Sequence[int], whole_costs: Sequence[int], accuracies: Mapping[str, Sequence[float]]
) -> None:
    from rich.table import Table

    table = Table("exit", "multiply-adds", "whole layers", *(f"{name} accuracy" for name in accuracies), box=None)
    for exit, (cost, whole, *right) in enumerate(zip(costs, whole_costs, *accuracies.values(), strict=True), start=1):
        shares = [f"{100 * share:.2f}%" for share in right]
        table.add_row(str(exit), f"{cost / 1e6:,.2f} M", f"{whole / 1e6:,.2f} M", *shares)
    print_table(table)
