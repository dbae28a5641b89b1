"""Claims about ImageNet (figures 5 and 7, left)."""

from collections.abc import Callable

import numpy as np

from msdnet.anytime import AnytimeCurve
from msdnet.reproduce.claims.claim import ON_PAR, Claim, Finding, Measured
from msdnet.reproduce.claims.readings import accuracy_at, all_gains, beyond, gains, ratio, span, times_cheaper
from msdnet.reproduce.figure import Place, budgeted, envelope, sizes
from msdnet.reproduce.imagenet import DENSENETS, MSDNETS, RESNETS

__all__ = ["CLAIMS"]

_NO_IMAGENET = "not measured: ImageNet was not at hand. `msdnet reproduce {}` measures it"
_ENSEMBLES = {"ensemble_resnets": "ResNets", "ensemble_densenets": "DenseNets"}
_MEMBERS = {"ensemble_resnets": RESNETS, "ensemble_densenets": DENSENETS}


def _above_ensembles(measured: Measured) -> Finding:
    msdnet, words, lowest = measured[MSDNETS[-1]], [], np.inf
    for name, kind in _ENSEMBLES.items():
        found = gains(msdnet, measured[name])
        words.append(f"{span(found.within)} points above the ensemble of {kind}{beyond(found.beyond)}")
        lowest = min(lowest, *found.within)
    return Finding("; ".join(words), bool(lowest > ON_PAR))


def _four_to_eight_points(measured: Measured) -> Finding:
    """At budgets of 1 to 3 billion, against the better of the two ensembles."""
    budgets = np.linspace(1e9, 3e9, 21)
    ours, *others = (
        100 * AnytimeCurve(measured[name].whole_costs, measured[name].test_accuracy).at(budgets)
        for name in (MSDNETS[-1], *_ENSEMBLES)
    )
    above = ours - np.maximum(*others)
    return Finding(f"{span(above.tolist())} points above the better ensemble", bool(above.min() > 4 - ON_PAR))


def _best(measured: Measured) -> list[Place]:
    return envelope([measured[name] for name in MSDNETS])


def _above_single_networks(measured: Measured) -> Finding:
    best, words, lowest = _best(measured), [], np.inf
    for kind, names in {"ResNets": RESNETS, "DenseNets": DENSENETS}.items():
        found = all_gains(best, sizes([measured[name] for name in names]))
        words.append(f"{span(found.within)} points above {kind}{beyond(found.beyond, 'those')}")
        lowest = min([lowest, *found.within])
    return Finding("; ".join(words), bool(lowest > ON_PAR))


def _at_1700_million(measured: Measured) -> Finding:
    ours = accuracy_at(_best(measured), 1700)
    above = ours - accuracy_at(sizes([measured[name] for name in RESNETS]), 1700)
    words = f"{ours:.1f} %, {above:+.1f} points above ResNets (between those of the nearest costs)"
    return Finding(words, ours > 75 - ON_PAR and above > 6 - ON_PAR)


def _cheaper_than_densenets(measured: Measured) -> Finding:
    """It holds if some are reached at half of their cost or less, and none that is reached costs less."""
    best = _best(measured)
    ratios = [found for name in DENSENETS if (found := ratio(best, measured[name]))]
    words = "; ".join(f"DenseNet-{name.split('_')[-1]}: {times_cheaper(best, measured[name])}" for name in DENSENETS)
    return Finding(words, bool(ratios) and max(ratios) >= 2 and min(ratios) > 1)


def _ensembles_are_no_better(measured: Measured) -> Finding:
    words, highest = [], -np.inf
    for name, kind in _ENSEMBLES.items():
        found = all_gains(budgeted([measured[name]]), sizes([measured[member] for member in _MEMBERS[name]]))
        words.append(f"ensemble of {kind}: {span(found.within)} points above single ones of the same cost")
        highest = max(highest, *found.within)
    return Finding("; ".join(words), bool(highest < ON_PAR))


def _anytime(says: str, find: Callable[[Measured], Finding]) -> Claim:
    name = "anytime-imagenet"
    return Claim(f"ImageNet, anytime: {says}", "5.1", find, name, _NO_IMAGENET.format(name))


def _budgeted(says: str, find: Callable[[Measured], Finding]) -> Claim:
    name = "budgeted-imagenet"
    return Claim(f"ImageNet, budgeted: {says}", "5.2", find, name, _NO_IMAGENET.format(name))


CLAIMS = (
    _anytime("MSDNet is substantially above the ensembles of ResNets and DenseNets at all budgets", _above_ensembles),
    _anytime("from 0.1e10 to 0.3e10 multiply-adds its accuracy is 4 to 8 % higher", _four_to_eight_points),
    _budgeted("MSDNet is substantially above ResNets and DenseNets of the same cost", _above_single_networks),
    _budgeted("75 % at an average of 1.7e9, 6 % above a ResNet of the same cost", _at_1700_million),
    _budgeted("2 to 3 times cheaper than DenseNets of the same accuracy", _cheaper_than_densenets),
    _budgeted("ensembles with early exits are on par with or worse than their members", _ensembles_are_no_better),
)
