"""`msdnet reproduce`: the paper's experiments."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msdnet.amounts import counted
from msdnet.cli.claims import claims_as_values, judged, show_claims
from msdnet.cli.gallery import show_gallery
from msdnet.cli.names import complete_models
from msdnet.cli.options import (
    BatchSize,
    Classes,
    Data,
    Device,
    Epochs,
    Json,
    SkipUnreadable,
    Subset,
    Workers,
    refuse_useless,
    typed,
)
from msdnet.machine import keep_freed_memory
from msdnet.naming import a_few
from msdnet.places import check_folder_writable, instead_of_folder

if TYPE_CHECKING:
    from msdnet.data import DataConfig
    from msdnet.reproduce import Experiment, Failure, Measurement, Workshop
    from msdnet.reproduce.subjects import Subject

__all__ = ["reproduce"]

Name = Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]", help="Name of an experiment; --list shows them.")]
ListAll = Annotated[bool, typer.Option("--list", help="List the experiments, or the systems of one.")]
Plan = Annotated[
    bool, typer.Option("--plan", help="Show what would be trained, and how long it takes on this machine.")
]
Draw = Annotated[bool, typer.Option("--draw", help="Draw from the results that are there; train nothing.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="SYSTEM", help="Train and measure this alone; may be given several times.")
]
Results = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for result files, one per system. Default: results/reproduction (a try: results/try).",
    ),
]
Runs = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for training runs, which can be resumed. Default: runs/reproduction (a try: runs/try).",
    ),
]
Figures = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder for figures. Default: figures/ in --results.")
]
AtOnce = Annotated[int, typer.Option(metavar="N", help="Networks to train side by side on a GPU.")]
GalleryModel = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="MODEL", help="For the gallery. Default: cifar10-anytime.", autocompletion=complete_models
    ),
]


# What lists, and what draws a gallery, trains nothing: these alone change something there.
OF_LISTS = ("name", "list_all", "as_json")
OF_GALLERIES = ("name", "plan", "draw", "data", "results", "figures", "model", "classes", "as_json")


def reproduce(
    context: typer.Context,
    name: Name = None,
    list_all: ListAll = False,
    plan: Plan = False,
    draw: Draw = False,
    only: Only = None,
    data: Data = None,
    results: Results = None,
    runs: Runs = None,
    figures: Figures = None,
    at_once: AtOnce = 1,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    subset: Subset = None,
    workers: Workers = None,
    skip_unreadable: SkipUnreadable = False,
    device: Device = None,
    model: GalleryModel = None,
    classes: Classes = None,
    as_json: Json = False,
) -> None:
    """Repeat one of the paper's experiments.

    Trains and measures what is missing, then draws the figures. It can be stopped at any time and started again.
    With --epochs, --batch-size or --subset it is a try, marked as such in all titles. The gallery trains nothing; by
    default its images are those of the package.

    Example: msdnet reproduce anytime-cifar100 --plan
    """
    _prepare_process()
    from msdnet.reproduce import GALLERY

    _check_mode(name, list_all, plan, draw, only)
    if list_all or name is None:
        refuse_useless("a list", typed(context, besides=OF_LISTS))
        _list(name, as_json)
        return
    epochs, batch_size = _unusual(name, epochs, batch_size)
    results, runs = _folders(results, runs, is_try={epochs, batch_size, subset} != {None})
    drawn = figures or results / "figures"
    if name == GALLERY:
        refuse_useless(name, typed(context, besides=OF_GALLERIES))
        show_gallery(model, data, classes or [], results=results, figures=drawn, plan=plan, draw=draw, as_json=as_json)
        return
    refuse_useless(name, {"--model": model, "--class": classes})
    experiment = _find(name, data, epochs, batch_size)
    chosen = _chosen(experiment, only or [])
    from msdnet.reproduce import Workshop  # with torch, which wrong names are not to wait for

    _check_places(device, None if plan else figures)
    named = _named(experiment.dataset, data)
    config = _data_config(experiment.dataset, named, subset, workers, skip_unreadable, needed=not (plan or draw))
    say = partial(typer.echo, err=as_json)
    workshop = Workshop(config, results, runs, device=device, at_once=at_once, say=say, name=experiment.dataset)
    experiment = experiment if named is None else experiment.on(workshop.opened.size("train"))
    experiment = _tried(experiment, epochs, batch_size, subset)
    measured = _measured(experiment, workshop, is_here=named is not None)
    do = _plan if plan else partial(_reproduce, known=measured, figures=drawn, draw=draw)
    do(experiment, workshop, chosen, as_json=as_json)


def _prepare_process() -> None:
    """For trainings: it is the command's own."""
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # streams that may run at once; CUDA reads it once
    keep_freed_memory()


def _check_mode(name: str | None, list_all: bool, plan: bool, draw: bool, only: list[str] | None) -> None:
    if list_all + plan + draw > 1:
        raise ValueError("--list, --plan and --draw: one of them")
    if name is None and (plan or draw):
        raise ValueError(f"{'--plan' if plan else '--draw'} needs an experiment: msdnet reproduce --list names them")
    if draw:
        refuse_useless("--draw, which draws all that there is", {"--only": only})


def _unusual(name: str, epochs: int | None, batch_size: int | None) -> tuple[int | None, int | None]:
    """What an experiment has anyway makes no try of it."""
    from msdnet.reproduce import EXPERIMENTS

    if name not in EXPERIMENTS or {epochs, batch_size} == {None}:
        return epochs, batch_size
    usual = EXPERIMENTS[name].whole_recipe
    return None if epochs == usual.epochs else epochs, None if batch_size == usual.batch_size else batch_size


def _folders(results: Path | None, runs: Path | None, *, is_try: bool) -> tuple[Path, Path]:
    place = "try" if is_try else "reproduction"
    return _folder(results, "results", place), _folder(runs, "runs", place)


def _folder(given: Path | None, kind: str, place: str) -> Path:
    """The one that was given, or the usual one; a file cannot be one."""
    folder = given or Path(kind, place)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{instead_of_folder(folder)} for {kind} (--{kind})")
    return folder


def _check_places(device: str | None, figures: Path | None) -> None:
    """Better now than after a training."""
    from msdnet.device import pick_device

    pick_device(device)
    if figures is not None:
        check_folder_writable(figures)


def _measured(experiment: "Experiment", workshop: "Workshop", *, is_here: bool) -> "dict[str, Measurement]":
    """What is known: that it cannot be drawn with the rest, or is of other images, is better told before training."""
    from msdnet.reproduce import measured_of

    try:
        measured = measured_of(experiment, workshop.shelf)
    except ValueError as error:
        if experiment.images_known:
            raise
        raise ValueError(f"no folder of images is named (--data), so results must be of ImageNet: {error}") from error
    if is_here:
        workshop.check_images(measured.values())
    return measured


def _tried(experiment: "Experiment", epochs: int | None, batch_size: int | None, subset: int | None) -> "Experiment":
    """A try, if there is anything that makes one, in words."""
    told = []
    if epochs is not None:
        told.append("1 epoch" if epochs == 1 else f"{epochs} epochs")
    if batch_size is not None:
        told.append(f"batches of {batch_size}")
    if subset is not None:
        told.append(f"{min(subset, experiment.training_images):,} images")
    return experiment.tried_with(*told, subset=subset)


def _find(name: str, data: Path | None, epochs: int | None, batch_size: int | None) -> "Experiment":
    from msdnet.files import CIFAR, find_classes
    from msdnet.reproduce import find_experiment

    found = find_experiment(name, epochs=epochs, batch_size=batch_size)
    folder = None if found.dataset in CIFAR else _named(found.dataset, data)
    classes = () if folder is None else find_classes(folder)  # which may be others than ImageNet's
    if not classes:
        return found
    return find_experiment(name, epochs=epochs, batch_size=batch_size, classes=classes)


def _named(dataset: str, data: Path | None) -> Path | None:
    """The folder that is named for these data.

    MSDNET_DATA may stand for others, which must not get in the way of --plan and --draw.
    """
    from msdnet.files import CIFAR, data_root, find_classes

    root = data_root(data)
    if data is not None or dataset in CIFAR or root is None:
        return data
    classes = find_classes(root)
    of_cifar = any(layout.folder in classes for _, layout in CIFAR.items())
    return root if classes and not of_cifar else None


def _chosen(experiment: "Experiment", only: list[str]) -> list["Subject"]:
    """The systems of these names; all of the experiment, where none are given."""
    from msdnet.naming import did_you_mean

    everyone = experiment.everyone
    for name in only:
        if name not in everyone:
            raise ValueError(f"{experiment.name} has no system {name!r}; {did_you_mean(name, everyone)}")
    return [everyone[name] for name in dict.fromkeys(only)] or list(experiment.subjects)


def _reproduce(
    experiment: "Experiment",
    workshop: "Workshop",
    chosen: list["Subject"],
    *,
    known: "Mapping[str, Measurement]",
    figures: Path,
    draw: bool,
    as_json: bool,
) -> None:
    from msdnet.reproduce import charts, measured_of
    from msdnet.training import Interrupted
    from msdnet.training.distributed import is_first

    try:
        failures = [] if draw else workshop.carry_out(chosen, beside=known.values())
    except Interrupted as stop:
        if is_first():  # of several processes under torchrun
            typer.echo(f"msdnet: {stop}", err=True)
        raise typer.Exit(128 + stop.signal_number) from None
    if is_first():
        measured = measured_of(experiment, workshop.shelf)
        nothing = draw and not charts(experiment, measured)
        if as_json or not nothing:
            _draw(experiment, measured, figures, failures, as_json)
        if nothing:
            raise ValueError(_nothing_to_draw(experiment, measured, workshop.results))
    if failures:
        names = ", ".join(failure.name for failure in failures)
        raise ValueError(f"these came to nothing: {names}; see above why")


def _nothing_to_draw(experiment: "Experiment", measured: "Mapping[str, Measurement]", results: Path) -> str:
    usual, tries = Path("results/reproduction"), Path("results/try")
    if measured:
        return f"{results}: {_not_enough(measured)}; not measured yet: {_missing(experiment, measured)}"
    hint = "the same command without --draw measures it, and --plan tells how long that takes"
    if not results.exists():
        hint += f"; --results names another folder of result files (those of a clone: {usual} in its root)"
    if results == usual and any((tries / experiment.dataset).glob("*.json")):
        hint += f"; there is a try in {tries}, which is drawn with the options that made it (--epochs, ...)"
    return f"{results}: nothing is measured there yet of {experiment.name}; {hint}"


def _not_enough(measured: "Mapping[str, Measurement]") -> str:
    """Of what is relative to others, say, there is no figure without these."""
    return f"what is measured ({a_few(measured)}) makes no figure without others"


def _missing(experiment: "Experiment", measured: "Mapping[str, Measurement]") -> str:
    return a_few(subject.name for subject in experiment.subjects if subject.name not in measured)


def _data_config(
    dataset: str, named: Path | None, subset: int | None, workers: int | None, skip_unreadable: bool, *, needed: bool
) -> "DataConfig":
    from msdnet.data import DataConfig
    from msdnet.files import CIFAR, FOLDER

    root = None if named is None else str(named)
    options: dict[str, Any] = {"unreadable": "skip" if skip_unreadable else "fatal"}
    options |= {"subset": subset, "workers": workers}
    if dataset in CIFAR:
        refuse_useless(dataset, {"--workers": workers, "--skip-unreadable": skip_unreadable})
        return DataConfig(dataset=dataset, root=root, **options)
    return DataConfig(dataset=FOLDER, root=root if needed or root else ".", **options)


def _list(name: str | None, as_json: bool) -> None:
    """All experiments, or one and the names of its systems, as --only takes them."""
    from msdnet.reproduce import EXPERIMENTS, GALLERY, GALLERY_TITLE, find_experiment

    experiments = [find_experiment(one) for one in ([name] if name else EXPERIMENTS) if one != GALLERY]
    known = [(one.name, one.title, [system.name for system in one.subjects]) for one in experiments]
    if name in (None, GALLERY):
        known.append((GALLERY, GALLERY_TITLE, []))
    if as_json:
        keys = ("name", "title", "systems")
        typer.echo(json.dumps([dict(zip(keys, one, strict=True)) for one in known]))
        return
    for one, title, systems in known:
        typer.echo(f"{one:<20} {title} ({f'{len(systems)} systems' if systems else 'nothing to train'})")
        for system in systems if name else ():
            typer.echo(f"  {system}")


def _plan(experiment: "Experiment", workshop: "Workshop", chosen: list["Subject"], as_json: bool) -> None:
    from msdnet.reproduce import ensembles_to_measure, make_plan
    from msdnet.training.display import duration
    from msdnet.training.distributed import is_first
    from msdnet.training.record import describe_data

    images, found = experiment.training_images, []
    assumed = "" if experiment.images_known else ", ImageNet's, since no folder is named (--data)"
    workshop.tell(f"{experiment.title}; training images: {images:,}{assumed}")
    if is_first() and workshop.data.root is None:
        _tell_of_missing(experiment.dataset)
    named = workshop.data.root is not None and experiment.images_known
    known = describe_data(workshop.opened) if named else None
    for planned in make_plan(experiment, workshop.shelf, chosen, images=known, device=workshop.device):
        found.append(planned)
        took = "" if planned.standing in ("measured", "trained") else f"{duration(planned.seconds):>9}"
        why = "  (measured; an ensemble needs the network itself)" if planned.asked_by_ensemble else ""
        why += f"\n  {planned.damage}" if planned.damage else ""
        workshop.tell(f"{planned.name:<28} {planned.standing:<9}{took}{why}")
    total, ensembles = sum(planned.seconds for planned in found), ensembles_to_measure(workshop.shelf, chosen)
    names = [ensemble.name for ensemble in ensembles]
    if as_json:
        values = {"networks": [asdict(planned) for planned in found], "seconds": total, "ensembles": names}
        values |= {"training_images": images, "images_known": experiment.images_known}
        if is_first():  # of several processes under torchrun
            typer.echo(json.dumps(values))
        return
    workshop.tell(
        f"\nTo train: {duration(total)}, one network after the other; measuring is not in it. This is an estimate by a "
        "few steps of each, on this machine, as busy as it is now."
        if total
        else "\nNothing to train."
    )
    if unusable := sum(bool(planned.damage) for planned in found):
        workshop.tell(f"Before that, {counted(unusable, 'run')} of these must be mended or removed: see above.")
    if names:
        workshop.tell(f"Ensembles to measure, by the runs of all their members in {workshop.runs}: {', '.join(names)}")


def _tell_of_missing(dataset: str) -> None:
    """A plan knows CIFAR's images without having them; the training will look for them where MSDNET_DATA says."""
    from msdnet.data.download import fetch_cifar
    from msdnet.files import CIFAR, data_root, find_cifar

    if dataset not in CIFAR or data_root(None) is None:
        return
    try:
        find_cifar(CIFAR[dataset], None, fetch_cifar)
    except (FileNotFoundError, ValueError) as error:
        typer.echo(f"msdnet: {error}; this plan is made as if it were there", err=True)


def _draw(
    experiment: "Experiment",
    measured: "Mapping[str, Measurement]",
    folder: Path,
    failures: "Sequence[Failure]",
    as_json: bool,
) -> None:
    """Draw and tell what there is."""
    from msdnet.reproduce import draw, figure_table, why_not_judged

    why_not = why_not_judged(experiment, measured)
    claims = judged(experiment.name, measured, why_not)
    written = draw(experiment, measured, folder)
    missing = [subject.name for subject in experiment.subjects if subject.name not in measured]
    if as_json:
        curves = {
            figure.name: [{"curve": curve.name, "points": places} for curve, places in figure.places(measured)]
            for figure in experiment.figures
        }
        values = {
            "figures": curves,
            "claims": claims_as_values(claims, why_not),
            "files": [str(path) for path in written],
            "missing": missing,
            "failures": [asdict(failure) for failure in failures],
        }
        typer.echo(json.dumps(values))
        return
    tables = [(figure, figure_table(figure, measured)) for figure in experiment.figures]
    for figure, table in tables:
        if table:
            typer.echo(f"\n{figure.title}\n({figure.x_name}: {figure.y_name})")
        for curve, points in table:
            typer.echo(f"  {curve:<{max(len(name) for name, _ in table)}}  {points}")
    show_claims(claims, why_not)
    nothing = f"no figure: {_not_enough(measured) if measured else 'nothing is measured that it shows'}"
    typer.echo(f"\nwrote {', '.join(str(path) for path in written) or nothing}")
    if missing:
        typer.echo(f"not measured yet: {_missing(experiment, measured)}")
