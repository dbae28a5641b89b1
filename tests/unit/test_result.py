"""What callers are handed: results and the images in them, what they watch, and refusals at once."""

import importlib
import io
import math
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import msdnet
from msdnet.amounts import in_millions
from msdnet.bundle import Bundle
from msdnet.files import Labelled
from msdnet.machine import cores
from msdnet.policy import FixedThresholds, Policy, SpendingRule
from msdnet.runtime import Answers, Model, One, State, answers
from msdnet.runtime.engine import Launched
from tests.unit.test_runtime import IMAGES, Counting, Later, middle, splitting, sure_policy


@pytest.fixture(scope="module")
def model(tiny: Bundle) -> Model:
    return msdnet.load(tiny.folder, threads=1)


def test_who_watches_counts_exits_like_the_result(model: Model) -> None:
    seen: NDArray[np.int64] = np.zeros(len(IMAGES), dtype=np.int64)

    def watch(answered: Answers) -> None:
        seen[answered.images] = answered.exit

    result = model.classify(IMAGES, policy=splitting(model), batch=8, watch=watch)
    assert min(result.exit_counts) > 0
    np.testing.assert_array_equal(seen, result.exits)


def test_a_result_tells_its_budget_beside_what_was_spent(tiny: Bundle) -> None:
    model = msdnet.load(tiny.folder, threads=1)
    asked = middle(model)
    result = model.classify(IMAGES, budget=asked)
    assert result.budget == asked
    assert f"budget {in_millions(asked)} M" in repr(result)
    unlimited, timed = model.classify(IMAGES), model.classify(IMAGES, seconds="1s")
    assert (unlimited.budget, unlimited.time_budget) == (None, None)
    assert "budget" not in repr(unlimited)
    assert (timed.budget, timed.time_budget) == (None, 1.0)
    assert "(budget 1 s each)" in repr(timed)


SOME_BAD: list[Any] = ["nowhere.png", IMAGES[0], b"no image", IMAGES[1], IMAGES[2], b""]


@pytest.mark.parametrize("batch", [1, 2, 4, 32])
def test_images_that_cannot_be_read_are_answered_by_why(model: Model, batch: int) -> None:
    policy, good = splitting(model), [1, 3, 4]
    seen: dict[int, int] = {}
    result = model.classify(
        SOME_BAD,
        policy=policy,
        batch=batch,
        unreadable="skip",
        watch=lambda answered: seen.update(dict.fromkeys(answered.images.tolist(), answered.exit)),
    )
    alone = model.classify(IMAGES[:3], policy=policy, batch=1)
    assert [result[k][:5] for k in good] == [one[:5] for one in alone]
    assert seen == {k: result[k].exit for k in good}
    assert list(result.errors) == [0, 2, 5]
    assert [one.error is None for one in result] == [False, True, False, True, True, False]
    assert result[0].error == "nowhere.png: cannot be read (No such file or directory)"
    assert result[2].error == "file: cannot be read (not an image)"
    assert result[-1] == One(-1, "", 0.0, 0, 0, result[-1].seconds, result.errors[5])
    assert result.labels.tolist() == [-1, result[1].label, -1, result[3].label, result[4].label, -1]
    assert result.names[0] == ""
    assert (result.cost, sum(result.exit_counts)) == (alone.cost, 3)
    assert "; 3 could not be read>" in repr(result)
    streamed = list(model.stream(SOME_BAD, batch=batch, unreadable="skip"))
    assert [one.error for one in streamed] == [one.error for one in result]
    assert [streamed[k].label for k in good] == model.classify(IMAGES[:3]).labels.tolist()


def test_of_a_stream_each_is_answered_before_the_next_is_asked_for(model: Model) -> None:
    asked = []

    def camera() -> Iterator[Any]:
        for number, image in enumerate(SOME_BAD):
            asked.append(number)
            yield image

    for number, _ in enumerate(model.stream(camera(), unreadable="skip")):
        assert asked[-1] == number


def test_many_images_may_be_unreadable(model: Model) -> None:
    rng = np.random.default_rng(0)
    bad = set(rng.choice(3000, 1500, replace=False).tolist())
    result = model.classify(
        (b"" if k in bad else IMAGES[k % 50] for k in range(3000)), policy=splitting(model), unreadable="skip"
    )
    assert set(result.errors) == bad
    read = [k for k in range(3000) if k not in bad]
    expected = model.classify(IMAGES, policy=splitting(model))
    np.testing.assert_array_equal(result.labels[read], expected.labels[[k % 50 for k in read]])
    only_bad = model.classify([b""] * 3, budget=middle(model), unreadable="skip", probabilities=True)
    assert (len(only_bad), only_bad.cost, only_bad.exit_counts) == (3, 0.0, (0, 0, 0))


def test_a_hard_budget_holds_for_those_that_were_read(model: Model) -> None:
    """Whoever counts what is given would spend the budgets of those that never come on the others."""
    eager = splitting(model)
    eager.thresholds_[:-1] = 2.0  # never sure enough: all would go on to the last exit
    for bad in ([b""] * 40 + list(IMAGES), list(IMAGES) + [b""] * 40):
        for group in (None, 10):
            result = model.classify(bad, policy=eager, hard=True, group=group, unreadable="skip")
            assert result.budget is not None
            assert result.cost <= result.budget


def test_rules_and_watchers_number_images_alike(model: Model) -> None:
    seen: dict[str, list[int]] = {"rule": [], "watch": []}

    class Noting(SpendingRule):
        def leaves(self, asked: Answers) -> NDArray[np.bool_]:
            seen["rule"] += asked.images.tolist()
            return np.ones(len(asked.images), bool)

    model.classify(
        SOME_BAD,
        rule=Noting(),
        batch=2,
        unreadable="skip",
        watch=lambda answered: seen["watch"].extend(answered.images.tolist()),
    )
    assert seen == {"rule": [1, 3, 4], "watch": [1, 3, 4]}


def test_a_batch_in_a_tensor_is_refused_like_one_in_an_array(model: Model) -> None:
    bad = IMAGES[:4] / np.float32(255)
    bad[3] = np.nan
    for several in ([bad], [torch.from_numpy(bad)], list(bad)):
        with pytest.raises(ValueError, match="image 3: pixels must be"):
            model.classify(several, unreadable="skip")
    with pytest.raises(TypeError, match="image 1: an image must be an array"):
        model.classify([IMAGES[0], None], unreadable="skip")  # type: ignore[list-item]


def test_measuring_stages_is_no_missed_deadline(tiny: Bundle) -> None:
    model = msdnet.load(tiny.folder, threads=1)
    model.answer(IMAGES[0], deadline_ms=50)
    assert model._margin.factor == 1.0


def test_without_an_end_nothing_is_left(model: Model) -> None:
    shared = model.shared_budget(budget=math.inf)
    shared.classify(IMAGES)
    assert shared.left is None
    assert "nan" not in repr(shared)


def test_what_is_unreadable_is_fatal_or_skipped(model: Model) -> None:
    for call in (model.classify, model.stream):
        with pytest.raises(ValueError, match="unreadable must be one of fatal, skip; got 'ignore'"):
            call(IMAGES, unreadable="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="image 0: nowhere"):
        model.classify(SOME_BAD)


def test_a_file_may_come_as_its_bytes(model: Model) -> None:
    file = io.BytesIO()
    Image.fromarray(IMAGES[0]).save(file, "PNG")
    expected = model.classify(file)[0][:5]
    assert model.classify(file.getvalue())[0][:5] == model.classify([file.getvalue()])[0][:5] == expected
    assert next(model.anytime(file.getvalue())).label in range(3)
    for content in (bytearray(file.getvalue()), memoryview(file.getvalue())):
        assert model.classify(content)[0][:5] == expected


def test_a_picture_that_does_not_say_what_is_white_is_refused(model: Model) -> None:
    """Not taken for one of 16 bits, and so for a black one; a file's format says no more."""
    file = io.BytesIO()
    grey = IMAGES[0][..., 0]
    Image.fromarray(grey.astype(np.float32) / 255).save(file, "TIFF")
    for mode, picture in {"I": Image.fromarray(grey.astype(np.int32)), "F": Image.open(file)}.items():
        with pytest.raises(ValueError, match=f"in mode {mode} nothing says which number is white"):
            model.classify(picture)


@pytest.mark.parametrize("engine", [{"threads": 1}, {"engine": "torch", "device": "cpu"}])
def test_a_model_is_pickled_by_its_folder(
    tiny: Bundle, engine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny.folder.parent)
    model = msdnet.load(tiny.folder.name, **engine)
    sent = pickle.dumps(model)
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(sent)
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(again.classify(IMAGES).labels, model.classify(IMAGES).labels)


def test_a_shared_budget_tells_what_is_left(tiny: Bundle) -> None:
    model = msdnet.load(tiny.folder, threads=1)
    asked = middle(model)
    shared = model.shared_budget(budget=asked, hard=True)
    assert (shared.images, shared.spent, shared.left) == (0, 0, 0)
    results = [shared.classify(IMAGES[:20]), shared.classify(IMAGES[20:])]
    assert shared.images == 50
    assert shared.spent == sum(result.costs.sum() for result in results)
    assert shared.left == 50 * asked - shared.spent >= 0
    assert repr(shared).startswith("<msdnet.SharedBudget: 50 images, ")
    timed = model.shared_budget(seconds="1s")
    timed.classify(IMAGES)
    assert 0 < timed.spent == timed.seconds
    assert timed.left == 50 - timed.spent
    assert repr(timed).endswith(" of 50,000.0 ms spent>")
    assert model.shared_budget().left is None


def test_a_shared_budget_knows_of_what_calls_that_failed_have_computed(
    tiny: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = msdnet.load(tiny.folder, threads=1)
    shared, stages, computed = model.shared_budget(budget=middle(model), batch=8), np.diff([0, *model.costs]), [0]
    launch = model.engine.launch

    def counting(state: State) -> Launched:
        computed[0] += state.rows * int(stages[state.exits_done])
        return launch(state)

    monkeypatch.setattr(model.engine, "launch", counting)
    for _ in range(2):
        with pytest.raises(ValueError, match="image 40: file: cannot be read"):
            shared.classify([*IMAGES[:40], b"broken"])
    assert shared.spent == computed[0] > 0
    assert 0 < shared.images <= 80
    assert shared.left == shared.images * middle(model) - computed[0]


@pytest.mark.parametrize("fault", [1, 2, 3, 6, 9, "watch"])
@pytest.mark.parametrize("engine", [{"threads": 1}, {"engine": "torch", "device": "cpu"}])
def test_what_calls_that_failed_have_not_spent_later_ones_may(
    tiny: Bundle, engine: dict[str, Any], fault: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that are never sure spend a hard budget but for less than a step, whichever stage failed before."""
    model = msdnet.load(tiny.folder, **engine)
    budget = sum(model.costs[:2]) / 2  # with which half of the images go on
    policy = model.policy(budget)
    policy.thresholds_ = np.array([np.inf] * (len(model.costs) - 1) + [-np.inf])
    shared, launch, launched = model.shared_budget(policy=policy, hard=True, batch=8), model.engine.launch, [0]

    def failing(state: State) -> Launched:
        launched[0] += 1
        if launched[0] == fault:
            raise KeyboardInterrupt
        return launch(state)

    monkeypatch.setattr(model.engine, "launch", failing)
    with pytest.raises(KeyboardInterrupt) as caught:  # whose frames are there until the next call has ended
        shared.classify(IMAGES, watch=interrupted if fault == "watch" else None)
    assert shared.spent <= shared.images * budget
    shared.classify(IMAGES)
    assert shared.left is not None
    assert 0 <= shared.left < np.diff(model.costs).max()
    assert caught


def interrupted(_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("given", ["5ms", 5])
def test_a_deadline_may_have_a_unit(tiny: Bundle, given: str | int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, ends = msdnet.load(tiny.folder, threads=1), []
    monkeypatch.setattr(
        "msdnet.runtime.model.steps", lambda *given, **_: ends.append(given[4].end - time.perf_counter())
    )
    model.anytime(IMAGES[0], deadline_ms=given)
    assert 0 < ends[0] <= 0.005


def test_what_is_endless_is_refused_as_such(tiny: Bundle) -> None:
    model = msdnet.load(tiny.folder, threads=1)
    with pytest.raises(ValueError, match="deadline_ms must be finite and at least 0, got inf"):
        model.answer(IMAGES[0], deadline_ms=math.inf)
    with pytest.raises(ValueError, match="seconds must be finite and above 0, got inf"):
        model.classify(IMAGES, seconds=math.inf)
    with pytest.raises(ValueError, match="a time must be finite, got 'infms'"):
        model.classify(IMAGES, seconds="infms")


def test_no_more_threads_than_cores(tiny: Bundle) -> None:
    with pytest.raises(ValueError, match=f"threads must be at most {cores()}, the cores that this process may use"):
        msdnet.load(tiny.folder, threads=cores() + 1)


def test_the_demo_shows_who_left_where(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich can tell
    demo = importlib.import_module("msdnet.cli.demo")  # the module: in `msdnet.cli` the name is the command
    shown, bars = [], demo._bars

    def noted(name: str, left: list[int], total: int) -> Any:
        shown.append(list(left))
        return bars(name, left, total)

    monkeypatch.setattr(demo, "_bars", noted)
    images = Labelled("noise", IMAGES, np.zeros(len(IMAGES), dtype=np.int64), model.classes)
    demo._classified(model, images, None)
    assert shown[-1] == [0, 0, len(IMAGES)]


def test_a_slice_of_a_result_is_a_list(model: Model) -> None:
    result = model.classify(IMAGES, budget=middle(model))
    every = list(result)
    assert isinstance(result[0], One)
    for part in (slice(3), slice(-3, None), slice(None, None, -7), slice(40, 99), slice(9, 2)):
        assert result[part] == every[part]
    assert result[-1] == result[np.int64(49)] == every[49]
    for outside in (50, -51):
        with pytest.raises(IndexError):
            result[outside]
    for wrong in ("0", 1.5, np.ones(50, dtype=bool)):
        with pytest.raises(TypeError, match="integer"):
            result[wrong]  # type: ignore[index]


# Steady budgets take few images at a time


def test_a_batch_beyond_what_a_steady_budget_takes_is_refused(model: Model) -> None:
    many, budget = np.concatenate([IMAGES] * 2), middle(model)
    message = "batch must be at most 32 with a steady budget .* got 64"
    with pytest.raises(ValueError, match=message):
        model.classify(many, budget=budget, steady=True, batch=64)
    with pytest.raises(ValueError, match=message):
        model.stream(many, budget=budget, batch=64)
    assert len(model.classify(many, budget=budget, steady=True, batch=32)) == 100
    assert len(list(model.stream(many, budget=budget, batch=32))) == 100


class FewAtATime(FixedThresholds):
    """Notes how many images are under way whenever more arrive."""

    def __init__(self, policy: Policy, at_a_time: int) -> None:
        super().__init__(policy)
        self.at_a_time = at_a_time
        self.under_way = 0
        self.noted: list[int] = []

    def arrive(self, images: NDArray[np.integer]) -> None:
        self.under_way += len(images)
        self.noted.append(self.under_way)

    def leaves(self, asked: Answers) -> NDArray[np.bool_]:
        leaves = super().leaves(asked)
        self.under_way -= int(leaves.sum())
        return leaves


@pytest.mark.parametrize("engine", [Counting(), Later()], ids=["at once", "ahead"])
@pytest.mark.parametrize("most", [5, 32])
def test_a_rule_says_how_many_images_are_under_way(most: int, engine: Counting) -> None:
    """However many come together, and whatever batch there is room for."""
    rule = FewAtATime(sure_policy(4), most)
    given = [np.arange(80, dtype=np.uint8).reshape(-1, 1, 1, 1) % 4]
    found = list(answers(engine, given, rule, batch=64))
    assert sorted(np.concatenate([answered.images for answered in found])) == list(range(80))
    assert rule.noted == [most] * (80 // most) + ([80 % most] if 80 % most else [])


# What is wrong is told when it is asked for, not when it is read


def test_wrong_arguments_are_refused_before_anything_is_read(model: Model) -> None:
    wrong: Any = "bad"
    for ask in (model.anytime, model.start):
        with pytest.raises(ValueError, match="measure must be one of largest, margin, entropy; got 'bad'"):
            ask(IMAGES[0], measure=wrong)
    with pytest.raises(ValueError, match="deadline_ms must be at least 0"):
        model.anytime(IMAGES[0], deadline_ms=-1)
    with pytest.raises(TypeError, match="images must be arrays, pictures, paths"):
        model.stream(3, budget=middle(model))  # type: ignore[arg-type]
    rule = FixedThresholds(sure_policy(3))
    with pytest.raises(ValueError, match="measure must be one of"):
        answers(model.engine, [], FixedThresholds([0.9, 0.9, 0.9], measure=wrong), batch=8)
    with pytest.raises(ValueError, match="batch must be at least 1"):
        answers(model.engine, [], rule, batch=0)


def test_a_wrong_deadline_is_refused_before_stages_are_measured(tiny: Bundle) -> None:
    engine = Counting(exits=3)
    with pytest.raises(ValueError, match="deadline_ms must be at least 0"):
        Model(tiny, engine).anytime(np.zeros((1, 1, 1), np.uint8), deadline_ms=-1)
    assert engine.runs == [[], [], []]


def test_profiles_are_of_whole_numbers_of_images(model: Model) -> None:
    for size in (1.7, 8.0, "8"):
        with pytest.raises(TypeError, match=f"each of batch_sizes must be a whole number, got {size!r}"):
            model.profile([size], seconds=0.01)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="batch_sizes must be a list of whole numbers, got 8"):
        model.profile(8)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 'bogus'"):
        model.held_out("bogus")  # type: ignore[arg-type]
    again = [model.profile([2, np.int64(2), 3], seconds=0.01) for _ in range(2)][-1]  # type: ignore[list-item]
    assert [times.rows for times in again.batches] == [2, 3], "what is measured again replaces what was there"


def test_loading_leaves_torchs_random_numbers_alone(tiny: Bundle) -> None:
    before = torch.get_rng_state()
    msdnet.load(tiny.folder, engine="torch", device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
