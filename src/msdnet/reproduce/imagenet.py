"""Both settings on ImageNet (figures 5 and 7, left), or on any folder of images in its layout."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.figure import Curve, Figure, anytime, budgeted, computed, envelope, sizes
from msdnet.reproduce.subjects import Joint, Systems, Trained
from msdnet.training import Recipe

__all__ = ["CLASSES", "DENSENETS", "MSDNETS", "RESNETS", "anytime_imagenet", "budgeted_imagenet", "is_imagenet"]

_STEPS = (4, 6, 7)
MSDNETS = tuple(f"imagenet_{k}" for k in _STEPS)
RESNETS = tuple(f"imagenet_resnet_{layers}" for layers in (10, 18, 26, 34, 50))
DENSENETS = tuple(f"imagenet_densenet_{layers}" for layers in (37, 57, 77, 99, 121))
_ALEXNET_RATE = 0.1  # of the others': without BN it does not bear more
CLASSES = 1000
_WORDNET = re.compile(r"n\d{8}")  # how ImageNet calls its classes
_ALL_IMAGES, _SIDE = 1_281_167, 224
_TRAINING_IMAGES = _ALL_IMAGES - 50_000


class _Systems(Systems):
    @property
    def alexnet(self) -> Trained:
        slow = replace(self.recipe.optimiser, learning_rate=self.recipe.optimiser.learning_rate * _ALEXNET_RATE)
        return replace(self.one("imagenet_alexnet"), recipe=replace(self.recipe, optimiser=slow))

    @property
    def ensembles(self) -> dict[str, Joint]:
        return {
            "ensemble: ResNets": Joint("ensemble_resnets", self.each(*RESNETS)),
            "ensemble: DenseNets": Joint("ensemble_densenets", self.each(*DENSENETS)),
        }


def is_imagenet(images: Mapping[str, Any]) -> bool:
    """Whether the images that a result tells of are ImageNet's: by their classes, and by how many there are to train on
    and held out. A copy may lack a few, which could not be read.
    """
    count = images.get("training", 0) + images.get("held_out", 0)
    return _has_its_names(images.get("classes", ())) and 0.999 * _ALL_IMAGES <= count <= _ALL_IMAGES


def _has_its_names(classes: Sequence[str]) -> bool:
    return len(classes) == CLASSES and all(map(_WORDNET.fullmatch, classes))


def _data(classes: Sequence[str] | None) -> str:
    return "ImageNet" if classes is None or _has_its_names(classes) else f"a folder of {len(classes)} classes"


def _systems(recipe: Recipe, classes: Sequence[str] | None) -> _Systems:
    return _Systems(recipe, CLASSES if classes is None else len(classes))


def anytime_imagenet(recipe: Recipe, classes: Sequence[str] | None) -> Experiment:
    systems = _systems(recipe, classes)
    each = zip(_STEPS, systems.each(*MSDNETS), (6, 3, 0), strict=True)
    curves = [
        *(Curve(f"MSDNet, k = {k}", (one,), anytime, colour) for k, one, colour in each),
        Curve("MSDNet, k = 7, lazy", systems.each(MSDNETS[-1]), computed, 0, dashed=True, marks=False),
        *(Curve(name, (one,), anytime, colour) for colour, (name, one) in enumerate(systems.ensembles.items(), 1)),
    ]
    title = f"Anytime prediction on {_data(classes)}"
    figures = (Figure("anytime_imagenet", title, tuple(curves)),)
    return Experiment("anytime-imagenet", title, "imagenet", figures, _TRAINING_IMAGES, _SIDE, images_known=False)


def budgeted_imagenet(recipe: Recipe, classes: Sequence[str] | None) -> Experiment:
    systems = _systems(recipe, classes)
    curves = [
        *(Curve("MSDNet, each", (one,), budgeted, 0, dashed=True, marks=False) for one in systems.each(*MSDNETS)),
        Curve("MSDNet, best on held-out", systems.each(*MSDNETS), envelope, 0),
        *(
            Curve(f"{name}, early exits", (one,), budgeted, colour, dashed=True)
            for colour, (name, one) in enumerate(systems.ensembles.items(), 1)
        ),
        Curve("ResNets", systems.each(*RESNETS), sizes, 1),
        Curve("DenseNets", systems.each(*DENSENETS), sizes, 2),
        Curve("GoogLeNet", (systems.one("imagenet_googlenet"),), sizes, 3, kind="dots"),
        Curve("AlexNet", (systems.alexnet,), sizes, 4, kind="dots"),
    ]
    title = f"Budgeted batch classification on {_data(classes)}"
    figures = (Figure("budgeted_imagenet", title, tuple(curves)),)
    return Experiment("budgeted-imagenet", title, "imagenet", figures, _TRAINING_IMAGES, _SIDE, images_known=False)
