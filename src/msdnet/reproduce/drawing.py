"""From what was measured to figures in files, and to tables."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msdnet.amounts import four_digits
from msdnet.report import write_chart
from msdnet.report.charts import Lines
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.figure import Figure
from msdnet.reproduce.measurement import Measurement, Refused, check_each
from msdnet.reproduce.shelf import Shelf

__all__ = ["charts", "draw", "figure_table", "measured_of"]


def measured_of(experiment: Experiment, shelf: Shelf) -> dict[str, Measurement]:
    """All that was measured for an experiment, by the systems' names; refused if it cannot be read or compared."""
    known, refused = [], Refused()
    for subject in experiment.everyone.values():
        path = shelf.file_of(subject)
        with refused.noting(path):
            measured = shelf.measured(subject)
            if measured is not None:
                known.append((subject, path, measured))
    check_each(known, refused, experiment.training_images if experiment.images_known else None)
    refused.tell()
    return {subject.name: measured for subject, _, measured in known}


def charts(experiment: Experiment, measured: Mapping[str, Measurement]) -> dict[str, Lines]:
    """What can be drawn of an experiment's figures, by their names."""
    return {figure.name: figure.chart(measured) for figure in experiment.figures if figure.can_be_drawn(measured)}


def draw(experiment: Experiment, measured: Mapping[str, Measurement], folder: Path) -> list[Path]:
    """Draw what is there, as SVG, and as PNG where resvg is installed; which files were written."""
    drawn = charts(experiment, measured)
    return [path for name, chart in drawn.items() for path in write_chart(chart, folder / f"{name}.svg")]


def figure_table(figure: Figure, measured: Mapping[str, Measurement]) -> list[tuple[str, str]]:
    """Each curve's name and its points, for people who read numbers; what several curves are called, told apart."""
    names = Counter(curve.name for curve in figure.curves)
    digits = 1 if figure.log_x else 3  # per cent, or shares
    return [
        (
            curve.called(measured) if names[curve.name] == 1 else f"{curve.name}: {curve.subjects[0].name}",
            "  ".join(f"{four_digits(place.x)}: {place.y:.{digits}f}" for place in places),
        )
        for curve, places in figure.places(measured)
    ]
