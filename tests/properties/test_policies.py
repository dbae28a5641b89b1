"""What must hold for every policy and budget, whatever the images."""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from msdnet.policy import METHODS, HardBudget, Method, Policy, PolicyFamily, SpendingRule, SteadyBudget, exit_shares
from msdnet.policy.paper import LEANS, all_targets, targets
from tests.properties.strategies import HeldOut, held_out, parts
from tests.synthetic import asked, run

quick = settings(max_examples=100, deadline=None)  # the paper's thresholds
moderate = settings(max_examples=40, deadline=None)  # with a search

each_method = pytest.mark.parametrize("method", METHODS)


def family(data: HeldOut, method: Method) -> PolicyFamily:
    return PolicyFamily(*data, method=method)


@each_method
@given(data=held_out(), part=parts)
@moderate
def test_a_policy_keeps_its_budget_on_what_it_was_fitted_to(method: Method, data: HeldOut, part: float) -> None:
    policy = Policy(method).fit(*data, data.budget(part))
    assert policy.cost_ <= data.budget(part)
    exits = policy.exit_indices(data.confidence)
    rows = np.arange(len(exits))
    assert policy.cost_ == pytest.approx(data.costs[exits].mean())
    assert policy.accuracy_ == pytest.approx(data.correct[rows, exits].mean())
    assert policy.shares_ == pytest.approx(np.bincount(exits, minlength=len(data.costs)) / len(exits))


@each_method
@given(data=held_out(), part=parts, factor=st.floats(1e-9, 1e9))
@moderate
def test_costs_in_any_unit(method: Method, data: HeldOut, part: float, factor: float) -> None:
    """Fractions cannot be added exactly: the budget is kept to within rounding, and its ends are reached."""
    costs = data.costs * factor
    budget = min(max(data.budget(part) * factor, costs[0]), costs[-1])
    policy = Policy(method).fit(data.confidence, data.correct, costs, budget)
    assert policy.cost_ <= budget * (1 + 1e-12)
    assert costs[0] <= policy.cost_ <= costs[-1]


@each_method
@given(data=held_out(), part=parts, power=st.integers(-40, 40))
@moderate
def test_scaling_costs_and_budget_changes_nothing(method: Method, data: HeldOut, part: float, power: int) -> None:
    """By powers of two, so that no rounding comes between."""
    factor, budget = 2.0**power, data.budget(part)
    policy = Policy(method).fit(*data, budget)
    scaled = Policy(method).fit(data.confidence, data.correct, data.costs * factor, budget * factor)
    assert np.array_equal(scaled.thresholds_, policy.thresholds_)
    assert scaled.cost_ == policy.cost_ * factor


@given(held_out())
@quick
def test_the_papers_with_an_unlimited_budget_is_the_last_exit(data: HeldOut) -> None:
    for budget in (data.costs[-1], math.inf):
        policy = Policy("paper").fit(*data, budget)
        assert policy.shares_[-1] == 1
        assert policy.cost_ == data.costs[-1]


@each_method
@given(data=held_out())
@moderate
def test_the_least_budget_is_the_first_exit(method: Method, data: HeldOut) -> None:
    policy = Policy(method).fit(*data, data.costs[0])
    assert policy.shares_[0] == 1
    assert policy.cost_ == data.costs[0]
    assert policy.accuracy_ == pytest.approx(data.correct[:, 0].mean())


@given(held_out(ties=False, most_images=60, exits=(1, 6)), st.lists(parts, min_size=2, max_size=12))
@quick
def test_a_larger_budget_never_lowers_the_cost_of_the_papers(data: HeldOut, some: list[float]) -> None:
    papers = family(data, "paper")
    costs = [papers.policy(data.budget(part)).cost_ for part in sorted(some)]
    assert costs == sorted(costs)


@given(held_out(most_images=60, exits=(1, 6)), parts)
@quick
def test_the_papers_shares_leave(data: HeldOut, part: float) -> None:
    """By every exit at least the share that is to have left, rounded up to whole images; where all confidences
    differ, no more than that.
    """
    policy = Policy("paper").fit(*data, data.budget(part))
    gone = np.cumsum(policy.shares_) * len(data.confidence)
    wanted = np.cumsum(exit_shares(data.costs, data.budget(part))) * len(data.confidence)
    assert (gone >= wanted - 1e-6).all()
    if all(len(set(column)) == len(column) for column in data.confidence.T):
        assert (gone <= wanted + 1 + 1e-6).all()


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), parts)
@quick
def test_shares_keep_a_ratio_and_meet_the_budget(steps: list[float], part: float) -> None:
    costs = np.cumsum(steps)
    budget = min(max(costs[0] + part * (costs[-1] - costs[0]), costs[0]), costs[-1])
    shares = np.array(exit_shares(costs, budget))
    assert shares.sum() == pytest.approx(1)
    assert shares @ costs == pytest.approx(budget)
    assert shares[1:-1] ** 2 == pytest.approx(shares[:-2] * shares[2:])  # a constant ratio


@given(st.integers(1, 6), st.integers(1, 60), st.lists(parts | st.floats(0, 1e-6), min_size=1, max_size=50))
@quick
def test_all_that_the_papers_shares_can_become_is_known(exits: int, size: int, leans: list[float]) -> None:
    known = set(map(tuple, all_targets(exits, size).tolist()))
    leans += [1 - lean for lean in leans]
    nearest = np.floor(np.array(leans) * LEANS)  # and those beside them, where rounding plays its tricks
    for step in (-1, 0, 1):
        rows = targets((nearest + step).clip(0, LEANS) / LEANS, exits, size)
        assert known.issuperset(map(tuple, rows.tolist()))


@given(held_out(most_images=200, exits=(1, 5)), st.lists(parts, max_size=12))
@moderate
def test_a_larger_budget_never_lowers_the_accuracy_of_ours(data: HeldOut, some: list[float]) -> None:
    ours = family(data, "accuracy")
    budgets = sorted(
        data.costs[0] + part * (data.costs[-1] - data.costs[0]) for part in (*some, *np.linspace(0, 1, 33))
    )
    accuracies = [ours.policy(budget).accuracy_ for budget in budgets]
    assert accuracies == sorted(accuracies)


@given(held_out(), st.lists(parts, min_size=1, max_size=12))
@moderate
def test_ours_is_at_least_as_accurate_as_the_papers(data: HeldOut, some: list[float]) -> None:
    ours, papers = family(data, "accuracy"), family(data, "paper")
    for budget in map(data.budget, some):
        assert ours.policy(budget).accuracy_ >= papers.policy(budget).accuracy_


@given(held_out(), st.lists(parts, min_size=2, max_size=6))
@moderate
def test_a_policy_does_not_depend_on_what_else_was_asked(data: HeldOut, some: list[float]) -> None:
    asked_often = family(data, "accuracy")
    policies = [asked_often.policy(data.budget(part)) for part in some]
    assert policies[-1].to_json() == Policy().fit(*data, data.budget(some[-1])).to_json()


@each_method
@given(data=held_out(), part=parts | st.just(math.inf))
@moderate
def test_json_round_trip(method: Method, data: HeldOut, part: float) -> None:
    budget = math.inf if part == math.inf else data.budget(part)
    policy = PolicyFamily(*data, method=method, model="a" * 8).policy(budget)
    again = Policy.from_json(policy.to_json())
    assert again.to_json() == policy.to_json()
    assert np.array_equal(again.thresholds_, policy.thresholds_)
    assert (again.budget_, again.model_, again.shares_) == (policy.budget_, "a" * 8, policy.shares_)
    assert np.array_equal(again.exit_indices(data.confidence), policy.exit_indices(data.confidence))


@each_method
@given(data=held_out(), fresh=held_out(exits=(4, 4)), part=parts)
@moderate
def test_exits_are_the_first_whose_threshold_is_reached(
    method: Method, data: HeldOut, fresh: HeldOut, part: float
) -> None:
    policy = Policy(method).fit(*data, data.budget(part))
    confidence = fresh.confidence[:, : len(data.costs)]
    for row, exit in zip(confidence, policy.exit_indices(confidence), strict=True):
        assert row[exit] >= policy.thresholds_[exit]
        assert (row[:exit] < policy.thresholds_[:exit]).all()


def every_outcome(data: HeldOut) -> list[tuple[float, float]]:
    """Cost and accuracy of all thresholds that differ in what they do."""
    cuts = [[*sorted(set(column)), math.inf] for column in data.confidence.T[:-1].tolist()]
    outcomes = []
    for thresholds in itertools.product(*cuts):
        exits = (data.confidence >= np.array([*thresholds, -math.inf])).argmax(axis=1)
        right = data.correct[np.arange(len(exits)), exits]
        outcomes.append((float(data.costs[exits].mean()), float(right.mean())))
    return outcomes


@given(held_out(most_images=40, exits=(2, 2)), parts)
@moderate
def test_with_two_exits_ours_is_the_best_there_is(data: HeldOut, part: float) -> None:
    best = max(accuracy for cost, accuracy in every_outcome(data) if cost <= data.budget(part))
    assert Policy().fit(*data, data.budget(part)).accuracy_ == pytest.approx(best)


@given(held_out(most_images=7, exits=(3, 4)), parts)
@moderate
def test_ours_is_never_better_than_the_best_there_is(data: HeldOut, part: float) -> None:
    best = max(accuracy for cost, accuracy in every_outcome(data) if cost <= data.budget(part))
    assert Policy().fit(*data, data.budget(part)).accuracy_ <= best + 1e-9


class Adversary:
    """Feeds images to a rule in any order it may meet: batches arrive while others are under way, and whoever waits
    at an exit is asked about in handfuls. Keeps account of what was spent.
    """

    def __init__(self, rule: SpendingRule, costs: NDArray[np.float64], seed: int) -> None:
        self.rule, self.costs = rule, costs
        self.chance = np.random.default_rng(seed)
        self.waiting: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp) for _ in costs]  # at each exit
        self.reached = np.zeros(0, dtype=np.intp)
        """The exit that each image has come to so far."""
        self.answered = np.zeros(0, dtype=np.intp)
        """How often each image was let go."""

    def feed(self, images: int, at_once: int) -> Iterator[NDArray[np.float64]]:
        """Yields what each image has cost, after every step."""
        while len(self.reached) < images or any(map(len, self.waiting)):
            if len(self.reached) < images and (self.chance.random() < 0.4 or not any(map(len, self.waiting))):
                self._arrive(min(int(self.chance.integers(1, at_once + 1)), images - len(self.reached)))
            else:
                self._ask(int(self.chance.choice([exit for exit, some in enumerate(self.waiting) if len(some)])))
            yield self.costs[self.reached]

    def _arrive(self, count: int) -> None:
        new = np.arange(len(self.reached), len(self.reached) + count)
        self.rule.arrive(new)
        self.reached = np.append(self.reached, np.zeros(count, dtype=np.intp))
        self.answered = np.append(self.answered, np.zeros(count, dtype=np.intp))
        self.waiting[0] = np.append(self.waiting[0], new)

    def _ask(self, exit: int) -> None:
        mixed = self.chance.permutation(self.waiting[exit])
        some, self.waiting[exit] = np.split(mixed, [self.chance.integers(1, len(mixed) + 1)])
        leaves = self.rule.leaves(asked(exit, self._confidence(len(some)), some))
        assert leaves.shape == some.shape
        self.answered[some[leaves]] += 1
        if not leaves.all():
            assert exit < len(self.costs) - 1, "everyone leaves at the last exit"
            self.reached[some[~leaves]] += 1
            self.waiting[exit + 1] = np.append(self.waiting[exit + 1], some[~leaves])

    def _confidence(self, count: int) -> NDArray[np.float64]:
        """Never sure, as sure as can be, anything, or no number at all."""
        kinds: list[Callable[[], NDArray[np.float64]]] = [
            lambda: np.zeros(count),
            lambda: np.full(count, -math.inf),
            lambda: self.chance.random(count),
            lambda: self.chance.integers(0, 2, count).astype(float),
            lambda: np.where(self.chance.random(count) < 0.5, math.nan, 0.0),
        ]
        return kinds[self.chance.choice(len(kinds), p=[0.4, 0.1, 0.2, 0.2, 0.1])]()


seeds = st.integers(0, 2**32 - 1)


@given(
    data=held_out(),
    part=parts,
    images=st.integers(0, 40),
    group=st.none() | st.integers(1, 12),
    known=st.booleans(),
    at_once=st.integers(1, 20),
    seed=seeds,
)
@quick
def test_a_hard_budget_is_never_exceeded_and_everyone_is_answered(
    data: HeldOut, part: float, images: int, group: int | None, known: bool, at_once: int, seed: int
) -> None:
    policy = Policy("paper").fit(*data, data.budget(part))
    rule = HardBudget(policy, images=images if known else None, group=group)
    adversary = Adversary(rule, data.costs, seed)
    for spent in adversary.feed(images, at_once):
        for first in range(0, len(spent), group or images):
            members = spent[first : first + (group or images)]
            size = min(group or images, images - first) if known else len(members)
            set_aside = data.costs[0] * (size - len(members))
            assert members.sum() + set_aside <= size * data.budget(part)
    assert (adversary.answered == 1).all()
    assert len(adversary.answered) == images


@given(held_out(), parts, st.booleans())
@quick
def test_a_hard_budget_takes_nothing_from_whom_the_policy_was_fitted_to(
    data: HeldOut, part: float, known: bool
) -> None:
    policy = Policy("paper").fit(*data, data.budget(part))
    rule = HardBudget(policy, images=len(data.confidence) if known else None)
    assert np.array_equal(run(rule, data.confidence, len(data.confidence)), policy.exit_indices(data.confidence))


@given(data=held_out(), part=parts, limit=st.integers(1, 20), at_once=st.integers(1, 40), seed=seeds)
@moderate
def test_a_steady_budget_never_overspends_by_more_than_its_limit(
    data: HeldOut, part: float, limit: int, at_once: int, seed: int
) -> None:
    budget = data.budget(part)
    adversary = Adversary(SteadyBudget(family(data, "paper"), budget, limit=limit), data.costs, seed)
    for spent in adversary.feed(150, at_once):
        assert spent.sum() <= (len(spent) + limit) * budget
    assert (adversary.answered == 1).all()


DEAR_STEP = HeldOut(np.array([[0.5, 0.5]]), np.array([[False, True]]), np.array([1.0, 16.0]))


@each_method
@given(data=held_out(), part=parts, limit=st.integers(1, 20))
@example(data=DEAR_STEP, part=0.0625, limit=1)
@settings(max_examples=20, deadline=None)
def test_a_steady_budget_does_not_save_more_than_its_limit(
    method: Method, data: HeldOut, part: float, limit: int
) -> None:
    """Though every image could leave at once. A step that costs more than the limit on both sides of the balance is
    saved for: not to overspend comes before.
    """
    budget = data.budget(part)
    dearest = np.diff(data.costs).max(initial=0.0)
    exits = run(SteadyBudget(family(data, method), budget, limit=limit), np.ones((300, len(data.costs))), 8)
    saved = np.cumsum(budget - data.costs[exits])
    assert saved.max() <= max(limit * budget, dearest - limit * budget) + 8 * (budget - data.costs[0])
