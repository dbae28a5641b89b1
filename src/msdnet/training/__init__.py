"""Training a network: `train` starts a run in a folder, `resume` goes on with one.

from msdnet.data import DataConfig
from msdnet.training import train

summary = train("fast", data=DataConfig(dataset="cifar100"), network="cifar_anytime", out="runs/first")
print(summary.held_out_accuracy)
"""

from typing import TYPE_CHECKING

from msdnet.extras import imported_later
from msdnet.training.recipe import Recipe, load_recipe, recipe_names

if TYPE_CHECKING:
    from msdnet.training.evaluation import all_logits, exit_accuracies
    from msdnet.training.record import TrainedRun, is_finished, load_run
    from msdnet.training.run import resume, train
    from msdnet.training.side_by_side import Interrupted, StopSignal, together
    from msdnet.training.trainer import DivergenceError, Summary

__all__ = [
    "DivergenceError",
    "Interrupted",
    "Recipe",
    "StopSignal",
    "Summary",
    "TrainedRun",
    "all_logits",
    "exit_accuracies",
    "is_finished",
    "load_recipe",
    "load_run",
    "recipe_names",
    "resume",
    "together",
    "train",
]

# What needs torch: recipes, which the list of experiments is made of, do not.
__getattr__ = imported_later(
    __name__,
    {
        "evaluation": ("all_logits", "exit_accuracies"),
        "record": ("TrainedRun", "is_finished", "load_run"),
        "run": ("resume", "train"),
        "side_by_side": ("Interrupted", "StopSignal", "together"),
        "trainer": ("DivergenceError", "Summary"),
    },
)


def __dir__() -> list[str]:
    return __all__
