"""Whether the exits are right, and how sure they are, of images whose labels are known."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msdnet.policy.confidence import MEASURES, Measure, confidence, soften

__all__ = ["Judged", "accuracy_of", "judge_logits", "judge_probabilities"]

_Array: TypeAlias = NDArray[np.floating]


class Judged(NamedTuple):
    """What was found of some answers: each array is (images, exits)."""

    predicted: NDArray[np.integer]
    """Labels."""
    correct: NDArray[np.bool_]
    confidence: Mapping[Measure, _Array]
    """By each measure that was asked for."""

    @property
    def accuracy(self) -> tuple[float, ...]:
        """Of every exit."""
        return accuracy_of(self.correct)


def accuracy_of(correct: NDArray[np.bool_]) -> tuple[float, ...]:
    """The share of right answers (images, exits) at every exit.

    >>> accuracy_of(np.array([[True, True], [False, True]]))
    (0.5, 1.0)
    """
    return tuple(correct.mean(axis=0).tolist())


def judge_logits(
    logits: _Array,
    labels: NDArray[np.integer],
    *,
    temperatures: Sequence[float] | None = None,
    measures: Sequence[Measure] = MEASURES,
) -> Judged:
    """Judge answers that are logits (images, exits, classes), softened by a temperature for each exit."""
    exits = logits.shape[1]
    of_exits = (1.0,) * exits if temperatures is None else tuple(temperatures)
    if len(of_exits) != exits:
        raise ValueError(f"temperatures must have one for each of {exits} exits, got {len(of_exits)}")
    softened = (soften(logits[:, exit], temperature) for exit, temperature in enumerate(of_exits))
    return _judge(logits, softened, labels, measures)


def judge_probabilities(
    probabilities: _Array, labels: NDArray[np.integer], measures: Sequence[Measure] = MEASURES
) -> Judged:
    """Judge answers that are probabilities (images, exits, classes)."""
    return _judge(probabilities, probabilities.swapaxes(0, 1), labels, measures)


def _judge(
    answers: _Array, probabilities: Iterable[_Array], labels: NDArray[np.integer], measures: Sequence[Measure]
) -> Judged:
    """One exit's probabilities at a time, since those of all exits together may fill the memory."""
    predicted = answers.argmax(axis=2)
    sure: dict[Measure, list[_Array]] = {measure: [] for measure in measures}
    for of_exit in probabilities if measures else ():
        for measure, found in sure.items():
            found.append(confidence(of_exit, measure))
    stacked = {measure: np.stack(found, axis=1) for measure, found in sure.items()}
    return Judged(predicted, predicted == labels[:, None], stacked)
