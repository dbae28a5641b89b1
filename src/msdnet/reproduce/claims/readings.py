"""What claims read off measurements: points above others at their cost, costs of equal accuracy, and words for both."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from msdnet.anytime import AnytimeCurve
from msdnet.reproduce.figure import Place
from msdnet.reproduce.measurement import Measurement

__all__ = ["Gains", "accuracy_at", "all_gains", "beyond", "gains", "listed", "ratio", "span", "times_cheaper"]


class Gains(NamedTuple):
    """How many points something is above others, at the cost of each."""

    within: list[float]
    """Up to its full cost."""
    beyond: list[float]
    """Where the others spend more than it can."""


def gains(one: Measurement, other: Measurement, exits: range | None = None) -> Gains:
    """What a network's newest answer is above each exit of another, from its own first exit on."""
    curve, found = AnytimeCurve(one.whole_costs, one.test_accuracy), Gains([], [])
    for exit in exits or range(len(other.costs)):
        cost, accuracy = other.whole_costs[exit], other.test_accuracy[exit]
        if cost >= one.whole_costs[0]:
            side = found.within if cost <= one.whole_costs[-1] else found.beyond
            side.append(100 * (float(curve.at(cost)) - accuracy))
    return found


def all_gains(curve: Sequence[Place], others: Iterable[Place]) -> Gains:
    """What a curve is above single points, from its first on."""
    low, high, found = min(curve).x, max(curve).x, Gains([], [])
    for other in others:
        if other.x >= low:
            side = found.within if other.x <= high else found.beyond
            side.append(accuracy_at(curve, other.x) - other.y)
    return found


def accuracy_at(curve: Sequence[Place], millions: float) -> float:
    """On straight lines between points, by the logarithm of the cost; the ends hold on beyond."""
    ordered = sorted(curve)
    return float(np.interp(np.log(millions), [np.log(place.x) for place in ordered], [place.y for place in ordered]))


def ratio(curve: Sequence[Place], other: Measurement) -> float | None:
    """How many times cheaper a curve reaches a network's accuracy; nothing if it never does."""
    goal, cost = 100 * other.test_accuracy[-1], other.cost_alone / 1e6
    ordered = sorted(curve)
    for before, after in zip([ordered[0], *ordered], ordered, strict=False):
        if after.y >= goal:
            if before.y >= goal:
                return cost / before.x
            way = (goal - before.y) / (after.y - before.y)
            return cost / float(np.exp(np.log(before.x) + way * np.log(after.x / before.x)))
    return None


def times_cheaper(curve: Sequence[Place], other: Measurement) -> str:
    found = ratio(curve, other)
    highest = max(place.y for place in curve)
    if found is None:
        return f"never as accurate ({highest:.1f} at most, against {100 * other.test_accuracy[-1]:.1f} %)"
    return f"as accurate {found:.1f} times cheaper"


def span(values: Sequence[float]) -> str:
    return f"{min(values):+.1f} to {max(values):+.1f}" if len(values) > 1 else f"{values[0]:+.1f}"


def listed(values: Iterable[float]) -> str:
    return " ".join(f"{value + 0.0:+.1f}" for value in values)  # never -0.0 for 0


def beyond(found: Sequence[float], what: str = "exits") -> str:
    return f" ({span(found)} against {what} beyond its full cost)" if found else ""
