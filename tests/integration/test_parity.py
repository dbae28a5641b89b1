"""ONNX Runtime computes what PyTorch computes, at every exit of every preset, from the files of a bundle alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from msdnet import PRESETS, MSDNetConfig, create_network
from msdnet.bundle import Bundle, ImageSpec, stage_file
from msdnet.export import ExportError, export_network
from msdnet.export import export as module
from msdnet.networks import StagedNetwork
from msdnet.runtime import OnnxEngine
from msdnet.torch_engine import TorchEngine
from tests.helpers import SMALL_SYSTEMS, TINY, settle


def side_of(config: MSDNetConfig) -> int:
    return 96 if config.stem == "imagenet" else 32


def exported(network: StagedNetwork, folder: Path, *, side: int, half: bool = False) -> Bundle:
    spec = ImageSpec(side=side, resize=side, mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3))
    classes = [str(number) for number in range(network.config.classes)]
    return export_network(network, folder, name="exported", classes=classes, images=spec, half=half)


@torch.inference_mode()
def expected_logits(network: StagedNetwork, engine: OnnxEngine, images: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
    return [logits.numpy() for logits in network(torch.from_numpy(engine.begin(images).maps["images"]))]


# What is like a smaller one, but deeper.
LARGE = {name for name in PRESETS if name.startswith("imagenet")} - {"imagenet_4"}
LARGE |= {"cifar_batch_6", "cifar_batch_7", "cifar_batch_8"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in PRESETS]
)
def test_engines_agree_for_every_preset(name: str, tmp_path: Path) -> None:
    config = PRESETS[name]
    side = side_of(config)
    network = settle(create_network(config), side=side, batches=1, rows=4)
    engine = OnnxEngine(exported(network, tmp_path / "bundle", side=side), threads=1)
    images = np.random.default_rng(0).integers(0, 256, (3, side, side, 3), dtype=np.uint8)
    state = engine.begin(images)
    for expected in expected_logits(network, engine, images):
        logits, state = engine.logits(state)
        assert np.abs(logits - expected).max() <= 1e-4 * np.abs(expected).max()
    assert not state.maps, "after the last exit nothing is kept"


@pytest.mark.parametrize("averaging", [0.0, 0.5])
def test_averaged_exits_are_exported_too(averaging: float, tmp_path: Path) -> None:
    network = settle(create_network(TINY, classes=5, averaging=averaging), side=16)
    bundle = exported(network, tmp_path / "bundle", side=16)
    images = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    expected = expected_logits(network, OnnxEngine(bundle, threads=1), images)
    for engine in (OnnxEngine(bundle, threads=1), TorchEngine(bundle, device="cpu")):
        for rows, kept in ((np.arange(6), True), (np.arange(1), True), (np.arange(1), False)):
            state = engine.begin(images[rows])
            for exit, whole in enumerate(expected):
                logits, state = engine.logits(state)
                np.testing.assert_allclose(logits, whole[rows], atol=1e-4 * np.abs(whole).max())
                if exit == 0 and kept:
                    rows = rows[-1:]
                    state = engine.keep(state, np.array([state.rows - 1]))
            assert not state.maps


@pytest.mark.parametrize("system", SMALL_SYSTEMS)
def test_other_systems_are_bundles_too(system: str, tmp_path: Path) -> None:
    network = settle(create_network(SMALL_SYSTEMS[system]))
    bundle = exported(network, tmp_path / "bundle", side=32)
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    engine = OnnxEngine(bundle, threads=1)
    state = engine.begin(images)
    for expected in expected_logits(network, engine, images):
        logits, state = engine.logits(state)
        np.testing.assert_allclose(logits, expected, atol=1e-4 * np.abs(expected).max())
    assert not state.maps


@pytest.mark.parametrize("name", ["imagenet_resnet_10", "imagenet_densenet_37", "imagenet_googlenet"])
def test_torchvisions_are_bundles_too(name: str, tmp_path: Path) -> None:
    network = settle(create_network(name, classes=5), side=64)
    engine = OnnxEngine(exported(network, tmp_path / "bundle", side=64), threads=1)
    images = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)
    (expected,) = expected_logits(network, engine, images)
    logits, state = engine.logits(engine.begin(images))
    np.testing.assert_allclose(logits, expected, atol=1e-4 * np.abs(expected).max())
    assert not state.maps


@pytest.mark.parametrize("half", [False, True])
def test_each_stage_is_a_graph_of_its_own(tmp_path: Path, half: bool) -> None:
    """Anyone with ONNX Runtime can run them, by their names, without this package."""
    network = settle(create_network(TINY, classes=5), side=16)
    bundle = exported(network, tmp_path / "bundle", side=16, half=half)
    images = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    engine = OnnxEngine(bundle, threads=1)
    maps = dict(engine.begin(images).maps)
    rounded = network.half().float() if half else network
    for exit, expected in enumerate(expected_logits(rounded, engine, images)):
        session = onnxruntime.InferenceSession(bundle.folder / stage_file(exit), providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_outputs()]
        assert names[0] == "logits"
        assert all(value.shape[0] == "rows" for value in session.get_inputs())
        results = session.run(names, {value.name: maps[value.name] for value in session.get_inputs()})
        maps.update(zip(names, results, strict=True))
        np.testing.assert_allclose(results[0], expected, atol=1e-4 * np.abs(expected).max())


def test_half_precision_halves_the_weights(tmp_path: Path) -> None:
    network = settle(create_network(TINY, classes=5), side=16)
    sizes = []
    for half in (False, True):
        bundle = exported(network, tmp_path / str(half), side=16, half=half)
        sizes.append((bundle.folder / "weights.safetensors").stat().st_size)
    assert sizes[1] < 0.7 * sizes[0]  # names take their place too


def test_weights_too_large_for_half_precision_are_refused(tmp_path: Path) -> None:
    network = settle(create_network(TINY, classes=5), side=16)
    with torch.no_grad():
        network.heads[0][-1].weight[0, 0] = 1e6  # type: ignore[index]
    with pytest.raises(ExportError, match="too large for half precision"):
        exported(network, tmp_path / "bundle", side=16, half=True)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_does_not_agree_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLERANCE", 0.0)
    network = settle(create_network(TINY, classes=5), side=16)
    with pytest.raises(ExportError, match="exit 1: ONNX Runtime and PyTorch differ"):
        exported(network, tmp_path / "bundle", side=16)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_never_overwritten(tmp_path: Path) -> None:
    network = settle(create_network(TINY, classes=5), side=16)
    bundle = exported(network, tmp_path / "bundle", side=16)
    before = bundle.fingerprint
    with pytest.raises(FileExistsError, match="is there already"):
        exported(network, tmp_path / "bundle", side=16)
    assert Bundle(bundle.folder).fingerprint == before


def test_a_bundle_runs_without_torch(tiny: Bundle) -> None:
    """A process in which torch cannot be imported classifies all the same."""
    code = f"""
import sys
for name in ("torch", "torchvision", "onnx", "pooch"):
    sys.modules[name] = None
import numpy as np, msdnet
model = msdnet.load({str(tiny.folder)!r})
images = np.zeros((5, 12, 12, 3), np.uint8)
assert len(model.classify(images, budget=model.costs[1])) == 5
assert [step.exit for step in model.anytime(images[0])] == [1, 2, 3]
try:
    msdnet.load({str(tiny.folder)!r}, engine="torch")
except ImportError as error:
    assert "pip install '.[train]'" in str(error), error
else:
    raise AssertionError("torch is not there")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_sessions_in_the_process_are_left_alone(tiny: Bundle) -> None:
    OnnxEngine(tiny)
    session = onnxruntime.InferenceSession(tiny.folder / stage_file(0), providers=["CPUExecutionProvider"])
    assert session.run(None, {"images": np.zeros((1, 3, 12, 12), np.float32)})[0].shape == (1, 3)
