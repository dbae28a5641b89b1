"""A policy: one threshold for each exit, fitted to a budget on held-out images."""

import json
import math
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msdnet.amounts import four_digits, in_millions
from msdnet.checks import check_choice, check_whole
from msdnet.errors import of_file
from msdnet.policy.confidence import MEASURES, Measure
from msdnet.policy.outcomes import Floats, Outcomes, check_budget, check_costs, exits_of, numbers_of_exits
from msdnet.policy.paper import lean_for, thresholds_at
from msdnet.policy.search import Frontier
from msdnet.tables import table_from_json
from msdnet.writing import write_output

__all__ = ["METHODS", "Method", "Policy", "PolicyFamily", "Unit", "check_thresholds", "that_differ", "usual_budgets"]

Method = Literal["accuracy", "paper"]
METHODS: tuple[Method, ...] = get_args(Method)
Unit = Literal["multiply-adds", "seconds"]
FORMAT = 1
RUNGS = 65  # of a ladder of policies


def usual_budgets(costs: ArrayLike, count: int = 10) -> list[float]:
    """Budgets to show, where nobody has asked for others: from just above the first exit to the last, by equal ratios.

    >>> usual_budgets([10, 30, 80], count=4)
    [11.0, 21.3, 41.3, 80.0]
    """
    known = check_costs(costs)
    low, high = 1.1 * known[0], max(known[-1], 1.1 * known[0])
    return sorted({float(f"{budget:.3g}") for budget in np.geomspace(low, high, count)})


def that_differ(policies: "Iterable[Policy]") -> "list[Policy]":
    """Without those that do what the one before them does: what gains nothing on the held-out images is not spent.

    >>> family = PolicyFamily([[0.9, 0.9], [0.2, 0.8]], [[True, True], [True, True]], costs=[10, 30])
    >>> [policy.budget_ for policy in that_differ(map(family.policy, [10, 20, 30]))]
    [10.0]
    """
    differing: list[Policy] = []
    for policy in policies:
        if not differing or not np.array_equal(policy.thresholds_, differing[-1].thresholds_):
            differing.append(policy)
    return differing


def check_thresholds(thresholds: ArrayLike) -> Floats:
    given = numbers_of_exits("thresholds", thresholds)
    if given.ndim != 1 or not len(given) or np.isnan(given).any():
        raise ValueError(f"thresholds must be numbers, one for each exit, got {thresholds!r}")
    return given


class Policy:
    """Who leaves where: an image leaves at the first exit that is at least as sure of it as the exit's threshold.

    - method: "accuracy" searches for the thresholds that are most accurate on the held-out images; "paper" lets a
      constant share leave at each exit, as the paper does
    - measure: the measure of confidence that it is fitted to, and must be given

    >>> policy = Policy(method="paper")
    >>> policy.fit([[0.9, 0.9], [0.2, 0.8]], [[True, True], [False, True]], costs=[10, 30], budget=20).thresholds_
    array([0.89999,    -inf])
    """

    thresholds_: Floats
    """One for each exit; the last lets everyone leave."""
    costs_: Floats
    budget_: float
    accuracy_: float
    """On the held-out images, as the two that follow."""
    cost_: float
    shares_: tuple[float, ...]
    """Which part of them leaves at each exit."""
    model_: str | None
    """The model it was fitted for, where that is known."""
    unit_: Unit
    """Of costs and budget."""

    def __init__(self, method: Method = "accuracy", measure: Measure = "largest") -> None:
        check_choice("method", method, METHODS)
        check_choice("measure", measure, MEASURES)
        self.method = method
        self.measure = measure

    def fit(self, confidence: ArrayLike, correct: ArrayLike, costs: ArrayLike, budget: float) -> "Policy":
        """Find the thresholds.

        - confidence, correct: (images, exits), of held-out images
        - costs: to reach each exit, in any unit
        - budget: per image on average, in the same unit; anything beyond the last exit's cost is no limit
        """
        family = PolicyFamily(confidence, correct, costs, method=self.method, measure=self.measure)
        self.__dict__.update(vars(family.policy(budget)))
        return self

    def exit_indices(self, confidence: ArrayLike) -> NDArray[np.intp]:
        """The exits, from 0, at which images of these confidences (images, exits) leave."""
        sure = np.asarray(confidence)
        self.check_fitted()
        if sure.ndim != 2 or sure.shape[1] != len(self.thresholds_):
            raise ValueError(f"confidence must be (images, {len(self.thresholds_)}), got {sure.shape}")
        if np.isnan(sure).any():
            raise ValueError("confidence must be numbers, got NaN")
        return exits_of(sure.T, check_thresholds(self.thresholds_))

    def check_for(self, costs: ArrayLike, model: str | None = None) -> None:
        """Refuse to serve a network that it was not fitted for."""
        self.check_fitted()
        given = np.asarray(costs, dtype=np.float64)
        if np.shape(self.thresholds_) != self.costs_.shape:
            raise ValueError(f"thresholds must be one for each of {len(self.costs_)} exits, got {self.thresholds_}")
        if given.shape != self.costs_.shape:
            raise ValueError(f"the policy was fitted for a network of {len(self.costs_)} exits, this has {len(given)}")
        fits = np.array_equal(given, self.costs_) if None in (model, self.model_) else model == self.model_
        if not fits:
            raise ValueError("the policy was fitted for another network; fit one for this, or load that network")

    def to_json(self) -> str:
        self.check_fitted()
        values = {
            "format": FORMAT,
            "method": self.method,
            "measure": self.measure,
            "thresholds": [value if math.isfinite(value) else str(value) for value in self.thresholds_.tolist()],
            "costs": self.costs_.tolist(),
            "budget": self.budget_ if math.isfinite(self.budget_) else str(self.budget_),
            "accuracy": self.accuracy_,
            "cost": self.cost_,
            "shares": list(self.shares_),
            "model": self.model_,
            "unit": self.unit_,
        }
        return json.dumps(values, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Policy":
        values = table_from_json(text, "policy", FORMAT)
        try:
            check_whole("format", values["format"])
            return cls(values["method"], values["measure"])._learned(values)
        except KeyError as error:
            raise ValueError(f"policy: has no {error.args[0]!r}") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"policy: {error}") from error

    def save(self, path: str | Path) -> None:
        write_output(Path(path), self.to_json().encode())

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        with of_file(Path(path)):
            return cls.from_json(Path(path).read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        made = f"Policy(method={self.method!r}, measure={self.measure!r})"
        if not hasattr(self, "thresholds_"):
            return made
        budget, cost = (_told(amount, self.unit_) for amount in (self.budget_, self.cost_))
        unit = "" if self.unit_ == "seconds" else " multiply-adds"  # a time has its own
        return f"<{made} for {budget}{unit} per image: held-out accuracy {self.accuracy_:.2%} at {cost}>"

    def _learned(self, values: dict[str, Any]) -> "Policy":
        self.thresholds_ = check_thresholds([float(value) for value in values["thresholds"]])
        self.costs_ = check_costs(values["costs"])
        self.budget_ = check_budget(float(values["budget"]), self.costs_)
        self.model_, self.unit_ = values["model"], values["unit"]
        self.check_for(self.costs_, self.model_)
        self.accuracy_, self.cost_ = float(values["accuracy"]), float(values["cost"])
        self.shares_ = tuple(float(share) for share in values["shares"])
        check_choice("unit", self.unit_, get_args(Unit))
        return self

    def check_fitted(self) -> None:
        """Refuse to serve without thresholds, or with some that were put in its place and let someone never leave."""
        if not hasattr(self, "thresholds_"):
            raise ValueError("this policy is not fitted yet: call fit(confidence, correct, costs, budget) first")
        if check_thresholds(self.thresholds_)[-1] != -np.inf:
            raise ValueError(f"the last of a policy's thresholds must be -inf: all leave there, got {self.thresholds_}")


def _told(amount: float, unit: Unit) -> str:
    """As people read it; of so little that it counts something else than a network's multiply-adds, the number."""
    if unit == "seconds":
        return f"{four_digits(1e3 * amount)} ms"
    return f"{in_millions(amount)} M" if amount >= 1e3 else f"{amount:g}"


class PolicyFamily:
    """The policies of all budgets, from one look at the held-out images; asking for several is then quick."""

    def __init__(
        self,
        confidence: ArrayLike,
        correct: ArrayLike,
        costs: ArrayLike,
        *,
        method: Method = "accuracy",
        measure: Measure = "largest",
        model: str | None = None,
        unit: Unit = "multiply-adds",
    ) -> None:
        Policy(method, measure)  # refuses what it does not know
        check_choice("unit", unit, get_args(Unit))
        self.method, self.measure, self.model, self.unit = method, measure, model, unit
        self.held_out = Outcomes.of(confidence, correct, costs)
        self._frontier = Frontier(self.held_out) if method == "accuracy" else None

    @cached_property
    def ladder(self) -> tuple[Floats, Floats]:
        """Thresholds (RUNGS, exits) of rising held-out cost (RUNGS), from the first exit's cost to the last's.

        Where the family would not spend what it may, since that gains nothing on the held-out images, the paper's
        thresholds do; with the last, everyone goes on.
        """
        found: list[tuple[float, Floats]] = []
        first, last = self.held_out.costs[[0, -1]].tolist()
        for part in np.linspace(0, 1, RUNGS).tolist():
            budget = first + part**2 * (last - first)  # closer together where little is left past the first exit
            policy = self.policy(budget)
            thresholds = policy.thresholds_
            if policy.cost_ < 0.98 * budget or part == 1:
                lean = lean_for(self.held_out.costs, budget)
                thresholds = self.held_out.with_slack(thresholds_at(lean, self.held_out))
            found.append((self.held_out.value(thresholds).cost, thresholds))
        found.sort(key=lambda rung: rung[0])
        return np.array([thresholds for _, thresholds in found]), np.array([cost for cost, _ in found])

    def policy(self, budget: float) -> Policy:
        held_out, policy = self.held_out, Policy(self.method, self.measure)
        policy.budget_ = check_budget(budget, held_out.costs)
        lean = lean_for(held_out.costs, policy.budget_)
        fitted = (
            thresholds_at(lean, held_out)
            if self._frontier is None
            else self._frontier.best(policy.budget_, lean).thresholds
        )
        policy.thresholds_ = held_out.with_slack(fitted)
        policy.costs_ = held_out.costs.copy()  # a policy is its owner's, the family another's
        policy.accuracy_, policy.cost_ = held_out.value(policy.thresholds_)
        policy.shares_ = held_out.shares(policy.thresholds_)
        policy.model_, policy.unit_ = self.model, self.unit
        return policy
