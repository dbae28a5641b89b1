import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdnet.policy import METHODS, FixedThresholds, HardBudget, Method, Policy, PolicyFamily, exit_shares
from msdnet.policy.outcomes import Outcomes
from msdnet.policy.search import _best_cut
from tests.synthetic import COSTS, answers

# Four images, three exits: the first is easy, the last is never sure.
CONFIDENCE = [[0.9, 0.95, 0.99], [0.6, 0.8, 0.9], [0.5, 0.9, 0.7], [0.3, 0.4, 0.5]]
CORRECT = [[1, 1, 1], [0, 1, 1], [0, 1, 1], [0, 0, 1]]
SMALL_COSTS = [10, 20, 40]


def small(method: Method = "accuracy", budget: float = 20) -> Policy:
    return Policy(method).fit(CONFIDENCE, CORRECT, SMALL_COSTS, budget)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9, 1.0])
def test_shares_are_the_papers(q: float) -> None:
    weights = [(1 - q) ** k * q for k in range(5)]
    shares = [weight / sum(weights) for weight in weights]
    costs = [1.0, 1.5, 3.0, 4.0, 7.0]
    budget = sum(share * cost for share, cost in zip(shares, costs, strict=True))
    assert exit_shares(costs, budget) == pytest.approx(shares, abs=1e-9)


def test_shares_of_budgets_beyond_the_papers_favour_late_exits() -> None:
    assert exit_shares([1, 2, 3], 2) == pytest.approx([1 / 3] * 3)
    assert exit_shares([1, 2, 3], 2.5) == pytest.approx(exit_shares([1, 2, 3], 1.5)[::-1])
    assert exit_shares([1, 2, 3], 3) == (0, 0, 1)
    assert exit_shares([1, 2, 3], math.inf) == (0, 0, 1)
    assert exit_shares([1, 2, 3], 1) == pytest.approx([1, 0, 0])
    assert exit_shares([5], 5) == (1,)


def test_there_may_be_no_room_between_two_confidences() -> None:
    sure = [[math.nextafter(0.7, 1), 0.9], [0.7, 0.9]]
    policy = Policy("paper").fit(sure, [[True, True], [False, True]], costs=[10, 30], budget=20)
    assert policy.shares_ == (0.5, 0.5)


@pytest.mark.parametrize("method", METHODS)
def test_who_left_leaves_when_another_engine_is_a_little_less_sure(method: Method) -> None:
    """Of held-out images, each of which is the one that some threshold is made for."""
    draw = np.random.default_rng(0)
    confidence = np.sort(draw.random((30, 4)), axis=1).astype(np.float32)
    correct = draw.random((30, 4)) < confidence
    for budget in np.linspace(10, 40, 50):
        policy = Policy(method).fit(confidence, correct, costs=[10, 20, 30, 40], budget=budget)
        exits = policy.exit_indices(confidence)
        assert 10 * (1 + exits.mean()) <= budget + 1e-9
        for off in (-1e-6, 1e-6):
            np.testing.assert_array_equal(policy.exit_indices(confidence + off), exits)


def test_the_papers_counts_only_images_that_reach_an_exit() -> None:
    """One of three is to leave at each exit. The first image would be the surest at the second exit as well."""
    policy = Policy("paper").fit(CONFIDENCE[:3], CORRECT[:3], costs=[10, 20, 30], budget=20)
    assert policy.thresholds_.tolist() == pytest.approx([0.9, 0.9, -math.inf], abs=2e-5)
    assert policy.exit_indices(CONFIDENCE[:3]).tolist() == [0, 2, 1]
    assert policy.shares_ == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert (policy.accuracy_, policy.cost_) == (1, 20)


def test_ours_sends_on_those_who_gain_by_it() -> None:
    policy = small(budget=20)
    assert (policy.accuracy_, policy.cost_) == (0.75, 17.5)  # the paper's gets there with 20
    assert policy.exit_indices(CONFIDENCE).tolist() == [0, 1, 1, 1]
    assert small(budget=22.5).accuracy_ == 1.0


def test_equally_sure_images_leave_together() -> None:
    confidence = [[0.8, 0.9], [0.8, 0.9], [0.8, 0.9], [0.2, 0.9]]
    policy = Policy("paper").fit(confidence, [[1, 1]] * 4, [10, 20], budget=18)
    assert policy.shares_ == (0.75, 0.25)  # one had to leave, and two others came along


def test_ours_is_close_to_the_best_of_all_thresholds() -> None:
    """On small random problems, whose best thresholds are found by trying all."""
    short = []
    for seed in range(40):
        data = answers(12, seed, exits=3)
        outcomes = Outcomes.of(*data, [10, 20, 40])
        cuts = [[*column, np.inf] for column in outcomes.confidence[:2]]
        values = [outcomes.value(np.array([a, b, -np.inf])) for a in cuts[0] for b in cuts[1]]
        family = PolicyFamily(*data, [10, 20, 40])
        for budget in (12, 16, 20, 25, 32):
            best = max(value.accuracy for value in values if value.cost <= budget)
            short.append(best - family.policy(budget).accuracy_)
    assert min(short) > -1e-9
    assert np.mean(short) < 0.01
    assert np.mean(np.array(short) < 1e-9) > 0.85


def on_fresh_images(seed: int, held_out: int) -> tuple[list[float], list[float]]:
    """By how much ours is more accurate than the paper's, and by which part cheaper, at budgets over the range."""
    known, fresh = answers(held_out, seed), answers(20_000, 1000 + seed)
    families = [PolicyFamily(*known, COSTS, method=method) for method in METHODS]
    gains, savings = [], []
    for budget in np.linspace(1.1 * COSTS[0], 0.95 * COSTS[-1], 10):
        ours, papers = (family.policy(budget).exit_indices(fresh.confidence) for family in families)
        gains.append(fresh.accuracy(ours) - fresh.accuracy(papers))
        savings.append(1 - COSTS[ours].mean() / COSTS[papers].mean())
    return gains, savings


def test_ours_is_better_than_the_papers_on_fresh_images_on_average() -> None:
    assert METHODS == ("accuracy", "paper")
    gains, savings = np.mean([on_fresh_images(seed, held_out=5000) for seed in range(4)], axis=0)
    assert gains.mean() > 0.001
    assert savings.mean() > 0


@pytest.mark.parametrize("seed", [12, 29, 32])
def test_a_larger_budget_does_not_miss_what_a_smaller_one_found(seed: int) -> None:
    """Confidence says nothing here, many images are equally sure, and the paper's policy is at times the best."""
    chance = np.random.default_rng(seed)
    confidence, correct = chance.integers(0, 50, (200, 5)) / 50, chance.random((200, 5)) < 0.5
    family = PolicyFamily(confidence, correct, costs=[10, 25, 60, 70, 100])
    accuracies = [family.policy(budget).accuracy_ for budget in np.linspace(10, 100, 61)]
    assert accuracies == sorted(accuracies)


def test_many_images() -> None:
    """Not all of the paper's policies are tried then: still none is better, and luck is worth a few images at most."""
    data = answers(6000, seed=5)
    confidence = data.confidence.round(2)  # many are equally sure
    families = [PolicyFamily(confidence, data.correct, COSTS, method=method) for method in METHODS]
    budgets = np.linspace(COSTS[0], COSTS[-1], 60)
    ours, papers = ([family.policy(budget).accuracy_ for budget in budgets] for family in families)
    assert all(a >= b for a, b in zip(ours, papers, strict=True))
    assert np.diff(ours).min() > -0.002


@pytest.mark.parametrize("method", METHODS)
def test_with_the_least_budget_nobody_goes_on(method: Method) -> None:
    """Not even who is less sure than any held-out image."""
    assert small(method, budget=10).exit_indices([[-1.0, -1.0, -1.0]]).tolist() == [0]


def test_costs_may_be_fractions() -> None:
    """0.1 x 3 / 3 is more than 0.1 to a computer: the least budget is enough all the same."""
    for method in METHODS:
        policy = Policy(method).fit([[0.1, 0.2]] * 3, [[True, True]] * 3, costs=[0.1, 0.2], budget=0.1)
        assert policy.cost_ == 0.1


def test_scaling_by_any_factor() -> None:
    data = answers(500, seed=1)
    for method in METHODS:
        policy = Policy(method).fit(*data, COSTS, 40e6)
        scaled = Policy(method).fit(*data, COSTS / 134e6 * 0.0037, 40e6 / 134e6 * 0.0037)
        assert np.array_equal(scaled.thresholds_, policy.thresholds_)


def test_fit_returns_itself_and_can_be_fitted_again() -> None:
    policy = Policy("paper", measure="margin")
    assert policy.fit(CONFIDENCE, CORRECT, SMALL_COSTS, 40) is policy
    assert policy.shares_ == (0, 0, 1)
    policy.fit(CONFIDENCE, CORRECT, SMALL_COSTS, 10)
    assert policy.shares_ == (1, 0, 0)
    assert (policy.method, policy.measure) == ("paper", "margin")


def test_repr() -> None:
    assert repr(Policy("paper")) == "Policy(method='paper', measure='largest')"
    assert repr(small()).endswith(" for 20 multiply-adds per image: held-out accuracy 75.00% at 17.5>")


def test_amounts_are_shown_as_people_read_them() -> None:
    million = Policy().fit(CONFIDENCE, CORRECT, [1e6 * cost for cost in SMALL_COSTS], 20e6)
    assert repr(million).endswith(" for 20.0 M multiply-adds per image: held-out accuracy 75.00% at 17.5 M>")
    costs = [1e-4 * cost for cost in SMALL_COSTS]
    timed = PolicyFamily(CONFIDENCE, CORRECT, costs, unit="seconds").policy(2e-3)
    assert repr(timed).endswith(" for 2 ms per image: held-out accuracy 75.00% at 1.75 ms>")


BUDGET = "budget must be at least 10, the cost of the first exit"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"budget": 9.99}, ValueError, f"{BUDGET}, got 9.99"),
        ({"budget": -math.inf}, ValueError, BUDGET),
        ({"budget": math.nan}, ValueError, f"{BUDGET}, got nan"),
        ({"budget": "20"}, TypeError, "budget must be a number, the average cost of an image, got '20'"),
        ({"budget": True}, TypeError, "budget must be a number"),
        ({"confidence": [[math.nan] * 3] * 4}, ValueError, "confidence must be finite numbers, got NaN"),
        ({"confidence": [[math.inf] * 3] * 4}, ValueError, "confidence must be finite numbers"),
        ({"confidence": [["sure"] * 3] * 4}, ValueError, "confidence must be finite numbers"),
        ({"confidence": [[0.5] * 2] * 4}, ValueError, r"confidence must have the shape \(images, 3\).*got \(4, 2\)"),
        ({"confidence": [0.5] * 3}, ValueError, r"got \(3,\)"),
        ({"confidence": np.zeros((0, 3))}, ValueError, r"of at least one image, got the shape \(0, 3\)"),
        ({"correct": CORRECT[:3]}, ValueError, r"correct must have the shape of confidence \(4, 3\), got \(3, 3\)"),
        ({"correct": [[2, 0, 1]] * 4}, ValueError, "correct must be true or false"),
        ({"correct": [[math.nan, 0, 1]] * 4}, ValueError, "correct must be true or false"),
        ({"costs": [10, 20, 20]}, ValueError, r"costs must be .* above 0 and rising, got \[10, 20, 20\]"),
        ({"costs": [0, 20, 40]}, ValueError, "above 0 and rising"),
        ({"costs": [10, 20, math.inf]}, ValueError, "above 0 and rising"),
        ({"costs": [10, math.nan, 40]}, ValueError, "above 0 and rising"),
        ({"costs": []}, ValueError, "above 0 and rising"),
        ({"costs": 10}, ValueError, "above 0 and rising"),
        ({"costs": ["ten"]}, TypeError, "costs must be numbers, one for each exit"),
    ],
)
def test_refuses(method: Method, changed: dict[str, Any], error: type[Exception], message: str) -> None:
    given: dict[str, Any] = {"confidence": CONFIDENCE, "correct": CORRECT, "costs": SMALL_COSTS, "budget": 20}
    with pytest.raises(error, match=message):
        Policy(method).fit(**(given | changed))


def test_the_least_budget_that_is_named_is_enough() -> None:
    costs = [13_256_192, 23_252_992, 35_160_640]
    with pytest.raises(ValueError, match="at least 13,256,192, the cost of the first exit, got 13,000,000") as refused:
        Policy().fit(CONFIDENCE, CORRECT, costs, budget=13_000_000)
    named = re.findall(r"[\d,]+\d", str(refused.value))[0].replace(",", "")
    assert Policy().fit(CONFIDENCE, CORRECT, costs, budget=int(named)).cost_ == costs[0]


def test_refuses_unknown_methods_and_measures() -> None:
    with pytest.raises(ValueError, match="method must be one of accuracy, paper; got 'best'"):
        Policy("best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="measure must be one of largest, margin, entropy; got 'gini'"):
        PolicyFamily(CONFIDENCE, CORRECT, SMALL_COSTS, measure="gini")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "use",
    [
        lambda policy: policy.exit_indices(CONFIDENCE),
        lambda policy: policy.check_for(SMALL_COSTS),
        lambda policy: policy.to_json(),
        lambda policy: policy.save("never-written.json"),
        FixedThresholds,
        HardBudget,
    ],
)
def test_a_policy_must_be_fitted_first(use: Callable[[Policy], object]) -> None:
    with pytest.raises(ValueError, match=r"not fitted yet: call fit\(confidence, correct, costs, budget\) first"):
        use(Policy())


def test_exits_refuses_what_it_cannot_answer() -> None:
    with pytest.raises(ValueError, match=r"confidence must be \(images, 3\), got \(2, 4\)"):
        small().exit_indices(np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"confidence must be \(images, 3\), got \(3,\)"):
        small().exit_indices(np.zeros(3))
    with pytest.raises(ValueError, match="confidence must be numbers, got NaN"):
        small().exit_indices([[math.nan] * 3])
    assert small().exit_indices(np.zeros((0, 3))).shape == (0,)


def test_a_policy_is_for_one_network() -> None:
    policy = PolicyFamily(CONFIDENCE, CORRECT, SMALL_COSTS, model="abc").policy(20)
    policy.check_for(SMALL_COSTS)
    policy.check_for(SMALL_COSTS, "abc")
    small().check_for(SMALL_COSTS, "abc")  # it is not known what that was fitted for
    with pytest.raises(ValueError, match="fitted for another network"):
        policy.check_for(SMALL_COSTS, "abd")
    with pytest.raises(ValueError, match="fitted for another network"):
        policy.check_for([10, 20, 41])
    with pytest.raises(ValueError, match="fitted for a network of 3 exits, this has 2"):
        policy.check_for([10, 20], "abc")


def test_files(tmp_path: Path) -> None:
    policy = PolicyFamily(CONFIDENCE, CORRECT, SMALL_COSTS, method="paper", measure="entropy", model="abc").policy(25)
    policy.save(tmp_path / "policy.json")
    loaded = Policy.load(tmp_path / "policy.json")
    assert vars(loaded).keys() == vars(policy).keys()
    assert loaded.to_json() == policy.to_json()
    assert (loaded.method, loaded.measure, loaded.model_) == ("paper", "entropy", "abc")
    assert loaded.exit_indices(CONFIDENCE).tolist() == policy.exit_indices(CONFIDENCE).tolist()


def changed(**values: object) -> str:
    return json.dumps(json.loads(small().to_json()) | values)


def without(name: str) -> str:
    return json.dumps({key: value for key, value in json.loads(small().to_json()).items() if key != name})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "policy: not JSON"),
        (small().to_json()[:-20], "policy: not JSON"),
        ("[1, 2]", "policy: must be a table of fields, got list"),
        ("null", "policy: must be a table of fields, got NoneType"),
        (changed(format=2), r"format 2 is newer than this version of msdnet reads \(1\)"),
        (changed(method="best"), "policy: method must be one of accuracy, paper"),
        (changed(measure=None), "policy: measure must be one of"),
        (changed(budget=9), "policy: budget must be at least 10"),
        (changed(budget="nan"), "policy: budget must be at least 10"),
        (changed(budget=10**400), "policy: .*too large"),
        (changed(costs=[10, 30, 20]), "policy: costs must be"),
        (changed(costs="many"), "policy: costs must be"),
        (changed(thresholds=[0.5, "-inf"]), "policy: thresholds must be one for each of 3 exits"),
        (changed(thresholds=[0.5, "nan", "-inf"]), "policy: thresholds must be numbers"),
        (changed(thresholds=[0.5, 0.5, 0.5]), "policy: the last of a policy's thresholds must be -inf"),
        (changed(thresholds=7), "policy: "),
        *((without(name), f"policy: has no '{name}'") for name in json.loads(small().to_json())),
    ],
)
def test_broken_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as refused:
        Policy.load(path)
    assert str(path) in str(refused.value)


def test_a_familys_unit_is_one_that_policies_know() -> None:
    with pytest.raises(ValueError, match="unit must be one of multiply-adds, seconds; got 'hours'"):
        PolicyFamily([[0.5, 0.5]], [[True, True]], [1.0, 2.0], unit="hours")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("budget", "hint"),
    [
        (0.3, '; a share is written as text: "30%"'),
        (0.004, '; a share is written as text: "0.4%"'),
        (20, '; with a unit it is text: "20M"'),
        (20e5, ""),
        (-1, ""),
        (0, ""),
    ],
)
def test_a_budget_without_its_unit_gets_a_hint(budget: float, hint: str) -> None:
    family = PolicyFamily([[0.5, 0.5]], [[True, True]], [13e6, 26e6])
    with pytest.raises(ValueError, match="the cost of the first exit, got") as refused:
        family.policy(budget)
    assert str(refused.value).endswith(f"got {budget:,.15g}{hint}")


def test_images_that_are_equally_sure_leave_together_or_not_at_all() -> None:
    """After the surest, one of three that are alike would gain, but all three together lose."""
    held_out = Outcomes.of([[0.9, 1.0], [0.5, 1.0], [0.5, 1.0], [0.5, 1.0]], np.ones((4, 2), dtype=bool), [10.0, 20.0])
    assert _best_cut(held_out, 0, np.array([1.0, 2.0, -3.0, -3.0])) == 0.9
    assert _best_cut(held_out, 0, np.array([1.0, 2.0, -3.0, 2.0])) == 0.5
