"""How sure an answer is: a number from 0 to 1, from the probabilities of the classes; temperatures that mend these."""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msdnet.checks import check_choice

__all__ = ["MEASURES", "Measure", "confidence", "fit_temperatures", "soften"]

Measure = Literal["largest", "margin", "entropy"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

_Array: TypeAlias = NDArray[np.floating]


def soften(logits: _Array, temperature: float = 1.0) -> _Array:
    """Probabilities (..., classes) of logits: their softmax, flatter the higher the temperature."""
    scaled = logits if temperature == 1 else logits / np.float32(temperature)
    weights = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    softened: _Array = weights / weights.sum(axis=-1, keepdims=True)
    return softened


def confidence(probabilities: _Array, measure: Measure = "largest") -> _Array:
    """How sure each answer (..., classes) is: the larger the surer.

    >>> confidence(np.array([[0.7, 0.2, 0.1]]), "margin").round(3)
    array([0.5])
    """
    check_choice("measure", measure, MEASURES)
    return _OF[measure](probabilities)


def _largest(probabilities: _Array) -> _Array:
    largest: _Array = probabilities.max(axis=-1)
    return largest


def _margin(probabilities: _Array) -> _Array:
    """Between the two likeliest classes."""
    if probabilities.shape[-1] < 2:
        return _largest(probabilities)
    two: _Array = np.partition(probabilities, -2, axis=-1)[..., -2:]
    margin: _Array = two[..., 1] - two[..., 0]
    return margin


def _entropy(probabilities: _Array) -> _Array:
    """1 for certainty, 0 for all classes alike."""
    logs = np.log(probabilities, where=probabilities > 0, out=np.zeros_like(probabilities))
    bits = -(probabilities * logs).sum(axis=-1)
    sure: _Array = 1 - bits / math.log(max(probabilities.shape[-1], 2))
    return sure


_OF: dict[Measure, Callable[[_Array], _Array]] = {"largest": _largest, "margin": _margin, "entropy": _entropy}


def fit_temperatures(logits: ArrayLike, labels: ArrayLike) -> tuple[float, ...]:
    """One temperature for each exit.

    It maximises the likelihood of the labels plus one image with a random label, so that it stays finite.

    - logits: (N, exits, classes), of held-out images
    - labels: (N)
    """
    values, truth = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    if values.ndim != 3 or truth.shape != values.shape[:1] or not len(values):
        raise ValueError(f"logits must be (N, exits, classes) and labels (N), got {values.shape} and {truth.shape}")
    if not np.isfinite(values).all():
        raise ValueError("logits must be finite numbers, got NaN or infinity")
    if not np.issubdtype(truth.dtype, np.integer):
        raise ValueError(f"labels must be of a type of whole numbers, got {truth.dtype}")
    known = values.shape[2] - 1
    if truth.min() < 0 or truth.max() > known:
        raise ValueError(f"labels must be from 0 to {known}, got {truth.min()} to {truth.max()}")
    return tuple(_temperature(values[:, exit], truth) for exit in range(values.shape[1]))


def _temperature(logits: NDArray[np.float64], labels: NDArray[np.integer]) -> float:
    """The likelihood is concave in 1 / temperature, so its slope is followed to 0 by bisection.

    As if one more image had a label by chance: an exit that was always right would otherwise be sure of everything.
    """
    by_chance = 1 / (len(labels) + 1)
    told = (1 - by_chance) * logits[np.arange(len(labels)), labels].mean() + by_chance * logits.mean()
    low, high = np.log(1e-2), np.log(1e2)
    for _ in range(40):
        middle = (low + high) / 2
        expected = (soften(logits * np.exp(middle)) * logits).sum(axis=1).mean()
        low, high = (middle, high) if expected < told else (low, middle)
    return float(np.exp(-(low + high) / 2))
