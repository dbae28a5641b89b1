import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from msdnet.anytime import (
    AnytimeCurve,
    BudgetDistribution,
    Exponential,
    Samples,
    Uniform,
    answer_probabilities,
    expected_loss,
)


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        (Uniform(low=0, high=5), (0.2, 0.2, 0.4)),
        (Uniform(low=1.5, high=2.5), (0.5, 0.5, 0.0)),
        (Samples((0.5, 1, 2, 2.5, 9)), (0.2, 0.4, 0.2)),  # a budget that is just met counts; 0.5 meets none
        (Exponential(mean=2), (math.exp(-0.5) - math.exp(-1), math.exp(-1) - math.exp(-1.5), math.exp(-1.5))),
    ],
)
def test_answer_probabilities(budgets: BudgetDistribution, expected: tuple[float, ...]) -> None:
    assert answer_probabilities([1, 2, 3], budgets) == pytest.approx(expected)


@pytest.mark.parametrize("costs", [[3, 1], [1, 1], [math.nan], [-1]])
def test_costs_must_rise(costs: list[float]) -> None:
    with pytest.raises(ValueError, match="costs must"):
        answer_probabilities(costs, Uniform(0, 4))
    with pytest.raises(ValueError, match="costs must"):
        expected_loss([[1.0] * len(costs)], costs, budgets=[2.5], before=3.0)


def test_budgets_are_a_distribution() -> None:
    with pytest.raises(TypeError, match="budgets must be a distribution: Exponential, Uniform or Samples, got 5"):
        answer_probabilities([1, 2], 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="before must be a number at least 0, got 'x'"):
        expected_loss([[1.0]], costs=[1], budgets=[2], before="x")  # type: ignore[arg-type]


CURVE = AnytimeCurve(costs=(1, 2, 4), accuracies=(0.5, 0.7, 0.8), before=0.1)
LOSSES = [[3.0, 2.0, 1.0], [6.0, 4.0, 5.0]]
BUDGETS = [Uniform(low=0, high=5), Uniform(low=1.5, high=2.5), Samples((0.5, 1, 2, 2.5, 9)), Exponential(mean=2)]


def loss_of(losses: Any = LOSSES, budgets: Any = BUDGETS[0]) -> float:
    return expected_loss(losses, costs=[1, 2, 4], budgets=budgets, before=9.0)


def drawn(budgets: BudgetDistribution) -> np.ndarray:
    """Many budgets of a distribution, evenly chosen."""
    parts = (np.arange(200_000) + 0.5) / 200_000
    if isinstance(budgets, Uniform):
        return np.asarray(budgets.low + parts * (budgets.high - budgets.low))
    return -budgets.mean * np.log(parts) if isinstance(budgets, Exponential) else np.array(budgets.values)


def test_a_curve_is_a_staircase() -> None:
    assert CURVE.at([0, 0.999, 1, 1.999, 2, 3.999, 4, math.inf]).tolist() == [0.1, 0.1, 0.5, 0.5, 0.7, 0.7, 0.8, 0.8]
    assert CURVE.at(3.0) == 0.7
    assert AnytimeCurve((1,), (0.5,)).at([0.5]) == [0.0]


@pytest.mark.parametrize("budgets", BUDGETS)
def test_expected_is_the_average_over_budgets(budgets: BudgetDistribution) -> None:
    assert CURVE.expected(budgets) == pytest.approx(CURVE.at(drawn(budgets)).mean(), abs=1e-4)


def test_area_is_the_average_over_a_range() -> None:
    assert CURVE.area(0, 8) == pytest.approx((1 * 0.1 + 1 * 0.5 + 2 * 0.7 + 4 * 0.8) / 8)
    assert CURVE.area(1.5, 3) == pytest.approx((0.5 * 0.5 + 1 * 0.7) / 1.5)
    assert CURVE.area(5, 6) == pytest.approx(0.8)


@pytest.mark.parametrize("budgets", BUDGETS)
def test_expected_loss_of_independent_budgets(budgets: BudgetDistribution) -> None:
    """As if every image came with every budget."""
    every = drawn(budgets)
    together = [expected_loss([row] * len(every), [1, 2, 4], every, before=9.0) for row in LOSSES]
    assert loss_of(budgets=budgets) == pytest.approx(np.mean(together), abs=1e-3)


def test_expected_loss_of_budgets_given_with_the_images() -> None:
    assert loss_of(budgets=[4, 0.5]) == (1 + 9) / 2
    assert loss_of(budgets=[1, 3]) == (3 + 4) / 2
    assert loss_of(budgets=np.array([2, math.inf])) == (2 + 5) / 2


def test_accuracy_is_a_loss_turned_over() -> None:
    wrong = [[1 - accuracy for accuracy in CURVE.accuracies]]
    loss = expected_loss(wrong, CURVE.costs, Uniform(low=0, high=6), before=1 - CURVE.before)
    assert loss == pytest.approx(1 - CURVE.area(0, 6))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exponential(mean=0), "mean must be above 0, got 0"),
        (lambda: Uniform(low=2, high=2), "high must be above 2, got 2"),
        (lambda: Samples(()), "values must have at least one budget"),
        (lambda: Samples((1.0, math.inf)), "each of values must be finite and at least 0, got inf"),
        (lambda: AnytimeCurve((), ()), "costs must have at least one exit, got none"),
        (lambda: answer_probabilities([], Uniform(low=0, high=1)), "costs must have at least one exit, got none"),
        (lambda: AnytimeCurve((1, 2), (0.5,)), "costs and accuracies must go together, got 2 and 1"),
        (lambda: AnytimeCurve((2, 2), (0.5, 0.6)), r"costs must increase from one to the next, got \(2, 2\)"),
        (lambda: AnytimeCurve((1, math.nan), (0.5, 0.6)), "each of costs must be at least 0, got nan"),
        (lambda: AnytimeCurve((1, 2), (0.5, math.nan)), "each of accuracies must be at least 0, got nan"),
        (lambda: CURVE.at([1.0, math.nan]), "budgets must be numbers, got NaN"),
        (lambda: CURVE.area(3, 3), "high must be above 3, got 3"),
        (lambda: loss_of(losses=[[1.0, 2.0]]), r"losses must be \(images, 3\), one column for each cost, got \(1, 2\)"),
        (lambda: loss_of(losses=np.zeros((0, 3))), r"got \(0, 3\)"),
        (lambda: loss_of(budgets=[1.0]), "budgets must be a distribution or 2 numbers, one for each image"),
        (lambda: loss_of(budgets=[1.0, math.nan]), "budgets must be numbers, got NaN"),
    ],
)
def test_refuses(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
