"""What a person sees of a training: a live display in a terminal, one plain line per epoch elsewhere.

Knows nothing of how the figures come about.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from msdnet.writing import write_atomically

__all__ = ["Display", "EpochFigures", "LiveDisplay", "MetricsFile", "PlainDisplay", "choose_display", "duration"]


@dataclass(frozen=True)
class EpochFigures:
    """What one epoch brought."""

    epoch: int
    """Epochs done, this one included."""
    epochs: int
    loss: float
    learning_rate: float
    train_accuracy: tuple[float, ...]
    held_out_accuracy: tuple[float, ...] | None
    images_per_second: float
    seconds: float
    """In proportion, where only the rest of an epoch was left to do."""

    @property
    def seconds_left(self) -> float:
        return (self.epochs - self.epoch) * self.seconds


class Display:
    """Hears of everything; shows nothing."""

    def start(self, epochs: int, steps: int) -> None:
        """A training of so many epochs of so many steps begins or goes on."""

    def step(self, epoch: int, step: int) -> None:
        """A step is done."""

    def running(self, loss: float, images_per_second: float) -> None:
        """How the epoch goes so far; told now and then."""

    def epoch(self, figures: EpochFigures) -> None:
        """An epoch is done."""

    def say(self, message: str) -> None:
        """Something happened that a person should know."""

    def stop(self) -> None:
        """The training ends here, finished or not."""


class PlainDisplay(Display):
    """One line per epoch."""

    def epoch(self, figures: EpochFigures) -> None:
        self.say(_line(figures))

    def say(self, message: str) -> None:
        print(message, flush=True)


class LiveDisplay(Display):
    """A line per epoch above two moving bars: steps of this epoch, epochs of the training."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description:<6}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
        )

    def start(self, epochs: int, steps: int) -> None:
        self._steps = self._progress.add_task("step", total=steps, figures="")
        self._epochs = self._progress.add_task("epoch", total=epochs, figures="")
        self._progress.start()

    def step(self, epoch: int, step: int) -> None:
        self._progress.update(self._steps, completed=step)
        self._progress.update(self._epochs, completed=epoch)

    def running(self, loss: float, images_per_second: float) -> None:
        self._progress.update(self._steps, figures=f"loss {loss:.3f}  {images_per_second:,.0f} images/s")

    def epoch(self, figures: EpochFigures) -> None:
        self._progress.update(self._epochs, completed=figures.epoch)
        self.say(_line(figures))

    def say(self, message: str) -> None:
        self._progress.console.print(message, highlight=False, markup=False, emoji=False)

    def stop(self) -> None:
        self._progress.stop()


def choose_display() -> Display:
    return LiveDisplay() if sys.stdout.isatty() else PlainDisplay()


class MetricsFile:
    """`metrics.jsonl`, a line per epoch."""

    def __init__(self, folder: Path, epochs_done: int) -> None:
        """Lines of epochs that a resumed run will do again are dropped."""
        self._path = folder / "metrics.jsonl"
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        kept = [line for line in lines if _epoch_of(line) <= epochs_done]
        write_atomically(self._path, "".join(f"{line}\n" for line in kept).encode())

    def write(self, figures: EpochFigures) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(figures)) + "\n")


def _epoch_of(line: str) -> float:
    """The epoch of a line; a line cut short by a kill counts as the last there could be."""
    try:
        return int(json.loads(line)["epoch"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _line(figures: EpochFigures) -> str:
    """An epoch in words, with the accuracies of the first, the middle and the last exit."""
    held_out = figures.held_out_accuracy
    return (
        f"epoch {figures.epoch}/{figures.epochs}  loss {figures.loss:.3f}  train {_three(figures.train_accuracy)}"
        + (f"  held-out {_three(held_out)}" if held_out is not None else "")
        + f"  {figures.images_per_second:,.0f} images/s  {duration(figures.seconds_left)} left"
    )


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, as far as they matter."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _three(accuracies: tuple[float, ...]) -> str:
    places = sorted({0, len(accuracies) // 2, len(accuracies) - 1})
    return " ".join(f"{100 * accuracies[place]:.1f}%" for place in places)
