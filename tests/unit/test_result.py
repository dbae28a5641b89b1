"""What callers are handed: results and the images in them, what they watch, and refusals at once."""

import importlib
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import msdnet
from msdnet.amounts import in_millions
from msdnet.bundle import Bundle
from msdnet.files import Labelled
from msdnet.policy import FixedThresholds, Policy
from msdnet.runtime import Answers, Model, One, answers
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
    for unlimited in (model.classify(IMAGES), model.classify(IMAGES, seconds="1s")):
        assert unlimited.budget is None
        assert "budget" not in repr(unlimited)


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

    def arrive(self, count: int) -> None:
        self.under_way += count
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
        with pytest.raises(TypeError, match=f"batch size must be a whole number, got {size!r}"):
            model.profile([size], seconds=0.01)  # type: ignore[list-item]
    again = [model.profile([2, np.int64(2), 3], seconds=0.01) for _ in range(2)][-1]  # type: ignore[list-item]
    assert [times.rows for times in again.batches] == [2, 3], "what is measured again replaces what was there"


def test_loading_leaves_torchs_random_numbers_alone(tiny: Bundle) -> None:
    before = torch.get_rng_state()
    msdnet.load(tiny.folder, engine="torch", device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
