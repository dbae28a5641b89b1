"""Claims about budgeted batch classification on CIFAR-100 and CIFAR-10 (figures 7 and 11)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from msdnet.reproduce.claims.claim import ON_PAR, ON_PAR_CIFAR10, Claim, Finding, Results
from msdnet.reproduce.claims.readings import Gains, Tradeoff, against_each, cheaper, listed, span
from msdnet.reproduce.claims.systems import (
    ENSEMBLES,
    NAMES,
    PUBLISHED,
    best_of_msdnets,
    ensembles_are_no_better,
    published_fractalnet,
    within_budgets,
)
from msdnet.reproduce.comparison import (
    ANYTIME_MSDNET,
    DENSENETS,
    DENSENETS_CIFAR10,
    FRACTALNET,
    IDENTICAL,
    MSDNETS,
    RESNETS,
    RESNETS_CIFAR10,
    STOCHASTIC,
    VARYING,
    WIDE_RESNETS,
    WITH_CLASSIFIERS,
)
from msdnet.reproduce.figure import Place, anytime, budgeted, sizes
from msdnet.reproduce.measurement import Measurement

__all__ = ["A_TENTH", "CIFAR10", "CLAIMS", "CONSISTENTLY", "FIVE_TIMES"]

_PRECISELY = 5  # per cent of a budget

Rivals = Callable[[Results], Mapping[str, list[Place]]]
"""Kinds of systems, each by what it costs and brings."""


def _with_classifiers(measured: Results) -> dict[str, list[Place]]:
    """At every budget."""
    return {NAMES[name]: budgeted([measured[name]]) for name in WITH_CLASSIFIERS}


def _rivals(measured: Results, resnets: Sequence[str], densenets: Sequence[str]) -> dict[str, list[Place]]:
    """Single networks as a whole; ensembles, and networks with intermediate classifiers, at every budget."""
    return {
        "ResNets": sizes(measured.each(resnets)),
        "DenseNets": sizes(measured.each(densenets)),
        **{NAMES[name]: budgeted([measured[name]]) for name in VARYING},
        **_with_classifiers(measured),
    }


def _all_on_cifar10(measured: Results) -> dict[str, list[Place]]:
    rivals = _rivals(measured, RESNETS_CIFAR10, DENSENETS_CIFAR10)
    return rivals | {PUBLISHED: published_fractalnet("cifar10")}


def _all_on_cifar100(measured: Results) -> dict[str, list[Place]]:
    """And other kinds of networks. Each column of a FractalNet can be run alone."""
    return _rivals(measured, RESNETS, DENSENETS) | {
        PUBLISHED: published_fractalnet("cifar100"),
        **{NAMES[name]: budgeted([measured[name]]) for name in IDENTICAL},
        "Wide ResNets": sizes(measured.each(WIDE_RESNETS)),
        "stochastic depth": sizes([measured[STOCHASTIC]]),
        NAMES[FRACTALNET]: _each_alone(measured[FRACTALNET]),
    }


def _each_alone(fractalnet: Measurement) -> list[Place]:
    """Its columns, and all of them joined, which share nothing: each by what it costs by itself."""
    alone = np.diff(fractalnet.whole_costs, prepend=0)
    return [Place(cost / 1e6, 100 * right) for cost, right in zip(alone, fractalnet.test_accuracy, strict=True)]


def _above(measured: Results, rivals: Rivals, margin: float, on_par: float = ON_PAR) -> Finding:
    """It holds if MSDNets are above all that cost no more than they can spend, and on par with what is costlier.

    But not with costlier ensembles, which would go on to any cost.
    """
    ensembles = {NAMES[name] for name in ENSEMBLES}

    def holds(kind: str, found: Gains) -> bool:
        return found.above(margin) if kind in ensembles else found.outperforms(margin, on_par)

    return against_each(best_of_msdnets(measured), rivals(measured), holds, aside=PUBLISHED)


def _a_tenth_of_resnet_110(measured: Results) -> Finding:
    best, (other,) = best_of_msdnets(measured), sizes([measured["resnet_110"]])
    at_tenth = best.at(other.x / 10) - other.y
    return Finding(f"{at_tenth:+.2f} points at a tenth of its cost; {cheaper(best, other)}", at_tenth > -ON_PAR)


def _up_to_five_times_cheaper(measured: Results) -> Finding:
    """It holds if something of each kind is reached at less than its cost, and a DenseNet at a fourth or less.

    Of DenseNets, since larger networks waste more: a FractalNet of 34 M parameters would make the claim easy. Of
    FractalNets the published ones count, as everywhere: they are those of the paper's figure.
    """
    best, words, most = best_of_msdnets(measured), [], []
    trained = (DENSENETS, (STOCHASTIC,), WIDE_RESNETS)
    kinds = [{NAMES[name]: sizes([measured[name]])[0] for name in kind} for kind in trained]
    kinds.append({PUBLISHED: min(published_fractalnet("cifar100"), key=lambda place: place.y)})  # the easiest to reach
    for kind in kinds:
        words += [f"{called}: {cheaper(best, other)}" for called, other in kind.items()]
        most.append(max(best.times_cheaper(other) or 0.0 for other in kind.values()))
    words.append(f"{NAMES[FRACTALNET]}, trained here: {cheaper(best, sizes([measured[FRACTALNET]])[0])}")
    densenets = most[0]
    return Finding("; ".join(words), min(most) > 1 and densenets >= 4)


def _below_single_networks(measured: Results) -> Finding:
    """Exits of networks with intermediate classifiers, against single networks of their kind and cost.

    It holds if the first half of those that can be compared is behind on average: early ones are what they are for.
    """
    words, holds = [], True
    for name, singles in zip(WITH_CLASSIFIERS, (RESNETS, DENSENETS), strict=True):
        against = _against_singles(measured, name, singles)
        words.append(f"exits of {NAMES[name]} {listed(against)} points against single networks of their cost")
        if ANYTIME_MSDNET in measured:
            words[-1] += f" (of MSDNet {listed(_against_singles(measured, ANYTIME_MSDNET, singles))})"
        early = against[: (len(against) + 1) // 2]
        holds &= bool(early) and bool(np.mean(early) < -ON_PAR)
    return Finding("; ".join(words), holds)


def _against_singles(measured: Results, name: str, singles: tuple[str, ...]) -> list[float]:
    """Points of each exit that can be compared."""
    single = sizes(measured.each(singles))
    found = Tradeoff(single, single[-1].x).gains(anytime([measured[name]]))
    return [-gain for gain in (*found.within, *found.beyond)]


def _budgets_are_kept(measured: Results) -> Finding:
    """It holds if no budget that a system can spend is missed by more than a twentieth."""
    words, holds = [], True
    for kind, names in {"MSDNets": MSDNETS, "ensembles": VARYING}.items():
        off = [
            100 * (point.cost / point.budget - 1)
            for one in measured.each(names)
            for point in one.by("paper")
            if point.budget <= one.whole_costs[-1]
        ]
        missed = sum(abs(share) >= _PRECISELY for share in off)
        words.append(f"{kind} {span(off)}% ({missed} of {len(off)} by {_PRECISELY}% or more)")
        holds &= bool(off) and not missed
    return Finding(f"what test images cost, off the budget: {', '.join(words)}", holds)


def _ensembles_are_no_better(measured: Results) -> Finding:
    members = zip(VARYING, (RESNETS, DENSENETS), strict=True)
    return ensembles_are_no_better(measured, {name: (NAMES[name], single) for name, single in members})


def _adapts_to_the_difficulty(measured: Results) -> Finding:
    """What easy images that leave early bring an MSDNet, against all images leaving at one exit, for the same cost.

    It holds if that is more than the margin in each, on average over its exits but the last, where nothing is spared.
    """
    words, least = [], np.inf
    for one in measured.each(MSDNETS):
        gains = within_budgets(one).gains(anytime([one])[:-1]).within
        words.append(f"{len(one.costs)} exits {listed(gains) or 'none'}")
        least = min(least, float(np.mean(gains)) if gains else -np.inf)
    return Finding(f"points above its own exits at their cost: {'; '.join(words)}", least > ON_PAR)


def _one_network_over_a_wide_range(measured: Results) -> Finding:
    """From what the cheapest other system costs to the first that is above the network.

    A range is impressive if that is five times as much (from the cheapest other system to the costliest MSDNet it would
    be about ten), and reaches "almost unconstrained settings" if it ends with what the network can spend at most.
    """
    others = [place for places in _all_on_cifar100(measured).values() for place in places]
    ranges = []
    for one in measured.each(MSDNETS):
        network = within_budgets(one)
        low = max(min(network.places).x, min(others).x)
        ends = [other.x for other in others if low <= other.x <= network.full and other.y >= network.at(other.x)]
        most = max(network.places).x
        high = max(low, min([most, *ends]))
        ranges.append((high / low, len(one.costs), low, high, most))
    # One that reaches its full cost, if its range is wide; else the widest.
    times, exits, low, high, most = max(ranges, key=lambda found: (found[0] >= 5 and found[3] == found[4], found[0]))
    words = f"one network ({exits} exits) is above all others of figure 7 from {low:.0f} to {high:.0f} million"
    words += f" multiply-adds, of {most:.0f} that it can spend"
    wide = times >= 5
    return Finding(words, wide and high == most, in_part=wide and high < most)


CONSISTENTLY = Claim(
    "budgeted: MSDNets consistently outperform all baselines across all budgets",
    "5.2",
    partial(_above, rivals=_all_on_cifar100, margin=0.0),
    "budgeted-cifar100",
)
A_TENTH = Claim(
    "budgeted: on par with a ResNet-110 at a tenth of its cost", "5.2", _a_tenth_of_resnet_110, "budgeted-cifar100"
)
FIVE_TIMES = Claim(
    "budgeted: up to 5 times cheaper than DenseNets, stochastic depth, Wide ResNets and FractalNets",
    "5.2",
    _up_to_five_times_cheaper,
    "budgeted-cifar100",
)
CIFAR10 = Claim(
    "CIFAR-10, budgeted: MSDNets outperform all baselines by a significant margin",
    "B.2",
    partial(_above, rivals=_all_on_cifar10, margin=ON_PAR_CIFAR10, on_par=ON_PAR_CIFAR10),
    "budgeted-cifar10",
)
CLAIMS = (
    Claim(
        "classifiers that are attached naively to a state-of-the-art network lead to poor performance",
        "4",
        _below_single_networks,
        "budgeted-cifar100",
    ),
    CONSISTENTLY,
    A_TENTH,
    FIVE_TIMES,
    Claim(
        "budgeted: substantially above ResNet-MC and DenseNet-MC with early exits",
        "5.2",
        partial(_above, rivals=_with_classifiers, margin=ON_PAR),
        "budgeted-cifar100",
    ),
    Claim(
        "budgeted: budgets can be set very precisely, for MSDNets and for ensembles (said of ImageNet)",
        "5.2",
        _budgets_are_kept,
        "budgeted-cifar100",
    ),
    Claim(
        "budgeted: ensembles with early exits are on par with or worse than their members alone (said of ImageNet)",
        "5.2",
        _ensembles_are_no_better,
        "budgeted-cifar100",
    ),
    Claim(
        "budgeted: MSDNets effectively adapt the amount of computation to the difficulty of the example",
        "1",
        _adapts_to_the_difficulty,
        "budgeted-cifar100",
    ),
    Claim(
        "a single network can outperform all competitive baselines on an impressive range of budgets, from highly "
        "limited to almost unconstrained settings",
        "6",
        _one_network_over_a_wide_range,
        "budgeted-cifar100",
    ),
    CIFAR10,
    Claim(
        "CIFAR-10: as on CIFAR-100, ResNet-MC and DenseNet-MC perform relatively poorly",
        "B.2",
        partial(_above, rivals=_with_classifiers, margin=ON_PAR_CIFAR10, on_par=ON_PAR_CIFAR10),
        "budgeted-cifar10",
    ),
)
