"""Claims about MSDNet beside other systems on CIFAR-100 and CIFAR-10 (figures 5, 7, 8 and 11)."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from msdnet.anytime import AnytimeCurve
from msdnet.reproduce.claims.claim import ON_PAR, ON_PAR_CIFAR10, Claim, Finding, Measured
from msdnet.reproduce.claims.readings import (
    accuracy_at,
    all_gains,
    beyond,
    gains,
    listed,
    ratio,
    span,
    times_cheaper,
)
from msdnet.reproduce.comparison import DENSENET_LAYERS, RESNET_LAYERS
from msdnet.reproduce.figure import Place, budgeted, envelope, sizes

__all__ = ["CLAIMS"]

_RESNETS = tuple(f"resnet_{layers}" for layers in RESNET_LAYERS)
_DENSENETS = tuple(f"densenet_bc_{layers}_12" for layers in DENSENET_LAYERS)
_STARS = tuple(f"densenet_star_{layers}_8" for layers in DENSENET_LAYERS)
_MSDNETS = tuple(f"cifar_batch_{exits}" for exits in range(4, 9))
_WITH_CLASSIFIERS = ("resnet_mc", "densenet_mc")
_VARYING = ("ensemble_resnets_varying", "ensemble_densenets_varying")
_IDENTICAL = ("ensemble_resnet_20", "ensemble_densenet_bc_28_12")
_LARGER = ("stochastic_110", "wide_resnet_16_4", "wide_resnet_40_4", "fractalnet_20")
_NAMES = {
    "resnet_mc": "ResNet-MC",
    "densenet_mc": "DenseNet-MC",
    "stochastic_110": "stochastic depth 110",
    "wide_resnet_16_4": "Wide ResNet 16-4",
    "wide_resnet_40_4": "Wide ResNet 40-4",
    "fractalnet_20": "FractalNet-20",
    "ensemble_resnets_varying": "ResNets of varying sizes",
    "ensemble_densenets_varying": "DenseNets of varying sizes",
    "ensemble_resnet_20": "five ResNet-20",
    "ensemble_densenet_bc_28_12": "five DenseNet-28",
    **{f"densenet_bc_{layers}_12": f"DenseNet-{layers}" for layers in DENSENET_LAYERS},
}


# --- anytime prediction


def _above_exits_of(measured: Measured, names: Sequence[str], on_par: float) -> Finding:
    msdnet, words, holds = measured["cifar_anytime"], [], True
    for name in names:
        found = gains(msdnet, measured[name])
        words.append(f"{span(found.within)} points above the exits of {_NAMES[name]}{beyond(found.beyond)}")
        holds &= min(found.within) > on_par
    return Finding("; ".join(words), holds)


def _on_par_at_first(measured: Measured) -> Finding:
    msdnet, ensembles = measured["cifar_anytime"], [measured[name] for name in (*_VARYING, *_IDENTICAL)]
    first = [gain for one in ensembles for gain in gains(msdnet, one, range(1)).within]
    found = [gains(msdnet, one, range(1, len(one.costs))) for one in ensembles]
    later = [gain for one in found for gain in one.within]
    more = [gain for one in found for gain in one.beyond]
    words = f"{span(first)} points above their first network, {span(later)} from the second on{beyond(more)}"
    return Finding(words, min(first) > -ON_PAR and min(later) > 0)


def _ensembles_gain_less(measured: Measured) -> Finding:
    """From the cost of an ensemble's first network to the full cost of MSDNet."""
    msdnet, words, holds = measured["cifar_anytime"], [], True
    for name in (*_VARYING, *_IDENTICAL):
        ends = max(measured[name].whole_costs[0], msdnet.whole_costs[0]), msdnet.whole_costs[-1]
        theirs, ours = (
            100 * float(np.diff(AnytimeCurve(one.whole_costs, one.test_accuracy).at(ends))[0])
            for one in (measured[name], msdnet)
        )
        words.append(f"{_NAMES[name]} {theirs:+.1f} points, MSDNet {ours:+.1f}")
        holds &= ours > theirs
    return Finding(f"up to MSDNet's full cost: {'; '.join(words)}", holds)


def _shallow_ones_level_off(measured: Measured) -> Finding:
    words, holds = [], True
    for name in _IDENTICAL:
        steps = 100 * np.diff(measured[name].test_accuracy)
        words.append(f"{_NAMES[name]}: {listed(steps)} points by each network more")
        holds &= bool(steps[-2:].sum() < ON_PAR)  # two more networks bring next to nothing
    return Finding("; ".join(words), holds)


# --- budgeted batch classification


def _above_all(measured: Measured, larger: Sequence[str], on_par: float) -> Finding:
    """Single networks at their cost; ensembles, and networks with classifiers on the way, at every budget."""
    best, words, lowest = _best(measured), [], np.inf
    singles = {"ResNets": _RESNETS, "DenseNets": _DENSENETS, **{_NAMES[name]: (name,) for name in larger}}
    others = {kind: sizes([measured[name] for name in names]) for kind, names in singles.items()}
    others |= {_NAMES[name]: budgeted([measured[name]]) for name in (*_VARYING, *_WITH_CLASSIFIERS)}
    for kind, places in others.items():
        found = all_gains(best, places)
        told = [f"{span(found.within)} points"] if found.within else []
        told += [f"{span(found.beyond)} at costs that it cannot spend"] if found.beyond else []
        words.append(f"{kind} {', '.join(told)}")
        lowest = min([lowest, *found.within])
    return Finding(f"above {'; '.join(words)}", bool(lowest > on_par))


def _a_tenth_of_resnet_110(measured: Measured) -> Finding:
    best, other = _best(measured), measured["resnet_110"]
    at_tenth = accuracy_at(best, other.whole_costs[-1] / 1e7) - 100 * other.test_accuracy[-1]
    words = f"{at_tenth:+.1f} points at a tenth of its cost; {times_cheaper(best, other)}"
    return Finding(words, at_tenth > -ON_PAR)


def _up_to_five_times_cheaper(measured: Measured) -> Finding:
    """It holds if something of each kind is reached at less than its cost, and something at a fourth or less."""
    best, words, highest = _best(measured), [], []
    wide = ("wide_resnet_16_4", "wide_resnet_40_4")
    for kind in (_DENSENETS, ("stochastic_110",), wide, ("fractalnet_20",)):
        words += [f"{_NAMES[name]}: {times_cheaper(best, measured[name])}" for name in kind]
        highest.append(max(ratio(best, measured[name]) or 0.0 for name in kind))
    return Finding("; ".join(words), min(highest) > 1 and max(highest) >= 4)


def _above_early_exits(measured: Measured) -> Finding:
    best, words, lowest = _best(measured), [], np.inf
    for name in _WITH_CLASSIFIERS:
        found = [accuracy_at(best, point.cost / 1e6) - 100 * point.accuracy for point in measured[name].by("paper")]
        words.append(f"{span(found)} points above {_NAMES[name]}")
        lowest = min(lowest, *found)
    return Finding("; ".join(words), bool(lowest > ON_PAR))


def _below_single_networks(measured: Measured, on_par: float) -> Finding:
    """Exits of networks with classifiers on the way, against single networks of their kind and cost."""
    words, holds = [], True
    for name, singles in zip(_WITH_CLASSIFIERS, (_RESNETS, _DENSENETS), strict=True):
        single = sizes([measured[one] for one in singles])
        exits = zip(measured[name].whole_costs, measured[name].test_accuracy, strict=True)
        found = all_gains(single, (Place(cost / 1e6, 100 * accuracy) for cost, accuracy in exits))
        under = [-gain for gain in (*found.within, *found.beyond)]
        words.append(f"exits of {_NAMES[name]} {span(under)} points above single networks of their cost")
        holds &= bool(np.mean(under) < -on_par)
    return Finding("; ".join(words), holds)


def _budgets_are_kept(measured: Measured) -> Finding:
    """It holds if no budget that a system can spend is missed by more than a twentieth."""
    words, most = [], 0.0
    for kind, names in {"MSDNets": _MSDNETS, "ensembles": _VARYING}.items():
        off = [
            100 * (point.cost / point.budget - 1)
            for name in names
            for point in measured[name].by("paper")
            if point.budget <= measured[name].whole_costs[-1]
        ]
        words.append(f"{kind} {span(off)} %")
        most = max(most, *map(abs, off))
    return Finding(f"what test images cost, off the budget: {', '.join(words)}", most < 5)


def _ensembles_are_no_better_than_their_members(measured: Measured) -> Finding:
    words, holds = [], True
    for name, members in zip(_VARYING, (_RESNETS, _DENSENETS), strict=True):
        points = [Place(point.cost / 1e6, 100 * point.accuracy) for point in measured[name].by("paper")]
        found = [
            accuracy_at(points, measured[member].whole_costs[-1] / 1e6) - 100 * measured[member].test_accuracy[-1]
            for member in members[1:]
        ]
        words.append(f"{_NAMES[name]} {span(found)} points above single networks of the same cost")
        holds &= max(found) < ON_PAR
    return Finding("; ".join(words), holds)


def _one_network_over_a_wide_range(measured: Measured) -> Finding:
    """From a network's least budget to the first other system that is above it; it holds if that is ten times more."""
    others = sizes([measured[name] for name in (*_RESNETS, *_DENSENETS, *_LARGER)])
    ranges = {}
    for name in _MSDNETS:
        curve = budgeted([measured[name]])
        low, high = min(curve).x, max(curve).x
        ends = [other.x for other in others if low <= other.x <= high and other.y >= accuracy_at(curve, other.x)]
        ranges[name] = low, min([high, *ends])
    name, (low, high) = max(ranges.items(), key=lambda one: one[1][1] / one[1][0])
    exits = len(measured[name].costs)
    words = f"one network ({exits} exits) is above all others from {low:.0f} to {high:.0f} million multiply-adds"
    return Finding(words, high >= 10 * low)


# --- DenseNet*


def _between_densenet_and_msdnet(measured: Measured) -> Finding:
    star, plain = measured["ensemble_densenets_star_varying"], measured["ensemble_densenets_varying"]
    over_plain = [gain for found in gains(star, plain) for gain in found]
    under = gains(measured["cifar_anytime"], star)
    words = (
        f"anytime: {span(over_plain)} points above DenseNets, MSDNet {span(under.within)} above it"
        f"{beyond(under.beyond)}"
    )
    best = _best(measured)
    single = [
        accuracy_at(best, measured[name].whole_costs[-1] / 1e6) - 100 * measured[name].test_accuracy[-1]
        for name in _STARS
    ]
    pairs = zip(_STARS, _DENSENETS, strict=True)
    over = [100 * (measured[one].test_accuracy[-1] - measured[other].test_accuracy[-1]) for one, other in pairs]
    words += f"; budgeted: {span(over)} above DenseNets of about the same cost, MSDNet {span(single)} above it"
    return Finding(words, min(*over_plain, *over) > ON_PAR and min(*under.within, *single) > 0)


def _best(measured: Measured) -> list[Place]:
    """MSDNet's envelope."""
    return envelope([measured[name] for name in _MSDNETS])


CLAIMS = (
    Claim(
        "MSDNets substantially outperform FractalNets",
        "2",
        partial(_above_exits_of, names=("fractalnet_20",), on_par=ON_PAR),
        "anytime-cifar100",
    ),
    Claim(
        "classifiers that are attached naively to a state-of-the-art network lead to poor performance",
        "4",
        partial(_below_single_networks, on_par=ON_PAR),
        "budgeted-cifar100",
    ),
    Claim(
        "anytime: MSDNet is substantially above ResNet-MC and DenseNet-MC at any budget",
        "5.1",
        partial(_above_exits_of, names=_WITH_CLASSIFIERS, on_par=ON_PAR),
        "anytime-cifar100",
    ),
    Claim(
        "anytime: on par with ensembles when the budget is very small, above them as soon as they need a second one",
        "5.1",
        _on_par_at_first,
        "anytime-cifar100",
    ),
    Claim(
        "anytime: the accuracy of ensembles does not increase nearly as fast with the budget",
        "5.1",
        _ensembles_gain_less,
        "anytime-cifar100",
    ),
    Claim(
        "anytime: ensembles of shallow networks level off rapidly", "5.1", _shallow_ones_level_off, "anytime-cifar100"
    ),
    Claim(
        "budgeted: MSDNets consistently outperform all baselines across all budgets",
        "5.2",
        partial(_above_all, larger=_LARGER, on_par=0.0),
        "budgeted-cifar100",
    ),
    Claim(
        "budgeted: on par with a ResNet-110 at a tenth of its cost", "5.2", _a_tenth_of_resnet_110, "budgeted-cifar100"
    ),
    Claim(
        "budgeted: up to 5 times cheaper than DenseNets, stochastic depth, Wide ResNets and FractalNets",
        "5.2",
        _up_to_five_times_cheaper,
        "budgeted-cifar100",
    ),
    Claim(
        "budgeted: substantially above ResNet-MC and DenseNet-MC with early exits",
        "5.2",
        _above_early_exits,
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
        _ensembles_are_no_better_than_their_members,
        "budgeted-cifar100",
    ),
    Claim(
        "DenseNet* is well above DenseNet and below MSDNet, in both settings",
        "5.3",
        _between_densenet_and_msdnet,
        "densenet-star",
    ),
    Claim(
        "a single network can outperform all competitive baselines on an impressive range of budgets",
        "6",
        _one_network_over_a_wide_range,
        "budgeted-cifar100",
    ),
    Claim(
        "CIFAR-10, anytime: MSDNet outperforms all baselines by a significant margin",
        "B.2",
        partial(_above_exits_of, names=(*_VARYING, *_WITH_CLASSIFIERS), on_par=ON_PAR_CIFAR10),
        "anytime-cifar10",
    ),
    Claim(
        "CIFAR-10, budgeted: MSDNets outperform all baselines by a significant margin",
        "B.2",
        partial(_above_all, larger=(), on_par=ON_PAR_CIFAR10),
        "budgeted-cifar10",
    ),
    Claim(
        "CIFAR-10: ResNet-MC and DenseNet-MC perform relatively poorly",
        "B.2",
        partial(_below_single_networks, on_par=ON_PAR_CIFAR10),
        "budgeted-cifar10",
    ),
)
