"""All experiments that train something, by their names."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msdnet.naming import did_you_mean
from msdnet.reproduce.comparison import anytime_experiment, budgeted_experiment, densenet_star_experiment
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.gallery import GALLERY
from msdnet.reproduce.imagenet import anytime_imagenet, budgeted_imagenet
from msdnet.reproduce.studies import ablation_experiment, prior_experiment, why_experiment
from msdnet.training import Recipe, load_recipe

__all__ = ["EXPERIMENTS", "Entry", "find_experiment"]


class Entry(NamedTuple):
    """How an experiment is made."""

    build: Callable[..., Experiment]
    """From a recipe and, where the data are a folder's, the names of its classes, or nothing for ImageNet's."""
    epochs: int = 100
    recipe: str = "compare"
    """For all of its systems."""
    batch_size: int | None = None
    """Other than the recipe's."""
    of_folder: bool = False

    @property
    def whole_recipe(self) -> Recipe:
        """The recipe as this experiment has it."""
        return load_recipe(self.recipe).changed(epochs=self.epochs, batch_size=self.batch_size)


EXPERIMENTS: dict[str, Entry] = {
    "anytime-cifar100": Entry(partial(anytime_experiment, "cifar100")),
    "budgeted-cifar100": Entry(partial(budgeted_experiment, "cifar100")),
    "densenet-star": Entry(densenet_star_experiment),
    "why": Entry(why_experiment, epochs=30),
    "ablation": Entry(ablation_experiment, epochs=10, batch_size=64),
    "prior": Entry(prior_experiment),
    "anytime-cifar10": Entry(partial(anytime_experiment, "cifar10")),
    "budgeted-cifar10": Entry(partial(budgeted_experiment, "cifar10")),
    "anytime-imagenet": Entry(anytime_imagenet, 90, "paper_imagenet", of_folder=True),
    "budgeted-imagenet": Entry(budgeted_imagenet, 90, "paper_imagenet", of_folder=True),
}


def find_experiment(
    name: str, *, epochs: int | None = None, batch_size: int | None = None, classes: Sequence[str] | None = None
) -> Experiment:
    """An experiment by its name.

    - epochs, batch_size: other than its own; such results do not mix with the others'
    - classes: the names of those in the folder of images that stands for ImageNet
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; {did_you_mean(name, [*EXPERIMENTS, GALLERY])}")
    entry = EXPERIMENTS[name]
    recipe = entry.whole_recipe.changed(epochs=epochs, batch_size=batch_size)
    return entry.build(recipe, classes) if entry.of_folder else entry.build(recipe)
