"""`msdnet reproduce`: the paper's experiments."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msdnet.cli.claims import claims_as_values, judged, show_claims
from msdnet.cli.gallery import plan_gallery, show_gallery

if TYPE_CHECKING:
    from msdnet.data import DataConfig
    from msdnet.reproduce import Experiment, Failure, Workshop

__all__ = ["reproduce"]

_WRITTEN = {"batch_size": "batch-size", "classes": "class"}  # options that are written in another way than here

Name = Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]", help="One of --list.")]
ListAll = Annotated[bool, typer.Option("--list", help="List the experiments.")]
Plan = Annotated[bool, typer.Option("--plan", help="Say what would be trained, and how long it takes here.")]
Draw = Annotated[bool, typer.Option("--draw", help="Draw from the results that are there; train nothing.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="SYSTEM", help="Train and measure this alone; may be given several times.")
]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where the data are. Default: MSDNET_DATA, or else a download; for the gallery the images of the package.",
    ),
]
Results = Annotated[Path, typer.Option(metavar="FOLDER", help="For results: a file for each system.")]
Runs = Annotated[Path, typer.Option(metavar="FOLDER", help="For trainings, which can be stopped and go on.")]
Figures = Annotated[Path | None, typer.Option(metavar="FOLDER", help="For figures. Default: figures/ among results.")]
AtOnce = Annotated[int, typer.Option(metavar="N", min=1, help="Networks that are trained side by side on a GPU.")]
Epochs = Annotated[
    int | None, typer.Option(metavar="N", help="Other than the experiment's; such results do not mix with others.")
]
BatchSize = Annotated[
    int | None, typer.Option(metavar="N", help="Other than the recipe's; the learning rate follows. Not mixed either.")
]
Subset = Annotated[int | None, typer.Option(metavar="N", help="Train on so many images only, for a quick try.")]
Device = Annotated[
    str | None, typer.Option(metavar="DEVICE", help="cpu, cuda, cuda:1. Default: a GPU if there is one.")
]
ModelName = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="For the gallery. Default: cifar10-anytime.")
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        metavar="NAME",
        help="A class for the gallery; may be given several times. Default: those with most hard images.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]


def reproduce(
    name: Name = None,
    list_all: ListAll = False,
    plan: Plan = False,
    draw: Draw = False,
    only: Only = None,
    data: Data = None,
    results: Results = Path("results/reproduction"),
    runs: Runs = Path("runs/reproduction"),
    figures: Figures = None,
    at_once: AtOnce = 1,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    subset: Subset = None,
    device: Device = None,
    model: ModelName = None,
    classes: Classes = None,
    as_json: AsJson = False,
) -> None:
    """Repeat one of the paper's experiments: train what is missing, measure it, draw the figures.

    It can be stopped and started again at any time; what is done stays done.

    Example: msdnet reproduce anytime-cifar100 --plan
    """
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # streams that may run at once; CUDA reads it once
    from msdnet.reproduce import GALLERY, Workshop, measured_of

    if list_all or name is None:
        _list(as_json)
        return
    drawn = figures or results / "figures"
    if name == GALLERY:
        _refuse(name, only=only, epochs=epochs, batch_size=batch_size, subset=subset, device=device)
        if plan:
            plan_gallery(model, as_json)
        else:
            show_gallery(model, data, classes or [], results=results, figures=drawn, draw=draw, as_json=as_json)
        return
    _refuse(name, model=model, classes=classes)
    experiment = _find(name, data, epochs, batch_size)
    workshop = Workshop(
        _data_config(experiment.dataset, data, subset, needed=not (plan or draw)),
        results,
        runs,
        device=device,
        at_once=at_once,
        say=lambda text: typer.echo(text, err=as_json),
        name=experiment.dataset,
    )
    measured_of(experiment, workshop)  # what cannot be drawn beside the rest is better told before hours of training
    if plan:
        _plan(experiment, workshop, as_json)
    else:
        _reproduce(experiment, workshop, only or [], drawn, draw=draw, as_json=as_json)


def _refuse(name: str, **options: object) -> None:
    """What is of no use for an experiment is not passed over in silence."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"--{_WRITTEN.get(option, option)} is of no use for {name}")


def _find(name: str, data: Path | None, epochs: int | None, batch_size: int | None) -> "Experiment":
    from msdnet.files import CIFAR, find_classes
    from msdnet.reproduce import find_experiment

    found = find_experiment(name, epochs=epochs, batch_size=batch_size)
    if found.dataset in CIFAR or data is None:
        return found
    # A folder, which may have other classes than ImageNet's.
    return find_experiment(name, epochs=epochs, batch_size=batch_size, classes=len(find_classes(data)))


def _reproduce(
    experiment: "Experiment", workshop: "Workshop", only: list[str], figures: Path, *, draw: bool, as_json: bool
) -> None:
    from msdnet.training import Interrupted
    from msdnet.training.distributed import is_first

    try:
        failures = [] if draw else _carry_out(experiment, workshop, only)
    except Interrupted as stop:
        typer.echo(f"msdnet: {stop}", err=True)
        raise typer.Exit(128 + stop.signal_number) from None
    if is_first():  # of several processes under torchrun
        written = _draw(experiment, workshop, figures, failures, as_json)
        if draw and not written:
            raise ValueError(f"{workshop.results}: nothing is measured yet that could be drawn")
    if failures:
        raise typer.Exit(1)


def _data_config(dataset: str, data: Path | None, subset: int | None, *, needed: bool) -> "DataConfig":
    from msdnet.data import DataConfig
    from msdnet.files import CIFAR, FOLDER

    root = None if data is None else str(data)
    if dataset in CIFAR:
        return DataConfig(dataset=dataset, root=root, subset=subset)
    return DataConfig(dataset=FOLDER, root=root if needed or root else ".", subset=subset)


def _list(as_json: bool) -> None:
    from msdnet.reproduce import EXPERIMENTS, GALLERY, GALLERY_TITLE, find_experiment

    experiments = [find_experiment(name) for name in EXPERIMENTS]
    known = [(one.name, one.title, [system.name for system in one.subjects]) for one in experiments]
    known.append((GALLERY, GALLERY_TITLE, []))
    if as_json:
        typer.echo(json.dumps([{"name": name, "title": title, "systems": systems} for name, title, systems in known]))
        return
    for name, title, systems in known:
        typer.echo(f"{name:<20} {title} ({f'{len(systems)} systems' if systems else 'nothing to train'})")


def _plan(experiment: "Experiment", workshop: "Workshop", as_json: bool) -> None:
    from msdnet.reproduce import make_plan

    found = []
    for planned in make_plan(experiment, workshop):
        found.append(planned)
        took = f"{planned.seconds / 60:8.1f} min" if planned.seconds else ""
        typer.echo(f"{planned.name:<28} {planned.standing:<9}{took}", err=as_json)
    total = sum(planned.seconds for planned in found)
    if as_json:
        typer.echo(json.dumps({"networks": [asdict(planned) for planned in found], "seconds": total}))
    else:
        typer.echo(f"\nTo train: {total / 3600:.1f} h, one network after the other, on this machine.")


def _carry_out(experiment: "Experiment", workshop: "Workshop", only: list[str]) -> list["Failure"]:
    from msdnet.naming import did_you_mean
    from msdnet.reproduce.subjects import trained_for

    subjects = {one.name: one for subject in experiment.subjects for one in (*trained_for(subject), subject)}
    for wanted in only:
        if wanted not in subjects:
            raise ValueError(f"{experiment.name} has no system {wanted!r}; {did_you_mean(wanted, subjects)}")
    chosen = [subjects[wanted] for wanted in only] or list(experiment.subjects)
    failures = workshop.carry_out(chosen)
    for failure in failures:
        typer.echo(f"msdnet: {failure.name}: {failure.why}", err=True)
    return failures


def _draw(
    experiment: "Experiment", workshop: "Workshop", folder: Path, failures: list["Failure"], as_json: bool
) -> list[Path]:
    """Draw and tell what there is; which files were written."""
    from msdnet.reproduce import draw, figure_table, measured_of

    measured = measured_of(experiment, workshop)
    claims = judged(experiment.name, measured)
    written = draw(experiment, workshop, folder)
    missing = [subject.name for subject in experiment.subjects if subject.name not in measured]
    if as_json:
        curves = {
            figure.name: [{"curve": curve.name, "points": places} for curve, places in figure.places(measured)]
            for figure in experiment.figures
        }
        values = {
            "figures": curves,
            "claims": claims_as_values(claims),
            "files": [str(path) for path in written],
            "missing": missing,
            "failures": [asdict(failure) for failure in failures],
        }
        typer.echo(json.dumps(values))
        return written
    for figure in experiment.figures:
        typer.echo(f"\n{figure.title}\n({figure.x_name}: {figure.y_name})")
        for curve, points in figure_table(figure, measured):
            typer.echo(f"  {curve:<34} {points}")
    show_claims(claims)
    typer.echo(f"\nwrote {', '.join(str(path) for path in written) or 'no figure: nothing is measured that it shows'}")
    if missing:
        typer.echo(f"not measured yet: {', '.join(missing)}")
    return written
