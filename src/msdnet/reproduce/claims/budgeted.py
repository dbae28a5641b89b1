"""Claims about budgeted batch classification on CIFAR-100 and CIFAR-10 (figures 7 and 11)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from msdnet.reproduce.claims.claim import ON_PAR, ON_PAR_CIFAR10, Claim, Finding, Results
from msdnet.reproduce.claims.readings import Gains, Tradeoff, against_each, cheaper, listed
from msdnet.reproduce.claims.systems import (
    ENSEMBLES,
    NAMES,
    PUBLISHED,
    best_of_msdnets,
    budgets_are_kept,
    ensembles_are_no_better,
    published_fractalnet,
    within_budgets,
)
from msdnet.reproduce.comparison import (
    DENSENETS,
    FRACTALNET,
    MSDNETS,
    RESNETS,
    STOCHASTIC,
    VARYING,
    WIDE_RESNETS,
    WITH_CLASSIFIERS,
)
from msdnet.reproduce.figure import Place, anytime, budgeted, sizes
from msdnet.reproduce.measurement import Measurement

__all__ = ["BUDGETS_ARE_KEPT", "CIFAR10", "CLAIMS", "CONSISTENTLY", "ENSEMBLES_ARE_NO_BETTER"]

Rivals = Callable[[Results], Mapping[str, list[Place]]]
"""Kinds of systems, each by what it costs and brings."""


def _early_exits_of(measured: Results, names: Sequence[str]) -> dict[str, list[Place]]:
    """Of networks with intermediate classifiers, or of ensembles: at every budget."""
    return {NAMES[name]: budgeted([measured[name]]) for name in names}


def _with_classifiers(measured: Results) -> dict[str, list[Place]]:
    return _early_exits_of(measured, WITH_CLASSIFIERS)


def _of_both_figures(measured: Results) -> dict[str, list[Place]]:
    """Single networks as a whole, and networks with intermediate classifiers."""
    return {
        "ResNets": sizes(measured.each(RESNETS)),
        "DenseNets": sizes(measured.each(DENSENETS)),
        **_with_classifiers(measured),
    }


def _of_figure_11(measured: Results) -> dict[str, list[Place]]:
    """On CIFAR-10."""
    return _of_both_figures(measured) | {PUBLISHED: published_fractalnet("cifar10")}


def _of_figure_7(measured: Results) -> dict[str, list[Place]]:
    """On CIFAR-100: other kinds of networks, too. Each column of a FractalNet can be run alone."""
    return _of_both_figures(measured) | {
        "Wide ResNets": sizes(measured.each(WIDE_RESNETS)),
        "stochastic depth": sizes([measured[STOCHASTIC]]),
        NAMES[FRACTALNET]: _each_alone(measured[FRACTALNET]),
        PUBLISHED: published_fractalnet("cifar100"),
    }


def _each_alone(fractalnet: Measurement) -> list[Place]:
    """Its columns, and all of them joined, which share nothing: each by what it costs by itself."""
    alone = np.diff(fractalnet.whole_costs, prepend=0)
    return [Place(cost / 1e6, 100 * right) for cost, right in zip(alone, fractalnet.test_accuracy, strict=True)]


def _above(
    measured: Results, rivals: Rivals, margin: float, on_par: float = ON_PAR, apart: Sequence[str] = ()
) -> Finding:
    """It holds if MSDNets are above all that cost no more than they can spend, and on par with what is costlier.

    - apart: ensembles, which the paper does not show among the others in figure 7: told, and not counted
    """
    best = best_of_msdnets(measured)

    def holds(_: str, found: Gains) -> bool:
        return found.outperforms(margin, on_par)

    finding = against_each(best, rivals(measured), holds, aside=PUBLISHED)
    ensembles = [best.gains(places).against(kind) for kind, places in _early_exits_of(measured, apart).items()]
    told = f"; not counted, ensembles with early exits: {'; '.join(ensembles)}" if ensembles else ""
    return finding._replace(measured=finding.measured + told)


def _a_tenth_of_resnet_110(measured: Results) -> Finding:
    best, (other,) = best_of_msdnets(measured), sizes([measured["resnet_110"]])
    at_tenth = best.at(other.x / 10) - other.y
    return Finding(f"{at_tenth:+.2f} points at a tenth of its cost; {cheaper(best, other)}", at_tenth > -ON_PAR)


def _drastically_cheaper(measured: Results) -> Finding:
    """It holds if MSDNets are on par, for half of the cost or less, with the most accurate network of every kind."""
    best, words, short = best_of_msdnets(measured), [], set()
    for kind, places in {
        "ResNets": sizes(measured.each(RESNETS)),
        "DenseNets": sizes(measured.each(DENSENETS)),
        "Wide ResNets": sizes(measured.each(WIDE_RESNETS)),
        "stochastic depth": sizes([measured[STOCHASTIC]]),
        PUBLISHED: published_fractalnet("cifar100"),
    }.items():
        most = max(places, key=lambda place: place.y)
        times = best.times_cheaper(Place(most.x, most.y - ON_PAR))
        words.append(f"{kind} ({most.y:.1f}%): {'never' if times is None else f'{times:.2f} times cheaper'}")
        if times is None or times < 2:
            short.add(kind)
    words_of_all = f"on par with the most accurate of each kind: {'; '.join(words)}"
    return Finding(words_of_all, not short, in_part=short == {PUBLISHED})


def _up_to_five_times_cheaper(measured: Results) -> Finding:
    """It holds if something of each kind is reached at less than its cost, and a DenseNet at a fourth or less.

    Of DenseNets, since larger networks waste more: a FractalNet of 34 M parameters would make the claim easy. Of
    FractalNets the published ones count, as everywhere: they are those of the paper's figure.
    """
    best, words, short = best_of_msdnets(measured), [], set()
    trained = {"DenseNets": DENSENETS, "stochastic depth": (STOCHASTIC,), "Wide ResNets": WIDE_RESNETS}
    kinds = {kind: {NAMES[name]: sizes([measured[name]])[0] for name in names} for kind, names in trained.items()}
    easiest = min(published_fractalnet("cifar100"), key=lambda place: place.y)  # to reach
    for kind, systems in (kinds | {PUBLISHED: {PUBLISHED: easiest}}).items():
        words += [f"{called}: {cheaper(best, other)}" for called, other in systems.items()]
        most = max(best.times_cheaper(other) or 0.0 for other in systems.values())
        if most <= 1 or (kind == "DenseNets" and most < 4):
            short.add(kind)
    words.append(f"{NAMES[FRACTALNET]}, trained here: {cheaper(best, sizes([measured[FRACTALNET]])[0])}")
    return Finding("; ".join(words), not short, in_part=short == {PUBLISHED})


def _below_single_networks(measured: Results) -> Finding:
    """Exits of networks with intermediate classifiers, against single networks of their kind and cost.

    It holds if the first half of those that can be compared is behind on average: early ones are what they are for.
    """
    words, holds = [], True
    for name, singles in zip(WITH_CLASSIFIERS, (RESNETS, DENSENETS), strict=True):
        against = _against_singles(measured, name, singles)
        words.append(f"exits of {NAMES[name]} {listed(against)} points against single networks of their cost")
        early = against[: (len(against) + 1) // 2]
        holds &= bool(early) and bool(np.mean(early) < -ON_PAR)
    return Finding("; ".join(words), holds)


def _against_singles(measured: Results, name: str, singles: tuple[str, ...]) -> list[float]:
    """Points of each exit that can be compared."""
    single = sizes(measured.each(singles))
    found = Tradeoff(single, single[-1].x).gains(anytime([measured[name]]))
    return [-gain for gain in (*found.within, *found.beyond)]


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


class _Range(NamedTuple):
    """Millions of multiply-adds between which a network is above all others."""

    network: Measurement
    low: float
    high: float
    most: float
    """That the network can spend."""

    @property
    def wide(self) -> bool:
        """Five times; from the cheapest other system to the costliest MSDNet it would be about ten."""
        return self.high >= 5 * self.low

    @property
    def whole(self) -> bool:
        """It ends with what the network can spend at most, and not with another that is better."""
        return self.high == self.most

    @property
    def rank(self) -> tuple[bool, float]:
        """One that reaches its full cost, if its range is wide, is best; else the widest."""
        return self.wide and self.whole, self.high / self.low

    def __str__(self) -> str:
        end = f"to {self.high:.0f}" if self.whole else f"up to the first that is better, at {self.high:.0f}"
        return f"from {self.low:.0f} {end} million multiply-adds"


def _range_above(one: Measurement, others: Sequence[Place]) -> _Range:
    """From what the cheapest of the others costs to the first that is above the network."""
    network = within_budgets(one)
    low = max(min(network.places).x, min(others).x)
    ends = [other.x for other in others if low <= other.x <= network.full and other.y >= network.at(other.x)]
    most = max(network.places).x
    return _Range(one, low, max(low, min([most, *ends])), most)


def _one_network_over_a_wide_range(measured: Results) -> Finding:
    """Ensembles count: they are among the competitive baselines, though not in the paper's figure.

    "Almost unconstrained settings" are reached if the range ends with what the network can spend at most.
    """
    figure, ensembles = (
        [place for places in kinds.values() for place in places]
        for kinds in (_of_figure_7(measured), _early_exits_of(measured, ENSEMBLES))
    )
    best, without = (
        max((_range_above(one, others) for one in measured.each(MSDNETS)), key=lambda found: found.rank)
        for others in ([*figure, *ensembles], figure)
    )
    words = (
        f"one network ({len(best.network.costs)} exits) is above all others of figure 7, and ensembles of its ResNets "
        f"and DenseNets with early exits, {best}, of {best.most:.0f} that it can spend "
        f"(without ensembles, one of {len(without.network.costs)} exits {without})"
    )
    return Finding(words, best.wide and best.whole, in_part=best.wide and not best.whole)


CONSISTENTLY = Claim(
    "budgeted: MSDNets consistently outperform all baselines across all budgets",
    "5.2",
    partial(_above, rivals=_of_figure_7, margin=0.0, apart=ENSEMBLES),
    "budgeted-cifar100",
)
# Said of ImageNet, and asked of CIFAR-100 as well.
BUDGETS_ARE_KEPT = Claim(
    "budgets can be set very precisely",
    "5.2",
    partial(budgets_are_kept, kinds={"MSDNets": MSDNETS, "ensembles": VARYING}),
    "budgeted-cifar100",
)
ENSEMBLES_ARE_NO_BETTER = Claim(
    "ensembles with early exits are on par with or worse than their members",
    "5.2",
    partial(
        ensembles_are_no_better,
        members={name: (NAMES[name], single) for name, single in zip(VARYING, (RESNETS, DENSENETS), strict=True)},
    ),
    "budgeted-cifar100",
)
CIFAR10 = Claim(
    "CIFAR-10, budgeted: MSDNets outperform all baselines by a significant margin",
    "B.2",
    partial(_above, rivals=_of_figure_11, margin=ON_PAR_CIFAR10, on_par=ON_PAR_CIFAR10, apart=VARYING),
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
        partial(_above, rivals=_with_classifiers, margin=ON_PAR),
        "budgeted-cifar100",
    ),
    Claim(
        "budgeted: the cost can be reduced drastically at the accuracy of state-of-the-art networks",
        "1",
        _drastically_cheaper,
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
