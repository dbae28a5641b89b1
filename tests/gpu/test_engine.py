"""The torch engine on a GPU: captured graphs in a few sizes give what the CPU gives. Run with `make test-gpu`."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import msdnet
from msdnet.bundle import Bundle, ImageSpec
from msdnet.export import export_network
from msdnet.networks import create_network
from msdnet.policy import FixedThresholds, confidence
from msdnet.runtime import Model, answers
from msdnet.torch_engine import BUCKETS, TorchEngine
from tests.helpers import TINY, settle, tiny_bundle
from tests.unit.test_runtime import IMAGES, run_all, splitting

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(Path(tmp_path_factory.mktemp("bundles")) / "tiny")


def load(bundle: Bundle, device: str = "cuda") -> Model:
    return msdnet.load(bundle.folder, engine="torch", device=device)


def test_the_gpu_gives_what_the_cpu_gives(bundle: Bundle) -> None:
    on_cpu, on_gpu = run_all(load(bundle, "cpu").engine, IMAGES), run_all(load(bundle).engine, IMAGES)
    for one, other in zip(on_cpu, on_gpu, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("batch", [1, 7, 16, 64])
def test_answers_do_not_depend_on_the_batch(bundle: Bundle, batch: int) -> None:
    model = load(bundle)
    policy = splitting(model)
    reference = model.classify(IMAGES, policy=policy, batch=13, probabilities=True)
    result = model.classify(IMAGES, policy=policy, batch=batch, probabilities=True)
    np.testing.assert_array_equal(result.exits, reference.exits)
    assert result.probabilities is not None
    assert reference.probabilities is not None
    np.testing.assert_allclose(result.probabilities, reference.probabilities, atol=1e-5)


@pytest.mark.parametrize("batch", [3, 16, 64])
def test_images_leave_where_full_evaluation_says(bundle: Bundle, batch: int) -> None:
    """Stages overlap with the handling of results; what comes out is what each image gives alone."""
    model = load(bundle)
    policy = splitting(model)
    alone = [run_all(model.engine, image[None]) for image in IMAGES]
    every = np.array([[confidence(rows[0], policy.measure) for rows in outcomes] for outcomes in alone])
    many, exits = np.tile(IMAGES, (20, 1, 1, 1)), policy.exit_indices(every)
    result = model.classify(many, policy=policy, batch=batch, probabilities=True)
    assert model.engine.ahead == 1
    assert len(set(exits)) == model.engine.exit_count, "the test shows nothing if all leave together"
    np.testing.assert_array_equal(result.exits - 1, np.tile(exits, 20))
    expected = np.array([outcomes[exit][0] for outcomes, exit in zip(alone, exits, strict=True)])
    assert result.probabilities is not None
    np.testing.assert_allclose(result.probabilities, np.tile(expected, (20, 1)), atol=1e-4)


def test_an_error_or_an_early_end_leaves_the_engine_usable(bundle: Bundle) -> None:
    model = load(bundle)
    policy = splitting(model)
    expected = model.classify(IMAGES, policy=policy, batch=8)
    with pytest.raises(ValueError, match="image 40: pixels must be finite"):
        model.classify([*IMAGES[:40], np.full((12, 12, 3), np.nan)], policy=policy, batch=8)
    given = (IMAGES[start : start + 8] for start in range(0, 50, 8))
    started = answers(model.engine, given, FixedThresholds(policy), batch=8)
    next(started)
    started.close()  # type: ignore[attr-defined]
    np.testing.assert_array_equal(model.classify(IMAGES, policy=policy, batch=8).exits, expected.exits)


def test_stages_launched_together_give_what_each_gives_alone(bundle: Bundle) -> None:
    engine = load(bundle).engine
    launched = [engine.launch(engine.begin(IMAGES[start : start + 8])) for start in range(0, 40, 8)]
    expected = run_all(load(bundle, "cpu").engine, IMAGES)
    for number, result in reversed(list(enumerate(launched))):
        first, after = result()
        second, _ = engine.advance(after)
        np.testing.assert_allclose(first, expected[0][8 * number : 8 * number + 8], atol=1e-4)
        np.testing.assert_allclose(second, expected[1][8 * number : 8 * number + 8], atol=1e-4)


def test_shrinking_batches_capture_nothing_anew(bundle: Bundle) -> None:
    engine = load(bundle).engine
    assert isinstance(engine, TorchEngine)
    assert [size for size in BUCKETS if 17 <= size <= 24] == [20, 24]
    for rows in (24, 23, 22, 21, 24):
        run_all(engine, IMAGES[:rows])
    assert len(engine._graphs) == engine.exit_count, "21 to 24 rows are all run as 24"


def test_a_state_stays_good_when_its_stage_runs_again(bundle: Bundle) -> None:
    engine = load(bundle).engine
    _, first = engine.advance(engine.begin(IMAGES[:8]))
    _, second = engine.advance(engine.begin(IMAGES[8:16]))
    after_second, _ = engine.advance(second)
    after_first, _ = engine.advance(first)
    expected = run_all(load(bundle, "cpu").engine, IMAGES)[1]
    np.testing.assert_allclose(after_first, expected[:8], atol=1e-4)
    np.testing.assert_allclose(after_second, expected[8:16], atol=1e-4)


def test_batches_larger_than_any_graph_run_too(bundle: Bundle) -> None:
    engine = load(bundle).engine
    many = np.tile(IMAGES, (1 + BUCKETS[-1] // len(IMAGES), 1, 1, 1))
    assert len(many) > BUCKETS[-1]
    probabilities, _ = engine.advance(engine.begin(many))
    expected, _ = engine.advance(engine.begin(IMAGES))
    np.testing.assert_allclose(probabilities[: len(IMAGES)], expected, atol=1e-4)


@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_lower_precision_is_near(bundle: Bundle, precision: str) -> None:
    fast = msdnet.load(bundle.folder, engine="torch", device="cuda", precision=precision)  # type: ignore[arg-type]
    for exact, near in zip(run_all(load(bundle).engine, IMAGES), run_all(fast.engine, IMAGES), strict=True):
        assert np.abs(exact - near).mean() < 0.05


def test_threads_share_an_engine_and_engines_a_gpu(bundle: Bundle) -> None:
    """Graphs are captured while other threads are at work, on this engine and on another."""
    expected = run_all(load(bundle, "cpu").engine, IMAGES)
    engines = [load(bundle).engine, load(bundle).engine]

    def ask(number: int) -> None:
        rows = 1 + number % len(IMAGES)
        for one, other in zip(run_all(engines[number % 2], IMAGES[:rows]), expected, strict=True):
            np.testing.assert_allclose(one, other[:rows], atol=1e-4)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(60)))


def test_averaged_exits_on_a_gpu(tmp_path: Path) -> None:
    network = settle(create_network(TINY, classes=3, averaging=0.5), side=12)
    spec = ImageSpec(side=12, resize=14, mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3))
    made = export_network(network, tmp_path / "bundle", name="averaged", classes=("a", "b", "c"), images=spec)
    for precision in ("float32", "tf32"):
        engine = TorchEngine(made, device="cuda", precision=precision)
        for one, other in zip(run_all(engine, IMAGES), run_all(load(made, "cpu").engine, IMAGES), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4 if precision == "float32" else 1e-2)
        state = engine.begin(IMAGES)
        _, state = engine.advance(state)
        assert engine.keep(state, np.arange(3)).rows == 3


def test_the_device_is_fixed_when_the_engine_is_made(bundle: Bundle) -> None:
    assert load(bundle).engine.device == torch.device("cuda", torch.cuda.current_device())  # type: ignore[attr-defined]
