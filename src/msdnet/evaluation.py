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
from numpy.typing import ArrayLike, NDArray

from msdnet.amounts import Amount, parse_budget
from msdnet.anytime import AnytimeCurve
from msdnet.checks import check_choice, check_whole
from msdnet.files import CIFAR, Labelled
from msdnet.pixels import Unreadable
from msdnet.policy import METHODS, Measure, Method, Policy, accuracy_of, judge_probabilities
from msdnet.runtime import Model
from msdnet.runtime.batching import every_exit
from msdnet.runtime.images import among_all, batches
from msdnet.tables import make_tuples

__all__ = [
    "BINS",
    "BudgetPoint",
    "Evaluation",
    "ExitsPoint",
    "best_of",
    "budget_point",
    "check_fits",
    "evaluate",
    "reliability",
    "standard_error",
    "trained_on",
    "where_left",
]

BINS = 15
"""Of equal width, into which confidences are put to see how far they can be relied on: as is usual for the ECE."""


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


@dataclass(frozen=True, kw_only=True)
class ExitsPoint:
    """What it brought to let images go at certain exits, whatever chose them."""

    accuracy: float
    accuracy_error: float
    """A standard error, as all errors here."""
    cost: float
    """Multiply-adds per image that were computed."""
    cost_error: float
    whole_cost: float
    """The same, counted by whole layers."""
    whole_cost_error: float
    left: tuple[int, ...]
    """Images that left at each exit."""


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
    predicted: NDArray[np.integer] | None = None
    """(images, exits): labels. A bundle does not keep those of its held-out images."""
    likelihood: NDArray[np.floating] | None = None
    """(images, exits): the probability that was given to the right class; not kept by bundles either."""
    largest: NDArray[np.floating] | None = None
    """(images, exits): the largest probability, whatever the measure of confidence."""

    @classmethod
    def of_held_out(cls, model: Model, measure: Measure = "largest") -> "Evaluation":
        """What a bundle keeps of its held-out images, without running anything."""
        right, largest = model.held_out("correct").astype(bool), model.held_out("largest")
        told = "held out, and what thresholds were fitted to"
        return cls(model, told, model.held_out(measure), right, measure, 0.0, largest=largest)

    @property
    def images(self) -> int:
        return len(self.correct)

    @property
    def accuracy(self) -> tuple[float, ...]:
        """Of every exit."""
        return accuracy_of(self.correct)

    @property
    def calibration_error(self) -> tuple[float, ...] | None:
        """Of every exit, the expected calibration error (ECE) of its largest probability, in 15 bins of equal width."""
        if self.largest is None:
            return None
        return tuple(reliability(*exit)[2] for exit in zip(self.largest.T, self.correct.T, strict=True))

    @property
    def nll(self) -> tuple[float, ...] | None:
        """Of every exit, the mean negative log-likelihood of the right classes; of held-out images it is not known."""
        if self.likelihood is None:
            return None
        likely = np.maximum(self.likelihood.astype(np.float64), np.finfo(np.float32).tiny)  # none is quite impossible
        return tuple((-np.log(likely)).mean(axis=0).tolist())

    def curve(self, *, whole: bool = False) -> AnytimeCurve:
        """Accuracy at any budget that is the same for all images."""
        return AnytimeCurve(self._costs(whole), self.accuracy)

    def at(self, budget: Amount, *, method: Method = "accuracy", whole: bool = False) -> BudgetPoint:
        """Accuracy and cost at a budget, with thresholds fitted on the model's held-out images.

        - whole: budget and cost count whole layers up to an exit, as published figures do
        """
        policy = self._policy(budget, method, whole)
        return budget_point(self.model.manifest.name, policy, self.confidence, self.correct, self.model.costs)

    def at_exits(self, exit_indices: ArrayLike) -> ExitsPoint:
        """Accuracy and cost if each image leaves at the given exit, whatever rule chose it.

        - exit_indices: (images), from 0; the exits of a `Result` count from 1
        """
        chosen, last = np.asarray(exit_indices), self.correct.shape[1] - 1
        one_each = chosen.shape == (self.images,) and np.issubdtype(chosen.dtype, np.integer)
        if not one_each or not 0 <= chosen.min() <= chosen.max() <= last:
            got = f"{chosen.min()} to {chosen.max()}" if one_each else f"{chosen.dtype} {chosen.shape}"
            raise ValueError(
                f"exit_indices must be whole numbers from 0 to {last} for {self.images:,} images, got {got}"
            )
        right = float(where_left(self.correct, chosen).mean())
        lazy, by_layers = (np.array(self._costs(whole), dtype=float)[chosen] for whole in (False, True))
        return ExitsPoint(
            accuracy=right,
            accuracy_error=standard_error(right, self.images),
            cost=float(lazy.mean()),
            cost_error=_error_of_mean(lazy),
            whole_cost=float(by_layers.mean()),
            whole_cost_error=_error_of_mean(by_layers),
            left=tuple(np.bincount(chosen, minlength=last + 1).tolist()),
        )

    def exit_indices(self, budget: Amount, *, method: Method = "accuracy", whole: bool = False) -> NDArray[np.intp]:
        """Where each image leaves with that budget, from 0 on."""
        return self._policy(budget, method, whole).exit_indices(self.confidence)

    def points(
        self, budgets: Sequence[Amount], *, methods: Sequence[Method] = METHODS, whole: bool = False
    ) -> list[BudgetPoint]:
        """All budgets that the model can keep, by each method: those from the first exit's cost on."""
        costs = self._costs(whole)
        amounts = [parse_budget(budget, 0, costs[-1]) if isinstance(budget, str) else budget for budget in budgets]
        kept = [budget for budget in amounts if budget >= costs[0]]
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
            "calibration_error": None if self.calibration_error is None else list(self.calibration_error),
            "nll": None if self.nll is None else list(self.nll),
            "held_out_accuracy": None if manifest.held_out is None else list(manifest.held_out.accuracy),
            "points": [asdict(point) for point in points],
        }

    def _policy(self, budget: Amount, method: Method, whole: bool) -> Policy:
        return self.model.policy(budget, method=method, measure=self.measure, costs=self._costs(whole))

    def _costs(self, whole: bool) -> tuple[int, ...]:
        return self.model.whole_costs if whole else self.model.costs


def where_left(correct: NDArray[np.bool_], exits: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether the exit was right at which each image left, from (images, exits)."""
    right: NDArray[np.bool_] = correct[np.arange(len(exits)), exits]
    return right


def budget_point(
    name: str,
    policy: Policy,
    confidence: NDArray[np.floating],
    correct: NDArray[np.bool_],
    lazy_costs: Sequence[int],
) -> BudgetPoint:
    """Accuracy and cost of a fitted policy on images of these confidences and answers, both (images, exits).

    - lazy_costs: what is really computed to reach each exit; the policy's own costs may count whole layers
    """
    exits = policy.exit_indices(confidence)
    spent = policy.costs_[exits]
    return BudgetPoint(
        model=name,
        method=policy.method,
        budget=policy.budget_,
        accuracy=float(where_left(correct, exits).mean()),
        cost=float(spent.mean()),
        cost_error=_error_of_mean(spent),
        lazy_cost=float(np.array(lazy_costs)[exits].mean()),
        held_out_accuracy=policy.accuracy_,
        held_out_cost=policy.cost_,
        left=tuple(np.bincount(exits, minlength=len(lazy_costs)).tolist()),
    )


def trained_on(model: Model) -> list[tuple[str, ...]]:
    """What the model tells of the folder that it was trained on: names of some of its images, as digests, or none where
    its images came without names. Nothing if they are not known at all, or CIFAR's.

    With it `open_labelled` tells that folder, of which the test images are to be taken, from others.
    """
    provenance = model.manifest.provenance
    if "held_out_sha256" not in provenance or provenance.get("data", {}).get("dataset") in CIFAR:
        return []
    return [tuple(provenance.get("some_names", ()))]


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
    check_fits(model, data)
    check_choice("unreadable", unreadable, get_args(Unreadable))
    rows = model.engine.best_batch if batch is None else check_whole("batch", batch)
    unread: dict[int, str] = {}
    given = batches(data.images, model.engine.images, rows, None if unreadable == "fatal" else unread)
    start, done, parts = time.perf_counter(), 0, []
    for said in every_exit(model.engine, filter(len, given)):
        numbers = among_all(np.arange(done, done + len(said)), unread)
        parts.append(_judged(said, data.labels[numbers], measure))
        done += len(said)
        if progress is not None:
            progress(done)
    for number, why in unread.items():
        warnings.warn(f"unreadable image {number}: {why}", stacklevel=2)
    if not done:
        raise ValueError(f"{data.name}: none of {len(unread):,} images could be read")
    return Evaluation(
        model,
        data.name + (f"; {len(unread):,} could not be read" if unread else ""),
        measure=measure,
        seconds=time.perf_counter() - start,
        unread=tuple(unread),
        **{kept: np.concatenate([part[kept] for part in parts]) for kept in parts[0]},
    )


def _judged(said: NDArray[np.floating], labels: NDArray[np.int64], measure: Measure) -> dict[str, NDArray[Any]]:
    """What is kept of probabilities (N, exits, classes): each of it (N, exits)."""
    judged = judge_probabilities(said, labels, (measure, "largest"))
    return {
        "confidence": judged.confidence[measure],
        "correct": judged.correct,
        "predicted": judged.predicted,
        "likelihood": np.take_along_axis(said, labels[:, None, None], axis=2)[..., 0],
        "largest": judged.confidence["largest"],
    }


def check_fits(model: Model, data: Labelled) -> None:
    """Refuse images that the model cannot be evaluated on."""
    if not isinstance(model, Model):
        raise TypeError(f"model must be one that msdnet.load has loaded, got {model!r}")
    if not isinstance(data, Labelled):
        kind = type(data).__name__
        raise TypeError(
            f"data must be Labelled, as msdnet.files.open_labelled finds them or you make them, got a {kind}"
        )
    try:
        data.check_for(model.classes)
    except ValueError as error:
        raise ValueError(f"{model.manifest.name}: {error}") from error
    if not len(data):
        raise ValueError(f"{data.name}: no images to evaluate on")


def standard_error(share: float, images: int) -> float:
    """Of a share of so many images, as an estimate of the share of all."""
    return math.sqrt(share * (1 - share) / images)


def _error_of_mean(values: NDArray[np.floating]) -> float:
    return float(values.std() / math.sqrt(len(values)))


def reliability(
    sure: NDArray[np.floating], right: NDArray[np.bool_]
) -> tuple[NDArray[np.floating], NDArray[np.floating], float]:
    """Mean confidence and share of right answers in each bin that has images, and how far they are apart on average.

    >>> reliability(np.array([0.75, 0.75, 0.5, 0.5]), np.array([True, True, True, False]))
    (array([0.5 , 0.75]), array([0.5, 1. ]), 0.125)
    """
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    used = counts > 0
    means = [np.bincount(bins, values, minlength=BINS)[used] / counts[used] for values in (sure, right)]
    error = float(np.abs(means[0] - means[1]) @ counts[used] / len(sure))
    return means[0], means[1], error


def best_of(points: Sequence[BudgetPoint]) -> list[BudgetPoint]:
    """For each budget the point of the model and method that are best on held-out images; the cheaper of equals."""
    budgets = sorted({point.budget for point in points})
    return [
        max((p for p in points if p.budget == budget), key=lambda p: (p.held_out_accuracy, -p.held_out_cost))
        for budget in budgets
    ]
