"""The `msdnet` command. What a command needs beyond the small install is imported inside it."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

import msdnet

if TYPE_CHECKING:
    from msdnet.training import Summary

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
    except ModuleNotFoundError as error:
        _fail(f"this command needs {error.name}: pip install 'msdnet[train]'")
    except (ValueError, TypeError, ImportError, OSError, ArithmeticError) as error:
        _fail(str(error))


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.echo(f"msdnet: {message}", err=True)
    sys.exit(code)


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


@app.command()
def train(
    recipe: Annotated[
        str | None, typer.Argument(help="paper, paper_imagenet, fast, or the path of a .toml file of your own.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data: CIFAR's binary files, or images by class. Default: MSDNET_DATA."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; it must not hold one yet.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="cifar10, cifar100 or folder. Default: what is found in --data, else cifar100.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(help="A preset or a config's .json file. Default: cifar_anytime, for larger images imagenet_4."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Train longer or shorter; the schedule moves along.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Other than the recipe's.")] = None,
    seed: Annotated[int, typer.Option(help="Weights, order of images and augmentation follow from it.")] = 0,
    subset: Annotated[int | None, typer.Option(help="Train on so many images only, for a quick try.")] = None,
    image_size: Annotated[int, typer.Option(help="Side of a folder's images as the network sees them.")] = 224,
    workers: Annotated[int | None, typer.Option(help="Processes that decode a folder's images.")] = None,
    skip_unreadable: Annotated[bool, typer.Option(help="Warn of unreadable images instead of stopping.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ... Default: a GPU if there is one.")] = None,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the network first: minutes, then faster.")
    ] = False,
    checkpoint_seconds: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = 60,
    test: Annotated[bool, typer.Option("--test", help="At the end, look at the test images once.")] = False,
) -> None:
    """Train a network, or go on with a training that was stopped.

    Example: msdnet train fast --data cifar/ --out runs/first
    """
    from msdnet import training
    from msdnet.data import DataConfig

    try:
        if resume is not None:
            if recipe is not None or out is not None:
                raise ValueError("--resume goes on as the run was started: give no recipe and no --out with it")
            summary = training.resume(
                resume, root=data, device=device, test=test, checkpoint_seconds=checkpoint_seconds
            )
        else:
            if recipe is None or out is None:
                raise ValueError("a recipe and --out are needed: msdnet train fast --data FOLDER --out runs/first")
            chosen = training.load_recipe(recipe)
            chosen = replace(chosen, batch_size=batch_size) if batch_size is not None else chosen
            config = DataConfig(
                dataset=dataset or DataConfig.dataset_at(data),
                root=None if data is None else str(data),
                subset=subset,
                crop_size=image_size,
                workers=workers,
                unreadable="skip" if skip_unreadable else "fatal",
            )
            summary = training.train(
                chosen.lasting(epochs) if epochs is not None else chosen,
                data=config,
                network=_named_network(network),
                out=out,
                seed=seed,
                device=device,
                compiled=compiled,
                test=test,
                checkpoint_seconds=checkpoint_seconds,
            )
    except training.Interrupted as stop:
        _fail(str(stop), code=128 + stop.signal_number)
    _print_summary(summary)


def _named_network(name: str | None) -> str | msdnet.NetworkConfig | None:
    """A preset's name as it is, or the config in a JSON file."""
    if name is None or not name.endswith(".json"):
        return name
    return msdnet.NetworkConfig.from_json(Path(name).read_text())


def _print_summary(summary: "Summary") -> None:
    """A table of the exits: what each costs and how often it is right."""
    from rich.console import Console
    from rich.table import Table

    table = Table("exit", "multiply-adds", "held-out", *(["test"] if summary.test_accuracy else []), box=None)
    for k, (cost, accuracy) in enumerate(zip(summary.costs, summary.held_out_accuracy, strict=True)):
        test = [f"{100 * summary.test_accuracy[k]:.2f}%"] if summary.test_accuracy else []
        table.add_row(str(k + 1), f"{cost / 1e6:,.1f} M", f"{100 * accuracy:.2f}%", *test)
    Console().print(table)
    typer.echo(
        f"{summary.epochs} epochs in {summary.seconds:,.0f} s, {summary.images_per_second:,.0f} images/s; "
        f"the network is in {Path(summary.folder) / 'model.safetensors'}"
    )
