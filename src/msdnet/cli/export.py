"""`msdnet export`: from a training run to a bundle."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["export"]

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished training.")]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the bundle; it must not be there yet.")]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="What the model is called. Default: the folder's name.")]
Data = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where the data are now, if they have moved.")]
HeldOut = Annotated[bool, typer.Option(help="Look at the held-out images; without them the bundle can keep no budget.")]
Half = Annotated[bool, typer.Option("--half", help="Store the weights in half precision.")]
Calibrate = Annotated[bool, typer.Option("--calibrate", help="Fit a temperature for each exit on the held-out images.")]
Test = Annotated[bool, typer.Option("--test", help="Look at the test images, and write the accuracies down.")]
Averaging = Annotated[
    float | None,
    typer.Option(
        metavar="POWER", help="Answer with the average of the exits so far; exit j counts j to this power: 0, 0.5, 1."
    ),
]
Device = Annotated[str | None, typer.Option(metavar="DEVICE", help="cpu, cuda, ... Default: a GPU if there is one.")]


def export(
    run: Run,
    out: Out,
    name: Name = None,
    data: Data = None,
    held_out: HeldOut = True,
    half: Half = False,
    calibrate: Calibrate = False,
    test: Test = False,
    averaging: Averaging = None,
    device: Device = None,
) -> None:
    """Make a bundle of a trained network: its stages as ONNX graphs, its weights, and what budgets need.

    Example: msdnet export runs/first --out bundles/first
    """
    from msdnet.export import export_run

    bundle = export_run(
        run,
        out,
        name=name,
        root=data,
        held_out=held_out,
        half=half,
        calibrate=calibrate,
        test=test,
        averaging=averaging,
        device=device,
    )
    manifest = bundle.manifest
    typer.echo(
        f"{bundle.folder}: {manifest.exit_count} stages, {bundle.size / 2**20:.1f} MiB; "
        "ONNX Runtime and PyTorch agree at every exit"
    )
    if manifest.held_out is not None:
        shares = " ".join(f"{100 * accuracy:.1f}" for accuracy in manifest.held_out.accuracy)
        typer.echo(f"held-out accuracy of the exits, on {manifest.held_out.images:,} images: {shares} %")
