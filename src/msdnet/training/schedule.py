"""The learning rate as a function of time alone: a resumed run needs no state to go on with it."""

import math

from msdnet.training.recipe import Recipe

__all__ = ["learning_rate"]


def learning_rate(recipe: Recipe, epoch: float) -> float:
    """The learning rate after so many epochs, fractions included."""
    schedule, peak = recipe.schedule, recipe.optimiser.learning_rate
    if epoch < schedule.warmup_epochs:
        return peak * epoch / schedule.warmup_epochs
    if schedule.kind == "steps":
        return peak * schedule.drop_factor ** sum(epoch >= drop for drop in schedule.drop_epochs)
    remaining = (recipe.epochs - epoch) / (recipe.epochs - schedule.warmup_epochs)
    return peak * (remaining if schedule.kind == "one_cycle" else (1 - math.cos(math.pi * remaining)) / 2)
