"""What claims read off measurements: points above others at their cost, costs of equal accuracy, and words for both."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from msdnet.reproduce.claims.claim import Finding
from msdnet.reproduce.figure import Place, anytime, averaged, computed
from msdnet.reproduce.measurement import Measurement

__all__ = ["Gains", "Tradeoff", "against_each", "budgets", "cheaper", "in_steps", "listed", "over_budgets", "span"]

_BUDGETS = 101


class Gains(NamedTuple):
    """How many points a system is above others, at the cost of each."""

    within: list[float]
    """Up to the most that it can spend."""
    beyond: list[float]
    """Where the others spend more, against its last answer."""

    def above(self, margin: float) -> bool:
        """Above some others, and all of them, by more than a margin; those that spend more do not count."""
        return min(self.within, default=-np.inf) > margin

    def outperforms(self, margin: float, on_par: float) -> bool:
        """Above the others by more than a margin wherever it can spend as much, and on par where they spend more."""
        within, beyond = (min(gains, default=np.inf) for gains in self)
        return bool(self.within or self.beyond) and within > margin and beyond > -on_par

    def against(self, others: str) -> str:
        """In words."""
        within = f"{span(self.within)} points against {others}" if self.within else f"none of {others} within its costs"
        return within + (f" ({span(self.beyond)} against costlier ones)" if self.beyond else "")


@dataclass(frozen=True)
class Tradeoff:
    """The accuracy that a system has at every cost, from its cheapest answer on."""

    places: Sequence[Place]
    """In the order of budgets."""
    full: float
    """Millions of multiply-adds, the most that it can spend. Whoever has more to spend has the last place."""
    steps: bool = False
    """Whether the newest answer stands until the next comes; else places are joined, by the logarithm of the cost."""

    def at(self, millions: float) -> float:
        """In per cent; nothing before the first answer."""
        ordered = sorted(self.places)
        if millions < ordered[0].x:
            return 0.0
        if millions >= ordered[-1].x:
            return self.places[-1].y
        if self.steps:
            return max(place for place in ordered if place.x <= millions).y
        return float(
            np.interp(np.log(millions), [np.log(place.x) for place in ordered], [place.y for place in ordered])
        )

    def gains(self, others: Iterable[Place]) -> Gains:
        """Above each of the others, but for those that cost less than its cheapest answer."""
        found = Gains([], [])
        for other in others:
            if other.x >= min(self.places).x:
                side = found.within if other.x <= self.full else found.beyond
                side.append(self.at(other.x) - other.y)
        return found

    def times_cheaper(self, other: Place) -> float | None:
        """How many times cheaper it reaches another's accuracy; nothing if it never does."""
        cost, goal = other
        ordered = sorted(self.places)
        for before, after in zip([ordered[0], *ordered], ordered, strict=False):
            if after.y >= goal:
                if before.y >= goal:
                    return cost / before.x
                way = (goal - before.y) / (after.y - before.y)
                return cost / float(np.exp(np.log(before.x) + way * np.log(after.x / before.x)))
        return None


def against_each(
    ours: Tradeoff, rivals: Mapping[str, Sequence[Place]], holds: Callable[[str, Gains], bool], aside: str | None = None
) -> Finding:
    """How many points it is above each kind of rivals; a claim holds if it does so against all of them.

    - aside: a kind that was trained in another way; a claim that it alone defeats holds in part
    """
    found = {kind: ours.gains(places) for kind, places in rivals.items()}
    words = "; ".join(gains.against(kind) for kind, gains in found.items())
    defeating = {kind for kind, gains in found.items() if not holds(kind, gains)}
    return Finding(words, not defeating, in_part=defeating == {aside} and len(found) > 1)


def over_budgets(ours: Tradeoff, others: Sequence[Tradeoff]) -> tuple[list[float], str]:
    """Points above the best other answer, at all budgets: from where another has one to the full cost."""
    low, high = max(min(ours.places).x, min(min(other.places).x for other in others)), ours.full
    above = [ours.at(budget) - max(other.at(budget) for other in others) for budget in budgets(low, high)]
    return above, f"from {low:.0f} to {high:.0f} million multiply-adds"


def budgets(low: float, high: float) -> list[float]:
    """In equal ratios."""
    return [low, *np.geomspace(low, high, _BUDGETS)[1:-1], high]  # its ends are rounded


def in_steps(*seeds: Measurement, lazy: bool = False) -> Tradeoff:
    """Of a network's exits, whose newest answer stands; by the cost of whole layers, or by what is computed."""
    places = averaged(computed if lazy else anytime)(seeds)
    return Tradeoff(places, places[-1].x, steps=True)


def cheaper(ours: Tradeoff, other: Place) -> str:
    """How many times, in words."""
    times = ours.times_cheaper(other)
    if times is None:
        highest = max(place.y for place in ours.places)
        return f"never as accurate ({highest:.1f} at most, against {other.y:.1f}%)"
    least = "at least " if min(ours.places).y >= other.y else ""  # where its cheapest answer is enough
    return f"as accurate {least}{times:.1f} times cheaper"


def span(values: Sequence[float]) -> str:
    """From the least to the greatest."""
    if not values:
        return "none"
    low, high = (listed([value]) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def listed(values: Iterable[float]) -> str:
    """To a tenth; what is nearer to nothing has no sign."""
    return " ".join(f"{value:+.1f}" if round(value, 1) else "0.0" for value in values)
