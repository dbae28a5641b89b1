"""`msdnet demo`: real images inside a budget, what it cost, what it saved, and why."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from msdnet.amounts import in_millions
from msdnet.cli.options import DEFAULT_MODEL, ModelOption, ReportFile
from msdnet.cli.tables import plain_console, print_table
from msdnet.places import check_file_writable

if TYPE_CHECKING:
    from rich.console import Group

    from msdnet.files import Labelled
    from msdnet.policy import Policy
    from msdnet.runtime import Answers, Model

__all__ = ["demo"]

BUDGETS = (1.15, 1.5, 2.25)  # times the cost of the first exit: what is spent beyond it gains most at first


class _Row(NamedTuple):
    """What came out at one budget."""

    name: str
    accuracy: float
    cost: float
    seconds: float


def demo(model: ModelOption = DEFAULT_MODEL, out: ReportFile = Path("msdnet-demo.html")) -> None:
    """Classify 1,000 real images at several budgets.

    The images are from CIFAR-10's test set, so the model must know CIFAR-10's classes. Shows how many images leave at
    each exit, then accuracy and time at each budget, and writes an HTML report.

    Example: msdnet demo
    """
    import msdnet
    from msdnet import samples
    from msdnet.policy import that_differ
    from msdnet.report import write_report

    check_file_writable(out)
    loaded, images = msdnet.load(model), samples.cifar10()
    images.check_for(loaded.classes)
    full = loaded.costs[-1]
    typer.echo(
        f"{loaded.manifest.name}: one network, {len(loaded.costs)} exits, {in_millions(loaded.costs[0])} to "
        f"{in_millions(full)} million multiply-adds.\nIt classifies {len(images.labels):,} images of "
        f"{images.name.split(',')[0]}; each leaves as soon as an exit is sure enough of it."
    )
    start = time.perf_counter()
    loaded.classify(images.images[:200])  # the first run is slower
    policies = that_differ(loaded.policy(part * loaded.costs[0]) for part in BUDGETS)
    rows = [_classified(loaded, images, policy) for policy in [*policies, None]]
    _print(rows, len(images.labels))
    typer.echo("\nWriting a report ...")
    write_report(loaded, out, data=images)
    typer.echo(f"{time.perf_counter() - start:.0f} s in all. Plots, and images that were easy or hard: {out}")


def _classified(model: "Model", images: "Labelled", policy: "Policy | None") -> _Row:
    """Shows how many images have left, while they are classified."""
    from rich.live import Live

    name = "all to the last exit" if policy is None else f"budget {in_millions(policy.budget_)} M"
    console = plain_console()
    left = [0] * len(model.costs)
    with Live(console=console, transient=True, refresh_per_second=12) as live:

        def show(answers: "Answers") -> None:
            left[answers.exit - 1] += len(answers.images)
            live.update(_bars(name, left, len(images.labels)))

        result = model.classify(images.images, policy=policy, watch=show if console.is_terminal else None)
    right = float((result.labels == images.labels).mean())
    return _Row(name, right, result.cost, result.seconds)


def _bars(name: str, left: list[int], total: int) -> "Group":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    for exit, count in enumerate(left, 1):
        bar = ProgressBar(total=total, completed=count, width=40, complete_style="green", finished_style="green")
        grid.add_row(f"exit {exit}", bar, f"{count:,} left")
    return Group(Text(f"{name}: {sum(left):,} of {total:,} answered"), grid)


def _print(rows: list[_Row], images: int) -> None:
    from rich.table import Column, Table

    from msdnet.evaluation import standard_error

    full = rows[-1]
    names = ("accuracy", "multiply-adds", "time", "speed-up", "less work")
    table = Table("per image", *(Column(name, justify="right") for name in names), box=None)
    for row in rows:
        table.add_row(
            row.name,
            f"{100 * row.accuracy:.1f}%",
            f"{in_millions(row.cost)} M",
            f"{1e3 * row.seconds / images:.2f} ms",
            f"{full.seconds / row.seconds:.1f}x",
            f"{full.cost / row.cost:.1f}x",
        )
    typer.echo()
    print_table(table)
    error = 100 * standard_error(full.accuracy, images)
    typer.echo(
        f"\nStandard error of the accuracies: {error:.1f} points ({images:,} images). A budget holds on average over "
        "many images.\nTimes are those of this machine, and depend on what else it does."
    )
