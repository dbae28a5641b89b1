"""An experiment: systems, and the figures that compare them.

A system is declared once, by the curve that it makes in a figure; what must be trained follows from that.
"""

from dataclasses import dataclass, replace

from msdnet.reproduce.figure import Figure
from msdnet.reproduce.subjects import Subject, trained_for

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
    is_try: bool = False
    """Whether something was changed to try it: it then says nothing of what the paper claims."""
    images_known: bool = True
    """Whether there are just so many to train on: another folder of images may stand for ImageNet."""

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything that is to be measured."""
        return tuple(dict.fromkeys(subject for figure in self.figures for subject in figure.subjects))

    @property
    def everyone(self) -> dict[str, Subject]:
        """The same by their names, and the members of ensembles, which are measured on the way."""
        return {one.name: one for subject in self.subjects for one in (*trained_for(subject), subject)}

    def on(self, training_images: int) -> "Experiment":
        """The same on data that have so many training images."""
        return replace(self, training_images=training_images, images_known=True)

    def tried_with(self, *changes: str, subset: int | None = None) -> "Experiment":
        """The same, with what was changed to try it in every title, so that nobody takes it for the real one.

        What others have published is nothing to compare a try with, and left out.
        - subset: training images, if not all of them
        """
        if not changes:
            return self
        note = f" (a try: {', '.join(changes)})"
        figures = tuple(
            replace(figure, title=f"{figure.title}{note}", curves=tuple(c for c in figure.curves if c.subjects))
            for figure in self.figures
        )
        images = min(subset or self.training_images, self.training_images)
        return replace(self, title=f"{self.title}{note}", figures=figures, training_images=images, is_try=True)
