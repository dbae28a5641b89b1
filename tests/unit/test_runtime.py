"""Engines, batches and results: the same answers however images are put together, and only what is needed computed."""

import copy
import dataclasses
import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import msdnet
from msdnet.bundle import Bundle, ImageSpec
from msdnet.device import pick_device
from msdnet.policy import FixedThresholds, HardBudget, Policy, PolicyFamily
from msdnet.runtime import Engine, Model, OnnxEngine, Room, State, answers
from msdnet.runtime.anytime import Deadline, steps
from msdnet.runtime.engine import Launched
from msdnet.runtime.images import pixels_of
from msdnet.runtime.model import FAMILIES
from msdnet.runtime.profile import Profile, profile
from msdnet.runtime.shared import Stopwatch
from tests.helpers import in_a_child, tiny_bundle

IMAGES = np.random.default_rng(0).integers(0, 256, (50, 12, 12, 3), dtype=np.uint8)


@pytest.fixture(scope="module", params=["onnx", "torch"])
def model(request: pytest.FixtureRequest, tiny: Bundle) -> Model:
    if request.param == "onnx":
        return msdnet.load(tiny.folder, threads=1)
    return msdnet.load(tiny.folder, engine="torch", device="cpu")


def middle(model: Model) -> float:
    """A budget at which some images leave at each exit."""
    return float(np.mean(model.costs))


def splitting(model: Model) -> Policy:
    """A policy with which some of the images leave at each exit."""
    sure = np.stack([probabilities.max(axis=1) for probabilities in run_all(model.engine, IMAGES)], axis=1)
    policy = Policy("paper").fit(sure, np.ones_like(sure, dtype=bool), model.costs, middle(model))
    for exit, row in enumerate(np.sort(sure.T)[:-1]):  # half-way to the next image: none is a close call
        next_lower = row[row < policy.thresholds_[exit]].max()
        policy.thresholds_[exit] = (policy.thresholds_[exit] + next_lower) / 2
    return policy


def run_all(engine: Engine, images: NDArray[Any]) -> list[NDArray[np.floating]]:
    state = engine.begin(images)
    outcomes = []
    for _ in range(engine.exit_count):
        probabilities, state = engine.advance(state)
        outcomes.append(probabilities)
    return outcomes


def test_both_engines_agree_at_every_exit(tiny: Bundle) -> None:
    engines = [msdnet.load(tiny.folder).engine, msdnet.load(tiny.folder, engine="torch", device="cpu").engine]
    for one, other in zip(*(run_all(engine, IMAGES) for engine in engines), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
        np.testing.assert_allclose(one.sum(axis=1), 1, atol=1e-5)


def test_bytes_and_numbers_are_the_same_pixels(model: Model) -> None:
    for one, other in zip(
        run_all(model.engine, IMAGES), run_all(model.engine, (IMAGES / 255).astype(np.float32)), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_keeping_rows_commutes_with_advancing(model: Model) -> None:
    engine = model.engine
    _, whole = engine.advance(engine.begin(IMAGES))
    rows = np.array([7, 3, 3, 49])
    after, _ = engine.advance(engine.keep(whole, rows))
    expected, _ = engine.advance(whole)
    np.testing.assert_allclose(after, expected[rows], atol=1e-5)
    mask = np.zeros(len(IMAGES), dtype=bool)
    mask[5:9] = True
    masked, _ = engine.advance(engine.keep(whole, mask))
    np.testing.assert_allclose(masked, expected[5:9], atol=1e-5)


def test_a_stage_is_numbered_as_the_graph_takes_it(model: Model) -> None:
    """Of numpy's own accord, a whole number has 32 bits on Windows, and 64 elsewhere: here as it would be there."""
    state = model.engine.begin(IMAGES)
    narrow = dataclasses.replace(state, exits_done=np.int32(0))  # type: ignore[arg-type]
    np.testing.assert_array_equal(model.engine.advance(narrow)[0], model.engine.advance(state)[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_use_an_engine_and_let_go_of_it(tiny: Bundle) -> None:
    engine = OnnxEngine(tiny, threads=4)
    expected = run_all(engine, IMAGES)
    time.sleep(0.5)  # until its threads rest: those that still look for work would not be waited for

    def use() -> None:
        nonlocal engine
        for one, other in zip(run_all(engine, IMAGES), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        del engine
        gc.collect()

    assert in_a_child(use)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_session_of_its_own(tiny: Bundle) -> None:
    """That of the parent may be in the middle of a run, with locks that nobody in the child would give back."""
    engine = OnnxEngine(tiny, threads=2)
    expected, alone = run_all(engine, IMAGES), run_all(engine, IMAGES[:1])
    theirs = engine._session

    def use() -> None:
        assert engine._session is not theirs
        for found, known in ((run_all(engine, IMAGES), expected), (run_all(engine, IMAGES[:1]), alone)):
            for one, other in zip(found, known, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-5)

    with engine._opening, engine._adding_chain, engine._chains[0].held[0]:  # as another thread might have them
        assert in_a_child(use)
    assert engine._session is theirs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_what_another_thread_had_begun(tiny: Bundle) -> None:
    """To measure its stages, to keep a policy, to classify within a budget."""
    model = msdnet.load(tiny.folder, threads=1)
    shared = model.shared_budget(budget="60%", hard=True)

    def use() -> None:
        assert model.answer(IMAGES[0], deadline_ms=500).exit
        assert len(model.classify(IMAGES, budget="70%").labels) == len(IMAGES)
        seconds = shared.seconds
        time.sleep(0.1)
        assert shared.seconds == seconds, "between calls"
        assert len(shared.classify(IMAGES).labels) == len(IMAGES)

    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with model._measuring, model._keeping, shared._one_call, shared._clock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_a_child(use)
    release.set()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_told_that_no_answer_of_its_parent_comes(tiny: Bundle) -> None:
    model, goes_on = msdnet.load(tiny.folder, threads=1), threading.Event()
    engine = cast(Any, model.engine)
    advance = engine.advance
    engine.advance = lambda state: (goes_on.wait(), advance(state))[1]
    running = model.start(IMAGES[0])

    def refused() -> None:
        with pytest.raises(RuntimeError, match="cannot wait for an answer of its parent: call start in it"):
            running.wait()

    assert in_a_child(refused)
    goes_on.set()
    assert running.wait().exit


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_finds_the_bundle_from_any_folder(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny.folder.parent)
    model = msdnet.load(tiny.folder.name, threads=1)
    expected = model.classify(IMAGES).labels

    def use() -> None:
        os.chdir("/")
        np.testing.assert_array_equal(model.classify(IMAGES).labels, expected)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).classify(IMAGES).labels, expected)

    assert in_a_child(use)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_run_another_bundle(tiny: Bundle, tmp_path: Path) -> None:
    """Where a link is set to a newer one, the model stays the older; where files are exchanged, this is told."""
    shutil.copytree(tiny.folder, tmp_path / "v1")
    shutil.copytree(tiny.folder, tmp_path / "v2")
    (tmp_path / "v2" / "stages.onnx").write_bytes(b"another")
    (tmp_path / "current").symlink_to("v1")
    model = msdnet.load(tmp_path / "current", threads=1)
    expected = model.classify(IMAGES).labels
    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to("v2")
    assert in_a_child(lambda: np.testing.assert_array_equal(model.classify(IMAGES).labels, expected))
    shutil.copy(tmp_path / "v2" / "stages.onnx", tmp_path / "v1")

    def refused() -> None:
        with pytest.raises(ValueError, match=r"stages.onnx: damaged or altered"):
            model.classify(IMAGES)

    assert in_a_child(refused)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_on_torch_a_forked_process_is_told_to_load_the_model_anew(tiny: Bundle) -> None:
    model = msdnet.load(tiny.folder, engine="torch", device="cpu")
    threads = torch.get_num_threads()

    def refused() -> None:
        with pytest.raises(RuntimeError, match=r"forked process .* load it there anew"):
            model.classify(IMAGES)

    try:
        torch.set_num_threads(2)
        model.classify(IMAGES)
        assert in_a_child(refused)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_that_has_a_model_ends_as_any_other(tiny: Bundle) -> None:
    """By the end of its script, and not at once, as those of multiprocessing do."""
    script = f"""
import os, time, warnings
import numpy as np
from msdnet.bundle import Bundle
from msdnet.runtime import OnnxEngine

engine = OnnxEngine(Bundle({str(tiny.folder)!r}), threads=4)
engine.advance(engine.begin(np.zeros((9, *engine.images.shape), np.uint8)))
time.sleep(0.5)
warnings.simplefilter("ignore")
child = os.fork()
if child:
    print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "0\n", "no signal ended the child"


@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_a_program_may_end_while_an_image_is_classified(engine: str) -> None:
    script = f"""
import msdnet
from msdnet import samples

running = msdnet.load("cifar10-anytime", engine={engine!r}).start(samples.cifar10().images[0])
print(running.wait().exit)
"""
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=100, check=True)
    assert (done.stdout.strip().isdigit(), done.stderr) == (True, "")


# A state belongs to whoever has it


def test_a_state_stays_as_it_is_whatever_other_images_come(model: Model) -> None:
    """More of them than an engine may have prepared space for, at every stage, each advanced in turn."""
    engine, alone = model.engine, [run_all(model.engine, image[None]) for image in IMAGES[:9]]
    states = [engine.begin(image[None]) for image in IMAGES[:9]]
    for exit in range(engine.exit_count):
        for number, state in enumerate(states):
            probabilities, states[number] = engine.advance(state)
            np.testing.assert_allclose(probabilities, alone[number][exit], atol=1e-6)


def test_a_state_can_be_advanced_again(model: Model) -> None:
    """Whether what came of it the first time is still there or not, and without a change to that."""
    engine, expected = model.engine, run_all(model.engine, IMAGES[:1])
    state = engine.begin(IMAGES[:1])
    for exit in range(engine.exit_count):
        engine.advance(state)
        once, first = engine.advance(state)
        twice, second = engine.advance(state)
        for probabilities in (once, twice):
            np.testing.assert_allclose(probabilities, expected[exit], atol=1e-6)
        for after in (first, second) if exit + 1 < engine.exit_count else ():
            next_one, _ = engine.advance(after)
            np.testing.assert_allclose(next_one, expected[exit + 1], atol=1e-6)
        state = (first, second)[exit % 2]


def test_an_answer_and_a_map_outlive_their_state(model: Model) -> None:
    engine = model.engine
    first, state = engine.logits(engine.begin(IMAGES[:1]))
    maps = dict(state.maps)
    first_before, maps_before = copy.deepcopy((first, maps))
    del state
    for image in IMAGES[1:9]:
        run_all(engine, image[None])
    np.testing.assert_array_equal(first, first_before)
    for name, values in maps.items():
        np.testing.assert_array_equal(values, maps_before[name])


def test_one_image_alone_can_be_kept_and_joined(model: Model) -> None:
    engine = model.engine
    _, state = engine.advance(engine.begin(IMAGES[:1]))
    expected = run_all(engine, IMAGES[:1])[1]
    kept, room = engine.keep(state, np.array([0, 0])), Room(engine, 2)
    for _ in range(2):
        room.add(state, np.array([0]))
    del state
    run_all(engine, IMAGES[1:2])
    for joined in (kept, room.take()):
        probabilities, _ = engine.advance(joined)
        np.testing.assert_allclose(probabilities, np.repeat(expected, 2, axis=0), atol=1e-5)


def test_a_copy_of_a_state_is_as_good(model: Model) -> None:
    state = model.engine.begin(IMAGES[:1])
    _, after = model.engine.advance(state)
    expected, _ = model.engine.advance(after)
    for copied in (copy.copy(after), copy.deepcopy(after), dataclasses.replace(after)):
        found, _ = model.engine.advance(copied)
        np.testing.assert_array_equal(found, expected)
        del copied, found
        model.engine.advance(model.engine.begin(IMAGES[1:2]))  # another image, which must not get into the way
    np.testing.assert_array_equal(model.engine.advance(after)[0], expected)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_images_are_normalised_channel_by_channel(model: Model, rows: int, kind: type[np.generic]) -> None:
    """To the numbers that the formula gives, in the layout that the stages read, alone and in batches."""
    pixels = np.random.default_rng(7).integers(0, 256, (rows, 12, 12, 3), dtype=np.uint8)
    given = pixels if kind is np.uint8 else (pixels / 255).astype(kind)
    (normalised,) = (np.asarray(one) for one in model.engine.begin(given).maps.values())
    spec = model.engine.images
    expected = (pixels / 255 - np.array(spec.mean)) / np.array(spec.std)
    assert normalised.dtype == np.float32
    assert normalised.flags.c_contiguous
    assert normalised == pytest.approx(expected.transpose(0, 3, 1, 2), abs=1e-5)


def test_the_processor_leaves_cudnn_as_it_is(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings are the whole process's: two threads that change and restore them leave them changed."""
    model = msdnet.load(tiny.folder, engine="torch", device="cpu")
    changed: list[dict[str, Any]] = []

    def note(**settings: Any) -> nullcontext[None]:
        changed.append(settings)
        return nullcontext()

    monkeypatch.setattr("torch.backends.cudnn.flags", note)
    assert len(model.classify(IMAGES[:3])) == 3
    assert changed == []


def test_beginning_an_image_runs_no_stage(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are under way: a deadline may be running."""
    engine = OnnxEngine(tiny, threads=1)
    held = [engine.begin(IMAGES[:1])]

    def refuse(*_: object) -> None:
        raise AssertionError("a stage was run")

    monkeypatch.setattr(engine, "_copied", refuse)
    for _ in range(6):
        held.append(engine.begin(IMAGES[:1]))
    assert [isinstance(state.maps, dict) for state in held] == [False] * 4 + [True] * 3, "four go the quick way"


def test_a_stopped_run_holds_nothing(tiny: Bundle) -> None:
    model = msdnet.load(tiny.folder, threads=1)
    stopped = []
    for _ in range(6):
        with model.start(IMAGES[0]) as running:
            running.wait()
        stopped.append(running)
    state = model.engine.begin(IMAGES[:1])
    assert not isinstance(state.maps, dict), "it goes the quick way"


def test_threads_share_an_engine(model: Model) -> None:
    """Each with images of its own, and all with one state that they advance at the same time."""
    engine, expected = model.engine, [run_all(model.engine, image[None]) for image in IMAGES[:8]]
    shared = engine.begin(IMAGES[:1])

    def work(number: int) -> None:
        for _ in range(20):
            np.testing.assert_allclose(run_all(engine, IMAGES[number : number + 1]), expected[number], atol=1e-6)
            state = shared
            for exit in range(engine.exit_count):
                probabilities, state = engine.advance(state)
                np.testing.assert_allclose(probabilities, expected[0][exit], atol=1e-6)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_wrong_rows_and_stages_that_are_not_there_are_refused(model: Model) -> None:
    engine = model.engine
    state = engine.begin(IMAGES[:4])
    with pytest.raises(ValueError, match="a mask of 3"):
        engine.keep(state, np.ones(3, dtype=bool))
    with pytest.raises(TypeError, match="rows must be a mask"):
        engine.keep(state, np.array([0.5]))
    for outside in ([4], [-5]):
        with pytest.raises(IndexError, match="rows must be among the 4"):
            engine.keep(state, np.array(outside))
    assert engine.keep(state, np.array([])).rows == 0
    last, _ = engine.advance(engine.keep(state, np.array([-1])))
    expected, _ = engine.advance(state)
    np.testing.assert_allclose(last, expected[-1:], atol=1e-5)
    for _ in range(engine.exit_count):
        _, state = engine.advance(state)
    with pytest.raises(ValueError, match="all 3 exits have answered"):
        engine.advance(state)


@pytest.mark.parametrize("batch", [1, 7, 16, 50, 64])
def test_answers_do_not_depend_on_the_batch(model: Model, batch: int) -> None:
    policy = splitting(model)
    reference = model.classify(IMAGES, policy=policy, batch=13, probabilities=True)
    result = model.classify(IMAGES, policy=policy, batch=batch, probabilities=True)
    assert min(reference.exit_counts) > 5, "the test shows nothing if all leave together"
    np.testing.assert_array_equal(result.exits, reference.exits)
    assert result.probabilities is not None
    assert reference.probabilities is not None
    np.testing.assert_allclose(result.probabilities, reference.probabilities, atol=1e-5)


def test_answers_do_not_depend_on_the_order(model: Model) -> None:
    order = np.random.default_rng(1).permutation(len(IMAGES))
    policy = splitting(model)
    reference = model.classify(IMAGES, policy=policy, batch=8)
    shuffled = model.classify(IMAGES[order], policy=policy, batch=8)
    np.testing.assert_array_equal(shuffled.exits, reference.exits[order])
    np.testing.assert_array_equal(shuffled.labels, reference.labels[order])
    np.testing.assert_allclose(shuffled.confidences, reference.confidences[order], atol=1e-5)


def test_a_generator_gives_what_an_array_gives(model: Model) -> None:
    policy = splitting(model)
    whole = model.classify(IMAGES, policy=policy)
    streamed = model.classify((image for image in IMAGES), policy=policy, batch=6)
    np.testing.assert_array_equal(streamed.labels, whole.labels)
    np.testing.assert_array_equal(streamed.exits, whole.exits)


def test_without_a_budget_every_image_goes_to_the_last_exit(model: Model) -> None:
    result = model.classify(IMAGES, batch=16, probabilities=True)
    assert (result.exits == 3).all()
    assert result.cost == model.costs[-1]
    assert result.probabilities is not None
    np.testing.assert_allclose(result.probabilities, run_all(model.engine, IMAGES)[-1], atol=1e-5)


def test_without_a_budget_there_is_no_policy(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is made up that was fitted to nothing, and has no accuracy or cost to tell."""
    monkeypatch.setattr("msdnet.runtime.model.Policy", None)
    assert set(model.classify(IMAGES).exits.tolist()) == {one.exit for one in model.stream(IMAGES)} == {3}


def test_an_image_leaves_at_the_first_exit_that_is_sure_enough(model: Model) -> None:
    """The engine against a simulation that computes everything."""
    policy = model.policy(middle(model), method="paper", measure="margin")
    every = np.stack([np.sort(p, axis=1)[:, -1] - np.sort(p, axis=1)[:, -2] for p in run_all(model.engine, IMAGES)], 1)
    result = model.classify(IMAGES, policy=policy, batch=9)
    np.testing.assert_array_equal(result.exits - 1, policy.exit_indices(every))


def test_no_images_are_answered_emptily(model: Model) -> None:
    nothings: list[Any] = [[], np.empty((0, 12, 12, 3), np.uint8), iter(())]
    for nothing in nothings:
        result = model.classify(nothing, budget=middle(model))
        assert (len(result), result.cost, list(result)) == (0, 0.0, [])


def test_engines_are_told_in_words(tiny: Bundle) -> None:
    told = [str(OnnxEngine(tiny, threads=threads)) for threads in (1, 2)]
    assert told == ["ONNX Runtime, 1 thread", "ONNX Runtime, 2 threads"]
    assert str(msdnet.load(tiny.folder, engine="torch", device="cpu").engine) == "PyTorch, cpu, float32"


def test_a_result_tells_what_became_of_each_image(model: Model) -> None:
    result = model.classify(IMAGES, budget=middle(model))
    first = next(iter(result))
    assert first.name == result.names[0] == model.classes[result.labels[0]]
    assert first.cost == model.costs[first.exit - 1]
    assert sum(result.exit_counts) == len(result) == 50
    assert result[-1] == list(result)[-1]
    assert result.cost == pytest.approx(np.mean([one.cost for one in result]))
    assert "50 images" in repr(result)
    assert "3 exits" in repr(model)
    assert repr(model).endswith(f", on {model.engine}>")
    shown = model._repr_html_()
    ElementTree.fromstring(f"<div>{shown}</div>")
    assert shown.count("<tr>") == 4
    assert f"<td>3</td><td>{model.costs[-1] / 1e6:,.2f} M</td><td>100%</td>" in shown
    assert "accuracy in %, held-out" in shown


# What is computed, and what is not


class Counting(Engine):
    """Notes the size of every batch that each stage is run on."""

    def __init__(self, exits: int = 4) -> None:
        super().__init__(range(1, exits + 1), ImageSpec(side=1, resize=1, mean=(0.5,), std=(1,)), (1.0,) * exits)
        self.runs: list[list[int]] = [[] for _ in range(exits)]
        self.copied = 0
        self.best_batch = 8

    def begin(self, images: NDArray[Any]) -> State:
        return State(0, len(images), {"value": images.reshape(len(images), 1).astype(np.float64)})

    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        self.runs[state.exits_done].append(state.rows)
        value = state.maps["value"]
        assert len(value) == state.rows
        sure = np.where(value <= state.exits_done, 9.0, 0.0)  # an image is as hard as its value
        logits = np.hstack([sure, np.zeros_like(sure)]).astype(np.float32)
        return logits, State(state.exits_done + 1, state.rows, state.maps)

    def empty(self, like: Any, rows: int) -> Any:
        return np.empty((rows, *like.shape[1:]), like.dtype)

    def copy_rows(self, sources: Sequence[Any], rows: NDArray[np.integer], targets: Sequence[Any]) -> None:
        self.copied += len(rows)
        for source, target in zip(sources, targets, strict=True):
            target[:] = source[rows]


def sure_policy(exits: int) -> Policy:
    policy = Policy()
    policy.thresholds_ = np.array([0.9] * (exits - 1) + [-np.inf])
    return policy


def test_survivors_are_joined_into_full_batches() -> None:
    engine = Counting()
    hard = np.arange(400) % 4  # a quarter leaves at each exit
    given = (hard[start : start + 8].reshape(-1, 1, 1, 1).astype(np.uint8) for start in range(0, 400, 8))
    found = np.full(400, -1)
    for answered in answers(engine, given, FixedThresholds(sure_policy(4)), batch=8):
        assert (found[answered.images] == -1).all(), "answered once"
        found[answered.images] = answered.exit - 1
    np.testing.assert_array_equal(found, hard)
    for stage, rows in enumerate(engine.runs):
        assert sum(rows) == 400 - 100 * stage, "who has left is not computed"
        assert set(rows[:-1]) == {8}, "deep stages run on full batches"


@pytest.mark.parametrize(
    ("given", "copied"),
    [
        (8, 0),  # full from the start
        (7, 80),  # gathered once, and full from then on
        (16, 0),
    ],
)
def test_a_full_batch_that_nobody_leaves_goes_on_without_a_copy(given: int, copied: int) -> None:
    engine = Counting()
    np.testing.assert_array_equal(found_by(engine, np.full(80, 3.0), given, 8), 3)
    assert engine.copied == copied
    assert all(rows == [8] * 10 for rows in engine.runs[1:])


def test_a_full_batch_waits_behind_those_that_came_before() -> None:
    """Or these might wait for as long as images come."""
    values = np.array([0, 0, 0, 0, 3, 3, 3, 3, *[3] * 8])  # four are left of the first batch, and all of the second
    batches = values.reshape(2, 8, 1, 1, 1)
    told = [
        answered.images.tolist() for answered in answers(Counting(), batches, FixedThresholds(sure_policy(4)), batch=8)
    ]
    assert told == [[0, 1, 2, 3], [*range(4, 12)], [*range(12, 16)]]


def test_rows_that_leave_are_answered_before_more_images_are_taken() -> None:
    engine, taken = Counting(), [0]

    def endless() -> Iterator[NDArray[np.uint8]]:
        while True:
            taken[0] += 1
            yield np.zeros((4, 1, 1, 1), np.uint8)

    first = next(answers(engine, endless(), FixedThresholds(sure_policy(4)), batch=4))
    assert first.images.tolist() == [0, 1, 2, 3]
    assert taken == [1]


def test_a_room_holds_no_more_than_a_batch_waits() -> None:
    """All images are hard and batches are odd: at no time do more than a batch wait for a stage."""
    engine = Counting()
    hardest = (np.full((7, 1, 1, 1), 3, np.uint8) for _ in range(30))
    list(answers(engine, hardest, FixedThresholds(sure_policy(4)), batch=8))
    assert engine.runs[0] == [7] * 30
    assert engine.runs[1] == engine.runs[2] == engine.runs[3] == [8] * 26 + [2]


# Stages that are launched before the results of the last are looked at


class Later(Counting):
    """Computes a stage when its result is asked for; until then nobody may touch what it reads."""

    def __init__(self, exits: int = 4, ahead: int = 1) -> None:
        super().__init__(exits)
        self.ahead = ahead
        self.under_way: list[int] = []
        self.others_under_way: list[int] = []  # whenever a result was asked for

    def launch(self, state: State) -> Launched:
        self.check_not_done(state)
        before = {name: values.copy() for name, values in state.maps.items()}
        self.under_way.append(state.exits_done)

        def result() -> Any:
            self.under_way.remove(state.exits_done)
            self.others_under_way.append(len(self.under_way))
            for name, values in before.items():
                np.testing.assert_array_equal(state.maps[name], values, err_msg="written before it was read")
            return super(Later, self).launch(state)()

        return result


def found_by(engine: Engine, values: NDArray[np.floating], given: int, batch: int) -> NDArray[np.integer]:
    """The exits of images that come so many at a time."""
    batches = (values[start : start + given].reshape(-1, 1, 1, 1) for start in range(0, len(values), given))
    found = np.full(len(values), -1)
    for answered in answers(engine, batches, FixedThresholds(sure_policy(4)), batch=batch):
        assert (found[answered.images] == -1).all(), "answered once"
        found[answered.images] = answered.exit - 1
    return found


def some_values(count: int) -> NDArray[np.floating]:
    """No two alike; rounded up, where each image leaves."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, count) - rng.permutation(count) / count


@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize(("given", "batch"), [(1, 1), (7, 7), (7, 8), (5, 16), (100, 7), (400, 400)])
def test_running_ahead_changes_no_answer(given: int, batch: int, ahead: int) -> None:
    values = some_values(400)
    engine, plain = Later(ahead=ahead), Counting()
    np.testing.assert_array_equal(found_by(engine, values, given, batch), np.ceil(values))
    np.testing.assert_array_equal(found_by(plain, values, given, batch), np.ceil(values))
    assert not engine.under_way
    assert max(engine.others_under_way) <= ahead
    assert [sum(rows) for rows in engine.runs] == [sum(rows) for rows in plain.runs]
    for rows in engine.runs[1:]:
        assert set(rows[:-1]) <= {batch}, "deep stages run on full batches"


@pytest.mark.parametrize("given", [7, 8])
def test_running_ahead_keeps_apart_what_is_under_way(given: int) -> None:
    """Nobody leaves before the last exit: batches would go on in the memory of rooms that others come into."""
    engine, values = Later(), 3 - np.arange(80) / 100
    np.testing.assert_array_equal(found_by(engine, values, given, 8), 3)


def test_an_engine_that_runs_ahead_is_kept_busy_with_few_stages() -> None:
    engine = Later()
    found_by(engine, some_values(400), 8, 8)
    assert max(engine.others_under_way) == 1, "never more than one behind that which is looked at"
    assert engine.others_under_way[:-5] == [1] * (len(engine.others_under_way) - 5), "idle only at the end"


def test_an_engine_that_computes_at_once_is_not_run_ahead() -> None:
    assert Counting().ahead == 0
    engine = Later(ahead=0)
    found_by(engine, some_values(400), 8, 8)
    assert set(engine.others_under_way) == {0}


def test_an_error_or_an_early_end_leaves_the_engine_usable() -> None:
    engine, values = Later(), some_values(100)

    def broken() -> Iterator[NDArray[np.floating]]:
        yield from (values[start : start + 8].reshape(-1, 1, 1, 1) for start in range(0, 40, 8))
        raise ValueError("cannot be read")

    with pytest.raises(ValueError, match="cannot be read"):
        list(answers(engine, broken(), FixedThresholds(sure_policy(4)), batch=8))
    started = answers(engine, broken(), FixedThresholds(sure_policy(4)), batch=8)
    next(started)
    started.close()  # type: ignore[attr-defined]
    engine.under_way.clear()  # nobody will ask for these
    np.testing.assert_array_equal(found_by(engine, values, 8, 8), np.ceil(values))


def test_rules_that_need_every_decision_get_it_before_more_images_come(tiny: Bundle) -> None:
    images = np.random.default_rng(0).integers(0, 4, (200, 1, 1, 1), dtype=np.uint8)
    plain, ahead = (Model(tiny, engine).classify(images, budget=1.5, steady=True) for engine in (Counting(3), Later(3)))
    assert min(plain.exit_counts) > 0
    np.testing.assert_array_equal(ahead.exits, plain.exits)


# Budgets


def test_a_budget_below_the_first_exit_says_what_is_possible(model: Model) -> None:
    with pytest.raises(ValueError, match=f"budget must be at least {model.costs[0]:,}"):
        model.classify(IMAGES, budget=model.costs[0] - 1)
    with pytest.raises(
        ValueError, match=r"the time for an image must be at least [\d.e-]+ ms, which the first exit takes here, got"
    ):
        model.classify(IMAGES, seconds=1e-9)


def test_budgets_and_times_may_be_written_as_people_do(model: Model) -> None:
    full = model.costs[-1]
    assert model.policy("75%").budget_ == model.policy(f"{0.75 * full / 1e6}M").budget_ == 0.75 * full
    with pytest.raises(ValueError, match="costs must be what it takes to reach each exit"):
        model.policy("75%", costs=[3, 2])
    assert model.policy("100%", costs=[2 * cost for cost in model.costs]).budget_ == 2 * full
    assert model.policy(seconds="500ms").budget_ == 0.5
    result = model.classify(IMAGES, budget="75%")
    np.testing.assert_array_equal(result.exits, model.classify(IMAGES, budget=0.75 * full).exits)
    for wrong, told in (("half", "written like 20M"), ("1%", "at least")):
        with pytest.raises(ValueError, match=told):
            model.classify(IMAGES, budget=wrong)
    with pytest.raises(ValueError, match="written like 3ms"):
        model.classify(IMAGES, seconds="3")


@pytest.mark.parametrize("group", [None, 16, 7])
def test_a_hard_budget_is_kept_for_each_group(model: Model, group: int | None) -> None:
    budget = 1.2 * model.costs[0]
    result = model.classify(IMAGES, budget=budget, hard=True, group=group, batch=6)
    assert len(result) == 50
    size = group or 50
    for start in range(0, 50, size):
        costs = result.costs[start : start + size]
        assert costs.sum() <= budget * len(costs)
    soft = model.classify(IMAGES, budget=budget, batch=6)
    assert soft.cost != result.cost or (soft.exits == result.exits).all()


def test_a_hard_budget_holds_for_images_of_unknown_number(model: Model) -> None:
    budget = 1.1 * model.costs[0]
    result = model.classify((image for image in IMAGES), budget=budget, hard=True, batch=4)
    assert (np.cumsum(result.costs)[-1]) <= budget * 50


def test_several_calls_share_a_hard_budget(model: Model) -> None:
    """The budget of one image alone would never bring it past the first exit."""
    budget = 0.5 * (model.costs[0] + model.costs[1])
    policy = model.policy(budget, method="paper")
    shared = model.shared_budget(policy=policy, hard=True)
    spent = np.cumsum([shared.classify(image).cost for image in IMAGES])
    assert (spent <= budget * np.arange(1, 51)).all(), "only the budgets of those that have come are spent"
    together = model.classify((image for image in IMAGES), policy=policy, hard=True, batch=1)
    assert spent[-1] == together.costs.sum() > 50 * model.costs[0]


def test_several_calls_share_a_steady_budget(model: Model) -> None:
    """As in a stream, whose thresholds move with what was spent before."""
    many, policy = np.concatenate([IMAGES] * 8), model.policy(1.3 * model.costs[0], method="paper")
    shared = model.shared_budget(policy=policy, steady=True)
    exits = [one.exit for image in many for one in shared.classify(image)]
    assert exits == [one.exit for one in model.stream(many, policy=policy)]
    forgetful = [model.classify(image, policy=policy, steady=True)[0].exit for image in many]
    assert exits != forgetful


def test_time_between_calls_is_not_counted(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is more than the budgets of all: whoever came after it would leave at the first exit."""
    policy = model.policy(seconds=0.02, method="paper", batch=8)
    soft = model.classify(IMAGES[:16], policy=policy, batch=8)
    shared = model.shared_budget(policy=policy, hard=True, batch=8)
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    exits = [*shared.classify(IMAGES[:8]).exits]
    now = 1e6
    exits += [*shared.classify(IMAGES[8:16]).exits]
    np.testing.assert_array_equal(exits, soft.exits)
    assert max(exits[8:]) > 1


def test_a_stopwatch_runs_while_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    watch = Stopwatch()
    with watch:
        now = 7.0
        assert watch() == 2.0
    now = 9.0
    assert watch() == 2.0
    with watch:
        now = 10.0
    assert watch() == 3.0


def test_a_call_inside_another_is_refused_and_not_waited_for(model: Model) -> None:
    shared = model.shared_budget(budget=middle(model))

    def asking() -> Iterator[NDArray[np.uint8]]:
        yield IMAGES[0]
        shared.classify(IMAGES[1])
        yield IMAGES[2]

    for arguments in ({"images": asking()}, {"images": IMAGES[0], "watch": lambda _: shared.classify(IMAGES[1])}):
        with pytest.raises(RuntimeError, match="of a call that has not ended yet"):
            shared.classify(**arguments)
    with ThreadPoolExecutor(4) as threads:  # which take turns, and find the turn free
        assert [len(result) for result in threads.map(shared.classify, [IMAGES[:5]] * 8)] == [5] * 8


def test_seconds_are_a_budget_too(model: Model) -> None:
    times = model.profile([8], seconds=0.05).at(8)
    assert list(times.costs) == sorted(times.costs)
    generous = model.classify(IMAGES, seconds=10 * times.costs[-1], batch=8)
    assert len(generous) == 50
    hard = model.classify(IMAGES, seconds=10 * times.costs[-1], batch=8, hard=True)
    assert len(hard) == 50


def test_a_stream_answers_in_order_and_for_ever(model: Model) -> None:
    endless = (IMAGES[0] for _ in iter(int, 1))
    assert next(model.stream(endless, budget=middle(model))).label in range(3)
    answered = list(model.stream(IMAGES, budget=float(model.costs[0]), batch=5))  # all leave at the first exit
    first, _ = model.engine.advance(model.engine.begin(IMAGES))
    assert [one.exit for one in answered] == [1] * 50
    assert [one.label for one in answered] == first.argmax(axis=1).tolist()
    with pytest.raises(ValueError, match="budget must be at least"):
        model.stream(IMAGES, budget=1.0)  # when it is called, not when it is read


def test_threads_that_ask_for_times_at_once_measure_once(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would measure how busy the others are, and nobody would measure again."""
    model, measured, together = msdnet.load(tiny.folder, threads=1), [], threading.Barrier(4)

    def slowly(engine: Engine, sizes: Sequence[int], *, seconds: float) -> Profile:
        measured.append(sizes)
        time.sleep(0.1)
        return profile(engine, sizes, seconds=seconds / 10)

    def ask(_number: int) -> float:
        together.wait()
        return model.policy(seconds="1s").budget_

    monkeypatch.setattr("msdnet.runtime.model.profile", slowly)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(4))) == [1.0] * 4
    assert len(measured) == 1


def test_a_second_stream_begins_at_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it chooses from is found once."""
    budget = middle(model)
    assert next(model.stream(IMAGES, budget=budget))
    asked: list[float] = []
    policy = PolicyFamily.policy

    def noted(family: PolicyFamily, budget: float) -> Policy:
        asked.append(budget)
        return policy(family, budget)

    monkeypatch.setattr(PolicyFamily, "policy", noted)
    assert next(model.stream(IMAGES, budget=budget))
    assert set(asked) == {budget}


def test_a_generator_may_use_its_memory_again(model: Model) -> None:
    def frames() -> Iterator[NDArray[np.uint8]]:
        frame = np.empty((12, 12, 3), np.uint8)
        for image in IMAGES:
            frame[:] = image
            yield frame

    expected, found = model.classify(IMAGES), model.classify(frames(), batch=8)
    np.testing.assert_allclose(found.confidences, expected.confidences, atol=1e-5)


@pytest.mark.parametrize("kind", [Counting, Later])
@pytest.mark.parametrize("group", [None, 8])
def test_a_hard_budget_binds_where_no_image_is_ever_sure(group: int | None, kind: type[Counting]) -> None:
    """Images that would all go to the last exit: what is left after the first exits is spent, and not a bit more."""
    engine, policy = kind(), Policy("paper").fit(np.eye(4), np.eye(4), [1, 2, 3, 4], 2.0)
    policy.thresholds_ = np.array([1.1, 1.1, 1.1, -np.inf])
    given = (np.full((8, 1, 1, 1), 9, np.uint8) for _ in range(5))
    rule = HardBudget(policy, images=40, group=group)
    exits = np.zeros(40, dtype=int)
    for answered in answers(engine, given, rule, batch=8):
        exits[answered.images] = answered.exit
    assert (exits > 0).all()
    for start in range(0, 40, group or 40):
        assert exits[start : start + (group or 40)].sum() == 2 * (group or 40), "costs are the exits' numbers"


def test_steady_budgets_run_on_the_engine(model: Model) -> None:
    many = np.concatenate([IMAGES] * 8)
    budget = 1.3 * model.costs[0]
    result = model.classify(many, budget=budget, steady=True)
    assert len(result) == 400
    assert result.costs.sum() <= budget * (400 + 12), "never more than its limit above"


class Timed(Counting):
    """Takes 20 ms a stage, by a clock that nothing else moves."""

    now = 0.0

    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        self.now += 0.02
        return super().logits(state)


def test_more_seconds_reach_further(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Timed(exits=3)
    slow = Model(tiny, engine)
    monkeypatch.setattr(time, "perf_counter", lambda: engine.now)
    first, *_, last = slow.profile([8], seconds=0.1).at(8).costs
    images = np.full((8, 1, 1, 1), 9, np.uint8)
    assert (slow.classify(images, seconds=1.01 * first, batch=8).exits == 1).all()
    assert slow.policy(seconds=last, batch=8).unit_ == "seconds"
    hard = slow.classify(
        np.repeat(images, 4, axis=0), policy=slow.policy(seconds=1.5 * first, batch=8), hard=True, batch=8
    )
    assert hard.seconds <= 1.5 * first * 32 + 1e-9, "the clock is watched"


def test_a_pause_in_a_generous_hard_budget_changes_nothing(model: Model) -> None:
    """Time that is left over pays for delays."""

    def with_a_pause() -> Iterator[NDArray[np.uint8]]:
        for number, image in enumerate(IMAGES):
            if number == 10:
                time.sleep(0.2)
            yield image

    policy = model.policy(seconds=5.0, batch=8)
    soft = model.classify(IMAGES, policy=policy, batch=8)
    hard = model.classify(with_a_pause(), policy=policy, hard=True, batch=8)
    np.testing.assert_array_equal(hard.exits, soft.exits)


def test_options_that_contradict_each_other_are_refused(model: Model) -> None:
    budget = middle(model)
    with pytest.raises(ValueError, match="one of budget, seconds and policy"):
        model.classify(IMAGES, budget=budget, seconds=1)
    with pytest.raises(ValueError, match="hard or steady"):
        model.classify(IMAGES, budget=budget, hard=True, steady=True)
    with pytest.raises(ValueError, match="group belongs to hard budgets"):
        model.classify(IMAGES, budget=budget, group=8)
    with pytest.raises(ValueError, match="batch must be at least 1"):
        model.classify(IMAGES, batch=0)
    with pytest.raises(ValueError, match="multiply-adds or in seconds"):
        model.policy()
    with pytest.raises(ValueError, match="give budget, seconds or policy with them"):
        model.classify(IMAGES, hard=True)
    with pytest.raises(TypeError, match=r"policy must be a Policy .Policy\.load"):
        model.classify(IMAGES, policy="policy.json")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="measure must be one of"):
        model.policy(budget, measure="foo")  # type: ignore[arg-type]


def test_a_policy_of_another_network_is_refused(model: Model, tmp_path: Path) -> None:
    other = msdnet.load(tiny_bundle(tmp_path / "other", seed=3).folder)
    with pytest.raises(ValueError, match="fitted for another network"):
        model.classify(IMAGES, policy=other.policy(middle(other)))


def test_a_policy_survives_its_file(model: Model, tmp_path: Path) -> None:
    policy = model.policy(middle(model))
    policy.save(tmp_path / "policy.json")
    loaded = Policy.load(tmp_path / "policy.json")
    direct, again = (model.classify(IMAGES, policy=one) for one in (policy, loaded))
    np.testing.assert_array_equal(direct.exits, again.exits)


def test_a_policy_refuses_what_would_change_nothing(model: Model) -> None:
    with pytest.raises(ValueError, match="batch belongs to seconds, not to a budget"):
        model.policy("100%", batch=8)
    with pytest.raises(ValueError, match="costs belong to a budget, not to seconds"):
        model.policy(seconds=1, costs=model.costs)


def test_not_all_that_was_ever_fitted_is_kept(tiny: Bundle) -> None:
    model = msdnet.load(tiny.folder, threads=1)
    for factor in range(1, 50):  # as of a clock that never shows the same twice
        costs = [factor * cost for cost in model.costs]
        policy = model.policy("100%", costs=costs)
        assert policy.costs_.tolist() == costs
        usual = model._family("accuracy", "largest", model.costs)
    assert len(model._families) == FAMILIES
    assert model._family("accuracy", "largest", model.costs) is usual, "what is used again and again stays"


def test_a_bundle_without_held_out_images_keeps_no_budget(tmp_path: Path) -> None:
    model = msdnet.load(tiny_bundle(tmp_path / "bare", held_out=False).folder)
    assert len(model.classify(IMAGES)) == len(list(model.stream(IMAGES))) == 50
    with pytest.raises(ValueError, match="no held-out confidences"):
        model.classify(IMAGES, budget=1e9)


def test_bad_images_are_refused_as_a_whole(model: Model) -> None:
    with pytest.raises(ValueError, match="image 2: pixels must be finite"):
        model.classify([IMAGES[0], IMAGES[1], np.full((12, 12, 3), np.nan)])


def test_a_device_is_one_that_networks_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    for name in ("meta", "mps"):
        with pytest.raises(ValueError, match=f"device must be cpu, cuda or cuda:N, got '{name}'"):
            pick_device(name)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert pick_device("mps").type == "mps"
    with pytest.raises(ValueError, match="device must be cpu, cuda, mps or cuda:N, got 'meta'"):
        pick_device("meta")


@pytest.mark.parametrize(("gpus", "known"), [(0, r"cpu \(there is no GPU here\)"), (2, "cpu or cuda:0 or cuda:1")])
def test_a_gpu_that_is_not_there_is_refused(gpus: int, known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    with pytest.raises(ValueError, match=f"device must be {known}, got 'cuda:7'"):
        pick_device("cuda:7")


def test_engines_and_their_options_are_checked(tiny: Bundle) -> None:
    with pytest.raises(ValueError, match="engine must be one of onnx, torch"):
        msdnet.load(tiny.folder, engine="tensorflow")  # type: ignore[arg-type]
    for device in ("gpu", "cuda:99", "meta", "vulkan", "xpu"):
        with pytest.raises(ValueError, match=f"device must be cpu.*got '{device}'"):
            msdnet.load(tiny.folder, engine="torch", device=device)
    with pytest.raises(ValueError, match="options of engine"):
        msdnet.load(tiny.folder, device="cuda")
    with pytest.raises(ValueError, match="option of engine"):
        msdnet.load(tiny.folder, engine="torch", threads=2)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        msdnet.load(tiny.folder, threads=0)
    with pytest.raises(ValueError, match="precision must be one of"):
        msdnet.load(tiny.folder, engine="torch", precision="int8")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="precision tf32 is of NVIDIA GPUs; cpu has float32 and bfloat16"):
        msdnet.load(tiny.folder, engine="torch", device="cpu", precision="tf32")


def test_a_few_images_take_no_space_for_many(tiny: Bundle) -> None:
    """Space for so many would be more than any machine has."""
    model = msdnet.load(tiny.folder, threads=1)
    np.testing.assert_array_equal(model.classify(IMAGES[:3], batch=10**12).labels, model.classify(IMAGES[:3]).labels)
    assert len(model.classify([], batch=10**12).labels) == 0


# One image, until time is up


def test_anytime_answers_exit_after_exit(model: Model) -> None:
    steps = list(model.anytime(IMAGES[0]))
    assert [step.exit for step in steps] == [1, 2, 3]
    assert [step.cost for step in steps] == list(model.costs)
    assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)
    for step, expected in zip(steps, run_all(model.engine, IMAGES[:1]), strict=True):
        np.testing.assert_allclose(step.probabilities, expected[0], atol=1e-5)
        assert step.name == model.classes[step.label]


def test_a_step_is_computed_when_it_is_asked_for(model: Model) -> None:
    """Nothing runs ahead: a caller who stops has paid for nothing more."""
    calls = []
    original = model.engine.advance

    def counted(state: State) -> Any:
        calls.append(state.exits_done)
        return original(state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.engine, "advance", counted)
        next(model.anytime(IMAGES[0]))
    assert calls == [0]


def test_a_deadline_always_gets_an_answer(model: Model) -> None:
    assert {model.answer(IMAGES[0], deadline_ms=given).exit for given in (0, "0ms")} == {1}
    assert model.answer(IMAGES[0], deadline_ms=60_000).exit == 3
    with pytest.raises(ValueError, match="deadline_ms must be at least 0"):
        model.answer(IMAGES[0], deadline_ms=-1)
    with pytest.raises(ValueError, match="a time must be at least 0, got '-1ms'"):
        model.answer(IMAGES[0], deadline_ms="-1ms")


def test_reading_is_part_of_an_answers_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = msdnet.load("cifar10-small")
    model.profile([1], seconds=0.01)
    read = pixels_of

    def slowly(*given: Any) -> Any:
        time.sleep(0.05)
        return read(*given)

    monkeypatch.setattr("msdnet.runtime.model.pixels_of", slowly)
    picture = np.zeros((32, 32, 3), np.uint8)
    late = model.answer(picture, deadline_ms=20)
    assert late.exit == 1
    assert late.seconds > 0.05
    assert next(iter(model.anytime(picture))).seconds > 0.05
    with model.start(picture) as running:
        assert running.wait(10).seconds > 0.05


def test_the_next_stage_starts_only_if_it_fits(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, image = Timed(exits=3), np.zeros((1, 1, 1), np.uint8)
    model = Model(tiny, engine)
    monkeypatch.setattr(time, "perf_counter", lambda: engine.now)
    model.profile([1], seconds=0.01)
    for deadline_ms, exit in ((5, 1), (30, 1), (39, 1), (41, 2), (55, 2), (61, 3), (500, 3)):
        assert model.answer(image, deadline_ms=deadline_ms).exit == exit


def test_a_machine_that_is_busier_than_it_was_answers_from_an_earlier_exit() -> None:
    engine, image, profiled = Timed(exits=3), np.zeros((1, 1, 1), np.uint8), (0.01, 0.01, 0.01)  # half as long
    for end, exits in ((0.035, [1]), (0.041, [1, 2]), (0.055, [1, 2]), (0.061, [1, 2, 3])):
        engine.now = 0.0
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(time, "perf_counter", lambda: engine.now)
            found = steps(engine, image, ("a", "b"), "largest", Deadline(end, profiled), start=0.0)
            assert [step.exit for step in found] == exits


class Hindered(Timed):
    """Another process takes the core away now and then, in the middle of the last stage."""

    now_and_then = True

    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        found = super().logits(state)
        if self.now_and_then and state.exits_done == 2 and len(self.runs[2]) % 3 == 0:
            self.now += 0.1
        return found


def test_deadlines_that_are_missed_again_and_again_make_careful(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, image = Hindered(exits=3), np.zeros((1, 1, 1), np.uint8)
    model = Model(tiny, engine)
    monkeypatch.setattr(time, "perf_counter", lambda: engine.now)
    engine.now_and_then = False
    model.profile([1], seconds=0.01)
    engine.now_and_then = True
    found = [model.answer(image, deadline_ms=70) for _ in range(300)]
    assert sum(step.seconds > 0.07 for step in found) < 30
    assert {step.exit for step in found} == {2, 3}
    engine.now_and_then = False
    assert [model.answer(image, deadline_ms=70).exit for _ in range(100)][-1] == 3, "not for ever"


def test_deadlines_that_nobody_could_meet_do_not_count_as_met(tiny: Bundle) -> None:
    model = Model(tiny, Timed(exits=3))
    for _ in range(20):
        model._margin.note(late=True)
    before = model._margin.factor
    for _ in range(20):
        model.answer(np.zeros((1, 1, 1), np.uint8), deadline_ms=0)
    assert model._margin.factor == before


def test_what_policies_are_made_of_cannot_be_changed_by_others(model: Model) -> None:
    with pytest.raises(ValueError, match="read-only"):
        model.held_out("correct")[:] = True
    model.policy(middle(model)).costs_[0] = 1e9
    assert model.policy(middle(model)).costs_[0] == model.costs[0]


def test_what_the_caller_does_between_answers_makes_no_machine_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, image = Timed(exits=3), np.zeros((1, 1, 1), np.uint8)
    monkeypatch.setattr(time, "perf_counter", lambda: engine.now)
    seen = []
    for step in steps(engine, image, ("a", "b"), "largest", Deadline(0.3, (0.02,) * 3), start=0.0):
        seen.append(step.exit)
        engine.now += 0.1
    assert seen == [1, 2, 3]


def test_a_machine_that_was_busy_when_it_was_profiled_is_not_thought_slow_for_ever() -> None:
    quick = Counting(exits=3)
    image, busy = np.zeros((1, 1, 1), np.uint8), (1.0, 1.0, 1.0)  # a second for each stage, in the profile
    now = time.perf_counter()
    found = steps(quick, image, ("a", "b"), "largest", Deadline(now + 0.5, busy), start=now)
    assert [step.exit for step in found] == [1, 2, 3]


@pytest.mark.parametrize(("left", "fits"), [(0.062, False), (0.063, True)])
def test_the_next_stage_may_be_a_little_slower_than_the_last_ones(
    left: float, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first took half of its time in the profile: the second, of 0.1 s, is given 0.0625."""
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    assert Deadline(left, (0.1, 0.1)).allows(1, computed=0.05) is fits


class Gated(Counting):
    """Waits before each stage until it may go on."""

    def __init__(self) -> None:
        super().__init__(exits=3)
        self.gate = threading.Semaphore(0)

    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        assert self.gate.acquire(timeout=60)
        return super().logits(state)


def test_running_in_the_background_can_be_read_and_stopped(tiny: Bundle) -> None:
    engine, image = Gated(), np.zeros((1, 1, 1), np.uint8)
    running = Model(tiny, engine).start(image)
    assert running.latest() is None
    assert not running.done
    assert repr(running) == "<msdnet.Running: no answer; running>"
    engine.gate.release()
    first = running.wait(timeout=60)
    assert first.exit == 1
    assert repr(running) == f"<msdnet.Running: {first.name} ({first.confidence:.0%} sure) at exit 1; running>"

    def when_asked_to_stop() -> None:
        assert running._stop.wait(timeout=60)
        engine.gate.release()  # the stage it is in, at whose end it stops

    threading.Thread(target=when_asked_to_stop).start()
    last = running.stop()
    assert last is not None
    assert last.exit == 2
    assert running.done
    assert repr(running).endswith(" at exit 2; done>")
    engine.gate.release(3)
    with Model(tiny, engine).start(image) as again:
        while not again.done:
            time.sleep(0.005)
        latest = again.latest()
    assert latest is not None
    assert latest.exit == 3


class Failing(Counting):
    """Breaks after some exits."""

    def __init__(self, after: int) -> None:
        super().__init__(exits=3)
        self.after = after

    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        if state.exits_done == self.after:
            raise RuntimeError("the power is off")
        return super().logits(state)


def test_an_error_in_the_background_is_raised_where_it_is_read(tiny: Bundle) -> None:
    running = Model(tiny, Failing(after=0)).start(np.zeros((1, 1, 1), np.uint8))
    for read in (lambda: running.wait(timeout=5), running.latest, running.stop):
        with pytest.raises(RuntimeError, match="power is off"):
            read()
    assert repr(running) == "<msdnet.Running: no answer; failed>"


def test_an_answer_that_is_there_can_be_read_whatever_comes_after(tiny: Bundle) -> None:
    running = Model(tiny, Failing(after=1)).start(np.zeros((1, 1, 1), np.uint8))
    assert running.wait(timeout=5).exit == 1
    while not running.done:
        time.sleep(0.001)
    latest = running.latest()
    assert latest is not None
    assert latest.exit == 1
    with pytest.raises(RuntimeError, match="power is off"):
        running.stop()


def test_a_bad_image_is_refused_before_anything_starts(model: Model) -> None:
    with pytest.raises(ValueError, match="NaN"):
        model.start(np.full((12, 12, 3), np.nan))


def test_waiting_has_an_end(tiny: Bundle) -> None:
    engine = Gated()
    with Model(tiny, engine).start(np.zeros((1, 1, 1), np.uint8)) as running:
        with pytest.raises(TimeoutError, match=r"no exit has answered within 0\.001 s"):
            running.wait(timeout=0.001)
        engine.gate.release(3)
