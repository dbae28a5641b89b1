"""`msdnet models` and `msdnet evaluate`: which models there are, and how good one is."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from msdnet.amounts import counted, four_digits, in_millions, parse_budgets
from msdnet.cli.inputs import open_images, refuse_for_pixels, that_reach
from msdnet.cli.names import complete_models
from msdnet.cli.options import Budgets, Dataset, Json, SkipUnreadable
from msdnet.cli.tables import print_table, progress_bar

if TYPE_CHECKING:
    from rich.table import Table

    from msdnet.evaluation import BudgetPoint, Evaluation
    from msdnet.files import Labelled
    from msdnet.runtime import Model

__all__ = ["evaluate", "models"]

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL",
        help="Models of the package (`msdnet models`), or folders of bundles.",
        autocompletion=complete_models,
    ),
]
TestImages = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the images: CIFAR's binary files, or images by class; or `samples`: 1,000 CIFAR-10 images of "
        "the package. Default: MSDNET_DATA, or what a training downloaded.",
    ),
]
Part = Annotated[str, typer.Option(metavar="test|held_out", help="held_out: the images that thresholds are fitted to.")]
Whole = Annotated[bool, typer.Option("--whole-layers", help="Count whole layers, as published figures do.")]
Engine = Annotated[Literal["onnx", "torch"], typer.Option(help="onnx, or torch (CPU or GPU).")]


def models(as_json: Json = False) -> None:
    """List the models that come with the package.

    Example: msdnet models
    """
    from rich.table import Table

    from msdnet.models import find_bundle, model_names

    bundles = [find_bundle(name) for name in model_names()]
    rows = [{"name": bundle.manifest.name, **_facts(bundle.manifest), "bytes": bundle.size} for bundle in bundles]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table("model", "classes", "exits", "multiply-adds per image", "test accuracy", "size", box=None)
    for row in rows:
        costs, accuracy = row["costs"], row["accuracy"]
        measured = f"{100 * accuracy[0]:.1f} to {100 * accuracy[-1]:.1f}%" if accuracy else "not measured"
        spent = f"{in_millions(costs[0])} to {in_millions(costs[-1])} M"
        size = f"{row['bytes'] / 2**20:.1f} MiB"
        table.add_row(row["name"], str(row["classes"]), str(len(costs)), spent, measured, size)
    _print(table)
    typer.echo("msdnet show MODEL lists its classes, and what each exit costs")


def _facts(manifest: Any) -> dict[str, Any]:
    return {
        "classes": len(manifest.classes),
        "side": manifest.images.side,
        "costs": list(manifest.costs),
        "accuracy": None if manifest.test is None else list(manifest.test.accuracy),
    }


def evaluate(
    model: Models,
    data: TestImages = None,
    dataset: Dataset = None,
    part: Part = "test",
    budgets: Budgets = None,
    whole: Whole = False,
    engine: Engine = "onnx",
    skip_unreadable: SkipUnreadable = False,
    as_json: Json = False,
) -> None:
    """Measure models on labelled images.

    Prints the accuracy of every exit and at several budgets, by our thresholds (the default when classifying) and by
    the paper's. Given several models, names the best on held-out images for each budget. Budgets below the cost of a
    model's first exit are left out.

    Example: msdnet evaluate bundles/first --data cifar/
    """
    import msdnet
    from msdnet.evaluation import best_of, check_fits
    from msdnet.policy import usual_budgets

    loaded = [msdnet.load(name, engine=engine) for name in model]
    if len({one.manifest.name for one in loaded}) < len(loaded):
        raise ValueError("models of the same name cannot be told apart: export one of them under another name")
    wanted = None if budgets is None else _parse(budgets, loaded, whole)
    images = open_images(loaded, data, dataset, part)
    refuse_for_pixels(images, {"--skip-unreadable": skip_unreadable})
    for each in loaded:  # before any of them has answered
        check_fits(each, images)
    evaluations = [_evaluate(one, images, skip_unreadable, quiet=as_json) for one in loaded]
    asked = usual_budgets(_costs(loaded[0], whole)) if wanted is None else wanted
    points = [_points(one, asked, whole) for one in evaluations]
    best = best_of([point for reached in points for point in reached])
    if as_json:
        found = [one.to_dict(reached) for one, reached in zip(evaluations, points, strict=True)]
        typer.echo(json.dumps({"models": found, "best": [asdict(point) for point in best]}, indent=2))
        return
    for one, reached in zip(evaluations, points, strict=True):
        _show(one, reached, whole)
    if len(loaded) > 1 and best:
        _print(_points_table("best on held-out images", best, whole, chosen=True))


def _parse(budgets: str, models: "Sequence[Model]", whole: bool) -> list[float]:
    """Refuses those of which none of the models can keep any: better now than when all is measured."""
    keeping = [model for model in models if model.manifest.held_out is not None]
    if not keeping:
        names = ", ".join(model.manifest.name for model in models)
        raise ValueError(
            f"--budgets needs a model with held-out confidences, to which thresholds are fitted, got {names}"
        )
    costs = [_costs(model, whole) for model in keeping]
    return parse_budgets(budgets, min(one[0] for one in costs), max(one[-1] for one in costs))


def _points(found: "Evaluation", budgets: Sequence[float], whole: bool) -> "list[BudgetPoint]":
    """The points at the budgets that this model can keep; the others are reported."""
    manifest = found.model.manifest
    if manifest.held_out is None:
        return []
    return found.points(that_reach(manifest.name, budgets, _costs(found.model, whole)[0]), whole=whole)


def _costs(model: "Model", whole: bool) -> Sequence[int]:
    return model.whole_costs if whole else model.costs


def _evaluate(model: "Model", images: "Labelled", skip_unreadable: bool, quiet: bool) -> "Evaluation":
    from msdnet.evaluation import evaluate as measure

    with progress_bar(quiet=quiet) as shown:
        task = shown.add_task(model.manifest.name, total=len(images.labels))
        return measure(
            model,
            images,
            unreadable="skip" if skip_unreadable else "fatal",
            progress=lambda done: shown.update(task, completed=done),
        )


def _show(found: "Evaluation", points: "Sequence[BudgetPoint]", whole: bool) -> None:
    from rich.table import Table

    manifest = found.model.manifest
    images = counted(found.images, "image")
    typer.echo(f"{manifest.name} classified {images} in {found.seconds:.1f} s: {found.data}")
    table = Table("exit", "multiply-adds", "whole layers", "accuracy", "held-out", box=None)
    held_out = manifest.held_out.accuracy if manifest.held_out else (None,) * len(found.accuracy)
    rows = zip(manifest.costs, manifest.whole_costs, found.accuracy, held_out, strict=True)
    for exit, (cost, whole_cost, accuracy, before) in enumerate(rows, 1):
        fitted = "" if before is None else f"{100 * before:.2f}%"
        table.add_row(str(exit), f"{cost / 1e6:,.2f} M", f"{whole_cost / 1e6:,.2f} M", f"{100 * accuracy:.2f}%", fitted)
    _print(table)
    for method, title in (("accuracy", "our thresholds, the default"), ("paper", "the paper's thresholds")):
        chosen = [point for point in points if point.method == method]
        if chosen:
            _print(_points_table(title, chosen, whole))


def _points_table(title: str, points: "Sequence[BudgetPoint]", whole: bool, chosen: bool = False) -> "Table":
    from rich.table import Column, Table

    names = ["budget", "accuracy", "spent +- std. error", *(["computed"] if whole else []), "held-out"]
    columns = [Column(name, no_wrap=True) for name in names]
    table = Table(*columns, *(["by", "model"] if chosen else []), title=title, box=None)
    table.title_justify = "left"
    for point in points:
        table.add_row(
            f"{four_digits(point.budget / 1e6)} M",
            f"{100 * point.accuracy:.2f}%",
            f"{point.cost / 1e6:,.2f} +- {point.cost_error / 1e6:.2f} M",
            *([f"{point.lazy_cost / 1e6:,.2f} M"] if whole else []),
            f"{100 * point.held_out_accuracy:.2f}%",
            *(["ours" if point.method == "accuracy" else "paper's", point.model] if chosen else []),
        )
    return table


def _print(table: "Table") -> None:
    print_table(table)
    typer.echo()
