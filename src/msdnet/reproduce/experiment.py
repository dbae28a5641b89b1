"""An experiment: systems, and the figures that compare them.

A system is declared once, by the curve that it makes in a figure; what must be trained follows from that.
"""

from dataclasses import dataclass

from msdnet.reproduce.figure import Figure
from msdnet.reproduce.subjects import Subject

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """Something that the paper shows."""

    name: str
    title: str
    dataset: str
    """cifar10, cifar100 or imagenet."""
    figures: tuple[Figure, ...]
    training_images: int = 45_000
    side: int = 32
    """Of the images."""

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything that is to be measured."""
        return tuple(dict.fromkeys(subject for figure in self.figures for subject in figure.subjects))
