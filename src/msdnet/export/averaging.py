"""Whether exits should answer with the average of the exits so far, and with which weights: held-out images tell.

One look at the images is enough for all: averages are made of the logits that the exits give by themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msdnet.config import MSDNetConfig
from msdnet.policy import Judged, judge_logits

__all__ = ["POWERS", "AveragingChoice", "averaged", "choose_averaging"]

POWERS = (None, 0.0, 0.5, 1.0, 2.0)
"""That are compared: none, and exit j counting j to these."""


@dataclass(frozen=True)
class AveragingChoice:
    """What was compared, and what came of it."""

    power: float | None
    """The best: by the mean accuracy of the exits; of equals none, or else the smallest."""
    accuracy: dict[str, tuple[float, ...]]
    """Of every exit on the held-out images, by the power (or `none`)."""

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"chosen": _name(self.power), "held_out_accuracy": self.accuracy}


def _name(power: float | None) -> str:
    return "none" if power is None else f"{power:g}"


def choose_averaging(
    config: MSDNetConfig,
    logits: NDArray[np.float32],
    labels: NDArray[np.int64],
    powers: Iterable[float | None] = POWERS,
) -> AveragingChoice:
    """Compare powers on images of which each exit has given its own logits (N, exits, classes)."""
    found: dict[float | None, Judged] = {}
    for power in sorted(set(powers), key=_simplest_first):
        answers = averaged(logits, replace(config, averaging=power).exit_shares)
        found[power] = judge_logits(answers, labels, measures=())
    best = max(found, key=lambda power: int(found[power].correct.sum()))  # a mean would tell equals apart by rounding
    return AveragingChoice(best, {_name(power): judged.accuracy for power, judged in found.items()})


def _simplest_first(power: float | None) -> tuple[bool, float]:
    return power is not None, power or 0.0


def averaged(logits: NDArray[np.float32], shares: tuple[float, ...] | None) -> NDArray[np.float32]:
    """(N, exits, classes), from the same: each exit's own share, and the rest of what the exit before answered."""
    if shares is None:
        return logits
    answers = logits.copy()
    for exit in range(1, logits.shape[1]):
        answers[:, exit] = shares[exit] * logits[:, exit] + (1 - shares[exit]) * answers[:, exit - 1]
    return answers
