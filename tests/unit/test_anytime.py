import math
from collections.abc import Callable

import pytest

from msdnet.anytime import BudgetDistribution, Exponential, Samples, Uniform, answer_probabilities


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exponential(mean=0), "mean must be above 0, got 0"),
        (lambda: Uniform(low=2, high=2), "high must be above 2, got 2"),
        (lambda: Samples(()), "values must have at least one budget"),
        (lambda: Samples((1.0, math.inf)), "each of values must be at least 0, got inf"),
    ],
)
def test_refuses(make: Callable[[], BudgetDistribution], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
