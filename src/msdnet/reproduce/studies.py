"""What the paper looks into beside comparisons: why MSDNet is as it is (figures 3 and 10), and the weights of exits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msdnet.anytime import AnytimeCurve, Exponential, answer_probabilities
from msdnet.config import MSDNetConfig, NetworkConfig, even
from msdnet.presets import network_config
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.figure import Curve, Figure, Place, Places, anytime
from msdnet.reproduce.measurement import Measurement
from msdnet.reproduce.subjects import Trained
from msdnet.training import Recipe
from msdnet.training.recipe import ExitWeights

__all__ = [
    "FAMILIES",
    "MEANS",
    "ablation_experiment",
    "gain_over_even_weights",
    "prior_experiment",
    "relative_accuracy",
    "why_experiment",
    "why_names",
]


# --- figure 3: one classifier on the way, at six places

# Evenly spaced: after every fourth of 27 blocks, or units, which is two in each resolution of nine. An MSDNet has 24
# layers, and its places about the same shares of them.
_PLACES_OF_27 = (4, 8, 12, 16, 20, 24)
_PLACES_OF_MSDNET = (4, 7, 11, 14, 18, 21)
FAMILIES = {
    "MSDNet": ("cifar_anytime", _PLACES_OF_MSDNET),
    "DenseNet": ("densenet_bc_58_12", _PLACES_OF_27),
    "ResNet": ("resnet_56", _PLACES_OF_27),
}
_SEEDS_ALONE = (0, 1, 2)
"""Of a network with its last classifier alone: all others are judged by it, so that its own luck must be small."""
_COLOURS = {"MSDNet": 0, "ResNet": 1, "DenseNet": 2}  # as in the other figures


def why_experiment(recipe: Recipe) -> Experiment:
    """How good a classifier on the way is, and what it costs the last one."""
    families = {family: _with_one_classifier(family, recipe) for family in FAMILIES}
    x_name = "place of the classifier on the way, as a share of the layers"

    def figure(name: str, title: str, places: Places) -> Figure:
        curves = (Curve(family, members, places, _COLOURS[family]) for family, members in families.items())
        return Figure(name, title, tuple(curves), x_name, "relative accuracy", log_x=False, level=1.0)

    figures = (
        figure("why_intermediate", "One classifier on the way: its own accuracy", _of_intermediate),
        figure("why_final", "One classifier on the way: the accuracy of the last", _of_final),
    )
    return Experiment("why", "A classifier on the way in a ResNet, a DenseNet and an MSDNet", "cifar100", figures)


def why_names(family: str) -> tuple[str, ...]:
    """Of a network with its last classifier alone, from several seeds, and with one more at each place in turn."""
    name, places = FAMILIES[family]
    again = [f"_seed{seed}" if seed else "" for seed in _SEEDS_ALONE]
    return tuple(f"why_{name}{which}" for which in (*again, *(f"_at_{place}" for place in places)))


def _with_one_classifier(family: str, recipe: Recipe) -> tuple[Trained, ...]:
    name, places = FAMILIES[family]
    config = network_config(name)
    last = config.exit_layers[-1:] if isinstance(config, MSDNetConfig) else ()  # the others do not name their last
    variants = [((), seed) for seed in _SEEDS_ALONE] + [((place,), 0) for place in places]
    return tuple(
        Trained(called, network_config(name, exits=(*on_the_way, *last)), recipe, seed)
        for called, (on_the_way, seed) in zip(why_names(family), variants, strict=True)
    )


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

# Growths with which each is nearest to 3.0e8 multiply-adds. Without coarse scales, heads read fine maps: as wide as
# MSDNet's they would take almost half of the cost, so that they are as wide as those of ResNet-MC.
_ABLATIONS: dict[str, dict[str, Any]] = {
    "msdnet": {"growth": 15},
    "without_dense": {"growth": 30, "dense": False},
    "without_scales": {"growth": 19, "multi_scale": False, "head_width": 64},
    "without_classifiers": {"growth": 16, "intermediate_classifiers": False},
    "plain": {"growth": 45, "dense": False, "multi_scale": False, "intermediate_classifiers": False},
    "same_growth": {"growth": 38, "channel_factors": (1, 1, 1)},
}


def ablation_experiment(recipe: Recipe) -> Experiment:
    """An MSDNet with six classifiers on the way, without each of its parts, without all of them, and with the same
    growth at all scales.
    """
    names = {
        "msdnet": "MSDNet",
        "without_dense": "without dense connections",
        "without_scales": "without several scales",
        "without_classifiers": "without classifiers on the way",
        "plain": "without all three",
        "same_growth": "the same growth at all scales",
    }
    curves = []
    for colour, (name, changes) in enumerate(_ABLATIONS.items()):
        network = network_config(MSDNetConfig(exits=even(4, 2, 7)), **changes)
        subject = Trained(f"ablation_{name}", network, recipe)
        curves.append(Curve(names[name], (subject,), anytime, colour))
    title = "What each part of MSDNet is good for"
    return Experiment("ablation", title, "cifar100", (Figure("ablation", title, tuple(curves)),))


# --- section 3: exits weighed by the chance that a budget ends there

MEANS = (20e6, 40e6, 80e6)
_JUDGED_AT = tuple(million * 1e6 for million in (10, 15, 20, 30, 40, 60, 80, 120, 160, 240))


def prior_experiment(recipe: Recipe) -> Experiment:
    """Budgets drawn from exponential distributions: what weights derived from one bring against equal weights."""
    even_weights = Trained("cifar_anytime", network_config("cifar_anytime"), recipe)
    curves = []
    for colour, mean in enumerate(MEANS):
        weights = ExitWeights(exponential=Exponential(mean))
        weighted = replace(
            even_weights,
            name=f"prior_{mean / 1e6:.0f}m",
            recipe=replace(recipe, loss=replace(recipe.loss, exit_weights=weights)),
        )
        name = f"trained for a mean of {mean / 1e6:.0f} M"
        curves.append(Curve(name, (even_weights, weighted), gain_over_even_weights, colour))
    title = "Exits weighed by P(B)"
    figure = Figure(
        "prior",
        f"{title}: expected accuracy, against equal weights",
        tuple(curves),
        "mean of the budgets it is judged by, million multiply-adds",
        "gain in expected accuracy of an answer, points",
    )
    return Experiment("prior", f"{title}: does it help where it should?", "cifar100", (figure,))


def gain_over_even_weights(measured: Sequence[Measurement]) -> list[Place]:
    """Points of expected accuracy, by the mean of the budgets in millions; the network of equal weights comes first.

    Of budgets that bring an answer at all: many small ones end before the first exit, whatever the weights.
    """
    if len(measured) != 2:
        return []
    even_weights, weighted = (AnytimeCurve(one.costs, one.test_accuracy) for one in measured)
    places = []
    for mean in _JUDGED_AT:
        budgets = Exponential(mean)
        answered = sum(answer_probabilities(even_weights.costs, budgets))
        gain = (weighted.expected(budgets) - even_weights.expected(budgets)) / answered
        places.append(Place(mean / 1e6, 100 * gain))
    return places
