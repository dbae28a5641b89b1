"""The paper's claims about its comparisons on CIFAR, each judged by what was measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from msdnet.anytime import AnytimeCurve
from msdnet.reproduce.comparison import DENSENET_LAYERS, RESNET_LAYERS
from msdnet.reproduce.figure import Place, envelope
from msdnet.reproduce.measurement import Measurement

__all__ = ["CLAIMS", "Claim", "Finding", "judge"]

Measured = Mapping[str, Measurement]
"""By the names of the systems."""

ON_PAR = 1.0  # points: less than this, two accuracies on 10,000 images, of two trainings, are about the same


_RESNETS = tuple(f"resnet_{layers}" for layers in RESNET_LAYERS)
_DENSENETS = tuple(f"densenet_bc_{layers}_12" for layers in DENSENET_LAYERS)
_STARS = tuple(f"densenet_star_{layers}_8" for layers in DENSENET_LAYERS)
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
_ENSEMBLES = (
    "ensemble_resnets_varying",
    "ensemble_resnet_20",
    "ensemble_densenets_varying",
    "ensemble_densenet_bc_28_12",
)


class Finding(NamedTuple):
    """What was measured, in words, and whether the claim holds."""

    measured: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """Something that the paper says."""

    says: str
    experiment: str
    find: Callable[[Measured], Finding]
    """`KeyError` if something that it takes is not measured yet. Each system is one training: see `ON_PAR`."""


def judge(claim: Claim, measured: Measured) -> Finding | None:
    """What was found; nothing if not all that it takes is measured."""
    try:
        return claim.find(measured)
    except KeyError:
        return None


# --- anytime prediction


def _above_other_classifiers(measured: Measured) -> Finding:
    msdnet, words, holds = measured["cifar_anytime"], [], True
    for name in ("resnet_mc", "densenet_mc"):
        gains, beyond = _gains(msdnet, measured[name])
        words.append(f"{_range(gains)} points above {_NAMES[name]}'s exits{_beyond(beyond)}")
        holds &= min(gains) > ON_PAR
    return Finding("; ".join(words), holds)


def _on_par_at_first(measured: Measured) -> Finding:
    msdnet, ensembles = measured["cifar_anytime"], [measured[name] for name in _ENSEMBLES]
    first = [gain for one in ensembles for gain in _gains(msdnet, one, range(1)).within]
    found = [_gains(msdnet, one, range(1, len(one.costs))) for one in ensembles]
    later = [gain for gains in found for gain in gains.within]
    beyond = [gain for gains in found for gain in gains.beyond]
    words = f"{_range(first)} points above their first network, {_range(later)} from the second on{_beyond(beyond)}"
    return Finding(words, min(first) > -ON_PAR and min(later) > 0)


def _shallow_ones_level_off(measured: Measured) -> Finding:
    words, holds = [], True
    for name in ("ensemble_resnet_20", "ensemble_densenet_bc_28_12"):
        gains = 100 * np.diff(measured[name].test_accuracy)
        words.append(f"{_NAMES[name]}: {' '.join(f'{gain:+.1f}' for gain in gains)} points by each network more")
        holds &= bool(gains[-2:].sum() < ON_PAR)  # two more networks bring next to nothing
    return Finding("; ".join(words), holds)


# --- budgeted batch classification


def _a_tenth_of_resnet_110(measured: Measured) -> Finding:
    best, other = _envelope(measured), measured["resnet_110"]
    at_tenth = _accuracy_at(best, other.whole_costs[-1] / 1e7) - 100 * other.test_accuracy[-1]
    words = f"{at_tenth:+.1f} points at a tenth of its cost; {_times_cheaper(best, other)}"
    return Finding(words, at_tenth > -ON_PAR)


def _up_to_five_times_cheaper(measured: Measured) -> Finding:
    """It holds if something of each kind is reached at less than its cost, and something at a fourth or less."""
    best, words, highest = _envelope(measured), [], []
    wide = ("wide_resnet_16_4", "wide_resnet_40_4")
    for kind in (_DENSENETS, ("stochastic_110",), wide, ("fractalnet_20",)):
        words += [f"{_NAMES[name]}: {_times_cheaper(best, measured[name])}" for name in kind]
        highest.append(max(_ratio(best, measured[name]) or 0.0 for name in kind))
    return Finding("; ".join(words), min(highest) > 1 and max(highest) >= 4)


def _above_early_exits(measured: Measured) -> Finding:
    best, words, lowest = _envelope(measured), [], np.inf
    for name in ("resnet_mc", "densenet_mc"):
        gains = [_accuracy_at(best, point.cost / 1e6) - 100 * point.accuracy for point in measured[name].by("paper")]
        words.append(f"{_range(gains)} points above {_NAMES[name]}")
        lowest = min(lowest, *gains)
    return Finding("; ".join(words), bool(lowest > ON_PAR))


def _ensembles_are_no_better_than_their_members(measured: Measured) -> Finding:
    words, holds = [], True
    for name, members in (("ensemble_resnets_varying", _RESNETS), ("ensemble_densenets_varying", _DENSENETS)):
        points = [Place(point.cost / 1e6, 100 * point.accuracy) for point in measured[name].by("paper")]
        gains = [
            _accuracy_at(points, measured[member].whole_costs[-1] / 1e6) - 100 * measured[member].test_accuracy[-1]
            for member in members[1:]
        ]
        words.append(f"{_NAMES[name]} {_range(gains)} points above single networks of the same cost")
        holds &= max(gains) < ON_PAR
    return Finding("; ".join(words), holds)


# --- DenseNet*


def _between_densenet_and_msdnet(measured: Measured) -> Finding:
    star, plain = measured["ensemble_densenets_star_varying"], measured["ensemble_densenets_varying"]
    over_plain = [gain for gains in _gains(star, plain) for gain in gains]
    under_msdnet, beyond = _gains(measured["cifar_anytime"], star)
    words = (
        f"anytime: {_range(over_plain)} points above DenseNets, MSDNet {_range(under_msdnet)} above it{_beyond(beyond)}"
    )
    best = _envelope(measured)
    single = [
        _accuracy_at(best, measured[name].whole_costs[-1] / 1e6) - 100 * measured[name].test_accuracy[-1]
        for name in _STARS
    ]
    pairs = zip(_STARS, _DENSENETS, strict=True)
    over = [100 * (measured[one].test_accuracy[-1] - measured[other].test_accuracy[-1]) for one, other in pairs]
    words += f"; budgeted: {_range(over)} above DenseNets of about the same cost, MSDNet {_range(single)} above it"
    return Finding(words, min(*over_plain, *over) > ON_PAR and min(*under_msdnet, *single) > 0)


class _Gains(NamedTuple):
    """How many points one network is above another's exits, at the cost of each, from its own first exit on."""

    within: list[float]
    """Up to its full cost."""
    beyond: list[float]
    """Where the other spends more than it can."""


def _gains(one: Measurement, other: Measurement, exits: range | None = None) -> _Gains:
    """Against all exits of the other, or some."""
    curve, gains = AnytimeCurve(one.whole_costs, one.test_accuracy), _Gains([], [])
    for exit in exits or range(len(other.costs)):
        cost, accuracy = other.whole_costs[exit], other.test_accuracy[exit]
        if cost >= one.whole_costs[0]:
            side = gains.within if cost <= one.whole_costs[-1] else gains.beyond
            side.append(100 * (float(curve.at(cost)) - accuracy))
    return gains


def _beyond(gains: Sequence[float]) -> str:
    return f" ({_range(gains)} against exits beyond its full cost)" if gains else ""


def _envelope(measured: Measured) -> list[Place]:
    return envelope([measured[f"cifar_batch_{exits}"] for exits in range(4, 9)])


def _accuracy_at(curve: Sequence[Place], millions: float) -> float:
    """On straight lines between points, by the logarithm of the cost; the ends hold on beyond."""
    ordered = sorted(curve)
    return float(np.interp(np.log(millions), [np.log(place.x) for place in ordered], [place.y for place in ordered]))


def _ratio(curve: Sequence[Place], other: Measurement) -> float | None:
    """How many times cheaper a curve reaches a network's accuracy; nothing if it never does."""
    goal, cost = 100 * other.test_accuracy[-1], other.cost_alone / 1e6
    ordered = sorted(curve)
    for before, after in zip([ordered[0], *ordered], ordered, strict=False):
        if after.y >= goal:
            if before.y >= goal:
                return cost / before.x
            way = (goal - before.y) / (after.y - before.y)
            return cost / float(np.exp(np.log(before.x) + way * np.log(after.x / before.x)))
    return None


def _times_cheaper(curve: Sequence[Place], other: Measurement) -> str:
    ratio = _ratio(curve, other)
    highest = max(place.y for place in curve)
    if ratio is None:
        return f"never as accurate ({highest:.1f} at most, against {100 * other.test_accuracy[-1]:.1f} %)"
    return f"as accurate {ratio:.1f} times cheaper"


def _range(values: Sequence[float]) -> str:
    return f"{min(values):+.1f} to {max(values):+.1f}" if len(values) > 1 else f"{values[0]:+.1f}"


CLAIMS = (
    Claim(
        "anytime: MSDNet is substantially above ResNet-MC and DenseNet-MC at any budget",
        "anytime-cifar100",
        _above_other_classifiers,
    ),
    Claim(
        "anytime: on par with ensembles when the budget is very small, above them as soon as they need a second one",
        "anytime-cifar100",
        _on_par_at_first,
    ),
    Claim("anytime: ensembles of shallow networks level off rapidly", "anytime-cifar100", _shallow_ones_level_off),
    Claim("budgeted: on par with a ResNet-110 at a tenth of its cost", "budgeted-cifar100", _a_tenth_of_resnet_110),
    Claim(
        "budgeted: up to 5 times cheaper than DenseNets, stochastic depth, Wide ResNets and FractalNets",
        "budgeted-cifar100",
        _up_to_five_times_cheaper,
    ),
    Claim(
        "budgeted: substantially above ResNet-MC and DenseNet-MC with early exits",
        "budgeted-cifar100",
        _above_early_exits,
    ),
    Claim(
        "budgeted: ensembles with early exits are on par with or worse than their members alone (said of ImageNet)",
        "budgeted-cifar100",
        _ensembles_are_no_better_than_their_members,
    ),
    Claim(
        "DenseNet* is well above DenseNet and below MSDNet, in both settings",
        "densenet-star",
        _between_densenet_and_msdnet,
    ),
)
