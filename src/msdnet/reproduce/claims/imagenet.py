"""Claims about ImageNet (figures 5 and 7, left). Any folder of images can stand for it, but is not judged."""

from collections.abc import Callable
from functools import partial

import numpy as np

from msdnet.reproduce.claims.budgeted import BUDGETS_ARE_KEPT, ENSEMBLES_ARE_NO_BETTER
from msdnet.reproduce.claims.claim import ON_PAR, Claim, Finding, NotMeasured, Results
from msdnet.reproduce.claims.readings import Gains, Tradeoff, against_each, budgets, cheaper, span
from msdnet.reproduce.claims.systems import best_of_msdnets, budgets_are_kept, ensembles_are_no_better
from msdnet.reproduce.figure import anytime, sizes
from msdnet.reproduce.imagenet import DENSENETS, MSDNETS, RESNETS, is_imagenet
from msdnet.reproduce.measurement import Measurement

__all__ = ["ABOVE_ENSEMBLES", "ABOVE_SINGLE_NETWORKS", "CLAIMS"]

_ENSEMBLES = {
    "ensemble_resnets": ("ensemble of ResNets", RESNETS),
    "ensemble_densenets": ("ensemble of DenseNets", DENSENETS),
}


def _above(_: str, found: Gains) -> bool:
    return found.above(ON_PAR)


def _above_ensembles_by(measured: Results, points: float, low: float = 0.0, high: float = np.inf) -> Finding:
    """At all budgets in a range at which all have an answer. Exits are joined by lines, as in the paper's figure: with
    so few of them, steps would leave MSDNet behind just before each of its own.
    """
    ours, *ensembles = (_on_a_line(measured[name]) for name in (MSDNETS[-1], *_ENSEMBLES))
    low, high = max(low, *(one.places[0].x for one in (ours, *ensembles))), min(high, ours.full)
    if low > high:
        return Finding(f"0 answers up to {high:,.0f} million multiply-adds by all of them", False)
    above = [ours.at(budget) - max(one.at(budget) for one in ensembles) for budget in budgets(low, high)]
    words = f"{span(above)} points against the better ensemble, from {low:,.0f} to {high:,.0f} million multiply-adds"
    return Finding(words, min(above) > points)


def _on_a_line(one: Measurement) -> Tradeoff:
    return Tradeoff(anytime([one]), one.whole_costs[-1] / 1e6)


def _above_ensembles(measured: Results) -> Finding:
    return _above_ensembles_by(measured, ON_PAR)


def _four_to_eight_points(measured: Results) -> Finding:
    """It holds if it is at least that, nearly."""
    return _above_ensembles_by(measured, 4 - ON_PAR, 1000, 3000)


def _above_single_networks(measured: Results) -> Finding:
    """Of the same cost, as the paper says: costlier ones are told and do not count."""
    rivals = {"ResNets": sizes(measured.each(RESNETS)), "DenseNets": sizes(measured.each(DENSENETS))}
    return against_each(best_of_msdnets(measured, MSDNETS), rivals, _above)


def _at_1700_million(measured: Results) -> Finding:
    ours = best_of_msdnets(measured, MSDNETS).at(1700)
    resnets = sizes(measured.each(RESNETS))
    above = ours - Tradeoff(resnets, resnets[-1].x).at(1700)
    words = f"{ours:.1f}%, {above:+.1f} points against ResNets (between those of the nearest costs)"
    return Finding(words, ours > 75 - ON_PAR and above > 6 - ON_PAR)


def _cheaper_than_densenets(measured: Results) -> Finding:
    """It holds if half of them, or more, are reached at half of their cost or less."""
    best, densenets = best_of_msdnets(measured, MSDNETS), measured.each(DENSENETS)
    others = {f"DenseNet-{one.name.split('_')[-1]}": sizes([one])[0] for one in densenets}
    times = [best.times_cheaper(other) or 0.0 for other in others.values()]  # none where an accuracy is never reached
    words = (f"{called}: {cheaper(best, other)}" for called, other in others.items())
    return Finding("; ".join(words), float(np.median(times)) >= 2)


def _of_imagenet(measured: Results, find: Callable[[Results], Finding]) -> Finding:
    """The paper's numbers are of ImageNet, and of no other images."""
    if not all(is_imagenet(one.images) for one in measured.values()):
        raise NotMeasured("ImageNet")
    return find(measured)


def _anytime(says: str, find: Callable[[Results], Finding]) -> Claim:
    return Claim(f"ImageNet, anytime: {says}", "5.1", partial(_of_imagenet, find=find), "anytime-imagenet")


def _budgeted(says: str, find: Callable[[Results], Finding], elsewhere: Claim | None = None) -> Claim:
    find = partial(_of_imagenet, find=find)
    return Claim(f"ImageNet, budgeted: {says}", "5.2", find, "budgeted-imagenet", elsewhere=elsewhere)


ABOVE_ENSEMBLES = _anytime(
    "MSDNet is substantially above the ensembles of ResNets and DenseNets at all budgets", _above_ensembles
)
ABOVE_SINGLE_NETWORKS = _budgeted(
    "MSDNet is substantially above ResNets and DenseNets of the same cost", _above_single_networks
)
CLAIMS = (
    ABOVE_ENSEMBLES,
    _anytime("from 0.1e10 to 0.3e10 multiply-adds its accuracy is 4 to 8% higher", _four_to_eight_points),
    ABOVE_SINGLE_NETWORKS,
    _budgeted("75% at an average of 1.7e9, 6% above a ResNet of the same cost", _at_1700_million),
    _budgeted("2 to 3 times cheaper than DenseNets of the same accuracy", _cheaper_than_densenets),
    _budgeted(
        "budgets can be set very precisely, by MSDNets and by ensembles",
        partial(budgets_are_kept, kinds={"MSDNets": MSDNETS, "ensembles": tuple(_ENSEMBLES)}),
        BUDGETS_ARE_KEPT,
    ),
    _budgeted(
        "ensembles with early exits are on par with or worse than their members",
        partial(ensembles_are_no_better, members=_ENSEMBLES),
        ENSEMBLES_ARE_NO_BETTER,
    ),
)
