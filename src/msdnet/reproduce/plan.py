"""What an experiment would train, and how long that takes on this machine."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from msdnet.data import ArrayData, Batch
from msdnet.device import pick_device
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.shelf import Shelf, Standing
from msdnet.reproduce.subjects import Joint, Subject, Trained, trained_for
from msdnet.training.distributed import join_processes
from msdnet.training.run import make_step
from msdnet.training.step import Step

__all__ = ["Planned", "ensembles_to_measure", "make_plan"]

_TIMED_STEPS = 5
_FIRST_STEPS = 2  # not timed: kernels are chosen or compiled, a graph is captured; the second sets up what was compiled
_ROWS_ON_CPU = 16  # a step of the whole batch would take a minute for the largest networks


@dataclass(frozen=True)
class Planned:
    """A network that an experiment needs, and what is still to do for it."""

    name: str
    standing: Standing
    seconds: float
    """To train what is left of it here, by itself."""
    asked_by_ensemble: bool = False
    """It is measured, but an ensemble asks the network itself, which is not here."""
    damage: str = ""
    """What is wrong with its run, if anything: without it the network is trained anew."""


def make_plan(
    experiment: Experiment,
    shelf: Shelf,
    subjects: Sequence[Subject] | None = None,
    *,
    images: dict[str, Any] | None = None,
    device: str | None = None,
) -> Iterator[Planned]:
    """Every network of the experiment, or of some subjects of it; a few steps tell how long the missing ones take.

    An ensemble asks its members themselves: until it is measured it takes more than their results.

    - images: what `describe_data` says of those to train on, if they are known: a run on others counts as damaged
    """
    wanted = experiment.subjects if subjects is None else subjects
    networks = {trained.name: trained for subject in wanted for trained in trained_for(subject)}
    to_ask = {trained for ensemble in ensembles_to_measure(shelf, wanted) for trained in ensemble.members}
    training_images, torch_device = experiment.training_images, pick_device(device)
    join_processes(torch_device)
    times: dict[Trained, float] = {}  # those that differ in their seeds alone take the same
    for trained in networks.values():
        known = shelf.standing(trained)
        standing = shelf.training_standing(trained) if trained in to_ask else known
        damage = "" if standing == "measured" else shelf.fault_of(trained, images)
        if standing in ("measured", "trained"):
            yield Planned(trained.name, known, 0.0, damage=damage)
            continue
        alike = replace(trained, name="", seed=0)
        if alike not in times:
            times[alike] = _training_seconds(trained, experiment.side, training_images, torch_device)
        share = 0.0 if damage else shelf.share_trained(trained)
        yield Planned(trained.name, standing, (1 - share) * times[alike], known == "measured", damage)


def ensembles_to_measure(shelf: Shelf, subjects: Sequence[Subject]) -> list[Joint]:
    """Those without a result: nothing beside their members is trained for them, whose runs must be there."""
    return [one for one in subjects if isinstance(one, Joint) and shelf.standing(one) != "measured"]


def _training_seconds(trained: Trained, side: int, images: int, device: torch.device) -> float:
    """Epochs times steps times what one takes; images are noise; the time does not depend on them.

    What it takes to read images from a disk is not in it.
    """
    recipe = trained.recipe
    recipe.check_fills_a_batch(images)
    rows = recipe.batch_size if device.type == "cuda" else min(_ROWS_ON_CPU, recipe.batch_size)
    classes = trained.network.classes
    labels = np.arange(2 * classes) % classes
    none = np.zeros((len(labels), side, side, 3), dtype=np.uint8)
    data = ArrayData(none, labels, [str(k) for k in range(classes)], held_out=classes, device=device)
    step = make_step(trained.network, recipe, data, device)
    pixels = torch.randn(rows, 3, side, side, device=device)
    batch = Batch(pixels, torch.arange(rows, device=device) % classes)
    times = [_seconds(step, batch, device) for _ in range(_FIRST_STEPS + _TIMED_STEPS)]
    each = statistics.median(times[_FIRST_STEPS:])  # other work may make a single step many times as long
    return recipe.epochs * (images // recipe.batch_size) * each * recipe.batch_size / rows


def _seconds(step: Step, batch: Batch, device: torch.device) -> float:
    start = time.perf_counter()
    step(batch, 0.0)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
