"""Anytime prediction: when will the budget run out, and which exit answers then?

Sees costs and budgets only, never a network.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from msdnet.checks import check_number, numbers

__all__ = ["BudgetDistribution", "Exponential", "Samples", "Uniform", "answer_probabilities"]


@dataclass(frozen=True)
class Exponential:
    """Budgets ended by a Poisson process, as in section 3 of the paper."""

    mean: float
    """The average budget, in the unit of the costs (multiply-adds)."""

    def __post_init__(self) -> None:
        check_number("mean", self.mean, low=0, above=True)

    def below(self, cost: float) -> float:
        return -math.expm1(-cost / self.mean)


@dataclass(frozen=True)
class Uniform:
    """Budgets spread evenly between two costs."""

    low: float
    high: float

    def __post_init__(self) -> None:
        check_number("low", self.low, low=0)
        check_number("high", self.high, low=self.low, above=True)

    def below(self, cost: float) -> float:
        return min(max((cost - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class Samples:
    """Budgets that were observed."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(numbers("values", self.values, low=0))))
        if not self.values:
            raise ValueError("values must have at least one budget, got none")

    def below(self, cost: float) -> float:
        return bisect_left(self.values, cost) / len(self.values)


BudgetDistribution = Exponential | Uniform | Samples


def answer_probabilities(costs: Sequence[float], budgets: BudgetDistribution) -> tuple[float, ...]:
    """For each exit, the chance that its answer is the last one before the budget ends.

    What is missing from 1 is the chance that the budget ends before the first exit.

    >>> answer_probabilities([1, 2, 3], Uniform(low=0, high=4))
    (0.25, 0.25, 0.25)
    """
    ends_below = [budgets.below(cost) for cost in costs]
    return tuple(later - earlier for earlier, later in zip(ends_below, [*ends_below[1:], 1.0], strict=True))
