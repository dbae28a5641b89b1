"""What is known of held-out images: how sure each exit was of each, whether it was right, and what exits cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Floats", "Outcomes", "Value", "check_budget", "check_costs", "exits_of", "numbers_of_exits"]

Floats: TypeAlias = NDArray[np.float64]

SLACK = 1e-5  # by which two engines, or two sizes of batches, may differ in how sure they are
NEIGHBOURS = 0.05  # which part of the images, to either side, counts as about as sure


class Value(NamedTuple):
    """What thresholds are worth on held-out images."""

    accuracy: float
    cost: float
    """Average for an image."""


def exits_of(confidence: NDArray[np.floating], thresholds: Floats) -> NDArray[np.intp]:
    """For each image of confidences (exits, N), the first exit (from 0) whose threshold it reaches."""
    exits: NDArray[np.intp] = (confidence >= thresholds[:, None]).argmax(axis=0)
    return exits


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Checked arrays, exits first, so that one exit's numbers lie side by side."""

    confidence: Floats
    """(exits, N)"""
    correct: NDArray[np.bool_]
    """(exits, N)"""
    costs: Floats
    """(exits), cumulative."""

    @classmethod
    def of(cls, confidence: ArrayLike, correct: ArrayLike, costs: ArrayLike) -> "Outcomes":
        """From arrays with a row for each image, as they are kept: (N, exits)."""
        prices = check_costs(costs)
        sure, right = np.asarray(confidence), np.asarray(correct)
        expected = f"(images, {len(prices)}), one column for each of the costs"
        if sure.ndim != 2 or sure.shape[1] != len(prices):
            raise ValueError(f"confidence must have the shape {expected}, got {sure.shape}")
        if not len(sure):
            raise ValueError(f"confidence must be of at least one image, got the shape {sure.shape}")
        if right.shape != sure.shape:
            raise ValueError(f"correct must have the shape of confidence {sure.shape}, got {right.shape}")
        if not (np.issubdtype(sure.dtype, np.number) and np.isfinite(sure).all()):
            raise ValueError("confidence must be finite numbers, got NaN, infinity or something else")
        if right.dtype != np.bool_ and not np.isin(right, (0, 1)).all():
            raise ValueError("correct must be true or false (1 or 0) for each answer")
        return cls(np.array(sure.T, dtype=np.float64, order="C"), np.array(right.T, dtype=bool, order="C"), prices)

    @property
    def size(self) -> int:
        return len(self.confidence[0])

    @property
    def exit_count(self) -> int:
        return len(self.costs)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """(exits, N): the images from the surest to the least sure, for each exit."""
        return np.argsort(-self.confidence, axis=1, kind="stable")

    @cached_property
    def chances(self) -> Floats:
        """(exits, N): how often answers that are about as sure are right. So luck with single images counts less."""
        ranks, around = np.arange(self.size), int(self.size * NEIGHBOURS)
        low, high = (ranks - around).clip(0), (ranks + around + 1).clip(max=self.size)
        chances = np.empty(self.confidence.shape)
        for of_exit, correct, order in zip(chances, self.correct, self.order, strict=True):
            right = np.append(0, np.cumsum(correct[order]))
            of_exit[order] = (right[high] - right[low]) / (high - low)
        return chances

    def leaving(self, thresholds: Floats) -> Iterator[NDArray[np.bool_]]:
        """For each exit in turn, which of the images leave there."""
        waiting = np.ones(self.size, dtype=bool)
        for sure, threshold in zip(self.confidence, thresholds, strict=True):
            leaves = waiting & (sure >= threshold)
            yield leaves
            waiting &= ~leaves

    def value(self, thresholds: Floats) -> Value:
        right = 0
        beyond = 0.0  # spent past the first exit: rounding must not take anyone above the least budget
        first, last = self.costs[[0, -1]].tolist()
        for correct, price, leaves in zip(self.correct, self.costs, self.leaving(thresholds), strict=True):
            right += int(np.count_nonzero(correct & leaves))
            beyond += (float(price) - first) * int(np.count_nonzero(leaves))
        return Value(right / self.size, min(first + beyond / self.size, last))

    def shares(self, thresholds: Floats) -> tuple[float, ...]:
        """Which part of the images leaves at each exit."""
        return tuple(int(np.count_nonzero(leaves)) / self.size for leaves in self.leaving(thresholds))

    def with_slack(self, thresholds: Floats) -> Floats:
        """Thresholds that these images still reach, and no others do, when they are computed a little differently."""
        slack = thresholds.copy()
        for exit in np.flatnonzero(np.isfinite(thresholds)).tolist():
            below = self.confidence[exit][self.confidence[exit] < thresholds[exit]]
            surest_below = below.max() if len(below) else -np.inf
            lower = thresholds[exit] - min((thresholds[exit] - surest_below) / 2, SLACK)
            if lower > surest_below:  # two neighbouring numbers have none between them
                slack[exit] = lower
        return slack

    def thinned(self, most: int) -> "Outcomes":
        """At most so many of the images, every k-th in their order, whatever their confidence."""
        step = -(-self.size // most)
        if step == 1:
            return self
        return Outcomes(self.confidence[:, ::step].copy(), self.correct[:, ::step].copy(), self.costs)


def numbers_of_exits(name: str, values: ArrayLike) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, one for each exit, got {values!r}") from error


def check_costs(costs: ArrayLike) -> Floats:
    prices = numbers_of_exits("costs", costs)
    rising = prices.ndim == 1 and len(prices) and np.isfinite(prices).all() and prices[0] > 0
    if not rising or not (np.diff(prices) > 0).all():
        raise ValueError(f"costs must be what it takes to reach each exit, above 0 and rising, got {costs!r}")
    return prices


def check_budget(budget: object, costs: Floats) -> float:
    """A budget that reaches the first exit at least."""
    if isinstance(budget, bool) or not isinstance(budget, int | float | np.integer | np.floating):
        raise TypeError(f"budget must be a number, the average cost of an image, got {budget!r}")
    if not budget >= costs[0]:  # NaN too
        raise ValueError(
            f"budget must be at least {costs[0]:,.15g}, the cost of the first exit, got {budget:,.15g}"
            f"{_unit_hint(float(budget), float(costs[0]))}"
        )
    return float(budget)


def _unit_hint(budget: float, first: float) -> str:
    """Of a number that looks as if it were millions, or a share."""
    if 0 < budget <= 1 <= first:
        return f'; a share is written as text: "{100 * budget:.4g}%"'
    return f'; with a unit it is text: "{budget:.15g}M"' if 1 < budget < 1000 <= first else ""
