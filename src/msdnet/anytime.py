"""Anytime prediction: when will the budget run out, and which exit answers then?

Sees costs, budgets and what the exits' answers are worth; never a network.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msdnet.checks import check_increasing, check_number, keep_checked, numbers

__all__ = [
    "AnytimeCurve",
    "BudgetDistribution",
    "Exponential",
    "Samples",
    "Uniform",
    "answer_probabilities",
    "expected_loss",
]


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
    if not isinstance(budgets, Exponential | Uniform | Samples):
        raise TypeError(f"budgets must be a distribution: Exponential, Uniform or Samples, got {budgets!r}")
    ends_below = [budgets.below(cost) for cost in _rising(costs)]
    return tuple(later - earlier for earlier, later in zip(ends_below, [*ends_below[1:], 1.0], strict=True))


def _rising(costs: Sequence[float]) -> tuple[float, ...]:
    known = numbers("costs", costs, low=0)
    if not known:
        raise ValueError("costs must have at least one exit, got none")
    check_increasing("costs", known)
    return known


@dataclass(frozen=True)
class AnytimeCurve:
    """Accuracy at every budget: a staircase, since the newest exit's answer stands until the next exit's comes.

    >>> curve = AnytimeCurve(costs=(10, 20), accuracies=(0.6, 0.8))
    >>> curve.at([5, 10, 15, 99])
    array([0. , 0.6, 0.6, 0.8])
    >>> round(curve.area(10, 30), 3)
    0.7
    """

    costs: tuple[float, ...]
    """To reach each exit."""
    accuracies: tuple[float, ...]
    before: float = 0.0
    """What no answer at all is worth: a budget may end before the first exit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", _rising(self.costs))
        keep_checked(self, numbers, "accuracies", low=0)
        if len(self.costs) != len(self.accuracies) or not self.costs:
            raise ValueError(f"costs and accuracies must go together, got {len(self.costs)} and {len(self.accuracies)}")

    def at(self, budgets: ArrayLike) -> NDArray[np.float64]:
        """The accuracy of what stands when each of the budgets ends."""
        return np.array([self.before, *self.accuracies])[_answered(self.costs, budgets)]

    def expected(self, budgets: BudgetDistribution) -> float:
        """The accuracy on average over budgets of a distribution."""
        chances = answer_probabilities(self.costs, budgets)
        answered = sum(chance * accuracy for chance, accuracy in zip(chances, self.accuracies, strict=True))
        return answered + (1 - sum(chances)) * self.before

    def area(self, low: float, high: float) -> float:
        """The area under the curve between two budgets, over their distance: accuracy on average over that range."""
        return self.expected(Uniform(low, high))


def expected_loss(
    losses: ArrayLike, costs: Sequence[float], budgets: BudgetDistribution | ArrayLike, *, before: float
) -> float:
    """The paper's expected loss L(f) under P(x, B), over given images.

    - losses: (images, exits), of each exit's answer
    - budgets: a distribution, independent of the images; or one budget for each image, drawn together with it
    - before: the loss where the budget ends before the first exit

    >>> expected_loss([[1.0, 0.0], [1.0, 1.0]], costs=[1, 2], budgets=[2.5, 0.5], before=3.0)
    1.5
    """
    check_number("before", before, low=0)
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(costs) or not len(values):
        raise ValueError(f"losses must be (images, {len(costs)}), one column for each cost, got {values.shape}")
    if isinstance(budgets, Exponential | Uniform | Samples):
        chances = np.array(answer_probabilities(costs, budgets))
        return float(values.mean(axis=0) @ chances + (1 - chances.sum()) * before)
    ends = np.asarray(budgets, dtype=np.float64)
    if ends.shape != values.shape[:1]:
        raise ValueError(f"budgets must be a distribution or {len(values)} numbers, one for each image")
    worth = np.hstack([np.full((len(values), 1), before), values])
    return float(worth[np.arange(len(values)), _answered(_rising(costs), ends)].mean())


def _answered(costs: Sequence[float], budgets: ArrayLike) -> NDArray[np.intp]:
    """How many exits have answered when each budget ends."""
    ends = np.asarray(budgets, dtype=np.float64)
    if np.isnan(ends).any():
        raise ValueError("budgets must be numbers, got NaN")
    return np.searchsorted(np.asarray(costs, dtype=np.float64), ends, side="right")
