"""All experiments by their names."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from msdnet.naming import did_you_mean
from msdnet.reproduce.comparison import anytime_experiment, budgeted_experiment, densenet_star_experiment
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.studies import ablation_experiment, prior_experiment, why_experiment
from msdnet.training import Recipe, load_recipe

__all__ = ["EXPERIMENTS", "find_experiment"]


class _Entry(NamedTuple):
    build: Callable[[Recipe], Experiment]
    epochs: int = 100
    """Of the recipe `compare`, for all of its systems."""


EXPERIMENTS: dict[str, _Entry] = {
    "anytime-cifar100": _Entry(partial(anytime_experiment, "cifar100")),
    "budgeted-cifar100": _Entry(partial(budgeted_experiment, "cifar100")),
    "densenet-star": _Entry(partial(densenet_star_experiment, "cifar100")),
    "why": _Entry(why_experiment, epochs=30),
    "ablation": _Entry(ablation_experiment),
    "prior": _Entry(prior_experiment),
    "anytime-cifar10": _Entry(partial(anytime_experiment, "cifar10")),
    "budgeted-cifar10": _Entry(partial(budgeted_experiment, "cifar10")),
}


def find_experiment(name: str, *, epochs: int | None = None) -> Experiment:
    """An experiment by its name; with other epochs than its own, results do not mix with those of the others."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; {did_you_mean(name, EXPERIMENTS)}")
    entry = EXPERIMENTS[name]
    return entry.build(load_recipe("compare").lasting(entry.epochs if epochs is None else epochs))
