import math

import numpy as np
import pytest

from msdnet.policy import MEASURES, Measure, confidence, fit_temperatures, soften

PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])


def entropy(*probabilities: float) -> float:
    return -sum(p * math.log(p) for p in probabilities)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("largest", [0.7, 0.4, 1, 1 / 3]),
        ("margin", [0.5, 0.05, 1, 0]),
        ("entropy", [1 - entropy(0.7, 0.2, 0.1) / math.log(3), 1 - entropy(0.4, 0.35, 0.25) / math.log(3), 1, 0]),
    ],
)
def test_measures(measure: Measure, expected: list[float]) -> None:
    assert confidence(PROBABILITIES, measure) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_keep_shapes_and_know_one_class(measure: Measure) -> None:
    stacked = np.stack([PROBABILITIES, PROBABILITIES[::-1]]).astype(np.float32)
    assert confidence(stacked, measure).shape == (2, 4)
    assert confidence(stacked, measure).dtype == np.float32
    assert confidence(np.ones((2, 1)), measure) == pytest.approx([1, 1])


def test_an_unknown_measure() -> None:
    with pytest.raises(ValueError, match="measure must be one of largest, margin, entropy; got 'gini'"):
        confidence(PROBABILITIES, "gini")  # type: ignore[arg-type]


def test_soften_is_a_softmax_that_does_not_overflow() -> None:
    logits = np.log(PROBABILITIES[:2])
    assert soften(logits) == pytest.approx(PROBABILITIES[:2])
    assert soften(logits + 5000) == pytest.approx(PROBABILITIES[:2])
    squared = PROBABILITIES[:2] ** 2
    assert soften(logits, temperature=0.5) == pytest.approx(squared / squared.sum(axis=1, keepdims=True))
    assert soften(logits, temperature=100)[0] == pytest.approx([1 / 3] * 3, abs=0.01)


def test_temperatures_mend_logits_that_are_too_sure_or_not_sure_enough() -> None:
    chance = np.random.default_rng(0)
    true = chance.normal(size=(4000, 5)) * 2
    labels = np.array([chance.choice(5, p=row) for row in soften(true)])
    fitted = fit_temperatures(np.stack([true * 3, true, true / 2], axis=1), labels)
    assert fitted == pytest.approx((3, 1, 0.5), rel=0.06)


def test_an_exit_that_was_always_right_is_not_sure_of_everything() -> None:
    chance = np.random.default_rng(0)
    labels = np.arange(20) % 2
    logits = np.stack([3 * np.eye(2)[labels] + chance.normal(size=(20, 2)) / 2] * 2, axis=1)
    assert (logits.argmax(axis=2) == labels[:, None]).all()
    for temperature in fit_temperatures(logits, labels):
        sure = soften(logits[:, 0], temperature).max(axis=1)
        assert 0.85 < sure.mean() < 0.99
        assert len(np.unique(sure)) == 20


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (np.zeros((4, 2)), np.zeros(4, dtype=int), r"logits must be \(N, exits, classes\).*got \(4, 2\)"),
        (np.zeros((4, 2, 3)), np.zeros(5, dtype=int), r"labels \(N\), got \(4, 2, 3\) and \(5,\)"),
        (np.zeros((0, 2, 3)), np.zeros(0, dtype=int), r"got \(0, 2, 3\)"),
        (np.full((4, 2, 3), np.nan), np.zeros(4, dtype=int), "logits must be finite numbers"),
        (np.zeros((2, 2, 3)), np.array([0, -1]), "labels must be from 0 to 2, got -1 to 0"),
        (np.zeros((2, 2, 3)), np.array([0, 3]), "labels must be from 0 to 2, got 0 to 3"),
        (np.zeros((2, 2, 3)), np.array([0.0, 1.5]), "labels must be of a type of whole numbers, got float64"),
        (np.zeros((2, 2, 3)), np.array(["a", "b"]), "labels must be of a type of whole numbers, got <U1"),
    ],
)
def test_refuses(logits: np.ndarray, labels: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_temperatures(logits, labels)
