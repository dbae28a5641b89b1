"""Figures of an experiment: curves, each of some subjects, drawn from what was measured of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

from msdnet.evaluation import BudgetPoint, best_of
from msdnet.published import Published
from msdnet.report.charts import Lines, Series
from msdnet.reproduce.measurement import Measurement
from msdnet.reproduce.subjects import Subject

__all__ = [
    "Curve",
    "Figure",
    "Place",
    "Places",
    "anytime",
    "averaged",
    "budgeted",
    "computed",
    "envelope",
    "of_published",
    "sizes",
]


class Place(NamedTuple):
    """A point of a figure."""

    x: float
    y: float


Places = Callable[[Sequence[Measurement]], Sequence[Place]]


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    name: str
    subjects: tuple[Subject, ...]
    places: Places
    """From what was measured of the subjects, as far as it was."""
    colour: int = 0
    dashed: bool = False
    kind: Literal["line", "step", "dots"] = "line"
    marks: bool = True

    def called(self, measured: Mapping[str, Measurement]) -> str:
        """Its name; where some of its systems are not measured, that too: the mean of one seed is not that of three."""
        known = sum(subject.name in measured for subject in self.subjects)
        whole = known == len(self.subjects)
        return self.name if whole else f"{self.name} ({known} of {len(self.subjects)} measured)"


@dataclass(frozen=True)
class Figure:
    """What is drawn into one chart."""

    name: str
    """Of its file."""
    title: str
    curves: tuple[Curve, ...]
    x_name: str = "million multiply-adds per image"
    y_name: str = "test accuracy, %"
    log_x: bool = True
    level: float | None = None
    """A height that all are to be compared with."""

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return tuple(dict.fromkeys(subject for curve in self.curves for subject in curve.subjects))

    def places(self, measured: Mapping[str, Measurement]) -> list[tuple[Curve, list[Place]]]:
        """The points of every curve that something is known of, each once, from the cheapest on.

        Curves may have them in the order of budgets, of which one may cost less than a smaller, or as much.
        """
        found = []
        for curve in self.curves:
            known = [measured[subject.name] for subject in curve.subjects if subject.name in measured]
            places = curve.places(known) if known or not curve.subjects else []
            if places:
                found.append((curve, sorted(set(places))))
        return found

    def can_be_drawn(self, measured: Mapping[str, Measurement]) -> bool:
        """Whether there is more to show than what others have published."""
        return any(curve.subjects for curve, _ in self.places(measured))

    def chart(self, measured: Mapping[str, Measurement]) -> Lines:
        series = [
            Series(
                curve.called(measured),
                [place.x for place in places],
                [place.y for place in places],
                colour=curve.colour,
                kind=curve.kind if len(places) > 1 else "dots",
                dashed=curve.dashed,
                marks=curve.marks,
            )
            for curve, places in self.places(measured)
        ]
        return Lines(self.title, self.x_name, self.y_name, series, log_x=self.log_x, level=self.level)


def anytime(measured: Sequence[Measurement]) -> list[Place]:
    """Every exit of a network, by the multiply-adds of whole layers, as published figures count."""
    return [_place(c, a) for one in measured for c, a in zip(one.whole_costs, one.test_accuracy, strict=True)]


def computed(measured: Sequence[Measurement]) -> list[Place]:
    """Every exit of a network, by what is computed to reach it, lazily."""
    return [_place(c, a) for one in measured for c, a in zip(one.costs, one.test_accuracy, strict=True)]


def budgeted(measured: Sequence[Measurement]) -> list[Place]:
    """What a network brings at each budget with the paper's policy; beyond its last exit nothing more comes."""
    return [_spent(point) for one in measured for point in _within(one)]


def envelope(measured: Sequence[Measurement]) -> list[Place]:
    """For each budget the network that is best on the held-out images."""
    points = [point for one in measured for point in one.by("paper")]
    return [place for place, _ in groupby(_spent(point) for point in best_of(points))]  # at last nothing more comes


def sizes(measured: Sequence[Measurement]) -> list[Place]:
    """Networks of different sizes, each as a whole."""
    return sorted(_place(one.cost_alone, one.test_accuracy[-1]) for one in measured)


def averaged(places: Places) -> Places:
    """The same of one network from several seeds: what it brings on average, place by place."""

    def of_seeds(measured: Sequence[Measurement]) -> list[Place]:
        each = [places([one]) for one in measured]
        return [Place(same[0].x, sum(place.y for place in same) / len(same)) for same in zip(*each, strict=True)]

    return of_seeds


def of_published(curve: Published) -> Places:
    """What others have published; nothing needs to be measured."""
    return lambda _: [Place(x, y) for x, y in zip(curve.millions, curve.percent, strict=True)]


def _within(measured: Measurement) -> list[BudgetPoint]:
    """Budgets up to the first that is enough for everything."""
    points = sorted(measured.by("paper"), key=lambda point: point.budget)
    short = [point for point in points if point.budget < measured.whole_costs[-1]]
    return points[: len(short) + 1]


def _spent(point: BudgetPoint) -> Place:
    return _place(point.cost, point.accuracy)


def _place(cost: float, accuracy: float) -> Place:
    return Place(cost / 1e6, 100 * accuracy)
