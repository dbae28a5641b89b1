"""Our policy: thresholds that give the highest held-out accuracy under a budget, whatever shares then leave.

With a price put on cost, the best threshold of one exit, given those of the others, is found exactly: sort the images
that reach it by confidence, add up what is gained if they leave instead of going on, and cut where the sum is highest.
Sweeping over the exits until nothing improves, for prices from high to low, gives thresholds for every budget.
They are compared with all that the paper's policy can reach, so they are never worse than it on the held-out images.
"""

import heapq
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msdnet.policy.outcomes import Floats, Outcomes, Value
from msdnet.policy.paper import targets, thresholds_at

__all__ = ["Candidate", "Frontier"]

# Prices of the whole way from the first exit to the last, in right answers.
HIGHEST_PRICE, LOWEST_PRICE = 20.0, 1e-2
FINEST_PRICE_STEP = 0.02  # one price over the next, as a logarithm
PRICES = 40
SWEEPS = 4
STEPS_BETWEEN = 8
SEARCHED_IMAGES = 12_500  # more change the thresholds by less than they differ from one held-out set to another
PAPER_EVALUATIONS = 150


class Candidate(NamedTuple):
    """Thresholds, and what they are worth."""

    value: Value
    thresholds: Floats


class Frontier:
    """The best thresholds known for every budget. What is tried does not depend on the budget that is asked for,
    so a larger budget never gets a worse answer.
    """

    def __init__(self, held_out: Outcomes) -> None:
        self.held_out = held_out
        self.candidates = [Candidate(held_out.value(thresholds), thresholds) for thresholds in _path(held_out)]
        self._paper: dict[float, Candidate] = {}
        self._some_are_equal = bool((np.diff(np.sort(held_out.confidence, axis=1)) == 0).any())

    def best(self, budget: float, lean: float) -> Candidate:
        """The most accurate candidate that the budget covers; the paper's, which leans so far, among them."""
        affordable = [candidate for candidate in self.candidates if candidate.value.cost <= budget]
        best = max(affordable, key=_merit)
        return max(best, self._best_of_paper(lean, best.value.accuracy), key=_merit)

    def _best_of_paper(self, lean: float, at_least: float) -> Candidate:
        """The most accurate of the paper's thresholds up to a lean, unless none is better than what is known.

        Between two leans, each image that leaves later may push others aside, one at each exit to come. That bounds
        how much accuracy can change on the way, and intervals that cannot hold anything better are left alone. The
        rest is halved, the most promising first.
        """
        first, last = self._at(0.0), self._at(lean)
        best = max(first, last, key=_merit)
        intervals = [(-self._bound(0.0, lean), 0.0, lean)]
        for _ in range(PAPER_EVALUATIONS):
            if not intervals or -intervals[0][0] <= max(best.value.accuracy, at_least):
                break
            _, low, high = heapq.heappop(intervals)
            middle = (low + high) / 2
            best = max(best, self._at(middle), key=_merit)
            for half in ((low, middle), (middle, high)):
                if self._later(*half).sum() > 1 and low < middle < high:
                    heapq.heappush(intervals, (-self._bound(*half), *half))
        return best

    def _at(self, lean: float) -> Candidate:
        if lean not in self._paper:
            thresholds = thresholds_at(lean, self.held_out)
            self._paper[lean] = Candidate(self.held_out.value(thresholds), thresholds)
        return self._paper[lean]

    def _bound(self, low: float, high: float) -> float:
        """No lean in between is more accurate than this. Equally sure images move together: then nothing is certain."""
        if self._some_are_equal:
            return 1.0
        either = self._at(low).value.accuracy + self._at(high).value.accuracy
        changes = self._later(low, high) @ np.arange(self.held_out.exit_count, 0, -1)
        return float(either + changes / self.held_out.size) / 2

    def _later(self, low: float, high: float) -> NDArray[np.int64]:
        """How many images more go on from each exit at the second of two leans."""
        exits, size = self.held_out.exit_count, self.held_out.size
        return targets(low, exits, size) - targets(high, exits, size)


def _merit(candidate: Candidate) -> tuple[float, float]:
    return candidate.value.accuracy, -candidate.value.cost


def _path(held_out: Outcomes) -> list[Floats]:
    """Thresholds from the cheapest to the most accurate, by way of falling prices, and steps between neighbours.

    A new price is tried where the costs of two neighbours lie farthest apart.
    """
    cheapest = np.full(held_out.exit_count, np.inf)
    cheapest[[0, -1]] = -np.inf
    if held_out.exit_count == 1:
        return [cheapest]
    searched = held_out.thinned(SEARCHED_IMAGES)
    span = held_out.costs[-1] - held_out.costs[0]
    found: dict[float, Candidate] = {}
    for price in (math.log(HIGHEST_PRICE), math.log(LOWEST_PRICE)):
        found[price] = _climb(searched, math.exp(price) / span)
    for _ in range(PRICES):
        gaps = [(found[low].value.cost - found[high].value.cost, low, high) for low, high in pairwise(sorted(found))]
        gap, low, high = max(gap for gap in gaps if gap[2] - gap[1] > FINEST_PRICE_STEP)
        if gap <= 0:
            break
        price = (low + high) / 2
        found[price] = _climb(searched, math.exp(price) / span)
    path = [cheapest, *(found[price].thresholds for price in sorted(found, reverse=True))]
    path.append(_climb(searched, 0.0).thresholds)
    return path + [step for start, end in pairwise(path) for step in _between(searched, start, end)]


def _climb(held_out: Outcomes, price: float) -> Candidate:
    """Raise accuracy minus price x cost, one threshold at a time, until a whole sweep changes nothing.

    The first sweep weighs every exit as if all images came to it: so each threshold makes sense, though no image may
    get there yet.
    """
    nobody_leaves = np.full(held_out.exit_count, np.inf)
    nobody_leaves[-1] = -np.inf
    thresholds = _sweep(held_out, nobody_leaves, price)
    for _ in range(SWEEPS):
        swept = _sweep(held_out, thresholds, price)
        if np.array_equal(swept, thresholds):
            break
        thresholds = swept
    return Candidate(held_out.value(thresholds), thresholds)


def _sweep(held_out: Outcomes, thresholds: Floats, price: float) -> Floats:
    """From the last exit to the first: who goes on from an exit is then already settled for the exits after it."""
    swept = thresholds.copy()
    reaches = _reaches(held_out, thresholds)
    worth = held_out.correct - price * held_out.costs[:, None]  # (exits, N): of leaving there
    ahead = worth[-1]  # (N): of going on
    for exit in range(held_out.exit_count - 2, -1, -1):
        if reaches[exit].any():
            gain = np.where(reaches[exit], worth[exit] - ahead, 0.0)
            swept[exit] = _best_cut(held_out, exit, gain)
        ahead = np.where(held_out.confidence[exit] >= swept[exit], worth[exit], ahead)
    return swept


def _reaches(held_out: Outcomes, thresholds: Floats) -> NDArray[np.bool_]:
    """(exits, N): whether an image comes as far as an exit."""
    stays = held_out.confidence < thresholds[:, None]
    return np.vstack([np.ones(held_out.size, dtype=bool), np.logical_and.accumulate(stays[:-1])])


def _best_cut(held_out: Outcomes, exit: int, gain: Floats) -> float:
    """The threshold that lets the surest images leave as long as that pays in sum; equally sure ones stay together."""
    order = held_out.order[exit]
    sure = held_out.confidence[exit][order]
    total = np.cumsum(gain[order])
    total[:-1][sure[1:] == sure[:-1]] = -np.inf
    last = int(total.argmax())
    return float(sure[last]) if total[last] > 0 else np.inf


def _between(held_out: Outcomes, start: Floats, end: Floats) -> list[Floats]:
    """Steps from one set of thresholds to the next, counted in images: budgets between the two are met as well."""
    if np.array_equal(start, end):
        return []
    rising = np.sort(held_out.confidence, axis=1)  # (exits, N)
    ranks = [
        np.array([np.searchsorted(row, t) for row, t in zip(rising, thresholds, strict=True)])
        for thresholds in (start, end)
    ]
    padded = np.hstack([rising, np.full((len(rising), 1), np.inf)])
    steps = []
    for part in np.linspace(0, 1, STEPS_BETWEEN + 1)[1:-1]:
        rank = np.rint(ranks[0] + part * (ranks[1] - ranks[0])).astype(int)
        step = padded[np.arange(len(rank)), rank]
        step[-1] = -np.inf
        steps.append(step)
    return steps
