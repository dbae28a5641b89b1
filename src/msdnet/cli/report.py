"""`msdnet report`: a report on a model, as one HTML file."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msdnet.bundle import is_run
from msdnet.cli.inputs import SAMPLES, cifar_of, open_images, refuse_for_pixels
from msdnet.cli.names import complete_models
from msdnet.cli.options import Classes, Dataset, ReportFile, SkipUnreadable, refuse_useless
from msdnet.extras import install
from msdnet.places import check_file_writable, check_folder_writable

if TYPE_CHECKING:
    from msdnet.pixels import Unreadable

__all__ = ["report"]

Target = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|RUN",
        help="A model of the package, or the folder of a bundle or of a training run.",
        autocompletion=complete_models,
    ),
]
JudgedOn = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Labelled images to measure it on; `samples` are those of the package. Default: the held-out images.",
    ),
]
Figures = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="A folder for the charts as SVG, and as PNG with the extra `figures`."),
]


def report(
    target: Target,
    out: ReportFile = Path("report.html"),
    data: JudgedOn = None,
    dataset: Dataset = None,
    classes: Classes = None,
    figures: Figures = None,
    skip_unreadable: SkipUnreadable = False,
) -> None:
    """Write a report on a model, with charts, as one HTML file.

    It shows accuracy against cost and time, where images leave, how reliable the confidences are, hard classes, a
    gallery, training curves and provenance.

    Example: msdnet report bundles/first --data cifar/ --out report.html
    """
    import msdnet
    from msdnet.models import is_model
    from msdnet.report import write_report

    check_file_writable(out)
    if figures is not None:
        check_folder_writable(figures)
    run = Path(target) if is_run(Path(target)) and not is_model(target) else None
    unreadable: Unreadable = "skip" if skip_unreadable else "fatal"
    reads_files = run is not None and cifar_of(run) is None  # those that it held out
    useless = {} if reads_files else {"--skip-unreadable": skip_unreadable}
    if data is None:
        refuse_useless("a report without --data", {"--dataset": dataset, **useless})
    with tempfile.TemporaryDirectory() as scratch:
        bundle = target if run is None else _exported(run, data, Path(scratch), skip_unreadable)
        model = msdnet.load(bundle)
        images = None if data is None else open_images([model], data, dataset, "test")
        if images is not None:
            refuse_for_pixels(images, useless)
        written = write_report(
            model, out, data=images, run=run, classes=classes or (), figures=figures, unreadable=unreadable
        )
    for path in written:
        typer.echo(f"wrote {path}")
    if figures is not None and not any(path.suffix == ".png" for path in written):
        typer.echo(f"for PNG as well: {install('figures')}")


def _exported(run: Path, data: str | None, scratch: Path, skip_unreadable: bool) -> Path:
    """The run's own held-out images are where they were, or else, if these have moved, in `data`.

    Unreadable images end it unless they were skipped in training, or are to be now.
    """
    from msdnet.data import UnreadableImageError
    from msdnet.export import export_run
    from msdnet.training.record import read_run

    def export(root: str | None) -> Path:
        out = scratch / (run.resolve().name or "run")
        return export_run(run, out, root=root, unreadable="skip" if skip_unreadable else None).folder

    if data is None or data == SAMPLES:
        return export(None)
    if read_run(run)["data"].get("root") is None:  # it was downloaded, and may not be here
        return export(data)
    try:
        return export(None)
    except UnreadableImageError:
        raise
    except (FileNotFoundError, ValueError):  # its images are not where they were
        return export(data)
