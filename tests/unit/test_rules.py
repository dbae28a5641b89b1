"""Rules and thresholds of one's own, run for real; what every exit says, to try them out on."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import msdnet
from msdnet.bundle import Bundle
from msdnet.policy import Answers, FixedThresholds, SpendingRule, soften
from msdnet.runtime import Model, answers
from tests.unit.test_runtime import IMAGES, Counting, Later, middle, splitting


@pytest.fixture(scope="module", params=["onnx", "torch"])
def model(request: pytest.FixtureRequest, tiny: Bundle) -> Model:
    place = {"threads": 1} if request.param == "onnx" else {"device": "cpu"}
    return msdnet.load(tiny.folder, engine=request.param, **place)


class Patience(SpendingRule):
    """Leave once two exits in a row agree."""

    def __init__(self, images: int) -> None:
        self.said = np.full(images, -1)

    def leaves(self, asked: Answers) -> NDArray[np.bool_]:
        said = asked.probabilities.argmax(axis=1)
        agree: NDArray[np.bool_] = said == self.said[asked.images]
        self.said[asked.images] = said
        return agree


class Says(SpendingRule):
    """Always the same, whatever it is."""

    def __init__(self, told: Any) -> None:
        self.told = told

    def leaves(self, asked: Answers) -> NDArray[np.bool_]:  # noqa: ARG002
        answer: NDArray[np.bool_] = self.told
        return answer


class Nobody(SpendingRule):
    """Nobody is ever sure enough."""

    def leaves(self, asked: Answers) -> NDArray[np.bool_]:
        return asked.confidences > 1


def test_a_rule_of_ones_own_does_for_real_what_the_answers_of_all_exits_say(model: Model) -> None:
    labels = model.every_exit(IMAGES).argmax(axis=2)
    agree = np.hstack([np.zeros((len(IMAGES), 1), bool), labels[:, 1:] == labels[:, :-1]])
    agree[:, -1] = True
    expected = agree.argmax(axis=1)
    result = model.classify(IMAGES, rule=Patience(len(IMAGES)), batch=8)
    assert len(set(expected)) > 1, "or else there is nothing to compare"
    np.testing.assert_array_equal(result.exits - 1, expected)
    np.testing.assert_array_equal(result.labels, labels[np.arange(len(IMAGES)), expected])
    assert result.budget is None


@pytest.mark.parametrize("engine", [Counting(), Later()], ids=["at once", "ahead"])
def test_everyone_leaves_at_the_last_exit_whatever_a_rule_says(engine: Counting) -> None:
    given = [np.zeros((11, 1, 1, 1), np.uint8)]
    found = list(answers(engine, given, Nobody(), batch=4))
    assert {answered.exit for answered in found} == {4}
    assert sorted(np.concatenate([answered.images for answered in found])) == list(range(11))


@pytest.mark.parametrize(
    ("told", "got"),
    [
        (None, "NoneType"),
        ([True] * 8, "list"),
        (True, "bool"),
        (np.ones(7, bool), r"bool \(7,\)"),
        (np.ones((8, 1), bool), r"bool \(8, 1\)"),
        (np.ones(8), r"float64 \(8,\)"),
    ],
)
def test_a_rule_that_gives_something_else_is_told_so(told: Any, got: str) -> None:
    with pytest.raises(TypeError, match=f"leaves must give one bool for each of 8 images, got {got}$"):
        list(answers(Counting(), [np.zeros((8, 1, 1, 1), np.uint8)], Says(told), batch=8))


def test_thresholds_of_ones_own_are_a_rule(model: Model) -> None:
    policy = splitting(model)
    own = FixedThresholds([*policy.thresholds_[:-1], 2.0], measure=policy.measure)  # nobody stays after the last exit
    expected, found = model.classify(IMAGES, policy=policy), model.classify(IMAGES, rule=own)
    np.testing.assert_array_equal(found.exits, expected.exits)
    margin = FixedThresholds([0.4, 0.4, 0.4], measure="margin")
    sure = np.sort(model.every_exit(IMAGES), axis=2)
    reached = (sure[..., -1] - sure[..., -2] >= 0.4) | (np.arange(3) == 2)
    np.testing.assert_array_equal(model.classify(IMAGES, rule=margin).exits - 1, reached.argmax(axis=1))
    with pytest.raises(ValueError, match="the rule is for a network of 2 exits, this has 3"):
        model.classify(IMAGES, rule=FixedThresholds([0.9, 0.9]))
    for wrong in ([math.nan, 0.5, 0.5], [], [[0.5]]):
        with pytest.raises(ValueError, match="thresholds must be numbers, one for each exit, got"):
            FixedThresholds(wrong)
    with pytest.raises(TypeError, match="thresholds must be numbers, one for each exit, got 'high'"):
        FixedThresholds("high")


def test_a_rule_decides_alone(model: Model) -> None:
    others: list[dict[str, Any]] = [{"budget": "60%"}, {"policy": splitting(model)}, {"seconds": 1.0}, {"group": 3}]
    for other in others:
        with pytest.raises(ValueError, match="a rule decides alone who leaves"):
            model.classify(IMAGES, rule=Nobody(), **other)
    with pytest.raises(TypeError, match="a rule must be a SpendingRule"):
        model.classify(IMAGES, rule=lambda _: True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ([0.9, 0.9, 0.9], "the last of a policy's thresholds must be -inf"),
        ([math.nan, 0.9, -math.inf], "thresholds must be numbers, one for each exit"),
        ([0.9, -math.inf], "thresholds must be one for each of 3 exits"),
    ],
)
def test_a_policy_with_thresholds_that_cannot_be_is_refused(
    model: Model, thresholds: list[float], message: str
) -> None:
    policy = model.policy(middle(model))
    policy.thresholds_ = np.array(thresholds)
    with pytest.raises(ValueError, match=message):
        model.classify(IMAGES, policy=policy)


def test_every_exit_answers_whatever_classify_takes(model: Model, tmp_path: Path) -> None:
    said = model.every_exit(IMAGES, batch=7)
    assert said.shape == (len(IMAGES), 3, 3)
    np.testing.assert_allclose(said.sum(axis=2), 1, atol=1e-5)
    np.testing.assert_allclose(said, model.every_exit(iter(IMAGES), batch=50), atol=1e-5)
    last = model.classify(IMAGES, probabilities=True).probabilities
    assert last is not None
    np.testing.assert_allclose(said[:, -1], last, atol=1e-5)
    logits = model.every_exit(IMAGES, logits=True)
    for exit, temperature in enumerate(model.manifest.temperatures):
        np.testing.assert_allclose(soften(logits[:, exit], temperature), said[:, exit], atol=1e-5)
    Image.fromarray(IMAGES[0]).save(tmp_path / "one.png")
    np.testing.assert_allclose(
        model.every_exit([tmp_path / "one.png"]), model.every_exit(Image.fromarray(IMAGES[0])), atol=1e-5
    )
    assert model.every_exit([]).shape == (0, 3, 3)


def test_the_papers_thresholds_where_one_classifies(model: Model) -> None:
    budget = middle(model)
    expected = model.classify(IMAGES, policy=model.policy(budget, method="paper"))
    ours = model.classify(IMAGES, budget=budget)
    found = model.classify(IMAGES, budget=budget, method="paper")
    np.testing.assert_array_equal(found.exits, expected.exits)
    assert not np.array_equal(found.exits, ours.exits), "or else there is nothing to compare"
    np.testing.assert_array_equal(
        model.shared_budget(budget=budget, method="paper").classify(IMAGES).exits, expected.exits
    )
    steady = model.classify(IMAGES, policy=model.policy(budget, method="paper"), steady=True, batch=32)
    streamed = model.stream(IMAGES, budget=budget, method="paper", batch=32)
    assert [one.exit for one in streamed] == steady.exits.tolist()
    with pytest.raises(ValueError, match="method is how the thresholds of a budget are found"):
        model.classify(IMAGES, method="paper")
    with pytest.raises(ValueError, match="method must be one of accuracy, paper; got 'best'"):
        model.classify(IMAGES, budget=budget, method="best")  # type: ignore[arg-type]


def test_a_budget_of_whole_layers_does_not_stand_beside_other_costs(model: Model) -> None:
    policy = model.policy("100%", costs=model.whole_costs)
    assert model.whole_costs == model.manifest.whole_costs != model.costs
    result = model.classify(IMAGES, policy=policy)
    assert result.budget is None
    assert "budget" not in repr(result)
