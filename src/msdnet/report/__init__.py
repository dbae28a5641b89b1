"""A report of a model: one HTML file that needs nothing else, and its charts for papers.

from msdnet.report import write_report

write_report(msdnet.load("cifar10-anytime"), "report.html")
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from msdnet.amounts import counted, in_millions
from msdnet.bundle import Manifest
from msdnet.evaluation import Evaluation, evaluate
from msdnet.files import Labelled
from msdnet.pixels import Unreadable
from msdnet.report.charts import PAPER
from msdnet.report.contents import Chart, Section, sections
from msdnet.report.gallery import find_labels
from msdnet.report.page import page
from msdnet.report.png import to_png
from msdnet.runtime import Model
from msdnet.version import VERSION
from msdnet.writing import write_output

__all__ = ["write_chart", "write_report"]


def write_report(
    model: Model,
    out: str | Path,
    *,
    data: Labelled | None = None,
    run: str | Path | None = None,
    classes: Sequence[str] = (),
    figures: str | Path | None = None,
    unreadable: Unreadable = "fatal",
) -> list[Path]:
    """Write a report, and say which files were written.

    - data: labelled images to judge the model on; without them, by the held-out images' confidences in its bundle
    - run: the folder of the training, for its curves
    - classes: of which to show easy and hard images, where there are data; by default those with most hard ones
    - figures: a folder for the charts, each as SVG, and as PNG where resvg is installed
    - unreadable: of the labelled images, one that cannot be read ends it (`fatal`), or is left out (`skip`)
    """
    if model.manifest.held_out is None:
        raise ValueError(f"{model.manifest.name} has no held-out confidences, which a report needs; export it anew")
    wanted = _labels(classes, data)
    evaluation = Evaluation.of_held_out(model) if data is None else evaluate(model, data, unreadable=unreadable)
    shown = None if data is None else data.without(evaluation.unread)
    parts = list(sections(evaluation, shown, None if run is None else Path(run), wanted))
    target = Path(out)
    title = f"{model.manifest.name}: accuracy within budgets"
    write_output(target, page(title, _lead(model.manifest), parts).encode())
    return [target, *([] if figures is None else _write_figures(Path(figures), parts))]


def _lead(manifest: Manifest) -> str:
    side, today = manifest.images.side, datetime.now(UTC).date().isoformat()
    return (
        f"Report on a model of {len(manifest.classes)} classes, {side} x {side} pixels, "
        f"{counted(manifest.exit_count, 'exit')}, {in_millions(manifest.costs[0])} to "
        f"{in_millions(manifest.costs[-1])} million multiply-adds per image. Made on {today} by msdnet {VERSION}."
    )


def _labels(classes: Sequence[str], data: Labelled | None) -> list[int]:
    if classes and data is None:
        raise ValueError("classes are shown by their images: give labelled images (--data) with them")
    return [] if data is None else find_labels(classes, data)


def _write_figures(folder: Path, parts: Sequence[Section]) -> list[Path]:
    charts = [pair for section in parts for pair in section.charts]
    return [path for name, chart in charts for path in write_chart(chart, folder / f"{name}.svg")]


def write_chart(chart: Chart, path: Path) -> list[Path]:
    """Write a chart as SVG, and as PNG beside it where resvg is installed; which files were written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    svg = chart.svg(PAPER)
    write_output(path, svg.encode())
    png = to_png(svg)
    if png is None:
        return [path]
    write_output(path.with_suffix(".png"), png)
    return [path, path.with_suffix(".png")]
