"""Experiments: what is missing is trained and measured, what is there is drawn, and nothing is mixed up."""

import dataclasses
import itertools
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from msdnet import create_network
from msdnet.data import Batch, DataConfig, Part
from msdnet.data.folder import FolderData
from msdnet.evaluation import BudgetPoint
from msdnet.policy import METHODS, judge_logits
from msdnet.published import published_for
from msdnet.report.charts import PAPER
from msdnet.reproduce import EXPERIMENTS, Experiment, Workshop, draw, find_experiment, make_plan
from msdnet.reproduce.drawing import charts, figure_table, measured_of
from msdnet.reproduce.figure import Curve, Figure, Place, anytime, averaged, budgeted, computed, envelope, sizes
from msdnet.reproduce.measure import _points, measure
from msdnet.reproduce.measurement import Measurement, Refused, check_each, read_measurement
from msdnet.reproduce.subjects import Joint, Subject, Trained, trained_for
from msdnet.reproduce.workshop import Failure
from msdnet.training import Interrupted, Recipe, load_run
from msdnet.training.recipe import Optimiser
from msdnet.version import VERSION
from tests.helpers import SMALL_SYSTEMS

CLASSES = 5
RECIPE = Recipe(epochs=2, batch_size=16, optimiser=Optimiser(learning_rate=0.05))


def check_comparable(measured: Sequence[tuple[Subject, Path, Measurement]], training_images: int | None = None) -> None:
    refused = Refused()
    check_each(measured, refused, training_images)
    refused.tell()


def trained(system: str, **changes: Any) -> Trained:
    return dataclasses.replace(Trained(system, SMALL_SYSTEMS[system], RECIPE), **changes)


RESNET, MANY_EXITS = trained("resnet"), trained("resnet_mc")
PAIR = Joint("pair", RESNET.from_seeds((0, 1)))
SMALL = Experiment(
    "small",
    "Small networks",
    "folder",
    (
        Figure(
            "small_anytime",
            "Small networks, anytime",
            (
                Curve("ResNet-MC", (MANY_EXITS,), anytime),
                Curve("pair", (PAIR,), anytime, 1),
                Curve("one", (RESNET,), sizes, 2),
            ),
        ),
        Figure("small_budgeted", "Small networks, budgeted", (Curve("pair", (PAIR,), budgeted),)),
    ),
    training_images=90,
)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint_images(tmp_path_factory.mktemp("images"))


def paint_images(root: Path) -> Path:
    """Noise of five colours: 24 training and 8 test images of each."""
    random = np.random.default_rng(0)
    for part, count in (("train", 24), ("val", 8)):
        for label in range(CLASSES):
            for number in range(count):
                pixels = random.integers(0, 90, (32, 32, 3)) + np.array([30 * label, 150 - 30 * label, 60])
                path = root / part / f"class{label}" / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels.astype(np.uint8)).save(path)
    return root


def workshop(images: Path, folder: Path, said: list[str] | None = None, **changes: Any) -> Workshop:
    data = DataConfig(dataset="folder", root=str(images), crop_size=32, resize=32, workers=0, held_out=30)
    heard = [] if said is None else said
    return Workshop(data, folder / "results", folder / "runs", device="cpu", say=heard.append, **changes)


@pytest.fixture(scope="module")
def done(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    shop = workshop(images, tmp_path_factory.mktemp("done"))
    assert shop.carry_out(SMALL.subjects) == []
    return shop


def test_all_that_is_needed_is_trained_and_measured(done: Workshop) -> None:
    names = {path.stem for path in done.results.rglob("*.json")}
    assert names == {"resnet", "resnet_seed1", "resnet_mc", "pair"}, "one for each network that was trained, too"
    assert {path.name for path in (done.runs / "folder").iterdir()} == {"resnet", "resnet_seed1", "resnet_mc"}
    measured = measured_of(SMALL, done.shelf)
    assert measured["pair"].seeds == (0, 1)
    assert measured["resnet"].training is not None
    assert measured["resnet"].training["seconds"] > 0
    assert measured["resnet"].training["machine_seconds"] > measured["resnet"].training["seconds"], "noted"
    assert measured["resnet"].training["processes"] == 1
    assert [made["msdnet"] for made in measured["pair"].trained_by] == [VERSION, VERSION]
    assert measured["pair"].training is None
    assert measured["resnet"].points == (), "with one exit there is nothing to choose"
    assert {point.method for point in measured["pair"].points} == set(METHODS)
    assert measured["resnet_mc"].images["test"] == 8 * CLASSES


def test_an_ensemble_averages_what_its_members_say(done: Workshop) -> None:
    pair = measured_of(SMALL, done.shelf)["pair"]
    members = [load_run(done.shelf.run_of(member), device="cpu", root=done.data.root) for member in PAIR.members]
    right = 0
    data = members[0].data
    assert data is not None
    with torch.inference_mode():
        for batch in data.batches("test", 16):
            chances = sum(member.network(batch.images)[-1].softmax(dim=1) for member in members)
            assert isinstance(chances, torch.Tensor)
            right += int((chances.argmax(dim=1) == batch.labels).sum())
    assert pair.test_accuracy[-1] == pytest.approx(right / data.size("test"))
    first = measured_of(SMALL, done.shelf)["resnet"]
    assert pair.test_accuracy[0] == first.test_accuracy[-1]
    assert pair.costs == (first.costs[-1], 2 * first.costs[-1])


def test_what_is_done_stays_done(done: Workshop) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.results.rglob("*.json")}
    assert done.carry_out(SMALL.subjects) == []
    assert before == {path: path.stat().st_mtime_ns for path in done.results.rglob("*.json")}
    assert [done.shelf.standing(subject) for subject in SMALL.subjects] == ["measured"] * 3


def test_figures_are_drawn_from_what_is_there(done: Workshop, tmp_path: Path) -> None:
    written = draw(SMALL, measured_of(SMALL, done.shelf), tmp_path)
    assert [path.name for path in written if path.suffix == ".svg"] == ["small_anytime.svg", "small_budgeted.svg"]
    assert "Small networks, anytime" in written[0].read_text()
    part = dataclasses.replace(done, results=tmp_path / "part")
    assert draw(SMALL, measured_of(SMALL, part.shelf), tmp_path) == []
    read_measurement(done.shelf.file_of(MANY_EXITS)).save(part.shelf.file_of(MANY_EXITS))
    drawn = draw(SMALL, measured_of(SMALL, part.shelf), tmp_path)
    assert {path.stem for path in drawn} == {"small_anytime"}, "the other has nothing to show"


def test_members_that_were_trained_on_other_images_are_refused(images: Path, tmp_path: Path) -> None:
    shop = workshop(images, tmp_path)
    fewer = dataclasses.replace(shop, data=dataclasses.replace(shop.data, subset=40))
    assert fewer.carry_out(RESNET.from_seeds((1,))) == []
    failures = shop.carry_out([PAIR])
    assert [failure.name for failure in failures] == ["pair"]
    assert re.search(
        r"resnet_seed1: trained in another way.*images: training images: 40 in the run, 90 in this experiment",
        failures[0].why,
    )


def test_a_run_is_not_measured_by_images_that_it_was_trained_on(images: Path, tmp_path: Path) -> None:
    """With another seed for what is held out, thresholds would be fitted on trained images."""
    shop = workshop(images, tmp_path)
    assert shop.carry_out([RESNET]) == []
    shop.shelf.file_of(RESNET).unlink()
    other = dataclasses.replace(shop, data=dataclasses.replace(shop.data, held_out_seed=7))
    (failure,) = other.carry_out([RESNET])
    assert re.search(
        r"images: seed of the held-out images: 0 in the run, 7 in this|which images are held out", failure.why
    )


def test_several_at_once_are_for_data_in_memory_and_one_process(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="not for a folder of images"):
        workshop(images, tmp_path, at_once=2).carry_out([RESNET])
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="for one process"):
        Workshop(DataConfig(), tmp_path, tmp_path, at_once=2).carry_out([RESNET])


@pytest.mark.parametrize(
    ("stop_at", "told"),
    [(2, "epochs done: 0, and 2 steps of the next"), (6, "epochs done: 1, and 1 step of the next")],
)
def test_a_training_that_was_stopped_goes_on(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int, told: str
) -> None:
    from tests.unit.test_training import StopAt

    said: list[str] = []
    shop = workshop(images, tmp_path, said)
    with monkeypatch.context() as patch:
        patch.setattr("msdnet.reproduce.workshop.Lines", lambda *_: StopAt(stop_at))
        with pytest.raises(Interrupted, match="the same command goes on"):
            shop.carry_out([RESNET])
    assert shop.shelf.standing(RESNET) == "begun"
    assert shop.carry_out([RESNET]) == []
    assert f"resnet: goes on, {told}" in said
    assert shop.shelf.measured(RESNET) is not None


def test_a_signal_stops_measuring_with_the_batch_under_way(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes on a CPU, which nobody is to wait for."""
    shop = workshop(images, tmp_path)
    assert shop.carry_out([RESNET]) == []
    shop.shelf.file_of(RESNET).unlink()
    taken, all_batches = 0, FolderData.batches

    def batches(data: FolderData, part: Part, _size: int) -> Iterator[Batch]:
        nonlocal taken
        for batch in all_batches(data, part, 4):
            taken += 1
            if taken == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield batch

    with monkeypatch.context() as patch:
        patch.setattr(FolderData, "batches", batches)
        with pytest.raises(Interrupted, match=r"stopped by SIGINT.*the same command goes on") as stopped:
            shop.carry_out([RESNET])
    assert (taken, stopped.value.signal_number) == (3, signal.SIGINT)
    assert shop.shelf.standing(RESNET) == "trained"
    assert shop.carry_out([RESNET]) == []
    assert shop.shelf.standing(RESNET) == "measured"


def test_a_damaged_run_says_what_can_be_done(images: Path, tmp_path: Path) -> None:
    here = workshop(images, tmp_path)
    here.carry_out([RESNET])
    here.shelf.file_of(RESNET).unlink()
    model = here.shelf.run_of(RESNET) / "model.safetensors"
    model.write_bytes(model.read_bytes()[:100])
    (failure,) = here.carry_out([RESNET])
    assert f"{model}: " in failure.why
    assert failure.why.endswith(f"; without {here.shelf.run_of(RESNET)} it would be trained anew")
    shutil.rmtree(here.shelf.run_of(RESNET))
    assert here.carry_out([RESNET]) == []


@pytest.mark.parametrize(("times", "failures"), [(1, []), (9, [Failure("resnet", "out of memory")])])
def test_a_measurement_that_fails_is_tried_once_more_and_told_of_once(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, failures: list[Failure]
) -> None:
    left = [*range(times)]

    def fails_at_first(*arguments: Any) -> Measurement:
        if left:
            left.pop()
            raise RuntimeError("out of memory")
        return measure(*arguments)

    monkeypatch.setattr("msdnet.reproduce.workshop.measure", fails_at_first)
    said: list[str] = []
    here = workshop(images, tmp_path, said)
    assert here.carry_out([RESNET]) == failures
    assert sum("failed" in line for line in said) == 1
    assert here.shelf.file_of(RESNET).exists() is not bool(failures)


def test_a_network_that_diverges_is_told_of_and_the_rest_goes_on(images: Path, tmp_path: Path) -> None:
    wild = trained("resnet", name="wild", recipe=dataclasses.replace(RECIPE, optimiser=Optimiser(learning_rate=1e30)))
    said: list[str] = []
    shop = workshop(images, tmp_path, said)
    both = Joint("both", (RESNET, wild))
    failures = shop.carry_out([wild, RESNET, both])
    assert [failure.name for failure in failures] == ["wild", "both"]
    assert "learning rate" in failures[0].why
    assert failures[1].why == "not measured without wild"
    assert any(line.startswith("wild: failed: ") for line in said)
    assert shop.shelf.measured(RESNET) is not None


def test_a_run_that_was_made_in_another_way_is_refused(images: Path, tmp_path: Path) -> None:
    shop = workshop(images, tmp_path)
    shop.carry_out([trained("resnet", recipe=RECIPE.lasting(1))])
    shop.shelf.file_of(RESNET).unlink()
    (failure,) = shop.carry_out([RESNET])
    assert re.search(
        r"runs/folder/resnet: trained in another way.*recipe: epochs: 1 in the run, 2 in this", failure.why
    )


def test_a_run_that_was_begun_in_another_way_does_not_go_on(images: Path, tmp_path: Path) -> None:
    shop = workshop(images, tmp_path)
    shop.carry_out([trained("resnet", recipe=RECIPE.lasting(1))])
    shop.shelf.file_of(RESNET).unlink()
    for name in ("summary.json", "model.safetensors", "checkpoint.safetensors"):
        (shop.shelf.run_of(RESNET) / name).unlink()
    (failure,) = shop.carry_out([RESNET])
    assert "trained in another way" in failure.why
    assert not (shop.shelf.run_of(RESNET) / "model.safetensors").exists()


def test_the_costliest_is_trained_first(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def refuse(*_: object, out: Path, **__: object) -> None:
        begun.append(out.name)
        raise RuntimeError("not now")

    monkeypatch.setattr("msdnet.reproduce.workshop.train", refuse)
    assert len(workshop(images, tmp_path).carry_out([RESNET, MANY_EXITS])) == 2
    assert begun == ["resnet_mc", "resnet"]


def test_an_ensemble_is_begun_with_its_first_member(done: Workshop, tmp_path: Path) -> None:
    shelf = dataclasses.replace(done.shelf, results=tmp_path, runs=tmp_path)
    assert shelf.standing(PAIR) == "missing"
    shutil.copytree(done.shelf.run_of(PAIR.members[1]), shelf.run_of(PAIR.members[1]))
    assert shelf.standing(PAIR) == "begun"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"recipe": {"epochs": 7}},
            r"resnet.json: made in another way than this experiment.*recipe: epochs: 7 here, 2 in this",
        ),
        ({"made_by": {"msdnet": "9.9"}}, r"resnet.json: made in another way than .*json, .*version: '9.9' here"),
        ({"trained_by": ({"msdnet": "9.9"},)}, r"resnet.json: made in another way than .*json, .*version: '9.9' here"),
        (
            {"images": {"training": 3}},
            r"resnet.json: made in another way than .*json, .*: training images: 3 here, 90 in ",
        ),
        (
            {"network": {"layers": 14}},
            r"resnet.json: made in another way than this experiment.*network: layers: 14 here, 8 in this",
        ),
        (
            {"training": {"precision": "float64"}},
            r"trained in \w+, most in \w+: by MSDNET_PRECISION",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_and_named(done: Workshop, change: dict[str, Any], message: str) -> None:
    known = [
        (subject, done.shelf.file_of(subject), read_measurement(done.shelf.file_of(subject)))
        for subject in SMALL.subjects
    ]
    check_comparable(known)
    place = [subject.name for subject, _, _ in known].index("resnet")
    subject, path, measured = known[place]
    values = dataclasses.asdict(measured)
    for field, changed in change.items():
        values[field] = changed if isinstance(changed, tuple) else {**values[field], **changed}
    known[place] = (subject, path, Measurement(**values))
    for odd_one_anywhere in (known, known[place:] + known[:place], known[place + 1 :] + known[: place + 1]):
        with pytest.raises(ValueError, match=message):
            check_comparable(odd_one_anywhere)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": {"kind": "forest"}}, r"resnet.json: a network config: kind must be one of"),
        ({"recipe": {"epoch": 7}}, r"resnet.json: recipe: has no field 'epoch'; did you mean 'epochs'"),
        (
            {"recipe": {"epochs": 2, "batch_size": 8, "schedule": None}},
            "resnet.json: .*schedule must be a table of fields, got None",
        ),
    ],
)
def test_what_a_foreign_result_has_in_it_is_named_with_its_file(
    done: Workshop, change: dict[str, Any], message: str
) -> None:
    odd = dataclasses.replace(read_measurement(done.shelf.file_of(RESNET)), **change)
    with pytest.raises(ValueError, match=f"{message}.*; delete it, and"):
        check_comparable([(RESNET, done.shelf.file_of(RESNET), odd)])


def test_a_result_that_is_broken_or_newer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    for content in (b"{", b"\xff\xfe", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"one.json: not JSON"):
            read_measurement(path)
    path.write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match=r"one.json: format 99 is newer than this version of msdnet reads \(1\)$"):
        read_measurement(path)  # which is not to be deleted


def test_an_experiment_without_its_data_says_so(tmp_path: Path) -> None:
    shop = Workshop(DataConfig(dataset="cifar100", root=str(tmp_path / "none")), tmp_path, tmp_path, device="cpu")
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "none")):
        shop.carry_out([RESNET])


def test_the_plan_tells_what_is_missing_and_how_long_it_takes(images: Path, tmp_path: Path, done: Workshop) -> None:
    planned = {one.name: one for one in make_plan(SMALL, workshop(images, tmp_path).shelf)}
    assert planned.keys() == {"resnet", "resnet_seed1", "resnet_mc"}
    assert {one.standing for one in planned.values()} == {"missing"}
    assert all(one.seconds > 0 for one in planned.values())
    assert all(one.seconds == 0 for one in make_plan(SMALL, done.shelf))


def test_a_plan_does_not_time_steps_that_still_prepare(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compiled by the first step is set up by the second: that took ten times as long as those after it."""
    preparing = iter([0.1, 0.1])

    def step(*_: object) -> None:
        time.sleep(next(preparing, 0.0))

    monkeypatch.setattr("msdnet.reproduce.plan.make_step", lambda *_: step)
    (planned,) = make_plan(SMALL, workshop(images, tmp_path).shelf, [RESNET])
    steps = RECIPE.epochs * (90 // RECIPE.batch_size)
    assert 0 < planned.seconds < 0.1 * steps / 2


def test_a_plan_counts_what_is_left(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msdnet.reproduce.plan.make_step", lambda *_: None)
    monkeypatch.setattr("msdnet.reproduce.plan._seconds", lambda *_: 0.5)
    shelf, steps = workshop(images, tmp_path).shelf, RECIPE.epochs * (90 // RECIPE.batch_size)
    (planned,) = make_plan(SMALL, shelf, [RESNET])
    assert planned.seconds == pytest.approx(0.5 * steps)
    monkeypatch.setattr("msdnet.reproduce.shelf.Shelf.share_trained", lambda *_: 0.75)
    (planned,) = make_plan(SMALL, shelf, [RESNET])
    assert planned.seconds == pytest.approx(0.5 * steps / 4)


def test_a_plan_scales_steps_that_are_timed_with_fewer_images(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU with 16: those of 32 take twice as long."""
    monkeypatch.setattr("msdnet.reproduce.plan.make_step", lambda *_: None)
    monkeypatch.setattr("msdnet.reproduce.plan._seconds", lambda *_: 0.5)
    large = trained("resnet", recipe=dataclasses.replace(RECIPE, batch_size=32))
    (planned,) = make_plan(SMALL, workshop(images, tmp_path).shelf, [large], device="cpu")
    assert planned.seconds == pytest.approx(2 * 0.5 * RECIPE.epochs * (90 // 32))


def test_a_plan_tells_of_a_network_that_another_run_has_left(done: Workshop, tmp_path: Path) -> None:
    shutil.copytree(done.runs, tmp_path / "runs")
    shelf = dataclasses.replace(done.shelf, results=tmp_path / "results", runs=tmp_path / "runs" / "folder")
    other = shelf.run_of(PAIR.members[1])
    shutil.copy(other / "model.safetensors", shelf.run_of(RESNET) / "model.safetensors")
    damage = {one.name: one.damage for one in make_plan(SMALL, shelf)}
    assert "model.safetensors: made with another seed" in damage.pop("resnet")
    assert set(damage.values()) == {""}


def test_the_plan_tells_of_a_damaged_run_and_goes_on(images: Path, tmp_path: Path) -> None:
    here = workshop(images, tmp_path)
    here.shelf.run_of(RESNET).mkdir(parents=True)
    for name in ("run.json", "checkpoint.safetensors"):
        (here.shelf.run_of(RESNET) / name).write_bytes(b"{}")
    planned = {one.name: one for one in make_plan(SMALL, here.shelf)}
    assert planned.keys() == {"resnet", "resnet_seed1", "resnet_mc"}
    assert planned["resnet"].damage.endswith(f"; without {here.shelf.run_of(RESNET)} it would be trained anew")
    assert planned["resnet"].seconds > 0
    assert {one.damage for one in planned.values() if one.name != "resnet"} == {""}


def test_a_network_is_trained_again_for_an_ensemble_that_has_its_result_alone(
    images: Path, tmp_path: Path, done: Workshop
) -> None:
    """As where results came from another machine: an ensemble asks the network itself."""
    here = workshop(images, tmp_path)
    for member in PAIR.members:
        shutil.copytree(done.shelf.file_of(member).parent, here.shelf.file_of(member).parent, dirs_exist_ok=True)
    assert {one.standing for one in make_plan(SMALL, here.shelf)} == {"measured"}
    here.shelf.file_of(PAIR).unlink()
    planned = {one.name: (one.standing, one.asked_by_ensemble) for one in make_plan(SMALL, here.shelf)}
    asked = ("missing", True)
    assert planned == {"resnet": asked, "resnet_seed1": asked, "resnet_mc": ("measured", False)}
    assert [one.name for one in make_plan(SMALL, here.shelf, [MANY_EXITS])] == ["resnet_mc"]
    shutil.copytree(done.runs, here.runs)
    assert {one.standing for one in make_plan(SMALL, here.shelf)} == {"measured"}, "and their networks are here"


def test_a_member_that_was_made_in_another_way_is_refused_too(done: Workshop, tmp_path: Path) -> None:
    """Its ensemble is drawn, and it is not."""
    shop = dataclasses.replace(done, results=tmp_path)
    shutil.copytree(done.results, tmp_path, dirs_exist_ok=True)
    path = shop.shelf.file_of(PAIR.members[1])
    values = json.loads(path.read_text())
    values["recipe"]["epochs"] = 9
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"resnet_seed1.json: made in another way.*epochs: 9 here"):
        measured_of(SMALL, shop.shelf)


def test_all_results_that_cannot_be_used_are_named_at_once_with_what_to_do(done: Workshop, tmp_path: Path) -> None:
    shop = dataclasses.replace(done, results=tmp_path)
    shutil.copytree(done.results, tmp_path, dirs_exist_ok=True)
    first, second = (shop.shelf.file_of(member) for member in PAIR.members)
    first.write_text(first.read_text()[:500])
    second.unlink()
    second.mkdir()
    values = json.loads(shop.shelf.file_of(MANY_EXITS).read_text())
    shop.shelf.file_of(MANY_EXITS).write_text(json.dumps(values | {"recipe": values["recipe"] | {"epochs": 9}}))
    with pytest.raises(ValueError, match="3 result files cannot be used") as refused:
        measured_of(SMALL, shop.shelf)
    _, *told = str(refused.value).splitlines()
    (damaged,) = (line for line in told if "not JSON" in line)
    assert damaged.startswith(f"  {first}: ")
    assert "; delete it, and" in damaged
    assert any(str(second) in line and "Is a directory" in line for line in told)
    (foreign,) = (line for line in told if "epochs" in line)
    assert re.search(r"resnet_mc.json: made in another way.*remove it and its run.*epochs: 9 here, 2 in this", foreign)


def test_results_that_differ_in_the_same_way_are_told_of_once(done: Workshop) -> None:
    longer = dataclasses.replace(RECIPE, epochs=3, batch_size=8)
    known = [
        (dataclasses.replace(one, recipe=longer), done.shelf.file_of(one), read_measurement(done.shelf.file_of(one)))
        for one in (RESNET, MANY_EXITS)
    ]
    with pytest.raises(ValueError, match=r"^2 result files: made in another way") as refused:
        check_comparable(known, training_images=7)
    why, *files = str(refused.value).splitlines()
    fields = {"recipe: batch_size": (16, 8), "recipe: epochs": (2, 3), "training images": (90, 7)}
    differing = (f"{field}: {here} here, {there} in this experiment" for field, (here, there) in fields.items())
    assert why.endswith(f": {'; '.join(differing)}:")
    assert files == [f"  {path}" for _, path, _ in known]


@pytest.mark.parametrize("place", ["results", "runs"])
def test_a_place_that_cannot_be_written_to_is_told_of_before_any_training(
    images: Path, tmp_path: Path, place: str
) -> None:
    said: list[str] = []
    (tmp_path / place).write_text("a file where a folder should be")
    with pytest.raises(OSError, match=place):
        workshop(images, tmp_path, said).carry_out(SMALL.subjects)
    assert said == []


def test_a_try_says_so_in_every_title() -> None:
    assert SMALL.tried_with() == SMALL
    tried = SMALL.tried_with("1 epoch", "300 images")
    assert {figure.title.partition(" (")[2] for figure in tried.figures} == {"a try: 1 epoch, 300 images)"}


# Figures


def measured(
    name: str, costs: tuple[int, ...], accuracy: tuple[float, ...], points: tuple[Any, ...] = ()
) -> Measurement:
    return Measurement(
        name=name,
        dataset="cifar100",
        network={},
        recipe={"epochs": 10},
        seeds=(0,),
        images={"training": 45_000},
        parameters=1,
        costs=tuple(max(1, cost - 1_000_000) for cost in costs),
        whole_costs=costs,
        cost_alone=costs[-1],
        held_out_accuracy=accuracy,
        test_accuracy=accuracy,
        points=points,
        training=None,
        trained_by=({"msdnet": "1.0"},),
        made_by={"msdnet": "1.0"},
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_accuracy": []}, "test_accuracy must have an entry for each of 2 exits, got 0"),
        ({"test_accuracy": [0.5]}, "test_accuracy must have an entry for each of 2 exits, got 1"),
        ({"test_accuracy": [0.5, 7]}, "each of test_accuracy must be at least 0 and at most 1, got 7"),
        ({"test_accuracy": ["a", 0.5]}, "each of test_accuracy must be a number"),
        ({"held_out_accuracy": [None, 0.5]}, "each of held_out_accuracy must be a number"),
        ({"held_out_accuracy": [float("nan"), 0.5]}, "each of held_out_accuracy must be at least 0"),
        ({"costs": [-5, 3]}, "each of costs must be at least 1, got -5"),
        ({"whole_costs": [5, 3]}, "whole_costs must not fall from one exit to the next"),
        ({"whole_costs": []}, "whole_costs must have an entry for each of 2 exits, got 0"),
        ({"points": None}, "points must be a list, got nothing"),
        ({"test_accuracy": None}, "test_accuracy must be a list, got nothing"),
        ({"trained_by": []}, "trained_by must tell what trained it"),
        ({"trained_by": ["me"]}, "each of trained_by must be a table of fields, got 'me'"),
        ({"made_by": {}}, "made_by, and each of trained_by, must tell the version of msdnet"),
        ({"images": 7}, "images must be a table of fields, got 7"),
        ({"training": 7}, "training must be a table of fields, got 7"),
        ({"parameters": None}, "parameters must be a whole number"),
        ({"cost_alone": 0}, "cost_alone must be at least 1, got 0"),
        ({"name": "two"}, "is of another system: 'two' in it, 'one' by its name"),
    ],
)
def test_a_damaged_result_is_named_with_what_is_wrong(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(dataclasses.asdict(measured("one", (10, 20), (0.5, 0.6))) | change))
    with pytest.raises((ValueError, TypeError)) as refused:
        read_measurement(path)
    assert str(path) in str(refused.value)
    assert message in str(refused.value)
    assert str(refused.value).endswith(
        "; delete it, and the system is measured again (trained first, where its run is gone), or put back a copy of it"
    )


def test_results_of_other_images_are_told_before_anything_is_trained(
    images: Path, tmp_path: Path, done: Workshop
) -> None:
    found = done.shelf.measured(RESNET)
    assert found is not None
    here = workshop(images, tmp_path)
    others = dataclasses.replace(found, images={**found.images, "training": 7})
    with pytest.raises(
        ValueError,
        match=r"resnet.json: made of other images than those here.*training images: 7 in the results, 90 in the data",
    ):
        here.carry_out([MANY_EXITS], beside=[others])
    assert here.shelf.standing(MANY_EXITS) == "missing"
    assert here.carry_out([MANY_EXITS], beside=[found]) == []


def test_a_try_of_fewer_images_does_not_pass_for_another() -> None:
    experiment = find_experiment("anytime-cifar100").tried_with("300 images", subset=300)
    one = experiment.everyone["resnet_mc"]
    found = dataclasses.replace(
        measured("resnet_mc", (10, 20), (0.5, 0.6)),
        network=one.network.to_dict(),
        recipe=dataclasses.asdict(one.recipe),
        images={"training": 5},
    )
    with pytest.raises(ValueError, match=r"resnet_mc.json: made in another way.*training images: 5 here, 300 in this"):
        check_comparable([(one, Path("resnet_mc.json"), found)], experiment.training_images)
    assert all(curve.subjects for figure in experiment.figures for curve in figure.curves), (
        "published ones are left out"
    )


def point(model: str, budget: float, accuracy: float, held_out: float, cost: float | None = None) -> BudgetPoint:
    return BudgetPoint(
        model=model,
        method="paper",
        budget=budget,
        accuracy=accuracy,
        cost=budget if cost is None else cost,
        cost_error=0.0,
        lazy_cost=budget,
        held_out_accuracy=held_out,
        held_out_cost=budget,
        left=(),
    )


def test_anytime_curves_count_whole_layers_and_lazy_ones_what_is_computed() -> None:
    one = measured("a", (10_000_000, 20_000_000), (0.5, 0.6))
    assert anytime([one]) == [Place(10, 50), Place(20, 60)]
    assert computed([one]) == [Place(9, 50), Place(19, 60)]


def test_sizes_are_whole_networks_from_the_cheapest_on() -> None:
    large, small = measured("a", (10_000_000, 90_000_000), (0.5, 0.8)), measured("b", (30_000_000,), (0.7,))
    assert sizes([large, small]) == [Place(30, 70), Place(90, 80)]


def test_the_envelope_is_chosen_on_held_out_images() -> None:
    """At 20 million the second is better on test images, which nothing may be chosen on."""
    first = measured("a", (10, 20), (0.5, 0.6), (point("a", 20e6, 0.60, 0.70), point("a", 40e6, 0.61, 0.71)))
    second = measured("b", (10, 20), (0.5, 0.6), (point("b", 20e6, 0.65, 0.66), point("b", 40e6, 0.80, 0.81)))
    assert envelope([first, second]) == [Place(20, 60), Place(40, 80)]


def test_a_budgeted_curve_ends_where_more_brings_nothing() -> None:
    points = tuple(point("a", budget * 1e6, 0.5, 0.5, min(budget, 25) * 1e6) for budget in (10, 20, 30, 40))
    assert [place.x for place in budgeted([measured("a", (10_000_000, 25_000_000), (0.5, 0.6), points)])] == [
        10,
        20,
        25,
    ]


def test_budgets_count_whole_layers_and_tell_what_is_computed() -> None:
    logits = np.random.default_rng(0).normal(size=(60, 3, 4)).astype(np.float32)
    judged = judge_logits(logits, np.arange(60) % 4, measures=("largest",))
    lazy, whole = (6e6, 12e6, 40e6), (10e6, 20e6, 40e6)
    for found in _points("a", judged, judged, lazy, whole, scale=1):  # type: ignore[arg-type]
        shares = np.array(found.left) / 60
        assert found.cost == pytest.approx(shares @ whole)
        assert found.lazy_cost == pytest.approx(shares @ lazy)


def test_a_figure_joins_points_in_the_order_of_their_cost_and_has_each_once() -> None:
    """Claims read them in the order of budgets, of which a larger one may cost less, or bring the same."""
    spent = ((20, 18, 0.60), (30, 29, 0.62), (40, 28, 0.63), (50, 28, 0.63), (60, 45, 0.70))
    points = tuple(point("resnet_mc", budget * 1e6, right, 0.5, cost * 1e6) for budget, cost, right in spent)
    one = measured("resnet_mc", (10_000_000, 60_000_000), (0.5, 0.7), points)
    figure = Figure("f", "F", (Curve("ResNet-MC", (MANY_EXITS,), budgeted),))
    assert [place.x for place in budgeted([one])] == [18, 29, 28, 28, 45]
    ((_, places),) = figure.places({"resnet_mc": one})
    assert places == [Place(18, 60), Place(28, 63), Place(29, 62), Place(45, 70)]
    (series,) = figure.chart({"resnet_mc": one}).series
    assert list(series.x) == [18, 28, 29, 45]


def test_what_others_have_published_is_no_figure_by_itself() -> None:
    experiment = find_experiment("budgeted-cifar100")
    assert any(curve.places([]) for figure in experiment.figures for curve in figure.curves if not curve.subjects)
    assert charts(experiment, {}) == {}


def test_a_table_writes_large_costs_like_small_ones() -> None:
    one = measured("resnet_mc", (8_400_000_000, 10_960_000_000), (0.5, 0.7))
    figure = Figure("f", "F", (Curve("ResNet-MC", (MANY_EXITS,), anytime),))
    assert figure_table(figure, {"resnet_mc": one}) == [("ResNet-MC", "8,400: 50.0  10,960: 70.0")]


# The experiments of the paper


def test_the_experiments_have_the_systems_of_the_paper() -> None:
    found = [find_experiment(name) for name in ("anytime-cifar100", "budgeted-cifar100", "densenet-star")]
    networks = {one.name for experiment in found for subject in experiment.subjects for one in trained_for(subject)}
    assert {"cifar_anytime", "resnet_mc", "densenet_mc", "fractalnet_20", "stochastic_110"} <= networks
    assert {f"cifar_batch_{exits}" for exits in range(4, 9)} <= networks
    assert sum(name.startswith("resnet_") and "seed" not in name for name in networks) == 6  # and ResNet-MC
    assert sum("seed" in name for name in networks) == 8
    assert sum(name.startswith("densenet_star") for name in networks) == 4
    recipes = {subject.recipe for experiment in found for subject in experiment.subjects}
    assert len(recipes) == 1, "one schedule for all"
    assert len(networks) == 33


def test_cifar10_has_networks_of_cifar100_and_its_schedule() -> None:
    cifar10, cifar100 = (
        find_experiment(f"anytime-{dataset}").everyone | find_experiment(f"budgeted-{dataset}").everyone
        for dataset in ("cifar10", "cifar100")
    )
    networks = [one for one in cifar10.values() if isinstance(one, Trained)]
    assert len(networks) == 17
    for one in networks:
        assert one.recipe == cifar100[one.name].recipe
        assert dataclasses.replace(one.network, classes=100) == cifar100[one.name].network


@pytest.mark.parametrize(("name", "side"), [("anytime-cifar100", 32), ("densenet-star", 32), ("anytime-imagenet", 224)])
def test_members_of_an_ensemble_come_in_the_order_of_their_cost(name: str, side: int) -> None:
    ensembles = [subject for subject in find_experiment(name).subjects if isinstance(subject, Joint)]
    assert ensembles
    for ensemble in ensembles:
        with torch.device("meta"):
            costs = [create_network(member.network).costs(side)[-1] for member in ensemble.members]
        assert costs == sorted(costs)


def test_a_fractalnet_that_is_run_as_a_whole_costs_its_columns_joined_alone() -> None:
    """Not those columns that answered before by themselves."""
    with torch.device("meta"):
        network = create_network("fractalnet_20")
    assert round(network.cost_alone(32) / 1e6, 1) == 845.3
    assert network.costs(32)[-1] == pytest.approx(2 * network.cost_alone(32), rel=1e-3)
    column = network.costs(32)[2] - network.costs(32)[1]
    assert published_for("cifar100", "single")[0].millions == (round(column / 1e6, 1), 845.3, 845.3)


def test_an_unknown_experiment_is_met_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown experiment 'anytime-cifar'; .*anytime-cifar10"):
        find_experiment("anytime-cifar")


def test_other_epochs_make_another_recipe() -> None:
    short = find_experiment("densenet-star", epochs=3)
    assert {subject.recipe.epochs for subject in short.subjects} == {3}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_system_of_an_experiment_can_be_built_for_its_data(name: str) -> None:
    experiment = find_experiment(name)
    assert experiment.name == name
    for subject in experiment.subjects:
        with torch.device("meta"):
            network = create_network(subject.network)
        assert network.config.classes == {"cifar10": 10, "cifar100": 100, "imagenet": 1000}[experiment.dataset]
        assert network.exit_count == len(subject.network.exit_layers)


def test_a_name_stands_for_one_system_in_all_experiments() -> None:
    """Files are found by name: two systems of one name would be taken for each other."""
    known: dict[tuple[str, str], Trained] = {}
    for name in EXPERIMENTS:
        experiment = find_experiment(name)
        for subject in experiment.subjects:
            for one in trained_for(subject):
                assert known.setdefault((experiment.dataset, one.name), one) == one


def test_parts_that_are_left_out_are_made_up_for_in_width() -> None:
    """Around 3.0e8 multiply-adds each, as the paper has it."""
    for subject in find_experiment("ablation").subjects:
        with torch.device("meta"):
            network = create_network(subject.network)
        assert network.costs(32, lazy=False)[-1] == pytest.approx(3.0e8, rel=0.05)
        assert network.exit_count in (1, 7)


def test_relative_accuracy_is_that_over_the_network_without_a_classifier_on_the_way() -> None:
    (figure, final) = find_experiment("why").figures
    curve = next(curve for curve in figure.curves if curve.name.startswith("ResNet"))
    alone, again, _, first, second = curve.subjects[:5]
    found = [
        dataclasses.replace(measured(one.name, costs, accuracy), network=one.network.to_dict())
        for one, costs, accuracy in (
            (alone, (30,), (0.79,)),
            (again, (30,), (0.81,)),
            (first, (10, 30), (0.4, 0.76)),
            (second, (20, 30), (0.6, 0.8)),
        )
    ]
    assert [place.x for place in curve.places(found)] == [9 / 56, 17 / 56]
    assert [place.y for place in curve.places(found)] == pytest.approx([0.5, 0.75])
    same = next(curve for curve in final.curves if curve.name.startswith("ResNet"))
    assert [place.y for place in same.places(found)] == pytest.approx([0.95, 1.0])
    assert curve.places(found[2:]) == [], "without such a network nothing can be said"


def test_places_in_figure_3_are_evenly_spaced() -> None:
    """Or else steps over a pooling would be longer than the others, and a line a staircase."""
    for curve in find_experiment("why").figures[0].curves:
        places = sorted({one.network.exit_layers[0] for one in curve.subjects if len(one.network.exit_layers) > 1})
        steps = [after - before for before, after in itertools.pairwise(places)]
        assert len(places) == 6
        assert max(steps) - min(steps) <= 1


def test_a_prior_is_judged_against_equal_weights() -> None:
    expected, gained = find_experiment("prior").figures
    *equal, weighted = gained.curves[0].subjects
    assert [one.seed for one in equal if isinstance(one, Trained)] == [0, 1, 2]
    assert (*equal, weighted) == (*expected.curves[0].subjects, *expected.curves[1].subjects)
    costs = (11_000_000, 21_000_000)
    equals = [measured(one.name, costs, (first, 0.6)) for one, first in zip(equal, (0.4, 0.5, 0.6), strict=True)]
    better_at_first = measured(weighted.name, costs, (0.6, 0.6))
    gains = gained.curves[0].places([*equals, better_at_first])
    at_first = 1 - np.exp(-1)  # of budgets of 10 million on average that bring an answer, those that end before exit 2
    assert gains[0].y == pytest.approx(100 * 0.1 * at_first), "against the mean of equal weights"
    assert expected.curves[0].places(equals)[0].y == pytest.approx(100 * (0.6 - 0.1 * at_first))
    assert gained.curves[0].places(equals) == []


def test_a_curve_says_how_many_of_its_systems_are_measured(done: Workshop) -> None:
    """The mean of one seed is not that of two, nor one size all of them."""
    figure = Figure("seeds", "Two seeds", (Curve("ResNet", PAIR.members, averaged(anytime)),))
    whole = {one.name: read_measurement(done.shelf.file_of(one)) for one in PAIR.members}
    some = {RESNET.name: whole[RESNET.name]}
    for known, called in ((whole, "ResNet"), (some, "ResNet (1 of 2 measured)")):
        assert [name for name, _ in figure_table(figure, known)] == [called]
        assert f">{called}<" in figure.chart(known).svg(PAPER)
