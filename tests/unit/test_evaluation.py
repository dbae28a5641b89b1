"""Measuring a model: what is reported is what classifying brings, and bad input is refused."""

import dataclasses
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import msdnet
from msdnet.amounts import parse_budget, parse_budgets
from msdnet.bundle import Bundle
from msdnet.cli.inputs import open_images
from msdnet.data.folder import FolderData
from msdnet.evaluation import BudgetPoint, Evaluation, best_of, evaluate, trained_on
from msdnet.files import Labelled, Part, open_labelled
from msdnet.models import find_bundle, model_names
from msdnet.policy import METHODS, Method
from msdnet.samples import cifar10
from msdnet.training.record import describe_data
from tests.helpers import one_exit

CLASSES = ("red", "green", "blue")


@pytest.fixture(scope="module")
def squares() -> Labelled:
    random = np.random.default_rng(3)
    return Labelled(
        "squares", random.integers(0, 256, (90, 12, 12, 3), dtype=np.uint8), random.integers(0, 3, 90), CLASSES
    )


def test_exits_are_as_accurate_as_their_answers(tiny: Bundle, squares: Labelled) -> None:
    model = msdnet.load(tiny.folder)
    found = evaluate(model, squares, batch=16)
    for exit in range(3):
        state = model.engine.begin(squares.images)
        for _ in range(exit + 1):
            probabilities, state = model.engine.advance(state)
        expected = float((probabilities.argmax(axis=1) == squares.labels).mean())
        assert found.accuracy[exit] == pytest.approx(expected)
    assert found.images == 90
    assert float(found.curve().at(model.costs[-1])) == pytest.approx(found.accuracy[-1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("whole", [False, True])
def test_points_are_what_classifying_brings(tiny: Bundle, squares: Labelled, method: Method, whole: bool) -> None:
    model = msdnet.load(tiny.folder)
    costs = model.manifest.whole_costs if whole else model.costs
    budget = 0.5 * (costs[0] + costs[-1])
    point = evaluate(model, squares).at(budget, method=method, whole=whole)
    policy = model.policy(budget, method=method, costs=costs)
    result = model.classify(squares.images, policy=policy)
    assert point.accuracy == pytest.approx(float((result.labels == squares.labels).mean()))
    assert point.lazy_cost == pytest.approx(result.cost)
    assert point.cost == pytest.approx(float(np.array(costs)[result.exits - 1].mean()))
    assert point.left == result.exit_counts


def test_budgets_that_cannot_be_kept_are_left_out(tiny: Bundle, squares: Labelled) -> None:
    found = evaluate(msdnet.load(tiny.folder), squares)
    least = found.model.costs[0]
    assert {p.budget for p in found.points([least / 2, least, 2 * least])} == {least, 2 * least}
    assert found.points([least / 2]) == []
    assert json.loads(json.dumps(found.to_dict(found.points([least]))))["points"][0]["budget"] == least


def test_budgets_may_be_written_as_for_classifying(tiny: Bundle, squares: Labelled) -> None:
    found = evaluate(msdnet.load(tiny.folder), squares)
    assert found.points(["100%", "1k"]) == [found.at("100%", method=method) for method in METHODS]
    with pytest.raises(ValueError, match="a budget must be written like"):
        found.points(["much"])


def test_a_network_of_one_exit_has_points_too(squares: Labelled, tmp_path: Path) -> None:
    model = msdnet.load(one_exit(tmp_path / "one").folder)
    assert re.search(r"pixels, 1 exit of [\d.]+ M", repr(model))
    found = evaluate(model, squares)
    (cost,) = found.model.costs
    points = found.points(["100%", 2 * cost, cost / 2])
    assert [(p.budget, p.cost, p.left) for p in points] == [(cost, cost, (90,)), (2 * cost, cost, (90,))] * 2


def test_exits_chosen_by_any_rule_are_judged_alike(tiny: Bundle, squares: Labelled) -> None:
    model = msdnet.load(tiny.folder)
    found = evaluate(model, squares)
    budget = 0.5 * (model.costs[0] + model.costs[-1])
    point, same = found.at(budget, method="paper"), found.at_exits(found.exit_indices(budget, method="paper"))
    expected = (point.accuracy, point.cost, point.cost_error)
    assert (same.accuracy, same.cost, same.cost_error) == pytest.approx(expected)
    assert same.left == point.left
    assert min(point.left) > 0, "or else there is nothing to compare"
    last = found.at_exits([2] * 90)
    assert (last.accuracy, last.cost, last.cost_error) == (found.accuracy[-1], model.costs[-1], 0)
    assert (last.whole_cost, last.left) == (model.whole_costs[-1], (0, 0, 90))
    assert last.accuracy_error == pytest.approx(np.sqrt(last.accuracy * (1 - last.accuracy) / 90))
    mixed = found.at_exits(np.arange(90) % 2)
    assert mixed.whole_cost == pytest.approx(np.mean(model.whole_costs[:2]))
    assert mixed.whole_cost > mixed.cost
    wrong: list[Any] = [np.full(90, 3), np.full(90, -1), np.zeros(89, int), np.zeros(90)]
    for exits in wrong:
        with pytest.raises(ValueError, match="exit_indices must be whole numbers from 0 to 2 for 90 images, got"):
            found.at_exits(exits)


def test_what_the_exits_predict_is_kept(tiny: Bundle, squares: Labelled) -> None:
    model = msdnet.load(tiny.folder)
    said = model.every_exit(squares.images)
    found = evaluate(model, squares, measure="margin", batch=16)
    assert found.predicted is not None
    np.testing.assert_array_equal(found.predicted, said.argmax(axis=2))
    np.testing.assert_array_equal(found.correct, found.predicted == squares.labels[:, None])
    of_truth = said[np.arange(90)[:, None], np.arange(3), squares.labels[:, None]]
    assert found.nll == pytest.approx(-np.log(of_truth).mean(axis=0), rel=1e-4)
    held_out = Evaluation.of_held_out(model)
    assert (held_out.predicted, held_out.nll) == (None, None)
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["nll"], told["calibration_error"]) == (list(found.nll or ()), list(found.calibration_error or ()))


def test_calibration_is_of_the_largest_probability_in_fifteen_bins(tiny: Bundle, squares: Labelled) -> None:
    model = msdnet.load(tiny.folder)
    found = evaluate(model, squares, measure="entropy")
    sure = model.every_exit(squares.images).max(axis=2)
    assert found.calibration_error is not None
    for exit, error in enumerate(found.calibration_error):
        apart = 0.0
        for low in range(15):  # by its definition
            inside = (sure[:, exit] >= low / 15) & (sure[:, exit] < (low + 1) / 15)
            apart += abs((sure[inside, exit] - found.correct[inside, exit]).sum()) / 90
        assert error == pytest.approx(apart, abs=1e-5)
    assert found.calibration_error == pytest.approx(evaluate(model, squares).calibration_error)
    assert Evaluation.of_held_out(model, "margin").calibration_error == Evaluation.of_held_out(model).calibration_error


def test_refuses_other_classes_and_no_images(tiny: Bundle, squares: Labelled) -> None:
    model = msdnet.load(tiny.folder)
    with pytest.raises(ValueError, match=r"squares: 2 classes \(cat, dog, \.\.\.\) where the model knows 3"):
        evaluate(model, Labelled("squares", squares.images[:2], np.arange(2), ("cat", "dog")))
    for wrong, kind in (("photos/", "str"), ((squares.images, squares.labels), "tuple")):
        with pytest.raises(TypeError, match=rf"data must be Labelled, .*, got a {kind}$"):
            evaluate(model, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no images to evaluate on"):
        evaluate(model, squares[:0])


def test_images_that_cannot_be_read_are_left_out_if_that_is_asked_for(tiny: Bundle, tmp_path: Path) -> None:
    squares_in(tmp_path, *CLASSES, count=5)
    data = open_labelled(tmp_path, classes=CLASSES, trained_on=[])
    model = msdnet.load(tiny.folder)
    whole = evaluate(model, data)
    for row in (0, 7):
        Path(data.images[row]).write_bytes(b"")
    with pytest.raises(ValueError, match="cannot be read"):
        evaluate(model, data)
    with pytest.raises(ValueError, match="unreadable must be one of fatal, skip; got 'maybe'"):
        evaluate(model, data, unreadable="maybe")  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="unreadable image .*: cannot be read"):
        found = evaluate(model, data, unreadable="skip", batch=4)
    assert (found.images, found.unread, found.data) == (13, (0, 7), f"{data.name}; 2 could not be read")
    np.testing.assert_array_equal(found.correct, np.delete(whole.correct, (0, 7), axis=0))
    left = data.without(found.unread)
    assert left.images == [path for row, path in enumerate(data.images) if row not in (0, 7)]
    np.testing.assert_array_equal(left.labels, np.delete(data.labels, (0, 7)))
    for path in data.images:
        Path(path).write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="unreadable"),
        pytest.raises(ValueError, match="none of 15 images could be read"),
    ):
        evaluate(model, data, unreadable="skip")


def test_nothing_is_left_out_of_arrays(tiny: Bundle, squares: Labelled) -> None:
    model = msdnet.load(tiny.folder)
    found = evaluate(model, squares, unreadable="skip")
    assert found.accuracy == pytest.approx(evaluate(model, squares).accuracy)
    assert (found.unread, squares.without([3]).images.shape) == ((), (89, 12, 12, 3))


def test_the_best_is_chosen_on_held_out_images() -> None:
    point = BudgetPoint(
        model="a", method="paper", budget=1.0, accuracy=0.9, cost=1.0, cost_error=0.1, lazy_cost=1.0,
        held_out_accuracy=0.5, held_out_cost=1.0, left=(1,),
    )  # fmt: skip
    other = dataclasses.replace(point, model="b", accuracy=0.1, held_out_accuracy=0.6)
    cheaper = dataclasses.replace(other, model="c", held_out_cost=0.5)
    assert best_of([point, other, dataclasses.replace(point, budget=2.0), cheaper]) == [
        cheaper,
        dataclasses.replace(point, budget=2.0),
    ]


def test_the_samples_are_the_first_images_of_the_test_set() -> None:
    found = cifar10()
    assert found.images.shape == (1000, 32, 32, 3)
    assert found.images.dtype == np.uint8
    # The test set begins with a cat, two ships and an aeroplane.
    assert [found.classes[label] for label in found.labels[:4]] == ["cat", "ship", "ship", "airplane"]
    # Of the first 1,000 records of test_batch.bin: pixels as (1000, 32, 32, 3), labels as bytes.
    sums = [
        hashlib.sha256(values.tobytes()).hexdigest()[:16] for values in (found.images, found.labels.astype(np.uint8))
    ]
    assert sums == ["da362006b9967121", "636a087e604331a0"]


@pytest.mark.parametrize(
    ("text", "expected"), [("20M", 20e6), ("1.5G", 1.5e9), ("30%", 1.5e9), ("500k", 5e5), (" 7e6 ", 7e6)]
)
def test_budgets_as_people_write_them(text: str, expected: float) -> None:
    assert parse_budget(text, first=1e5, full=5e9) == pytest.approx(expected)
    assert parse_budgets(f"{text},{text}", first=1e5, full=5e9) == pytest.approx([expected])


@pytest.mark.parametrize("text", ["", "much", "-3M", "0", "nan", "inf", "20 MB", "%"])
def test_refuses_budgets(text: str) -> None:
    with pytest.raises(ValueError, match="a budget must be"):
        parse_budget(text, first=8e6, full=80e6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10%", "at least 18.2% (8.715M): the first exit takes 8,714,600 multiply-adds; 10% is 4.807M"),
        ("30", "at least 8.715M (18.2%): the first exit takes 8,714,600 multiply-adds; 30 has no unit: 30M or 30%?"),
        ("0.3", "at least 8.715M (18.2%): the first exit takes 8,714,600 multiply-adds; 0.3 has no unit: 30%?"),
        ("8.71M", "at least 8.715M (18.2%): the first exit takes 8,714,600 multiply-adds, got 8.71M"),
        ("120%", "a budget must be at most 100% (48.07M), which the last exit takes, got '120%'"),
        ("much", "a budget must be written like 20M, 1.5G or 30%, got 'much'"),
    ],
)
def test_what_is_too_low_or_too_high_is_told_in_the_unit_that_was_given(text: str, message: str) -> None:
    first, full = 8_714_600, 48_068_064
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_budget(text, first, full)
    for told in ("18.2%", "8.715M", "100%", "1G"):  # more multiply-adds than there are is no limit
        assert parse_budget(told, first, full) >= first
    assert all(parse_budget("100%", 1, full) == full for full in range(48_000_001, 48_001_000))


def test_a_model_is_found_by_name_or_folder(tiny: Bundle) -> None:
    assert find_bundle(tiny.folder).manifest == tiny.manifest
    with pytest.raises(FileNotFoundError, match="no folder and no model of the package is called 'cifar10-smal'"):
        find_bundle("cifar10-smal")
    with pytest.raises(FileNotFoundError, match="no bundle is there"):
        find_bundle(tiny.folder / "nowhere")
    for name in model_names():
        assert find_bundle(name).manifest.name == name


def test_other_folders_hide_no_model(tiny: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cifar10-small").mkdir()
    assert find_bundle("cifar10-small").manifest.name == "cifar10-small"
    with pytest.raises(FileNotFoundError, match="no bundle is there"):
        find_bundle("./cifar10-small")
    Path("mine").mkdir()
    with pytest.raises(FileNotFoundError, match="mine: no bundle is there"):
        find_bundle("mine")
    shutil.copytree(tiny.folder, "cifar10-small", dirs_exist_ok=True)
    assert find_bundle("cifar10-small").manifest.name == "tiny", "a bundle is what was meant"


def test_a_folder_is_divided_as_for_training(tmp_path: Path) -> None:
    for name in ("ant", "bee"):
        (tmp_path / name).mkdir()
        for k in range(40):
            Image.new("RGB", (20, 20), (k, 2 * k, 90)).save(tmp_path / name / f"{k}.png")
    with pytest.raises(ValueError, match="part must be one of train, held_out, test; got 'tset'"):
        open_labelled(tmp_path, part="tset")  # type: ignore[arg-type]
    parts: list[Part] = ["test", "held_out"]
    for part in parts:
        found = open_labelled(tmp_path, part=part)
        trained = FolderData(tmp_path, crop_size=16, workers=0)
        assert [Path(path).relative_to(tmp_path).as_posix() for path in found.images] == trained.paths(part)
        assert found.classes == trained.classes


def squares_in(folder: Path, *names: str, count: int = 40) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        for k in range(count):
            Image.new("RGB", (20, 20), (k, 2 * k, 90)).save(folder / name / f"{k}.png")


def test_only_the_folder_of_the_training_is_divided(tmp_path: Path) -> None:
    own, new, some = (tmp_path / name for name in ("own", "new", "some"))
    squares_in(own, "ant", "bee", "cow")
    squares_in(new, "ant", "bee", "cow", count=41)
    squares_in(some, "cow", count=5)
    for path in new.rglob("*.png"):
        path.rename(path.with_name(f"photo{path.name}"))
    data = FolderData(own, crop_size=16, workers=0, held_out=7, held_out_seed=3)
    assert len(open_labelled(own, classes=data.classes, trained_on=[data.some_names]).labels) == data.size("test") < 30
    for folder, count in ((new, 123), (some, 5)):
        with pytest.warns(UserWarning, match=rf"{folder}: not the folder .* all {count} images"):
            found = open_labelled(folder, classes=data.classes, trained_on=[data.some_names])
        assert (len(found.labels), found.classes, found.name) == (count, data.classes, f"{folder.name}, all images")
        assert found.labels.tolist() == sorted(found.labels)
        assert found.labels[-1] == 2
        assert len(open_labelled(folder, classes=data.classes, trained_on=[]).labels) == count, "and without a word"
    squares_in(new, "dog", count=1)
    with pytest.raises(ValueError, match=r"new: 'dog' not among the 3 classes: 'ant', 'bee', 'cow'"):
        open_labelled(new, classes=data.classes, trained_on=[data.some_names])


def test_a_folder_that_has_changed_since_the_training_is_still_known(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    squares_in(own, "ant", "bee", "cow", count=60)
    squares_in(other, "ant", "bee", "cow", count=5)
    data = FolderData(own, crop_size=16, workers=0, held_out=20)
    training = {str(own / path) for part in ("train", "held_out") for path in data.paths(part)}
    known = [data.some_names]
    for path in (own / "ant" / "new.png", *(own / "bee" / f"new{k}.png" for k in range(40))):
        Image.new("RGB", (20, 20)).save(path)
    grown = open_labelled(own, classes=data.classes, trained_on=known)
    assert not training.intersection(grown.images)
    assert {str(own / path) for path in data.paths("test")} < set(grown.images)
    assert grown.name == "own, the test part of 221 images"
    shutil.rmtree(own / "cow")
    shrunk = open_labelled(own, classes=data.classes, trained_on=known)
    assert shrunk.images == [path for path in grown.images if "cow" not in path]
    for path in other.rglob("*.png"):
        path.rename(path.with_name(f"photo{path.name}"))
    with pytest.warns(UserWarning, match="not the folder that the model was trained on, or changed too much since"):
        assert len(open_labelled(other, classes=data.classes, trained_on=known).labels) == 15


def test_test_images_beside_those_for_training_may_be_of_some_classes(tmp_path: Path) -> None:
    squares_in(tmp_path / "train", "ant", "bee", count=2)
    squares_in(tmp_path / "val", "bee", count=2)
    assert open_labelled(tmp_path, classes=("ant", "bee", "cow")).labels.tolist() == [1, 1]
    assert open_labelled(tmp_path).labels.tolist() == [1, 1]


def test_a_folder_of_test_images_is_taken_whole(tmp_path: Path) -> None:
    for name in ("ant", "bee"):
        (tmp_path / "val" / name).mkdir(parents=True)
        for k in range(3):
            Image.new("RGB", (20, 20), (k, 2 * k, 90)).save(tmp_path / "val" / name / f"{k}.png")
    found = open_labelled(tmp_path, classes=("ant", "bee", "cow"))
    assert found.classes == ("ant", "bee", "cow")
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_folder_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSDNET_DATA", raising=False)
    with pytest.raises(ValueError, match=r"must be named \(--data\)"):
        open_labelled(None, "folder")


@pytest.mark.parametrize("held_out", [None, 7])
@pytest.mark.parametrize("by_others", [False, True])
def test_held_out_images_are_found_however_the_training_was_given_them(
    tiny: Bundle, tmp_path: Path, held_out: int | None, by_others: bool
) -> None:
    """What was opened by others tells only how it came out."""
    squares_in(tmp_path, *CLASSES)
    split = FolderData(tmp_path, crop_size=16, workers=0, held_out=held_out, held_out_seed=3)
    asked = {"dataset": "folder", "held_out": held_out, "held_out_seed": 3}
    told = describe_data(split) | {"data": {"name": "own"} if by_others else asked}
    model = msdnet.load(tiny.folder)
    model.manifest = dataclasses.replace(model.manifest, provenance=told)
    found = open_images([model], str(tmp_path), None, "held_out")
    assert len(found.labels) == len(split.held_out_indices)


def test_a_model_tells_which_folder_it_was_trained_on(tiny: Bundle) -> None:
    """Arrays have no names; of CIFAR, and where nothing is known, nothing is said."""
    model = msdnet.load(tiny.folder)
    told = {"data": {"name": "photos"}, "held_out_sha256": "abc", "held_out": 12, "held_out_seed": 5, "some_names": []}
    for provenance, expected in (
        (told | {"some_names": ["12", "34"]}, [("12", "34")]),
        (told, [()]),
        (told | {"data": {"dataset": "cifar10"}}, []),
        ({}, []),
    ):
        model.manifest = dataclasses.replace(model.manifest, provenance=provenance)
        assert trained_on(model) == expected


def test_a_model_that_does_not_tell_its_images_is_not_said_to_know_the_folder(tmp_path: Path) -> None:
    squares_in(tmp_path, "ant", "bee", count=3)
    with pytest.warns(UserWarning, match="all 6 images are taken, since the model does not tell which it was trained"):
        assert len(open_labelled(tmp_path, classes=("ant", "bee"), trained_on=[()]).labels) == 6


@pytest.mark.parametrize("trained_on", [[], [("12", "34")]])
def test_a_folder_of_images_alone_has_no_classes(tmp_path: Path, trained_on: list[tuple[str, ...]]) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "loose.png")
    with pytest.raises(ValueError, match=r"no images in folders that are called like classes; expected train/CLASS/\*"):
        open_labelled(tmp_path, classes=CLASSES, trained_on=trained_on)
