"""What the systems that claims about CIFAR compare are called, and what MSDNets and others bring within budgets."""

from collections.abc import Mapping, Sequence

from msdnet.published import published_for
from msdnet.reproduce.claims.claim import ON_PAR, Finding, Results
from msdnet.reproduce.claims.readings import Tradeoff, span
from msdnet.reproduce.comparison import DENSENETS, IDENTICAL, MSDNETS, VARYING
from msdnet.reproduce.figure import Place, budgeted, envelope, of_published, sizes
from msdnet.reproduce.measurement import Measurement

__all__ = [
    "ENSEMBLES",
    "NAMES",
    "PUBLISHED",
    "best_of_msdnets",
    "budgets_are_kept",
    "ensembles_are_no_better",
    "published_fractalnet",
    "within_budgets",
]

_PRECISELY = 5  # per cent of a budget

ENSEMBLES = (*VARYING, *IDENTICAL)
PUBLISHED = "the published FractalNet-20"
NAMES = {
    "resnet_mc": "ResNet-MC",
    "densenet_mc": "DenseNet-MC",
    "stochastic_110": "stochastic depth 110",
    "wide_resnet_16_2": "Wide ResNet 16-2",
    "wide_resnet_40_2": "Wide ResNet 40-2",
    "fractalnet_20": "FractalNet-20",
    "ensemble_resnets_varying": "ResNets of varying sizes",
    "ensemble_densenets_varying": "DenseNets of varying sizes",
    "ensemble_resnet_20": "five ResNet-20",
    "ensemble_densenet_bc_28_12": "five DenseNet-28",
    **{name: f"DenseNet-{name.split('_')[2]}" for name in DENSENETS},
}


def best_of_msdnets(measured: Results, names: Sequence[str] = MSDNETS) -> Tradeoff:
    """At each budget the MSDNet that is best on held-out images; the costliest tells how much can be spent."""
    networks = measured.each(names)
    return Tradeoff(envelope(networks), max(one.whole_costs[-1] for one in networks) / 1e6)


def within_budgets(one: Measurement) -> Tradeoff:
    """Of a system whose easy images leave early."""
    return Tradeoff(budgeted([one]), one.whole_costs[-1] / 1e6)


def published_fractalnet(dataset: str) -> list[Place]:
    return [place for curve in published_for(dataset, "single") for place in of_published(curve)([])]


def budgets_are_kept(measured: Results, kinds: Mapping[str, Sequence[str]]) -> Finding:
    """It holds if no budget that a system can spend is missed by more than a twentieth.

    - kinds: names of systems, by how they are called together
    """
    words, holds = [], True
    for called, names in kinds.items():
        off = [
            100 * (point.cost / point.budget - 1)
            for one in measured.each(names)
            for point in one.by("paper")
            if point.budget <= one.whole_costs[-1]
        ]
        missed = sum(abs(share) >= _PRECISELY for share in off)
        words.append(f"{called} {span(off)}% ({missed} of {len(off)} by {_PRECISELY}% or more)")
        holds &= bool(off) and not missed
    return Finding(f"what test images cost, off the budget: {', '.join(words)}", holds)


def ensembles_are_no_better(measured: Results, members: Mapping[str, tuple[str, Sequence[str]]]) -> Finding:
    """It holds if ensembles with early exits are at most on par with each of their members, at its cost.

    - members: by an ensemble's name, how it is called and who they are
    """
    words, highest = [], []
    for name, (called, single) in members.items():
        found = within_budgets(measured[name]).gains(sizes(measured.each(single))).within
        words.append(f"{called} {span(found)} points against single networks of the same cost")
        highest.append(max(found, default=ON_PAR))  # counts as not shown if no member lies within its costs
    return Finding("; ".join(words), max(highest) < ON_PAR)
