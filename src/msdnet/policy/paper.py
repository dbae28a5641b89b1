"""The paper's policy (section 4): exit k answers the share q_k = z (1-q)^(k-1) q of all images.

The z makes the shares add up to 1, so each share is r = 1 - q times the one before it. With 0 < q < 1 that covers
budgets up to the average of the exits' costs. Here r may also be above 1 (late exits are favoured), which covers all
budgets from the first exit's cost to the last's.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msdnet.policy.outcomes import Floats, Outcomes, check_budget, check_costs

__all__ = ["all_targets", "exit_shares", "lean_for", "shares_at", "targets", "thresholds_at", "thresholds_for"]

LEANS = 2**40  # leans are multiples of one part in so many: few enough to find all that differ in what they do


def exit_shares(costs: ArrayLike, budget: float) -> tuple[float, ...]:
    """Which share of the images is to leave at each exit, so that an image costs the budget on average.

    >>> [round(share, 3) for share in exit_shares([1, 2, 3], 1.5)]
    [0.616, 0.268, 0.116]
    """
    prices = check_costs(costs)
    return tuple(shares_at(lean_for(prices, check_budget(budget, prices)), len(prices)).tolist())


def shares_at(lean: float | Floats, exits: int) -> Floats:
    """Shares (..., exits) in the ratio r = lean / (1 - lean), for each lean.

    With lean 0 all leave at the first exit, with 1/2 equally many at each, with 1 all at the last.
    """
    steps, leans = np.arange(exits), np.asarray(lean, dtype=np.float64)[..., None]
    weights = np.power(leans, steps) * np.power(1 - leans, steps[::-1])
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def lean_for(costs: Floats, budget: float) -> float:
    """The largest lean whose average cost the budget covers; the cost rises with it."""
    if budget >= costs[-1]:
        return 1.0
    low, high = 0, LEANS
    while high - low > 1:
        middle = (low + high) // 2
        covered = shares_at(middle / LEANS, len(costs)) @ costs <= budget
        low, high = (middle, high) if covered else (low, middle)
    return low / LEANS


def thresholds_at(lean: float, held_out: Outcomes) -> Floats:
    """Thresholds with which the shares of a lean leave."""
    return thresholds_for(targets(lean, held_out.exit_count, held_out.size), held_out)


def thresholds_for(leaving: NDArray[np.int64], held_out: Outcomes) -> Floats:
    """Thresholds with which so many of the held-out images have left by each exit, counting those that reach it.

    Shares become whole images by rounding up, exit after exit, and equally sure images leave together: both can only
    let images leave earlier, so the cost of the shares is never exceeded.
    """
    thresholds = np.full(held_out.exit_count, np.inf)
    thresholds[-1] = -np.inf  # whoever comes that far leaves
    waiting = np.arange(held_out.size)
    for exit in range(held_out.exit_count - 1):
        stay = held_out.size - int(leaving[exit])
        if stay < len(waiting):
            sure = held_out.confidence[exit, waiting]
            # Where all leave, so will those that are less sure than any held-out image.
            thresholds[exit] = np.partition(sure, stay)[stay] if stay else -np.inf
            waiting = waiting[sure < thresholds[exit]]
    return thresholds


def targets(lean: float | Floats, exits: int, size: int) -> NDArray[np.int64]:
    """How many of the images are to have left by each exit (..., exits), for each lean."""
    by_exit = np.cumsum(shares_at(lean, exits), axis=-1) * size
    return np.ceil(by_exit).clip(0, size).astype(np.int64)


def all_targets(exits: int, size: int) -> NDArray[np.int64]:
    """Every row that `targets` has for some lean, about exits x size of them: halved until nothing lies in between."""
    low, high, rows = np.array([0]), np.array([LEANS]), []
    while len(low):
        middle = (low + high) // 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        ends = [targets(lean / LEANS, exits, size) for lean in (low, high)]
        rows += ends
        apart = (np.abs(ends[0] - ends[1]).sum(axis=1) > 1) & (high - low > 1)
        low, high = low[apart], high[apart]
    return np.unique(np.concatenate(rows), axis=0)
