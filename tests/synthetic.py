"""Made-up answers of a network with early exits, and images run through a rule of spending; nothing is measured."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msdnet import policy
from msdnet.policy import SpendingRule

__all__ = ["COSTS", "Answers", "answers", "asked", "run"]

_Floats: TypeAlias = NDArray[np.float64]

COSTS: _Floats = np.array([13, 23, 35, 51, 61, 72, 86, 99, 110, 121, 134]) * 1e6
"""Multiply-adds such as a small network has."""


class Answers(NamedTuple):
    """(images, exits) each."""

    confidence: _Floats
    correct: NDArray[np.bool_]

    def accuracy(self, exits: NDArray[np.intp]) -> float:
        return float(self.correct[np.arange(len(exits)), exits].mean())


def answers(images: int, seed: int, noise: float = 1.0, exits: int = 11) -> Answers:
    """Some images are harder than others, later exits are right more often, and confidence says much about it.

    - noise: above 1, images are less alike, and every exit is less sure of them
    """
    chance = np.random.default_rng(seed)
    hardness = chance.normal(size=(images, 1)) * noise + (noise - 1)
    skill = np.linspace(0.6, 1.6, exits) + chance.normal(size=(images, exits)) * 0.35
    margin = 2 * (skill - 1.2 * hardness + chance.normal(size=(images, 1)) * 0.3)
    correct = chance.random((images, 1)) < _sigmoid(margin)  # an image that is right by luck is so at most exits
    return Answers(_sigmoid(margin + chance.normal(size=(images, exits))), correct)


def _sigmoid(values: _Floats) -> _Floats:
    return np.asarray(1 / (1 + np.exp(-values)))


def asked(exit: int, confidence: _Floats, images: NDArray[np.integer]) -> policy.Answers:
    """What a rule is asked after an exit, from 0: how sure it is of some images."""
    return policy.Answers(images, exit + 1, confidence, np.stack([confidence, 1 - confidence], axis=1))


def run(rule: SpendingRule, confidence: _Floats, at_once: int) -> NDArray[np.intp]:
    """The exits at which images leave; batches come one after the other."""
    exits = np.zeros(len(confidence), dtype=np.intp)
    for first in range(0, len(confidence), at_once):
        images = np.arange(first, min(first + at_once, len(confidence)))
        rule.arrive(images)
        for exit in range(confidence.shape[1]):
            leaves = rule.leaves(asked(exit, confidence[images, exit], images))
            exits[images[leaves]] = exit
            images = images[~leaves]
    return exits
