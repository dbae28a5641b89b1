"""`msdnet export`: from a training run to a bundle."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from msdnet.amounts import counted
from msdnet.cli.inputs import cifar_of
from msdnet.cli.options import Device, SkipUnreadable, Test, refuse_useless
from msdnet.cli.tables import print_table

if TYPE_CHECKING:
    from msdnet.bundle import Measured

__all__ = ["export"]

BEST = "best"
ENOUGH = 200  # held-out images, for thresholds that are more than a guess

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished training.")]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the bundle; it must not be there yet.")]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="What the model is called. Default: the folder's name.")]
Moved = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where the data are now, if they have moved.")]
HeldOut = Annotated[
    bool, typer.Option(help="Evaluate on the held-out images. Without this the bundle cannot be used with budgets.")
]
Half = Annotated[bool, typer.Option("--half", help="Store the weights in half precision.")]
Calibrate = Annotated[bool, typer.Option("--calibrate", help="Fit a temperature for each exit on the held-out images.")]
Averaging = Annotated[
    str | None,
    typer.Option(
        metavar="POWER|best",
        help="Answer with the average of the exits so far, exit j weighted by j to this power: 0, 0.5, 1. Or best: "
        "compare several powers, and no averaging, on the held-out images.",
    ),
]


def export(
    run: Run,
    out: Out,
    name: Name = None,
    data: Moved = None,
    held_out: HeldOut = True,
    half: Half = False,
    calibrate: Calibrate = False,
    test: Test = False,
    averaging: Averaging = None,
    skip_unreadable: SkipUnreadable = False,
    device: Device = None,
) -> None:
    """Make a bundle of a trained network.

    It has the stages as ONNX graphs, the weights, and the held-out confidences that budgets are fitted to.

    Example: msdnet export runs/first --out bundles/first
    """
    from msdnet.export import export_run

    _check_useful(run, data, skip_unreadable, looks=held_out or test)
    bundle = export_run(
        run,
        out,
        name=name,
        root=data,
        held_out=held_out,
        half=half,
        calibrate=calibrate,
        test=test,
        averaging=None if averaging is None else _power(averaging),
        unreadable="skip" if skip_unreadable else None,
        device=device,
    )
    manifest = bundle.manifest
    typer.echo(
        f"{out}: {counted(manifest.exit_count, 'stage')}, {bundle.size / 2**20:.1f} MiB; "
        "ONNX Runtime and PyTorch agree at every exit"
    )
    if averaging == BEST:
        _print_compared(manifest.provenance["averaging"])
    if manifest.held_out is not None:
        typer.echo(_shares("held-out", manifest.held_out, _counted(run, manifest.held_out.images)))
        if manifest.held_out.images < ENOUGH:
            typer.echo("few held-out images to fit thresholds to; a few hundred make them more reliable")
    if manifest.test is not None:
        typer.echo(_shares("test", manifest.test, f"{manifest.test.images:,} images"))
    typer.echo(f"classify with it: msdnet classify PICTURES --model {shlex.quote(str(out))}")


def _check_useful(run: Path, data: Path | None, skip_unreadable: bool, *, looks: bool) -> None:
    if not looks:
        reads = {"--data": data, "--skip-unreadable": skip_unreadable}
        refuse_useless("a bundle for which no images are looked at (--no-held-out)", reads)
    elif cifar := cifar_of(run):
        refuse_useless(f"a run on {cifar}", {"--skip-unreadable": skip_unreadable})


def _shares(part: str, measured: "Measured", images: str) -> str:
    return f"{part} accuracy of the exits, on {images}: {' '.join(f'{100 * a:.1f}' for a in measured.accuracy)}%"


def _counted(run: Path, read: int) -> str:
    from msdnet.training.record import read_run

    unread = read_run(run)["images"]["held_out"] - read
    return f"{read:,} images" + (f" ({unread:,} more could not be read)" if unread else "")


def _power(text: str) -> float | Literal["best"]:
    try:
        return "best" if text == BEST else float(text)
    except ValueError:
        raise ValueError(f"--averaging must be best, or a power like 0, 0.5 or 1, got {text!r}") from None


def _print_compared(compared: dict[str, Any]) -> None:
    from rich.table import Column, Table

    exits = range(1, len(compared["held_out_accuracy"]["none"]) + 1)
    columns = [Column(str(name), justify="right") for name in (*exits, "mean")]
    table = Table("averaging", *columns, "", box=None, padding=(0, 1, 0, 0), pad_edge=False)  # 11 exits in 80 columns
    for power, accuracy in compared["held_out_accuracy"].items():
        shares = [f"{100 * share:.1f}" for share in (*accuracy, sum(accuracy) / len(accuracy))]
        table.add_row(power, *shares, "best" if power == compared["chosen"] else "")
    typer.echo("held-out accuracy of each exit, in %:")
    print_table(table)
