"""Our policy: thresholds that give the highest held-out accuracy under a budget, whatever shares then leave.

With a price put on cost, the best threshold of one exit, given those of the others, is found exactly: sort the images
that reach it by confidence, add up what is gained if they leave instead of going on, and cut where the sum is highest.
An answer counts as right as often as those that are about as sure: what is won by luck with single images would be lost
on others.
Sweeping over the exits until nothing improves, for prices from high to low, gives thresholds for many budgets; the
paper's policy gives others. The best of both, and steps from one of these to the next, are there for every budget.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msdnet.policy.outcomes import Floats, Outcomes, Value
from msdnet.policy.paper import all_targets, lean_for, thresholds_at, thresholds_for

__all__ = ["Candidate", "Frontier"]

# Prices of the whole way from the first exit to the last, in right answers.
HIGHEST_PRICE, LOWEST_PRICE = 20.0, 1e-2
FINEST_PRICE_STEP = 0.02  # one price over the next, as a logarithm
PRICES = 40
SWEEPS = 4
STEPS_BETWEEN = 8
SEARCHED_IMAGES = 12_500  # more change the thresholds by less than they differ from one held-out set to another
PAPERS = 100  # of the paper's policies that are compared
ALL_PAPERS = 1_000  # up to so many there may be for all of them to be compared


class Candidate(NamedTuple):
    """Thresholds, and what they are worth."""

    value: Value
    thresholds: Floats


class Frontier:
    """The best thresholds known for every budget. What is tried does not depend on the budget that is asked for, so a
    larger budget gets no worse an answer. One more is looked at, so as to be never worse than the paper: its policy
    for just that budget. Where images are few, all of the paper's are tried anyway; where they are many, this one can
    be luckier than what slightly larger budgets find, by a few images in ten thousand.
    """

    def __init__(self, held_out: Outcomes) -> None:
        self.held_out = held_out
        known = _best(self._judge([*_path(held_out), *_papers(held_out)]))
        self.candidates = _best([*known, *self._judge(_between(held_out, known))])
        self._costs = [candidate.value.cost for candidate in self.candidates]

    def best(self, budget: float, lean: float) -> Candidate:
        """The most accurate candidate that the budget covers; the paper's, which leans so far, among them."""
        known = self.candidates[bisect_right(self._costs, budget) - 1]
        return max(known, *self._judge([thresholds_at(lean, self.held_out)]), key=_merit)

    def _judge(self, tried: Iterable[Floats]) -> list[Candidate]:
        return [Candidate(self.held_out.value(thresholds), thresholds) for thresholds in tried]


def _merit(candidate: Candidate) -> tuple[float, float]:
    return candidate.value.accuracy, -candidate.value.cost


def _best(candidates: list[Candidate]) -> list[Candidate]:
    """Those that no cheaper one equals, from the cheapest to the most accurate."""
    best: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda candidate: (candidate.value.cost, -candidate.value.accuracy)):
        if not best or candidate.value.accuracy > best[-1].value.accuracy:
            best.append(candidate)
    return best


def _papers(held_out: Outcomes) -> list[Floats]:
    """Thresholds of the paper's policy: all there are where images are few, otherwise for budgets evenly apart."""
    if (held_out.exit_count - 1) * held_out.size <= ALL_PAPERS:
        return [thresholds_for(leaving, held_out) for leaving in all_targets(held_out.exit_count, held_out.size)]
    budgets = np.linspace(held_out.costs[0], held_out.costs[-1], PAPERS).tolist()
    return [thresholds_at(lean_for(held_out.costs, budget), held_out) for budget in budgets]


def _path(held_out: Outcomes) -> list[Floats]:
    """Thresholds from the cheapest to the most accurate, by way of falling prices.

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
    return [cheapest, *(climbed.thresholds for climbed in found.values()), _climb(searched, 0.0).thresholds]


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
    worth = held_out.chances - price * held_out.costs[:, None]  # (exits, N): of leaving there
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


def _between(held_out: Outcomes, known: list[Candidate]) -> list[Floats]:
    """Steps from each of the known thresholds to the next, counted in images: budgets between the two are met too."""
    rising = np.sort(held_out.confidence, axis=1)  # (exits, N)
    sure = np.hstack([rising, np.full((len(rising), 1), np.inf)])
    ranks = [
        np.array([np.searchsorted(row, threshold) for row, threshold in zip(rising, thresholds, strict=True)])
        for _, thresholds in known
    ]
    steps = []
    for start, end in pairwise(ranks):
        for part in np.linspace(0, 1, STEPS_BETWEEN + 1)[1:-1].tolist():
            rank = np.rint(start + part * (end - start)).astype(int)
            step = sure[np.arange(len(rank)), rank]
            step[-1] = -np.inf
            steps.append(step)
    return steps
