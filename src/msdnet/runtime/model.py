"""A model to classify with: what people hold in their hands."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from msdnet.amounts import Amount, counted, four_digits, in_millions, parse_budget, parse_seconds
from msdnet.bundle import HELD_OUT, Bundle
from msdnet.checks import check_choice, check_number, check_whole
from msdnet.pixels import Unreadable
from msdnet.policy import (
    Answers,
    FixedThresholds,
    HardBudget,
    Measure,
    Method,
    Policy,
    PolicyFamily,
    SpendingRule,
    SteadyBudget,
    Unit,
)
from msdnet.policy.outcomes import check_costs
from msdnet.runtime.anytime import Deadline, Margin, Running, Step, steps
from msdnet.runtime.batching import answers, every_exit
from msdnet.runtime.engine import Engine
from msdnet.runtime.forks import call_after_fork
from msdnet.runtime.images import ImageLike, Images, batches, count_of, pixels_of
from msdnet.runtime.profile import Profile, StageTimes, profile
from msdnet.runtime.result import Collected, One, Result
from msdnet.runtime.shared import SharedBudget, Stopwatch
from msdnet.runtime.tensors import read_tensors

__all__ = ["Model"]

FIRST_LOOK = 0.1  # seconds for which stages are measured when nobody has asked for a profile
FAMILIES = 16  # of policies that are kept: costs may be other ones in every call, and each has the held-out images anew


class Model:
    """A bundle on an engine.

    - classify: many images within a budget; shared_budget: in several calls; stream: images that keep coming
    - every_exit: what all exits say of many images
    - anytime, answer, start: one image, better and better until time is up
    - policy, profile: the thresholds for a budget, and the time of each stage on this machine
    """

    def __init__(self, bundle: Bundle, engine: Engine) -> None:
        self.bundle = bundle
        self.manifest = bundle.manifest
        self.engine = engine
        self._held_out = None if bundle.manifest.held_out is None else read_tensors(bundle, HELD_OUT)
        self._families: dict[tuple[Any, ...], PolicyFamily] = {}  # the one that was used last is the last
        self._profile = Profile(())
        self._margin = Margin()
        self._make_locks()
        call_after_fork(self._make_locks)

    def _make_locks(self) -> None:
        self._keeping = threading.Lock()  # one thread at a time puts families there, and forgets others
        self._measuring = threading.RLock()  # one thread measures at a time, or it would measure the others

    @property
    def classes(self) -> tuple[str, ...]:
        return self.manifest.classes

    @property
    def costs(self) -> tuple[int, ...]:
        """Multiply-adds to reach each exit."""
        return self.engine.costs

    @property
    def whole_costs(self) -> tuple[int, ...]:
        """The same if all layers up to an exit are computed, as published figures count."""
        return self.manifest.whole_costs

    def held_out(self, what: Measure | Literal["correct"]) -> NDArray[Any]:
        """What the exits made of the held-out images: (images, exits), how sure they were, or whether right."""
        if self._held_out is None:
            raise ValueError(
                f"{self.manifest.name} has no held-out confidences, from which a budget's thresholds come; "
                "export it again with held-out images, or give a policy"
            )
        check_choice("what", what, (*get_args(Measure), "correct"))
        found = self._held_out[what].view()
        found.flags.writeable = False  # policies are made of it: whoever wants to change something has a copy
        return found

    # Many images within a budget

    def classify(
        self,
        images: Images,
        *,
        budget: Amount | None = None,
        seconds: Amount | None = None,
        policy: Policy | None = None,
        rule: SpendingRule | None = None,
        method: Method = "accuracy",
        hard: bool = False,
        group: int | None = None,
        steady: bool = False,
        batch: int | None = None,
        probabilities: bool = False,
        watch: Callable[[Answers], None] | None = None,
        unreadable: Unreadable = "fatal",
    ) -> Result:
        """Classify images, spending no more on each than it takes.

        - images: arrays (N, H, W, C), pictures, paths, open files, what a file holds (bytes), or any iterable of these,
          even larger than memory
        - budget: average multiply-adds per image (`20e6`, `"20M"`, `"30%"` of the last exit's); seconds: average time
          per image (`0.003`, `"3ms"`), by this machine's profile; policy: one that was fitted before; rule: thresholds
          (`FixedThresholds`), or a rule, of your own. Without them, every image goes to the last exit
        - method: how the thresholds of a budget are found, `"accuracy"` or `"paper"`
        - hard: the total is never exceeded, whatever the images; group: in each so many images (the paper's M)
        - steady: the average is held while the images drift from what the model was fitted to
        - batch: images that are computed together; by default what suits the engine. A steady budget takes at most 32
        - probabilities: keep those of all classes, not only the likeliest
        - watch: called whenever images leave, with the images and their exit (from 1, as in the result)
        - unreadable: a file or picture that cannot be read ends it with an error that says which (`fatal`), or gets no
          label, and says why (`skip`): `result.errors`, and `error` of each
        """
        limits = budget, seconds, policy, group, hard or None, steady or None
        if rule is not None and any(other is not None for other in limits):
            raise ValueError(
                "a rule decides alone who leaves: give no budget, seconds, policy, hard, group or steady with it"
            )
        # Of images that may turn out to be unreadable, nobody knows how many will share a hard budget.
        count = count_of(images) if unreadable == "fatal" else None
        shared = self._shared(
            budget,
            seconds,
            policy,
            rule,
            method=method,
            batch=batch,
            hard=hard,
            group=group,
            steady=steady,
            count=count,
        )
        return shared.classify(images, probabilities=probabilities, watch=watch, unreadable=unreadable)

    def shared_budget(
        self,
        *,
        budget: Amount | None = None,
        seconds: Amount | None = None,
        policy: Policy | None = None,
        method: Method = "accuracy",
        hard: bool = False,
        steady: bool = False,
        batch: int | None = None,
    ) -> SharedBudget:
        """One budget for images that come in several calls, `shared.classify(images)`; arguments as for `classify`.

        A hard budget holds for all of them together: of each, what it does not need is there for those that come after
        it. A steady one goes on from call to call.
        """
        return self._shared(budget, seconds, policy, method=method, hard=hard, steady=steady, batch=batch)

    def _shared(
        self,
        budget: Amount | None,
        seconds: Amount | None,
        policy: Policy | None,
        rule: SpendingRule | None = None,
        *,
        method: Method,
        hard: bool,
        steady: bool,
        batch: int | None,
        count: int | None = None,
        group: int | None = None,
    ) -> SharedBudget:
        if (hard or steady) and budget is None and seconds is None and policy is None:
            raise ValueError("hard and steady say how a budget is kept: give budget, seconds or policy with them")
        rows = self._rows(batch, steady=steady)
        chosen = self._choose(budget, seconds, policy, rows, method)
        clock = Stopwatch()
        if rule is None:
            rule = self._rule(chosen, count, hard=hard, group=group, steady=steady, clock=clock)
        unit: Unit = "multiply-adds" if chosen is None else chosen.unit_
        asked = None if chosen is None else self._comparable_budget(chosen)
        return SharedBudget(self.engine, self.classes, rule, batch=rows, clock=clock, budget=asked, unit=unit)

    def _comparable_budget(self, policy: Policy) -> float | None:
        """Multiply-adds of whole layers are not to be compared with what is spent, and nothing is with no limit."""
        comparable = policy.unit_ == "seconds" or policy.costs_.tolist() == list(self.costs)
        return policy.budget_ if comparable and math.isfinite(policy.budget_) else None

    def stream(
        self,
        images: Images,
        *,
        budget: Amount | None = None,
        seconds: Amount | None = None,
        policy: Policy | None = None,
        method: Method = "accuracy",
        batch: int = 1,
        unreadable: Unreadable = "fatal",
    ) -> Iterator[One]:
        """Answer images as they come, in their order, and hold the average budget while they drift. May go on for ever.

        - batch: images that are awaited and computed together, at most 32
        - unreadable: an image that cannot be read ends it (`fatal`), or is answered by why it cannot (`skip`): `error`
        """
        check_choice("unreadable", unreadable, get_args(Unreadable))
        rows = self._rows(batch, steady=True)
        chosen = self._choose(budget, seconds, policy, rows, method)
        rule = self._rule(chosen, None, steady=chosen is not None)  # or else there is nothing to hold
        unread: dict[int, str] = {}
        given = batches(images, self.engine.images, rows, None if unreadable == "fatal" else unread)
        return self._stream(given, rows, rule, unread)

    def _stream(
        self, given: Iterator[NDArray[Any]], rows: int, rule: SpendingRule, unread: dict[int, str]
    ) -> Iterator[One]:
        """Batch by batch; `unread` has those of its images that have no pixels, by their numbers among all."""
        first = 0
        for pixels in given:
            collected = Collected(self.costs, self.classes)
            errors = {number - first: unread.pop(number) for number in list(unread)}
            first += len(pixels) + len(errors)
            for answered in answers(self.engine, [pixels], rule, batch=rows, unread=errors):
                collected.add(answered)
            collected.add_unread(errors)
            yield from collected.result()

    def _rows(self, batch: int | None, *, steady: bool) -> int:
        """How many images are computed together."""
        most = SteadyBudget.at_a_time
        if batch is None:
            return min(self.engine.best_batch, most) if steady else self.engine.best_batch
        rows = check_whole("batch", batch)
        if steady and rows > most:
            raise ValueError(f"batch must be at most {most} with a steady budget (and in a stream), got {rows}")
        return rows

    def _choose(
        self, budget: Amount | None, seconds: Amount | None, policy: Policy | None, rows: int, method: Method
    ) -> Policy | None:
        """The policy that was given, or that keeps a budget; none where everyone goes to the last exit."""
        if sum(given is not None for given in (budget, seconds, policy)) > 1:
            raise ValueError("give one of budget, seconds and policy, not several")
        if method != "accuracy" and budget is None and seconds is None:
            raise ValueError(
                "method is how the thresholds of a budget are found: it goes with budget or seconds, not with a policy "
                "or rule, which has its own"
            )
        if policy is not None:
            if not isinstance(policy, Policy):
                raise TypeError(f"policy must be a Policy (Policy.load reads a file), got {policy!r}")
            policy.check_for(self.costs, self.bundle.fingerprint)
            return policy
        if seconds is not None:
            return self.policy(seconds=seconds, method=method, batch=rows)
        return None if budget is None else self.policy(budget, method=method)

    def _rule(
        self,
        policy: Policy | None,
        count: int | None,
        *,
        hard: bool = False,
        group: int | None = None,
        steady: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> SpendingRule:
        if hard and steady:
            raise ValueError("a budget is hard or steady, not both: a hard one holds whatever the images")
        if group is not None and not hard:
            raise ValueError("group belongs to hard budgets: which images share one")
        if policy is None:
            return FixedThresholds([*[np.inf] * (len(self.costs) - 1), -np.inf])  # all go to the last exit
        if hard:
            return HardBudget(policy, images=count, group=group, clock=clock if policy.unit_ == "seconds" else None)
        if steady:
            family = self._family(policy.method, policy.measure, policy.costs_.tolist(), policy.unit_)
            return SteadyBudget(family, policy.budget_)
        return FixedThresholds(policy)

    # Many images, without leaving early

    def every_exit(self, images: Images, *, logits: bool = False, batch: int | None = None) -> NDArray[np.floating]:
        """What all exits say of each image, to try out rules of your own on: probabilities (N, exits, classes).

        - images: as for `classify`; no more than a batch of them is in memory, beside what comes out
        - logits: as they come out of the network, not divided by temperatures, instead of probabilities
        - batch: images that are computed together; by default what suits the engine
        """
        given = batches(images, self.engine.images, self._rows(batch, steady=False))
        nothing = np.empty((0, len(self.costs), len(self.classes)), np.float32)
        return np.concatenate([nothing, *every_exit(self.engine, given, logits=logits)])

    # Budgets

    def policy(
        self,
        budget: Amount | None = None,
        *,
        seconds: Amount | None = None,
        method: Method = "accuracy",
        measure: Measure = "largest",
        batch: int | None = None,
        costs: Sequence[float] | None = None,
    ) -> Policy:
        """The policy for a budget of multiply-adds per image, or of seconds per image in batches of some size.

        - batch: for seconds, the images that will be computed together; by default what suits the engine
        - costs: count the budget by these, one for each exit, instead of the multiply-adds that are computed
        """
        if (budget is None) == (seconds is None):
            raise ValueError("give a budget in multiply-adds or in seconds, one of the two")
        if budget is not None:
            if batch is not None:
                raise ValueError("batch belongs to seconds, not to a budget: multiply-adds are the same in any batch")
            costs = self.costs if costs is None else check_costs(costs).tolist()
            amount = parse_budget(budget, costs[0], costs[-1]) if isinstance(budget, str) else budget
            return self._family(method, measure, costs).policy(amount)
        if costs is not None:
            raise ValueError("costs belong to a budget, not to seconds")
        costs = self._times(self.engine.best_batch if batch is None else check_whole("batch", batch)).costs
        given = parse_seconds(seconds) if isinstance(seconds, str) else check_number("seconds", seconds, 0, above=True)
        if given < costs[0]:
            raise ValueError(
                f"the time for an image must be at least {four_digits(1e3 * costs[0])} ms, which the first exit takes "
                f"here, got {four_digits(1e3 * given)} ms"
            )
        return self._family(method, measure, costs, "seconds").policy(given)

    def profile(self, batch_sizes: Sequence[int] | None = None, *, seconds: float = 1.0) -> Profile:
        """Measure the stages on this machine; budgets in time and deadlines then go by it.

        - batch_sizes: by default one image, and the batch that suits the engine
        - seconds: how long to measure each size
        """
        check_number("seconds", seconds, low=0, above=True)
        self._measure((1, self.engine.best_batch) if batch_sizes is None else batch_sizes, seconds)
        return self._profile

    def _measure(self, sizes: Sequence[int], seconds: float) -> None:
        """Measure anew; other sizes keep their times."""
        with self._measuring:
            measured = profile(self.engine, sizes, seconds=seconds).batches
            renewed = {times.rows for times in measured}
            others = [times for times in self._profile.batches if times.rows not in renewed]
            self._profile = Profile(tuple(sorted((*others, *measured), key=lambda times: times.rows)))

    def _times(self, rows: int) -> StageTimes:
        """Of a batch of so many rows; measured now if they were not."""
        with self._measuring:
            if rows not in (times.rows for times in self._profile.batches):
                self._measure([rows], FIRST_LOOK)
            return self._profile.at(rows)

    def _family(
        self, method: Method, measure: Measure, costs: Sequence[float], unit: Unit = "multiply-adds"
    ) -> PolicyFamily:
        Policy(method, measure)  # refuses what it does not know
        key = (method, measure, tuple(costs), unit)
        family = self._families.get(key)
        if family is None:
            sure, right, model = self.held_out(measure), self.held_out("correct"), self.bundle.fingerprint
            family = PolicyFamily(sure, right, costs, method=method, measure=measure, model=model, unit=unit)
        with self._keeping:
            self._families.pop(key, None)
            self._families[key] = family
            while len(self._families) > FAMILIES:
                del self._families[next(iter(self._families))]
        return family

    # One image, until time is up

    def anytime(
        self, image: ImageLike, *, deadline_ms: Amount | None = None, measure: Measure = "largest"
    ) -> Iterator[Step]:
        """The answers of the exits, each as soon as it is there.

        - deadline_ms: from now, a number, or text with a unit (`"5ms"`); reading a file is part of it, as of the
          `seconds` of a step. The next stage starts only if, by this machine's profile, it ends in time, and the
          first always does. Without a profile of single images, stages are measured first, for a tenth of a second:
          call `profile()` beforehand where that matters
        """
        deadline = None
        if deadline_ms is None:
            start = time.perf_counter()
        else:
            seconds, times = _seconds(deadline_ms), self._times(1).careful
            start = time.perf_counter()  # after the profile, which may have been measured just now
            deadline = Deadline(start + seconds, times, self._margin.factor)
        pixels = pixels_of(image, self.engine.images)
        return steps(self.engine, pixels, self.classes, measure, deadline, start=start)

    def answer(self, image: ImageLike, *, deadline_ms: Amount, measure: Measure = "largest") -> Step:
        """The best answer that a deadline allows; there always is one.

        The time to read a file counts: where that takes all, or the deadline is 0, the first exit answers.
        """
        seconds = _seconds(deadline_ms)
        self._times(1)  # which are measured if they are not known yet: not part of the image's time
        start = time.perf_counter()
        *_, last = self.anytime(image, deadline_ms=deadline_ms, measure=measure)
        late = time.perf_counter() - start > 1.1 * seconds  # not just so
        if last.exit > 1 or not late:  # nobody can begin fewer stages than one: being late with it tells nothing
            self._margin.note(late=late)
        return last

    def start(self, image: ImageLike, *, measure: Measure = "largest") -> Running:
        """Classify in the background: the newest answer can be had at any moment."""
        start = time.perf_counter()
        pixels = np.array(pixels_of(image, self.engine.images))  # a copy: the caller may use the memory again
        return Running(steps(self.engine, pixels, self.classes, measure, start=start))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by where its bundle is, and loaded from there: for other processes of this machine."""
        return _reloaded, (self.bundle.folder, type(self.engine), self.engine.options)

    def __repr__(self) -> str:
        side, (first, *more) = self.manifest.images.side, self.costs
        costs = " to ".join(map(in_millions, (first, *more[-1:])))
        return (
            f"<msdnet.Model {self.manifest.name!r}: {len(self.classes)} classes, {side} x {side} pixels, "
            f"{counted(len(self.costs), 'exit')} of {costs} M multiply-adds, on {self.engine}>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: cost and accuracy of each exit."""
        known = {images: found.accuracy for images, found in self.manifest.measured.items()}
        head = ["exit", "multiply-adds", "of full cost", *(f"accuracy in %, {name}" for name in known)]
        rows = [
            [str(exit + 1), f"{cost / 1e6:,.2f} M", f"{cost / self.costs[-1]:.0%}"]
            + [f"{100 * accuracy[exit]:.1f}" for accuracy in known.values()]
            for exit, cost in enumerate(self.costs)
        ]
        lines = [f"<th>{'</th><th>'.join(head)}</th>", *(f"<td>{'</td><td>'.join(row)}</td>" for row in rows)]
        side = self.manifest.images.side
        about = f"{len(self.classes)} classes, {side} x {side} pixels, on {self.engine}"
        return (
            f"<p><b>{escape(self.manifest.name)}</b>: {escape(about)}</p>"
            f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>"
        )


def _reloaded(folder: Path, engine: Callable[..., Engine], options: dict[str, Any]) -> Model:
    bundle = Bundle(folder)
    bundle.check()
    return Model(bundle, engine(bundle, **options))


def _seconds(deadline_ms: Amount) -> float:
    """Of a deadline in milliseconds, or with its unit; where no time is left, the first exit still answers."""
    if isinstance(deadline_ms, str):
        return parse_seconds(deadline_ms, may_be_0=True)
    return check_number("deadline_ms", deadline_ms, low=0) / 1e3
