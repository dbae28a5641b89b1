"""Who leaves, image after image, while a budget is being spent.

A rule is told when images arrive, in order, and asked after each exit which of some images leave there. Fixed
thresholds keep the budget in expectation. A hard budget is never exceeded, whatever the images. A steady budget is
held on average while the images change. Rules of one's own are run like these.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msdnet.checks import check_number, check_whole
from msdnet.policy.confidence import Measure
from msdnet.policy.outcomes import check_budget
from msdnet.policy.policy import Policy, PolicyFamily, check_thresholds

__all__ = ["Answers", "FixedThresholds", "HardBudget", "SpendingRule", "SteadyBudget"]

_Mask: TypeAlias = NDArray[np.bool_]


class Answers(NamedTuple):
    """What an exit says of some images."""

    images: NDArray[np.integer]
    """Their numbers, from 0 in the order in which they came."""
    exit: int
    """From 1, as people count."""
    confidences: NDArray[np.floating]
    probabilities: NDArray[np.floating]
    """(N, classes)"""

    def of(self, rows: _Mask) -> "Answers":
        """To some of them."""
        return Answers(self.images[rows], self.exit, self.confidences[rows], self.probabilities[rows])


class SpendingRule(ABC):
    """Who leaves where. One of your own need only say who `leaves`.

    >>> class SureEnough(SpendingRule):
    ...     def leaves(self, asked):
    ...         return asked.confidences > 0.8
    """

    measure: Measure = "largest"
    """Of the confidences that it gets."""
    exit_count: int | None = None
    """Of the network that it is for; none: any network."""
    at_a_time: int | None = None
    """At most so many images may be in progress; none: as many as one likes."""

    def arrive(self, images: NDArray[np.integer]) -> None:  # noqa: B027  (most rules need not know)
        """Images of these numbers are about to take the first stage."""

    def resume(self, rows: Sequence[int]) -> None:  # noqa: B027
        """Another call begins: nobody is under way, and so far each stage was run on so many images.

        If a call before ended with an error, images that were sent on may never have got there.
        """

    @abstractmethod
    def leaves(self, asked: Answers) -> _Mask:
        """Which of these images leave at this exit: a bool for each. At the last exit all do, whatever is said."""


class FixedThresholds(SpendingRule):
    """An image leaves at the first exit that is at least as sure of it as the exit's threshold.

    - thresholds: a fitted policy, whose budget is kept on average over images like the held-out ones; or thresholds of
      your own, one for each exit
    - measure: of confidence, for thresholds of your own; a policy has its own

    >>> FixedThresholds([0.9, 0.7, 0]).leaves(Answers(np.arange(2), 2, np.array([0.6, 0.8]), np.eye(2))).tolist()
    [False, True]
    """

    def __init__(self, thresholds: Policy | ArrayLike, *, measure: Measure = "largest") -> None:
        if isinstance(thresholds, Policy):
            thresholds.check_fitted()
            self.thresholds, self.measure = thresholds.thresholds_, thresholds.measure
        else:
            self.thresholds, self.measure = check_thresholds(thresholds), measure
        self.exit_count = len(self.thresholds)

    def leaves(self, asked: Answers) -> _Mask:
        # So does what is not a number: nothing is to be gained.
        leaves: _Mask = ~(asked.confidences < self.thresholds[asked.exit - 1])
        return leaves


class HardBudget(SpendingRule):
    """The total for a group of images is never exceeded, and every image gets an answer.

    What the first exit costs is set aside for each image to come. The rest is given to those that the policy sends
    on, the least sure first; when it is spent, images leave where they are.

    - policy: whose thresholds and budget (per image, on average) are used
    - images: how many will come; without it, only what the images so far have brought may be spent
    - group: images in a group, which share a budget: the paper's M; by default all are one group
    - clock: where the budget is time, what time it is, in seconds, from now on; running late comes out of what is left
    """

    def __init__(
        self,
        policy: Policy,
        *,
        images: int | None = None,
        group: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if clock is not None and group is not None:
            raise ValueError("a hard budget of time is for all images together: give no group with it")
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a Policy, got {policy!r}")
        policy.check_fitted()
        self.thresholds, self.costs = policy.thresholds_, policy.costs_
        self.measure, self.exit_count = policy.measure, len(self.costs)
        # An image's budget past the first exit. What is more than the last exit costs is left over for delays.
        self.allowance = min(policy.budget_, 1e9 * float(self.costs[-1])) - float(self.costs[0])
        self.images = images if images is None else check_whole("images", images, at_least=0)
        self.group = group if group is None else check_whole("group", group)
        self.clock = clock
        self._arrived = 0
        self._started = 0.0 if clock is None else clock()  # not when images arrive: to read the first takes time, too
        self._done = 0.0  # what the stages that have run so far should have taken
        self._purses: dict[int, float] = {}  # what a group may still spend past the first exit

    def arrive(self, images: NDArray[np.integer]) -> None:
        self._arrived += len(images)
        if self.images is not None and self._arrived > self.images:
            raise ValueError(f"a hard budget was set for {self.images} images, and more have come")
        groups, counts = np.unique(self._group_of(images), return_counts=True)
        for group, arrived in zip(groups.tolist(), counts.tolist(), strict=True):
            if self.images is None:
                self._purses[group] = self._purses.get(group, 0.0) + arrived * self.allowance
            elif group not in self._purses:
                self._purses[group] = self._size(group) * self.allowance

    def leaves(self, asked: Answers) -> _Mask:
        exit, confidence = asked.exit - 1, asked.confidences
        leaves: _Mask = ~(confidence < self.thresholds[exit])
        self._done += len(confidence) * float(self.costs[exit] - (self.costs[exit - 1] if exit else 0))
        if exit == len(self.costs) - 1 or leaves.all():
            return leaves
        price = float(self.costs[exit + 1] - self.costs[exit])
        late = self._late()
        groups = self._group_of(asked.images)
        wanting = np.flatnonzero(~leaves)
        wanting = wanting[np.argsort(confidence[wanting], kind="stable")]
        for group in np.unique(groups[wanting]).tolist():
            members = wanting[groups[wanting] == group]
            affordable = min(max(int((self._purses[group] - late) // price), 0), len(members))
            self._purses[group] -= affordable * price
            leaves[members[affordable:]] = True
        return leaves

    def resume(self, rows: Sequence[int]) -> None:
        self._done = float(np.diff(self.costs, prepend=0) @ rows)
        self._purses = {0: rows[0] * (self.allowance + float(self.costs[0])) - self._done}

    def _late(self) -> float:
        """Seconds behind the plan."""
        return 0.0 if self.clock is None else max(self.clock() - self._started - self._done, 0.0)

    def _group_of(self, images: NDArray[np.integer]) -> NDArray[np.int64]:
        numbers = np.asarray(images, dtype=np.int64)
        return np.zeros_like(numbers) if self.group is None else numbers // self.group

    def _size(self, group: int) -> int:
        assert self.images is not None
        return self.images if self.group is None else min(self.group, self.images - group * self.group)


class SteadyBudget(SpendingRule):
    """The average budget is held while the images drift: they get harder, noisier, or easier than the held-out ones.

    An account runs along: what was spent, less the budget of every image that came. Thresholds are those of the budget
    that would balance the account over the next images, in proportion to how much more (or less) than expected was
    spent of late. At the account's limit nobody goes on who cannot be paid for, so inputs made to never be
    sure cannot overspend by more than that; at the opposite limit the next images all go on, once they can be paid for.

    - family: the policies to choose from
    - budget: per image, on average
    - limit: how far the account may be off balance, in images' budgets
    """

    at_a_time = 32

    HORIZON = 64  # images over which the account is to be balanced
    MEMORY = 256  # images over which expected and actual spending are compared

    def __init__(self, family: PolicyFamily, budget: float, *, limit: float = 12.0) -> None:
        if not isinstance(family, PolicyFamily):
            raise TypeError(f"family must be a PolicyFamily, got {family!r}")
        check_number("limit", limit, low=1)
        self.costs = family.held_out.costs
        self.measure, self.exit_count = family.measure, len(self.costs)
        self.budget = min(check_budget(budget, self.costs), float(self.costs[-1]))
        self.limit = limit * self.budget
        self._thresholds, self._expected = family.ladder
        self._debt = 0.0
        # Of late, past the first exit: what was expected to be spent, and what was. At first the two agree.
        self._foreseen = self._spent = self.MEMORY * (self.budget - float(self.costs[0]))
        self._rung = 0

    def arrive(self, images: NDArray[np.integer]) -> None:
        first, count = float(self.costs[0]), len(images)
        self._rung = self._choose()
        faded = float(np.exp(-count / self.MEMORY))
        self._foreseen = faded * self._foreseen + count * (float(self._expected[self._rung]) - first)
        self._spent = faded * self._spent
        self._debt += count * (first - self.budget)

    def leaves(self, asked: Answers) -> _Mask:
        exit, confidence = asked.exit - 1, asked.confidences
        if exit == len(self.costs) - 1:
            return np.ones(len(confidence), dtype=bool)
        price = float(self.costs[exit + 1] - self.costs[exit])
        wanting = np.flatnonzero(confidence < self._thresholds[self._rung, exit])
        affordable = min(max(int((self.limit - self._debt) // price), 0), len(wanting))
        going = wanting[np.argsort(confidence[wanting], kind="stable")[:affordable]]
        self._debt += affordable * price
        self._spent += affordable * price
        leaves = np.ones(len(confidence), dtype=bool)
        leaves[going] = False
        return leaves

    def resume(self, rows: Sequence[int]) -> None:
        self._debt = float(np.diff(self.costs, prepend=0) @ rows) - rows[0] * self.budget

    def _choose(self) -> int:
        """The policy for the images to come, from what became of those before."""
        first, last = float(self.costs[0]), float(self.costs[-1])
        drift = np.clip(self._spent / self._foreseen, 0.05, 20.0) if self._foreseen > 0 else 1.0
        wanted = self.budget - self._debt / self.HORIZON
        target = first + (wanted - first) / drift if self._debt > -self.limit else last
        return max(int(np.searchsorted(self._expected, target, side="right")) - 1, 0)
