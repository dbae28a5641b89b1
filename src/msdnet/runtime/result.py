"""What became of a set of images."""

import operator
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from msdnet.amounts import counted, in_millions
from msdnet.policy import Answers

__all__ = ["Collected", "One", "Result"]


class One(NamedTuple):
    """What became of one image. One that could not be read has the label -1, the exit 0 and an error."""

    label: int
    name: str
    """Of the class."""
    confidence: float
    exit: int
    """From 1, as people count."""
    cost: float
    seconds: float
    """From the start until it was answered."""
    error: str | None = None
    """Why it could not be read, if so."""


@dataclass(frozen=True, eq=False)
class Result:
    """Arrays in the order of the images, and what they took in all.

    Images that could not be read, where they were to be skipped, have the label -1, the exit 0 and an error.
    """

    labels: NDArray[np.integer]
    confidences: NDArray[np.floating]
    exits: NDArray[np.integer]
    """Where each image left, from 1, as people count."""
    seconds: float
    """From the first image to the last answer."""
    exit_costs: tuple[int, ...]
    """Multiply-adds to reach each exit."""
    classes: tuple[str, ...]
    times: NDArray[np.floating]
    """Seconds from the start until each image was answered."""
    probabilities: NDArray[np.floating] | None = None
    """(N, classes), if they were asked for."""
    budget: float | None = None
    """Multiply-adds per image that were asked for, if they were, counted as they are computed; `cost` is what was
    spent."""
    time_budget: float | None = None
    """Seconds per image that were asked for, if they were."""
    errors: Mapping[int, str] = field(default_factory=dict)
    """By the numbers of the images that could not be read, why not."""

    @property
    def costs(self) -> NDArray[np.int64]:
        """Multiply-adds of each image."""
        costs: NDArray[np.int64] = np.array((0, *self.exit_costs), dtype=np.int64)[self.exits]
        return costs

    @property
    def cost(self) -> float:
        """Multiply-adds per image, on average over those that were read."""
        read = len(self) - len(self.errors)
        return float(self.costs.sum() / read) if read else 0.0

    @property
    def names(self) -> list[str]:
        """The classes' names."""
        return ["" if label < 0 else self.classes[label] for label in self.labels]

    @property
    def exit_counts(self) -> tuple[int, ...]:
        """How many images left at each exit."""
        return tuple(np.bincount(self.exits, minlength=len(self.exit_costs) + 1)[1:].tolist())

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, image: SupportsIndex) -> One: ...
    @overload
    def __getitem__(self, image: slice) -> list[One]: ...
    def __getitem__(self, image: SupportsIndex | slice) -> One | list[One]:
        if isinstance(image, slice):
            return [self[number] for number in range(len(self))[image]]
        number = operator.index(image)
        label, exit = int(self.labels[number]), int(self.exits[number])
        sure, after = float(self.confidences[number]), float(self.times[number])
        if not exit:
            return One(label, "", sure, exit, 0, after, self.errors[range(len(self))[number]])
        return One(label, self.classes[label], sure, exit, self.exit_costs[exit - 1], after)

    def __iter__(self) -> Iterator[One]:
        return (self[image] for image in range(len(self)))

    def __repr__(self) -> str:
        share = self.cost / self.exit_costs[-1]
        asked = "" if self.budget is None else f", budget {in_millions(self.budget)} M"
        time_asked = "" if self.time_budget is None else f" (budget {self.time_budget:.3g} s each)"
        unread = f"; {len(self.errors):,} could not be read" if self.errors else ""
        return (
            f"<msdnet.Result: {counted(len(self), 'image')} in {self.seconds:.3g} s{time_asked}, "
            f"{in_millions(self.cost)} M multiply-adds per image ({share:.0%} of the full network{asked}); "
            f"left at exits 1 to {len(self.exit_costs)}: {' '.join(map(str, self.exit_counts))}{unread}>"
        )


class Collected:
    """Answers, put in the order of the images as they come: a few bytes for each. The clock runs from the beginning."""

    def __init__(
        self,
        costs: Sequence[int],
        classes: tuple[str, ...],
        *,
        keep_probabilities: bool = False,
        budget: float | None = None,
        time_budget: float | None = None,
    ) -> None:
        self._costs, self._classes, self._budget, self._time_budget = tuple(costs), classes, budget, time_budget
        self._errors: dict[int, str] = {}
        self._labels, self._confidences, self._exits = _Column(np.int32), _Column(np.float32), _Column(np.int16)
        self._times, self._start = _Column(np.float32), time.perf_counter()
        self._probabilities = _Column(np.float32, len(classes)) if keep_probabilities else None

    def add(self, answers: Answers) -> None:
        self._labels.put(answers.images, answers.probabilities.argmax(axis=1))
        self._confidences.put(answers.images, answers.confidences)
        self._exits.put(answers.images, answers.exit)
        self._times.put(answers.images, time.perf_counter() - self._start)
        if self._probabilities is not None:
            self._probabilities.put(answers.images, answers.probabilities)

    def add_unread(self, errors: Mapping[int, str]) -> None:
        numbers = np.array(list(errors), dtype=np.int64)
        if len(numbers):
            self._labels.put(numbers, -1)
            for column in (self._confidences, self._exits, self._probabilities):
                if column is not None:
                    column.put(numbers, 0)
            self._times.put(numbers, time.perf_counter() - self._start)
            self._errors.update(errors)

    def result(self) -> Result:
        return Result(
            self._labels.values,
            self._confidences.values,
            self._exits.values,
            time.perf_counter() - self._start,
            self._costs,
            self._classes,
            self._times.values,
            None if self._probabilities is None else self._probabilities.values,
            self._budget,
            self._time_budget,
            self._errors,
        )


class _Column:
    """An array that grows with the largest number put in."""

    def __init__(self, dtype: type[np.generic], *shape: int) -> None:
        self._size = 0
        self._space = np.empty((1024, *shape), dtype)

    @property
    def values(self) -> NDArray[Any]:
        return self._space[: self._size].copy()

    def put(self, numbers: NDArray[np.integer], values: object) -> None:
        self._size = max(self._size, int(numbers.max()) + 1)
        if self._size > len(self._space):
            larger = np.empty((max(self._size, 2 * len(self._space)), *self._space.shape[1:]), self._space.dtype)
            larger[: len(self._space)] = self._space
            self._space = larger
        self._space[numbers] = values
