"""What the paper looks into beside comparisons: why MSDNet is as it is (figures 3 and 10), and the weights of exits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msdnet.amounts import counted
from msdnet.anytime import AnytimeCurve, Exponential, answer_probabilities
from msdnet.config import MSDNetConfig, NetworkConfig, even
from msdnet.presets import network_config
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.figure import Curve, Figure, Place, Places, anytime, averaged, computed
from msdnet.reproduce.measurement import Measurement
from msdnet.reproduce.subjects import Trained, seeded
from msdnet.training import Recipe
from msdnet.training.recipe import ExitWeights

__all__ = [
    "FAMILIES",
    "HEADS",
    "MEANS",
    "STUDIED",
    "ablation_experiment",
    "ablation_names",
    "expected_accuracy",
    "gain_over_even_weights",
    "prior_experiment",
    "prior_names",
    "relative_accuracy",
    "why_experiment",
    "why_names",
]

_SEEDS = (0, 1, 2)
"""Of a network that others are judged by: its own luck must be small."""


# --- figure 3: one intermediate classifier, at six places

# Evenly spaced: after every fourth of 27 blocks, or units, which is two in each resolution of nine. An MSDNet has 24
# layers, and its places about the same shares of them.
_PLACES_OF_27 = (4, 8, 12, 16, 20, 24)
_PLACES_OF_MSDNET = (4, 7, 11, 14, 18, 21)
FAMILIES = {
    "MSDNet": ("cifar_anytime", _PLACES_OF_MSDNET),
    "DenseNet": ("densenet_bc_58_12", _PLACES_OF_27),
    "ResNet": ("resnet_56", _PLACES_OF_27),
}
_COLOURS = {"MSDNet": 0, "ResNet": 1, "DenseNet": 2}  # as in the other figures

HEADS = {"conv": "like MSDNet's", "pool": "that only pool"}
"""Kinds of intermediate classifiers. The paper does not say which a ResNet and a DenseNet have: with two convolutions,
like those of MSDNet, or without any, like those that they end with."""

STUDIED = tuple((family, heads) for heads in HEADS for family in FAMILIES if (family, heads) != ("MSDNet", "pool"))
"""Each network with the kinds of classifiers that it is trained with: MSDNet has its own in any case."""


def why_experiment(recipe: Recipe) -> Experiment:
    """How good an intermediate classifier is, and what it costs the last one."""
    x_name = "place of the intermediate classifier, as a share of the layers"

    def figure(name: str, title: str, places: Places) -> Figure:
        curves = []
        for family, heads in STUDIED:
            called = family if family == "MSDNet" else f"{family}, classifiers {HEADS[heads]}"
            members = _with_one_classifier(family, heads, recipe)
            curves.append(Curve(called, members, places, _COLOURS[family], dashed=heads == "pool"))
        return Figure(name, title, tuple(curves), x_name, "relative accuracy", log_x=False, level=1.0)

    title = f"One intermediate classifier on CIFAR-100, {counted(recipe.epochs, 'epoch')}"
    figures = (
        figure("why_intermediate", f"{title}: its own accuracy", _of_intermediate),
        figure("why_final", f"{title}: the accuracy of the last", _of_final),
    )
    return Experiment("why", "One intermediate classifier in a ResNet, a DenseNet and an MSDNet", "cifar100", figures)


def why_names(family: str, heads: str = "conv") -> tuple[str, ...]:
    """Of a network with its last classifier alone, from several seeds, and with one more at each place in turn."""
    name, places = FAMILIES[family]
    at = "pooled_at" if _pools(family, heads) else "at"
    return *seeded(f"why_{name}", _SEEDS), *(f"why_{name}_{at}_{place}" for place in places)


def _pools(family: str, heads: str) -> bool:
    return heads == "pool" and (family, heads) in STUDIED


def _with_one_classifier(family: str, heads: str, recipe: Recipe) -> tuple[Trained, ...]:
    name, places = FAMILIES[family]
    config = network_config(name)
    last = config.exit_layers[-1:] if isinstance(config, MSDNetConfig) else ()  # the others do not name their last
    changes = {"head_width": 0} if _pools(family, heads) else {}
    alone = Trained(f"why_{name}", network_config(name, exits=last), recipe).from_seeds(_SEEDS)
    with_one = [network_config(name, exits=(place, *last), **changes) for place in places]
    called = why_names(family, heads)[len(alone) :]
    return *alone, *(Trained(one, network, recipe) for one, network in zip(called, with_one, strict=True))


def _of_intermediate(measured: Sequence[Measurement]) -> list[Place]:
    return relative_accuracy(measured, 0)


def _of_final(measured: Sequence[Measurement]) -> list[Place]:
    return relative_accuracy(measured, -1)


def relative_accuracy(measured: Sequence[Measurement], exit: int) -> list[Place]:
    """The accuracy of an exit over that of the networks that have only their last, on average."""
    alone = [one.test_accuracy[-1] for one in measured if len(one.costs) == 1]
    if not alone:
        return []
    found, usual = [], sum(alone) / len(alone)
    for one in measured:
        if len(one.costs) > 1:
            config = NetworkConfig.from_dict(one.network)
            share = config.exit_layers[0] / config.depth
            found.append(Place(share, one.test_accuracy[exit] / usual))
    return sorted(found)


# --- figure 10: what each part of MSDNet is good for

# Growths with which each is nearest to 3.0e8 multiply-adds. Bottlenecks narrow the maps that dense connections pile up:
# without these there is nothing to narrow, and 1x1 convolutions would only make a network twice as deep, so that what
# is not dense has none. Without all three it is "VGG-like": 3x3 convolutions and nothing else. Without coarse scales,
# heads read fine maps: as wide as MSDNet's they would take almost half of the cost, so that they are as wide as those
# of ResNet-MC.
_NO_BOTTLENECKS = (0, 0, 0)
_ABLATIONS: dict[str, dict[str, Any]] = {
    "msdnet": {"growth": 15},
    "without_dense": {"growth": 33, "dense": False, "bottleneck_factors": _NO_BOTTLENECKS},
    "without_scales": {"growth": 19, "multi_scale": False, "head_width": 64},
    "without_classifiers": {"growth": 16, "intermediate_classifiers": False},
    "plain": {
        "growth": 47,
        "dense": False,
        "multi_scale": False,
        "intermediate_classifiers": False,
        "bottleneck_factors": _NO_BOTTLENECKS,
    },
    "same_growth": {"growth": 38, "channel_factors": (1, 1, 1)},
}
_FROM_SEVERAL_SEEDS = ("msdnet", "plain", "without_dense")
"""The first is what all others are compared with; of the second a single answer decides two claims, in one of them
against the third, of which another claim hangs by a thread.
"""


def ablation_names(variant: str) -> tuple[str, ...]:
    """Of the networks of a variant: one, or several that differ in their seeds."""
    return seeded(f"ablation_{variant}", _seeds_of(variant))


def _seeds_of(variant: str) -> tuple[int, ...]:
    return _SEEDS if variant in _FROM_SEVERAL_SEEDS else _SEEDS[:1]


def ablation_experiment(recipe: Recipe) -> Experiment:
    """An MSDNet with six intermediate classifiers, without each of its parts, without all of them, and with the same
    growth at all scales.
    """
    names = {
        "msdnet": "MSDNet",
        "without_dense": "without dense connections",
        "without_scales": "without several scales",
        "without_classifiers": "without intermediate classifiers",
        "plain": "without all three",
        "same_growth": "the same growth at all scales",
    }
    title = f"What each part of MSDNet is good for, {counted(recipe.epochs, 'epoch')}"

    def figure(name: str, costs: str, places: Places) -> Figure:
        curves = []
        for colour, (variant, changes) in enumerate(_ABLATIONS.items()):
            network = network_config(MSDNetConfig(exits=even(4, 2, 7)), **changes)
            subjects = Trained(f"ablation_{variant}", network, recipe).from_seeds(_seeds_of(variant))
            curves.append(Curve(names[variant], subjects, averaged(places), colour))
        return Figure(name, f"{title}: {costs}", tuple(curves), f"million multiply-adds per image, {costs}")

    figures = figure("ablation", "whole layers", anytime), figure("ablation_lazy", "what is computed", computed)
    return Experiment("ablation", title, "cifar100", figures)


# --- section 3: exits weighted by the chance that a budget ends there

_WEIGHED = "cifar_anytime_7"
# It takes 13 to 75 million. Weights for the least mean are 3.4 at the first exit and 0.1 at the last; those for the
# greatest are 0.4 at the first and 4.7 at the last, and less than 1 at all others.
MEANS = (15e6, 45e6, 160e6)
_JUDGED_AT = tuple(million * 1e6 for million in (10, 15, 20, 30, 45, 70, 110, 160, 240, 360))


def prior_experiment(recipe: Recipe) -> Experiment:
    """Budgets drawn from exponential distributions: what weights derived from one bring against equal weights."""
    network = network_config(_WEIGHED)
    evens = Trained("prior_none", network, recipe).from_seeds(_SEEDS)
    expected, gains = [Curve("equal weights", evens, averaged(expected_accuracy))], []
    for colour, mean in enumerate(MEANS, start=1):
        weights = ExitWeights(exponential=Exponential(mean))
        for_mean = replace(recipe, loss=replace(recipe.loss, exit_weights=weights))
        (weighted,) = (Trained(name, network, for_mean) for name in prior_names(mean))
        name = f"trained for a mean of {mean / 1e6:.0f} M"
        expected.append(Curve(name, (weighted,), expected_accuracy, colour))
        gains.append(Curve(name, (*evens, weighted), gain_over_even_weights, colour))
    title = f"Exits weighted by P(B), {counted(recipe.epochs, 'epoch')}"
    x_name, y_name = "mean of the budgets it is judged by, million multiply-adds", "expected accuracy of an answer"
    figures = (
        Figure("prior", f"{title}: {y_name}", tuple(expected), x_name, f"{y_name}, %"),
        Figure(
            "prior_gain",
            f"{title}: against equal weights",
            tuple(gains),
            x_name,
            f"gain in {y_name}, points",
            level=0.0,
        ),
    )
    return Experiment("prior", f"{title}: does it help where it should?", "cifar100", figures)


def prior_names(mean: float | None) -> tuple[str, ...]:
    """Of the network trained for budgets of this mean; of those with equal weights, from several seeds."""
    if mean is None:
        return seeded("prior_none", _SEEDS)
    return (f"prior_{mean / 1e6:.0f}m",)


def expected_accuracy(measured: Sequence[Measurement]) -> list[Place]:
    """In per cent, by the mean of the budgets in millions.

    Of budgets that bring an answer at all: many small ones end before the first exit, whatever the weights.
    """
    (one,) = measured
    curve, places = AnytimeCurve(one.costs, one.test_accuracy), []
    for mean in _JUDGED_AT:
        budgets = Exponential(mean)
        expected = curve.expected(budgets) / sum(answer_probabilities(curve.costs, budgets))
        places.append(Place(mean / 1e6, 100 * expected))
    return places


def gain_over_even_weights(measured: Sequence[Measurement]) -> list[Place]:
    """Points of expected accuracy, of the last network over those before it, all seeds of equal weights."""
    if len(measured) != len(_SEEDS) + 1:
        return []
    *evens, weighted = measured
    pairs = zip(expected_accuracy([weighted]), averaged(expected_accuracy)(evens), strict=True)
    return [Place(ours.x, ours.y - theirs.y) for ours, theirs in pairs]
