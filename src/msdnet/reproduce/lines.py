"""What is said of networks in training: lines that begin with a name, since several train at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msdnet.amounts import counted
from msdnet.training.display import Display, EpochFigures, duration

__all__ = ["Lines", "goes_on", "percent"]


class Lines(Display):
    """A line every few epochs."""

    def __init__(self, name: str, say: Callable[[str], None], beginning: str = "") -> None:
        self._name, self._say, self._beginning = name, say, beginning

    def start(self, epochs: int, steps: int) -> None:
        if self._beginning:  # told now that nothing stands in the way, another process least of all
            self._say(f"{self._name}: {self._beginning}")
        self._say(f"{self._name}: training, epochs: {epochs:,}, steps in each: {steps:,}")

    def epoch(self, figures: EpochFigures) -> None:
        if figures.held_out_accuracy is not None and figures.epoch < figures.epochs:
            self._say(
                f"{self._name}: epoch {figures.epoch} of {figures.epochs}, loss {figures.loss:.3f}, held-out "
                f"{percent(figures.held_out_accuracy)}, {duration(figures.seconds_left)} left"
            )


def goes_on(progress: Mapping[str, Any] | None) -> str:
    """From where; the step too, since of a stop in the first epoch no epoch would tell that anything was saved."""
    if progress is None:
        return "no checkpoint there, so it begins again"
    return f"goes on, epochs done: {progress['epoch']}, and {counted(progress['step'], 'step')} of the next"


def percent(accuracies: Sequence[float]) -> str:
    """Of every exit."""
    return " ".join(f"{100 * accuracy:.1f}" for accuracy in accuracies) + "%"
