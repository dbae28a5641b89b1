"""`msdnet budget` and `msdnet profile`: the accuracy at each budget, and the time of each stage on this machine."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msdnet.amounts import four_digits, parse_budgets
from msdnet.cli.inputs import that_reach
from msdnet.cli.options import DEFAULT_MODEL, Budgets, Json, ModelArgument, Threads
from msdnet.cli.tables import bar, print_table
from msdnet.places import check_svg_writable
from msdnet.writing import write_output

if TYPE_CHECKING:
    from msdnet.runtime import Model

__all__ = ["budget", "profile"]

Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the curve into this SVG file.")]
Batches = Annotated[str | None, typer.Option(metavar="SIZES", help="Sizes of batches to measure: 1,32.")]
Seconds = Annotated[float, typer.Option(metavar="SECONDS", help="How long to measure each size.")]

_BAR = 30  # characters


def budget(
    model: ModelArgument = DEFAULT_MODEL, budgets: Budgets = None, plot: Plot = None, as_json: Json = False
) -> None:
    """What accuracy to expect at which budget.

    It is the accuracy on the held-out images, which the thresholds are fitted to.

    Example: msdnet budget bundles/first --budgets 20M,30%
    """
    import msdnet
    from msdnet.policy import usual_budgets

    if plot is not None:
        check_svg_writable(plot)
    loaded = msdnet.load(model)
    costs = loaded.costs
    asked = usual_budgets(costs) if budgets is None else parse_budgets(budgets, costs[0], costs[-1])
    asked = that_reach(loaded.manifest.name, asked, costs[0])
    policies = [loaded.policy(one) for one in asked]
    rows = [
        {"budget": one, "accuracy": policy.accuracy_, "spent": policy.cost_, "shares": list(policy.shares_)}
        for one, policy in zip(asked, policies, strict=True)
    ]
    if plot is not None:
        write_output(plot, _drawn(loaded, rows).encode())
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    _print(loaded, rows)
    if plot is not None:
        typer.echo(f"wrote {plot}")


def _print(model: "Model", rows: list[dict[str, Any]]) -> None:
    from rich.table import Column, Table

    least = min(row["accuracy"] for row in rows)
    span = max(max(row["accuracy"] for row in rows) - least, 1e-9)
    right = [Column(name, justify="right") for name in ("budget", "of full cost", "spent", "accuracy")]
    table = Table(*right, f"from {100 * least:.1f}% to {100 * (least + span):.1f}%", box=None)
    for row in rows:
        shown = bar(round(1 + (_BAR - 1) * (row["accuracy"] - least) / span))
        share = f"{100 * row['budget'] / model.costs[-1]:.0f}%"
        spent = f"{four_digits(row['spent'] / 1e6)} M"
        table.add_row(f"{four_digits(row['budget'] / 1e6)} M", share, spent, f"{100 * row['accuracy']:.1f}%", shown)
    print_table(table)
    held_out = model.manifest.held_out
    assert held_out is not None
    typer.echo(
        f"\nmultiply-adds per image, on average; accuracy on {held_out.images:,} held-out images. Less than the budget "
        "is spent where more does not raise that accuracy."
    )


def _drawn(model: "Model", rows: list[dict[str, Any]]) -> str:
    from msdnet.report.charts import PAPER, Lines, Series
    from msdnet.report.contents import COMPUTED

    millions, percent = ([row[key] * factor for row in rows] for key, factor in (("budget", 1e-6), ("accuracy", 100)))
    series = [Series("held-out images", millions, percent)]
    title = f"{model.manifest.name}: accuracy at each budget"
    return Lines(title, COMPUTED, "accuracy, %", series, log_x=True).svg(PAPER)


def profile(
    model: ModelArgument = DEFAULT_MODEL,
    batches: Batches = None,
    seconds: Seconds = 1.0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Measure how long each stage takes on this machine.

    Prints milliseconds; with --json seconds: `typical` is the median, `careful` the 90th percentile.

    Example: msdnet profile bundles/first --batches 1,32
    """
    from rich.table import Table

    import msdnet

    loaded = msdnet.load(model, threads=threads)
    sizes = [1, loaded.engine.best_batch] if batches is None else _sizes(batches)
    measured = loaded.profile(sizes, seconds=seconds).batches
    if as_json:
        found = [{"batch": times.rows, "typical": times.typical, "careful": times.careful} for times in measured]
        typer.echo(json.dumps(found, indent=2))
        return
    table = Table("stage", *(f"batch {times.rows}" for times in measured), box=None)
    for stage in range(len(loaded.costs)):
        table.add_row(str(stage + 1), *(f"{1e3 * times.typical[stage]:.2f} ms" for times in measured))
    table.add_row("all", *(f"{1e3 * sum(times.typical):.2f} ms" for times in measured))
    table.add_row("per image", *(f"{1e3 * times.costs[-1]:.2f} ms" for times in measured))
    print_table(table)
    typer.echo(f"\n{loaded.manifest.name} on {loaded.engine}: medians of the time for a whole batch")


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--batches must be whole numbers with commas between them, got {text!r}") from None
