import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from msdnet.policy import METHODS, FixedThresholds, HardBudget, Method, Policy, PolicyFamily, SteadyBudget
from tests.synthetic import COSTS, answers, asked, run

BUDGETS = (20e6, 50e6, 80e6)


def fitted(budget: float = 20, method: Method = "paper") -> Policy:
    """Thresholds of two exits that cost 10 and 30: half of the images go on at a budget of 20."""
    confidence = np.linspace(0.1, 0.9, 8)[:, None] * [1, 1]
    return Policy(method).fit(confidence, np.ones((8, 2)), costs=[10, 30], budget=budget)


def leaves(rule: HardBudget | FixedThresholds, confidence: list[float], images: list[int]) -> list[bool]:
    answered: list[bool] = rule.leaves(asked(0, np.array(confidence), np.array(images))).tolist()
    return answered


def test_fixed_thresholds_are_the_policys() -> None:
    policy = fitted()
    rule = FixedThresholds(policy)
    at = float(policy.thresholds_[0])
    assert leaves(rule, [at - 0.01, at, at + 0.01], [0, 1, 2]) == [False, True, True]
    data = answers(500, seed=0)
    policy = Policy("paper").fit(*data, COSTS, 40e6)
    assert np.array_equal(run(FixedThresholds(policy), data.confidence, 64), policy.exit_indices(data.confidence))


def test_a_hard_budget_is_given_to_the_least_sure() -> None:
    rule = HardBudget(fitted(), images=4)  # 4 x 20 in all: 4 x 10 are set aside, and 40 pay for two steps of 20
    rule.arrive(np.arange(4))
    assert leaves(rule, [0.2, 0.1, 0.05, 0.3], [0, 1, 2, 3]) == [True, False, False, True]


def test_a_hard_budget_that_knows_how_many_come_spends_ahead() -> None:
    known, unknown = HardBudget(fitted(), images=4), HardBudget(fitted())
    for rule in (known, unknown):
        rule.arrive(np.arange(2))
    assert leaves(known, [0.1, 0.1], [0, 1]) == [False, False]
    assert leaves(unknown, [0.1, 0.1], [0, 1]) == [False, True]  # two images have brought 20, one step
    for rule in (known, unknown):
        rule.arrive(np.arange(2))
    assert leaves(known, [0.1, 0.1], [2, 3]) == [True, True]
    assert leaves(unknown, [0.1, 0.1], [2, 3]) == [False, True]


def test_groups_share_a_hard_budget_among_themselves() -> None:
    rule = HardBudget(fitted(), images=5, group=2)
    rule.arrive(np.arange(5))
    sure = [0.9, 0.9, 0.1, 0.1, 0.1]
    assert leaves(rule, sure, [0, 1, 2, 3, 4]) == [True, True, False, True, True]  # the last has only half a step


def test_a_hard_budget_counts_what_was_run_and_not_what_was_promised() -> None:
    rule = HardBudget(fitted())
    rule.arrive(np.arange(4))  # 4 x 20 in all: 4 x 10 are set aside, and 40 pay for two steps of 20
    assert leaves(rule, [0.1] * 4, [0, 1, 2, 3]) == [False, False, True, True]
    rule.resume([4, 1])  # only one of the two took it
    rule.arrive(np.arange(1))
    assert leaves(rule, [0.1] * 2, [0, 0]) == [False, True]  # a step that is left, and half a one with the fifth image


def test_a_hard_budget_of_time_is_not_late_by_what_was_run() -> None:
    """A stage whose answers were never looked at, since its call ended there, took its time all the same."""
    now = [0.0]
    rule = HardBudget(fitted(), clock=lambda: now[0])
    rule.arrive(np.arange(4))
    now[0] = 40  # as planned: 4 x 10
    rule.resume([4, 0])
    rule.arrive(np.arange(0))
    assert leaves(rule, [0.1] * 4, [0, 1, 2, 3]).count(False) == 2


@pytest.mark.parametrize("group", [None, 32])
def test_a_hard_budget_is_spent_where_nobody_is_sure(group: int | None) -> None:
    data = answers(2000, seed=0)
    for budget in BUDGETS:
        policy = Policy("paper").fit(*data, COSTS, budget)
        exits = run(HardBudget(policy, images=640, group=group), np.zeros((640, 11)), 640)
        for first in range(0, 640, group or 640):
            spent = COSTS[exits[first : first + (group or 640)]].sum()
            assert 0 <= (group or 640) * budget - spent < np.diff(COSTS).max()


@pytest.mark.parametrize(("now", "going_on"), [(0, 2), (40, 2), (41, 1), (60, 1), (61, 0), (1000, 0)])
def test_a_hard_budget_of_time_pays_for_being_late(now: float, going_on: int) -> None:
    """Four first stages should have taken 40; what they took beyond that is missing from the 40 that are left."""
    times = iter([0.0, now])
    rule = HardBudget(fitted(), images=4, clock=lambda: next(times))
    rule.arrive(np.arange(4))
    assert leaves(rule, [0.1] * 4, [0, 1, 2, 3]).count(False) == going_on


def test_a_hard_budget_of_time_pays_for_reading_the_first_images() -> None:
    now = 0.0
    rule = HardBudget(fitted(), images=4, clock=lambda: now)
    now = 1000.0  # before any image arrives
    rule.arrive(np.arange(4))
    assert leaves(rule, [0.1] * 4, [0, 1, 2, 3]).count(False) == 0


def test_a_hard_budget_of_time_has_no_groups() -> None:
    with pytest.raises(ValueError, match="for all images together: give no group"):
        HardBudget(fitted(), group=2, clock=lambda: 0.0)


def test_budgets_are_made_of_policies() -> None:
    with pytest.raises(TypeError, match="policy must be a Policy, got 'paper'"):
        HardBudget("paper")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="family must be a PolicyFamily, got 20"):
        SteadyBudget(20, 20)  # type: ignore[arg-type]


def test_a_hard_budget_for_no_images() -> None:
    rule = HardBudget(fitted(), images=0)
    rule.arrive(np.arange(0))
    assert leaves(rule, [], []) == []


def test_a_hard_budget_refuses_more_images_than_it_was_set_for() -> None:
    rule = HardBudget(fitted(), images=3)
    rule.arrive(np.arange(3))
    with pytest.raises(ValueError, match="set for 3 images, and more have come"):
        rule.arrive(np.arange(1))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"images": -1}, "images must be at least 0, got -1"),
        ({"group": 0}, "group must be at least 1, got 0"),
    ],
)
def test_a_hard_budget_refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HardBudget(fitted(), **values)


def test_what_is_not_a_number_leaves_at_once() -> None:
    """Nothing more is spent on it, and it has an answer."""
    hard, steady = HardBudget(fitted()), SteadyBudget(PolicyFamily(*answers(50, 0), COSTS), 50e6)
    for rule in (FixedThresholds(fitted()), hard, steady):
        rule.arrive(np.arange(2))
        for exit in (0, 1):
            assert rule.leaves(asked(exit, np.full(2, math.nan), np.arange(2))).tolist() == [True, True]


def windows(exits: NDArray[np.intp], budget: float, size: int = 2000, skip: int = 1000) -> NDArray[np.float64]:
    """By which part of the budget any so many images, after the first, cost more than that, or less."""
    total = np.append(0, np.cumsum(COSTS[exits]))[skip:]
    return np.asarray((total[size:] - total[:-size]) / size / budget - 1)


def drifting(seed: int, noise: float) -> NDArray[np.float64]:
    """Images like the held-out ones, then noisier (or clearer) ones, then the first kind again."""
    parts = [answers(4000, seed), answers(6000, seed + 1, noise), answers(4000, seed + 2)]
    return np.concatenate([part.confidence for part in parts])


@pytest.mark.parametrize("method", METHODS)
def test_a_steady_budget_is_held_while_images_drift(method: Method) -> None:
    family = PolicyFamily(*answers(5000, seed=0), COSTS, method=method)
    for seed, noise in enumerate([0.5, 1.3, 1.8]):
        images = drifting(10 * seed, noise)
        for budget in BUDGETS:
            fixed = windows(run(FixedThresholds(family.policy(budget)), images, 512), budget)
            steady = windows(run(SteadyBudget(family, budget), images, at_once=SteadyBudget.at_a_time or 1), budget)
            assert np.abs(fixed).max() > 0.1, "fixed thresholds run away"
            assert np.abs(steady).max() < 0.02


def test_a_steady_budget_is_held_one_image_at_a_time() -> None:
    family = PolicyFamily(*answers(5000, seed=0), COSTS, method="paper")
    assert np.abs(windows(run(SteadyBudget(family, 50e6), drifting(0, 1.8), at_once=1), 50e6)).max() < 0.02


def test_a_steady_budget_loses_nothing_on_images_like_the_held_out_ones() -> None:
    family, fresh = PolicyFamily(*answers(5000, seed=0), COSTS), answers(8000, seed=1)
    for budget in BUDGETS:
        fixed = fresh.accuracy(family.policy(budget).exit_indices(fresh.confidence))
        assert fresh.accuracy(run(SteadyBudget(family, budget), fresh.confidence, 32)) > fixed - 0.005


@pytest.mark.parametrize("method", METHODS)
def test_images_that_are_never_sure_do_not_overspend(method: Method) -> None:
    family = PolicyFamily(*answers(3000, seed=0), COSTS, method=method)
    images = np.concatenate([answers(3000, seed=1).confidence, np.zeros((4000, 11))])
    for budget in BUDGETS:
        exits = run(SteadyBudget(family, budget, limit=12), images, 32)
        spent, came = np.cumsum(COSTS[exits])[31::32], np.arange(32, len(exits) + 1, 32)
        assert (spent[: len(came)] <= (came + 12) * budget).all()
        assert np.abs(windows(exits, budget)).max() < 0.02


def test_a_steady_budget_counts_what_was_run_and_not_what_was_promised() -> None:
    family, unsure = PolicyFamily(*answers(3000, seed=0), COSTS), np.zeros((2000, 11))
    failed, other = SteadyBudget(family, 80e6), SteadyBudget(family, 80e6)
    failed.arrive(np.arange(32))
    assert not failed.leaves(asked(0, np.zeros(32), np.arange(32))).any()
    failed.resume([32] + [0] * 10)
    more = float(COSTS[run(failed, unsure, 32)].sum()) - float(COSTS[run(other, unsure, 32)].sum())
    assert more == pytest.approx(32 * (80e6 - COSTS[0]), abs=2 * np.diff(COSTS).max())


def test_images_that_are_always_sure_are_sent_on_all_the_same() -> None:
    """Also where the most accurate thresholds let some leave early though money is no object."""
    confidence = np.linspace(0.01, 0.99, 200)[:, None] * [1, 1]
    correct = np.array([[False, True]] * 199 + [[True, False]])
    family = PolicyFamily(confidence, correct, costs=[1, 10])
    assert 9.9 < family.policy(10).cost_ < 10
    exits = run(SteadyBudget(family, budget=9), np.ones((4000, 2)), 8)
    assert np.mean([1, 10] @ np.eye(2)[exits].T) == pytest.approx(9, rel=0.01)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"budget": 12e6}, "budget must be at least 13,000,000, the cost of the first exit, got 12,000,000"),
        ({"budget": math.nan}, "budget must be at least 13,000,000"),
        ({"budget": 50e6, "limit": 0.5}, "limit must be at least 1, got 0.5"),
        ({"budget": 50e6, "limit": math.nan}, "limit must be at least 1, got nan"),
    ],
)
def test_a_steady_budget_refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SteadyBudget(PolicyFamily(*answers(20, seed=0), COSTS, method="paper"), **values)


@pytest.mark.parametrize("budget", [COSTS[0], COSTS[-1], math.inf])
def test_a_steady_budget_at_the_ends(budget: float) -> None:
    family = PolicyFamily(*answers(100, seed=0), COSTS, method="paper")
    exits = run(SteadyBudget(family, budget), answers(200, seed=1).confidence, 32)
    assert set(exits) == {0 if budget == COSTS[0] else 10}
