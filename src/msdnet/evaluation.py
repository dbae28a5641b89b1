"""How good a model is: the accuracy of every exit, and of every budget, on labelled images.

Every exit answers every image once; what a budget would have brought follows from that, since an image's answers do
not depend on which others are computed beside it.
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from msdnet.anytime import AnytimeCurve
from msdnet.checks import check_choice, check_whole, make_tuples
from msdnet.files import CIFAR, Labelled, TrainedOn, Unreadable
from msdnet.policy import METHODS, Measure, Method, Policy, confidence
from msdnet.runtime import Model
from msdnet.runtime.images import Readable, batches

__all__ = ["BudgetPoint", "Evaluation", "best_of", "budget_point", "evaluate", "standard_error", "trained_on"]


@dataclass(frozen=True, kw_only=True)
class BudgetPoint:
    """What a budget brought."""

    model: str
    method: Method
    budget: float
    """Multiply-adds per image that were asked for, on average."""
    accuracy: float
    cost: float
    """Multiply-adds per image that were spent, counted as the budget is."""
    cost_error: float
    """Standard error of the cost."""
    lazy_cost: float
    """What is really computed, stage by stage."""
    held_out_accuracy: float
    held_out_cost: float
    left: tuple[int, ...]
    """Images that left at each exit."""

    def __post_init__(self) -> None:
        make_tuples(self, "left")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What every exit said of every image."""

    model: Model
    data: str
    confidence: NDArray[np.floating]
    """(images, exits)"""
    correct: NDArray[np.bool_]
    """(images, exits)"""
    measure: Measure
    seconds: float
    unread: tuple[int, ...] = ()
    """Numbers of the images that could not be read and are left out."""

    @classmethod
    def of_held_out(cls, model: Model, measure: Measure = "largest") -> "Evaluation":
        """What a bundle keeps of its held-out images, without running anything."""
        right = model.held_out("correct").astype(bool)
        return cls(model, "held out, and what thresholds were fitted to", model.held_out(measure), right, measure, 0.0)

    @property
    def images(self) -> int:
        return len(self.correct)

    @property
    def accuracy(self) -> tuple[float, ...]:
        """Of every exit."""
        return tuple(self.correct.mean(axis=0).tolist())

    def curve(self, *, whole: bool = False) -> AnytimeCurve:
        """Accuracy at any budget that is the same for all images."""
        return AnytimeCurve(self._costs(whole), self.accuracy)

    def at(self, budget: float, *, method: Method = "accuracy", whole: bool = False) -> BudgetPoint:
        """What a budget brings, its thresholds fitted on the model's held-out images.

        - whole: budget and cost count whole layers up to an exit, as published figures do
        """
        policy = self._policy(budget, method, whole)
        return budget_point(self.model.manifest.name, policy, self.confidence, self.correct, self.model.costs)

    def exits(self, budget: float, *, method: Method = "accuracy", whole: bool = False) -> NDArray[np.intp]:
        """Where each image leaves with that budget, from 0 on."""
        return self._policy(budget, method, whole).exits(self.confidence)

    def points(
        self, budgets: Sequence[float], *, methods: Sequence[Method] = METHODS, whole: bool = False
    ) -> list[BudgetPoint]:
        """All budgets that the model can keep, by each method: those from the first exit's cost on."""
        least = self._costs(whole)[0]
        kept = [budget for budget in budgets if budget >= least]
        return [self.at(budget, method=method, whole=whole) for method in methods for budget in kept]

    def to_dict(self, points: Sequence[BudgetPoint] = ()) -> dict[str, Any]:
        """As plain values, for a file."""
        manifest = self.model.manifest
        return {
            "model": manifest.name,
            "data": self.data,
            "images": self.images,
            "costs": list(manifest.costs),
            "whole_costs": list(manifest.whole_costs),
            "accuracy": list(self.accuracy),
            "held_out_accuracy": None if manifest.held_out is None else list(manifest.held_out.accuracy),
            "points": [asdict(point) for point in points],
        }

    def _policy(self, budget: float, method: Method, whole: bool) -> Policy:
        return self.model.policy(budget, method=method, measure=self.measure, costs=self._costs(whole))

    def _costs(self, whole: bool) -> tuple[int, ...]:
        return self.model.manifest.whole_costs if whole else self.model.costs


def budget_point(
    name: str,
    policy: Policy,
    confidence: NDArray[np.floating],
    correct: NDArray[np.bool_],
    lazy_costs: Sequence[int],
) -> BudgetPoint:
    """What a fitted policy brings on images of these confidences and answers, both (images, exits).

    - lazy_costs: what is really computed to reach each exit; the policy's own costs may count whole layers
    """
    exits = policy.exits(confidence)
    spent = policy.costs_[exits]
    return BudgetPoint(
        model=name,
        method=policy.method,
        budget=policy.budget_,
        accuracy=float(correct[np.arange(len(exits)), exits].mean()),
        cost=float(spent.mean()),
        cost_error=float(spent.std() / np.sqrt(len(spent))),
        lazy_cost=float(np.array(lazy_costs)[exits].mean()),
        held_out_accuracy=policy.accuracy_,
        held_out_cost=policy.cost_,
        left=tuple(np.bincount(exits, minlength=len(lazy_costs)).tolist()),
    )


def trained_on(model: Model) -> list[TrainedOn]:
    """What the model tells of the folder that it was trained on: nothing if that is not known, or CIFAR.

    With it `open_labelled` tells that folder, of which the test images are to be taken, from others.
    """
    provenance = model.manifest.provenance
    data = provenance.get("data", {})
    if "held_out_sha256" not in provenance or data.get("dataset") in CIFAR:
        return []
    # As it was asked for; of data that were opened by others, as it came out.
    held_out, seed = ({**provenance, **data}.get(key) for key in ("held_out", "held_out_seed"))
    return [TrainedOn(provenance["held_out_sha256"], held_out, seed or 0, tuple(provenance.get("some_names", ())))]


def evaluate(
    model: Model,
    data: Labelled,
    *,
    measure: Measure = "largest",
    batch: int | None = None,
    unreadable: Unreadable = "fatal",
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Ask every exit about every image.

    - measure: of confidence, for budgets
    - batch: images that are computed together; by default what suits the engine
    - unreadable: an image that cannot be read ends it (`fatal`), or is warned of and left out (`skip`)
    - progress: told how many images are done
    """
    _check(model, data)
    check_choice("unreadable", unreadable, get_args(Unreadable))
    named = ((image if isinstance(image, str) else f"image {row}", image) for row, image in enumerate(data.images))
    readable = Readable(named, model.engine.images)
    images, numbers = (data.images, range(len(data.labels))) if unreadable == "fatal" else (readable, readable.rows)
    rows = model.engine.best_batch if batch is None else check_whole("batch", batch)
    sure: list[NDArray[np.floating]] = []
    right: list[NDArray[np.bool_]] = []
    start, done = time.perf_counter(), 0
    for pixels in batches(images, model.engine.images, rows):
        labels = data.labels[numbers[done : done + len(pixels)]]
        state = model.engine.begin(pixels)
        exits = []
        for _ in model.costs:
            probabilities, state = model.engine.advance(state)
            exits.append((confidence(probabilities, measure), probabilities.argmax(axis=1) == labels))
        sure.append(np.stack([one for one, _ in exits], axis=1))
        right.append(np.stack([one for _, one in exits], axis=1))
        done += len(pixels)
        if progress is not None:
            progress(done)
    for _, name, why in readable.unread:
        warnings.warn(f"unreadable image {name}: {why}", stacklevel=2)
    unread = tuple(row for row, _, _ in readable.unread)
    if not done:
        raise ValueError(f"{data.name}: none of {len(unread):,} images could be read")
    return Evaluation(
        model,
        data.name + (f"; {len(unread):,} could not be read" if unread else ""),
        np.concatenate(sure),
        np.concatenate(right),
        measure,
        time.perf_counter() - start,
        unread,
    )


def _check(model: Model, data: Labelled) -> None:
    if not isinstance(data, Labelled):
        raise TypeError(f"data must be labelled images, as msdnet.files.open_labelled finds them, got {data!r}")
    data.check_for(model.classes)
    if not len(data.labels):
        raise ValueError(f"{data.name}: no images to evaluate on")
    if len(data.labels) != len(data.images):
        raise ValueError(f"{data.name}: {len(data.labels)} labels for {len(data.images)} images")


def standard_error(share: float, images: int) -> float:
    """Of a share of so many images, as an estimate of the share of all."""
    return math.sqrt(share * (1 - share) / images)


def best_of(points: Sequence[BudgetPoint]) -> list[BudgetPoint]:
    """For each budget the point of the model and method that are best on held-out images; the cheaper of equals."""
    budgets = sorted({point.budget for point in points})
    return [
        max((p for p in points if p.budget == budget), key=lambda p: (p.held_out_accuracy, -p.held_out_cost))
        for budget in budgets
    ]
