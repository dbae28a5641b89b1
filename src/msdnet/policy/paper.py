"""The paper's policy (section 4): exits are left with a constant probability q, whatever the image.

Of the images that reach an exit, the share q leaves there, so exit k answers q_k = z (1-q)^(k-1) q of all. That covers
budgets up to the average of the exits' costs. Here the ratio r = 1 - q of each share to the one before may also be
above 1 (late exits are favoured), which covers all budgets from the first exit's cost to the last's.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msdnet.policy.outcomes import Floats, Outcomes, check_budget, check_costs

__all__ = ["exit_shares", "lean_for", "shares_at", "targets", "thresholds_at"]


def exit_shares(costs: ArrayLike, budget: float) -> tuple[float, ...]:
    """Which share of the images is to leave at each exit, so that an image costs the budget on average.

    >>> [round(share, 3) for share in exit_shares([1, 2, 3], 1.5)]
    [0.616, 0.268, 0.116]
    """
    prices = check_costs(costs)
    return tuple(shares_at(lean_for(prices, check_budget(budget, prices)), len(prices)).tolist())


def shares_at(lean: float, exits: int) -> Floats:
    """Shares in the ratio r = lean / (1 - lean).

    With lean 0 all leave at the first exit, with 1/2 equally many at each, with 1 all at the last.
    """
    steps = np.arange(exits)
    weights = np.power(lean, steps) * np.power(1 - lean, steps[::-1])
    shares: Floats = weights / weights.sum()
    return shares


def lean_for(costs: Floats, budget: float) -> float:
    """The largest lean whose average cost the budget covers; the cost rises with it."""
    if budget >= costs[-1]:
        return 1.0
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if shares_at(middle, len(costs)) @ costs <= budget else (low, middle)
    return low


def thresholds_at(lean: float, held_out: Outcomes) -> Floats:
    """Thresholds with which those shares of the held-out images leave; an exit counts only the images that reach it.

    Shares become whole images by rounding up, exit after exit, and equally sure images leave together: both can only
    let images leave earlier, so the cost of the shares is never exceeded.
    """
    leaving = targets(lean, held_out.exit_count, held_out.size)
    thresholds = np.full(held_out.exit_count, np.inf)
    thresholds[-1] = -np.inf  # whoever comes that far leaves
    waiting = np.arange(held_out.size)
    for exit in range(held_out.exit_count - 1):
        stay = held_out.size - int(leaving[exit])
        if stay < len(waiting):
            sure = held_out.confidence[exit, waiting]
            thresholds[exit] = np.partition(sure, stay)[stay]
            waiting = waiting[sure < thresholds[exit]]
    return thresholds


def targets(lean: float, exits: int, size: int) -> NDArray[np.int64]:
    """How many of the images are to have left by each exit."""
    by_exit = np.cumsum(shares_at(lean, exits)) * size
    return np.ceil(by_exit).clip(0, size).astype(np.int64)
