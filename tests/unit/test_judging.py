"""Whether exits are right and how sure they are is the same, whoever asks and however the answers are given."""

import numpy as np
import pytest

from msdnet.policy import MEASURES, confidence, judge_logits, judge_probabilities, soften

RANDOM = np.random.default_rng(0)
LOGITS = RANDOM.normal(size=(40, 3, 5)).astype(np.float32)
LABELS = RANDOM.integers(0, 5, 40)


def test_logits_are_judged_as_their_probabilities_are() -> None:
    by_logits, by_probabilities = judge_logits(LOGITS, LABELS), judge_probabilities(soften(LOGITS), LABELS)
    for found in (by_logits, by_probabilities):
        np.testing.assert_array_equal(found.predicted, LOGITS.argmax(axis=2))
        np.testing.assert_array_equal(found.correct, found.predicted == LABELS[:, None])
        assert found.accuracy == pytest.approx([(LOGITS[:, k].argmax(axis=1) == LABELS).mean() for k in range(3)])
        assert tuple(found.confidence) == MEASURES
    for measure in MEASURES:
        np.testing.assert_array_equal(by_logits.confidence[measure], confidence(soften(LOGITS), measure))
        np.testing.assert_array_equal(by_logits.confidence[measure], by_probabilities.confidence[measure])


def test_each_exit_has_its_temperature() -> None:
    found = judge_logits(LOGITS, LABELS, temperatures=(1, 2, 0.5), measures=("largest",)).confidence["largest"]
    for exit, temperature in enumerate((1, 2, 0.5)):
        np.testing.assert_array_equal(found[:, exit], soften(LOGITS[:, exit], temperature).max(axis=1))


def test_each_exit_needs_its_temperature() -> None:
    with pytest.raises(ValueError, match="temperatures must have one for each of 3 exits, got 1"):
        judge_logits(LOGITS, LABELS, temperatures=(2,))


def test_what_is_not_asked_for_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = judge_logits(LOGITS, LABELS).accuracy
    monkeypatch.setattr("msdnet.policy.judging.soften", None)
    found = judge_logits(LOGITS, LABELS, measures=())
    assert (found.confidence, found.accuracy) == ({}, expected)
