"""`msdnet reproduce`: the paper's experiments."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from msdnet.data import DataConfig
    from msdnet.reproduce import Experiment, Failure, Workshop

__all__ = ["reproduce"]

Name = Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]", help="One of --list.")]
ListAll = Annotated[bool, typer.Option("--list", help="List the experiments.")]
Plan = Annotated[bool, typer.Option("--plan", help="Say what would be trained, and how long it takes here.")]
Draw = Annotated[bool, typer.Option("--draw", help="Draw from the results that are there; train nothing.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="SYSTEM", help="Train and measure this alone; may be given several times.")
]
Data = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where the data are. Default: MSDNET_DATA, or else a download.")
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
    as_json: AsJson = False,
) -> None:
    """Repeat one of the paper's experiments: train what is missing, measure it, draw the figures.

    It can be stopped and started again at any time; what is done stays done.

    Example: msdnet reproduce anytime-cifar100 --plan
    """
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # streams that may run at once; CUDA reads it once
    from msdnet.files import CIFAR, find_classes
    from msdnet.reproduce import EXPERIMENTS, Workshop, find_experiment, measured_of
    from msdnet.training import Interrupted
    from msdnet.training.distributed import is_first

    if list_all or name is None:
        _list([find_experiment(known) for known in EXPERIMENTS], as_json)
        return
    changes = {"epochs": epochs, "batch_size": batch_size}
    experiment = find_experiment(name, **changes)
    if experiment.dataset not in CIFAR and data is not None:  # a folder, which may have other classes than ImageNet's
        experiment = find_experiment(name, **changes, classes=len(find_classes(data)))
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
        return
    try:
        failures = [] if draw else _carry_out(experiment, workshop, only or [])
    except Interrupted as stop:
        typer.echo(f"msdnet: {stop}", err=True)
        raise typer.Exit(128 + stop.signal_number) from None
    if is_first():  # of several processes under torchrun
        written = _draw(experiment, workshop, figures or results / "figures", failures, as_json)
        if draw and not written:
            raise ValueError(f"{results}: nothing is measured yet that could be drawn")
    if failures:
        raise typer.Exit(1)


def _data_config(dataset: str, data: Path | None, subset: int | None, *, needed: bool) -> "DataConfig":
    from msdnet.data import DataConfig
    from msdnet.files import CIFAR, FOLDER

    root = None if data is None else str(data)
    if dataset in CIFAR:
        return DataConfig(dataset=dataset, root=root, subset=subset)
    return DataConfig(dataset=FOLDER, root=root if needed or root else ".", subset=subset)


def _list(experiments: list["Experiment"], as_json: bool) -> None:
    if as_json:
        known = [
            {"name": one.name, "title": one.title, "systems": [s.name for s in one.subjects]} for one in experiments
        ]
        typer.echo(json.dumps(known))
        return
    for one in experiments:
        typer.echo(f"{one.name:<20} {one.title} ({len(one.subjects)} systems)")


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
    from msdnet.reproduce import CLAIMS, draw, figure_table, judge, measured_of

    measured = measured_of(experiment, workshop)
    claims = [(claim, judge(claim, measured)) for claim in CLAIMS if claim.experiment == experiment.name]
    written = draw(experiment, workshop, folder)
    missing = [subject.name for subject in experiment.subjects if subject.name not in measured]
    if as_json:
        curves = {
            figure.name: [{"curve": curve.name, "points": places} for curve, places in figure.places(measured)]
            for figure in experiment.figures
        }
        told = {
            "figures": curves,
            "claims": [{"says": claim.says, "finding": found and found._asdict()} for claim, found in claims],
            "files": [str(path) for path in written],
            "missing": missing,
            "failures": [asdict(failure) for failure in failures],
        }
        typer.echo(json.dumps(told))
        return written
    for figure in experiment.figures:
        typer.echo(f"\n{figure.title}\n({figure.x_name}: {figure.y_name})")
        for curve, points in figure_table(figure, measured):
            typer.echo(f"  {curve:<34} {points}")
    for claim, found in claims:
        verdict = f"{'holds' if found.holds else 'does not hold'}: {found.measured}" if found else claim.otherwise
        typer.echo(f"\nThe paper: {claim.says}\n  {verdict}")
    typer.echo(f"\nwrote {', '.join(str(path) for path in written) or 'no figure: nothing is measured that it shows'}")
    if missing:
        typer.echo(f"not measured yet: {', '.join(missing)}")
    return written
