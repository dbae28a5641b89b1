"""Networks that are not in the package: known by a config and what builds it, or, in a bundle, not at all."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

import msdnet
from msdnet.bundle import Bundle, Manifest
from msdnet.config import NetworkConfig, UnknownKindError, UnknownNetwork
from msdnet.data import ImageData
from msdnet.export import export_network, export_run
from msdnet.networks import _BUILDERS, Chain, StagedNetwork, State, create_network, empty_network
from msdnet.systems import EnsembleConfig, ResNetConfig
from msdnet.torch_engine import TorchEngine
from msdnet.training import Interrupted, Recipe, resume, train
from msdnet.training.checkpoint import load_tensors
from msdnet.training.display import Display
from tests.helpers import ColouredSquares, run_here
from tests.unit.test_training import StopAt

RECIPE = Recipe(name="quick", epochs=1, batch_size=16)
UNKNOWN = "got 'own' .*once the module that defines it is imported; on the command line: msdnet --import MODULE"


@dataclass(frozen=True, kw_only=True)
class OwnConfig(NetworkConfig, kind="own"):
    width: int = 4
    dropout: float = 0.0
    repeats: int = 1
    names: tuple[str, ...] = ("a", "b")

    @property
    def exit_layers(self) -> tuple[int, ...]:
        return 1, 2


class Own(Chain):
    def __init__(self, config: OwnConfig) -> None:
        sizes = ((config.input_channels, config.width), (config.width, 2 * config.width))
        stages: list[nn.Module] = [nn.Conv2d(*size, kernel_size=3, stride=2, padding=1) for size in sizes]
        again = nn.Conv2d(config.width, config.width, kernel_size=1)  # one and the same, several times
        stages[0] = nn.Sequential(stages[0], *[again] * (config.repeats - 1))
        stages[1] = nn.Sequential(nn.Dropout(config.dropout), stages[1])
        heads = [
            nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(out, config.classes)) for _, out in sizes
        ]
        super().__init__(config, stages, heads)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as a test: other tests do not know it."""
    monkeypatch.setitem(_BUILDERS._entries, "own", Own)
    monkeypatch.setitem(NetworkConfig._kinds._entries, "own", OwnConfig)


del NetworkConfig._kinds._entries["own"]


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """As in a process that has not imported this module."""

    def forget() -> None:
        monkeypatch.delitem(_BUILDERS._entries, "own")
        monkeypatch.delitem(NetworkConfig._kinds._entries, "own")

    return forget


def exported(folder: Path, network: StagedNetwork, data: ImageData) -> Bundle:
    spec, held_out = data.image_spec, data.batches("held_out", 16)
    return export_network(network, folder, classes=data.classes, images=spec, held_out=held_out)


def test_it_is_trained_resumed_exported_and_run(tmp_path: Path) -> None:
    data = ColouredSquares()
    summary = train(RECIPE, data=data, network=OwnConfig(), out=tmp_path / "run", device="cpu", display=Display())
    assert summary.costs == create_network(OwnConfig(classes=3)).costs(12)
    (tmp_path / "run/summary.json").unlink()
    assert resume(tmp_path / "run", data=data, device="cpu", display=Display()).costs == summary.costs
    bundle = export_run(tmp_path / "run", tmp_path / "bundle", data=data, device="cpu")
    assert bundle.manifest.network == OwnConfig(classes=3)
    assert bundle.manifest.images == data.image_spec
    pixels = np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3), dtype=np.uint8)
    answers = [msdnet.load(bundle.folder, engine=engine).classify(pixels).labels for engine in ("onnx", "torch")]
    assert answers[0].tolist() == answers[1].tolist()


def test_what_it_drops_out_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """By torch's own random numbers, which it draws without our knowing."""
    recipe, network = replace(RECIPE, epochs=3), OwnConfig(dropout=0.5)
    settings: dict[str, Any] = {"data": ColouredSquares(), "device": "cpu"}
    train(recipe, network=network, out=tmp_path / "whole", display=Display(), **settings)
    with pytest.raises(Interrupted):
        train(recipe, network=network, out=tmp_path / "parts", display=StopAt(8), **settings)
    resume(tmp_path / "parts", display=Display(), **settings)
    whole, parts = (load_tensors(tmp_path / out / "model.safetensors")[0] for out in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.parametrize("half", [False, True])
def test_a_layer_that_is_used_twice_is_in_a_graph_once(half: bool, tmp_path: Path) -> None:
    network, data = create_network(OwnConfig(classes=3, repeats=3)), ColouredSquares()
    bundle = export_network(network, tmp_path / "bundle", classes=data.classes, images=data.image_spec, half=half)
    for name in ("stage_01.onnx", "stage_02.onnx"):
        onnx.checker.check_model(onnx.load(bundle.folder / name))


def test_a_bundle_of_an_unknown_kind_classifies(tmp_path: Path, forget: Callable[[], None]) -> None:
    bundle = exported(tmp_path / "bundle", create_network(OwnConfig(classes=3)), ColouredSquares())
    pixels = np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3), dtype=np.uint8)
    before = msdnet.load(bundle.folder).classify(pixels, budget="80%")
    forget()
    model = msdnet.load(bundle.folder)
    assert model.classify(pixels, budget="80%").labels.tolist() == before.labels.tolist()
    told = model.manifest.network
    assert isinstance(told, UnknownNetwork)
    assert (told.kind, told.classes, told.to_json()) == ("own", 3, bundle.manifest.network.to_json())
    assert Manifest.from_json(model.manifest.to_json()) == model.manifest
    assert model.manifest.exit_count == 2


def test_what_needs_the_network_says_what_to_do(tmp_path: Path, forget: Callable[[], None]) -> None:
    data, run = ColouredSquares(), tmp_path / "run"
    train(RECIPE, data=data, network=OwnConfig(), out=run, device="cpu", display=Display())
    (run / "summary.json").unlink()
    exported(tmp_path / "bundle", create_network(OwnConfig(classes=3)), data)
    forget()
    unknown = Bundle(tmp_path / "bundle").manifest.network
    for needs in (
        lambda: msdnet.load(tmp_path / "bundle", engine="torch"),
        lambda: msdnet.load_network(tmp_path / "bundle"),
        lambda: create_network(unknown),
        lambda: unknown.exit_layers,
        lambda: unknown.depth,
        lambda: unknown.smallest_side,
        lambda: resume(run, data=data, device="cpu"),
        lambda: export_run(run, tmp_path / "again", data=data, device="cpu"),
    ):
        with pytest.raises(UnknownKindError, match=UNKNOWN):
            needs()


def test_what_became_known_since_the_bundle_was_read_is_known(
    tmp_path: Path, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(tmp_path / "bundle", create_network(OwnConfig(classes=3)), ColouredSquares())
    forget()
    bundle = Bundle(tmp_path / "bundle")
    monkeypatch.setitem(_BUILDERS._entries, "own", Own)
    monkeypatch.setitem(NetworkConfig._kinds._entries, "own", OwnConfig)
    assert isinstance(TorchEngine(bundle, device="cpu").network, Own)


def test_an_ensemble_with_an_unknown_member_classifies_too(tmp_path: Path, forget: Callable[[], None]) -> None:
    members = (OwnConfig(), ResNetConfig(layers=8))
    network = create_network(EnsembleConfig(members=members, classes=3))
    exported(tmp_path / "bundle", network, ColouredSquares())
    forget()
    model = msdnet.load(tmp_path / "bundle")
    assert len(model.classify(np.zeros((2, 12, 12, 3), np.uint8)).labels) == 2
    assert model.manifest.network.kind == "ensemble"
    with pytest.raises(UnknownKindError, match=UNKNOWN):
        msdnet.load(tmp_path / "bundle", engine="torch")


def test_the_command_shows_it_without_knowing_it(tmp_path: Path, forget: Callable[[], None]) -> None:
    exported(tmp_path / "bundle", create_network(OwnConfig(classes=3)), ColouredSquares())
    forget()
    shown = run_here("show", str(tmp_path / "bundle"))
    assert shown.stdout.startswith(f"{tmp_path / 'bundle'}: own, 2 exits\n")
    assert shown.stderr == ""


def test_a_config_without_a_builder_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(_BUILDERS._entries, "own")
    with pytest.raises(
        ValueError, match=r"nothing is known to build a OwnConfig: register_network\(OwnConfig, \.\.\.\)"
    ):
        msdnet.create_network(OwnConfig())
    msdnet.register_network(OwnConfig, Own)
    assert isinstance(msdnet.create_network(OwnConfig(), classes=7), Own)


def test_what_is_defined_again_in_a_notebook_takes_the_place_of_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"__name__": "__main__", "NetworkConfig": NetworkConfig, "Chain": Chain, "msdnet": msdnet}
    monkeypatch.setitem(NetworkConfig._kinds._entries, "cell", OwnConfig)
    monkeypatch.setitem(_BUILDERS._entries, "cell", Own)
    code = (
        "class Cell(NetworkConfig, kind='cell'): pass\nclass Built(Chain): pass\nmsdnet.register_network(Cell, Built)"
    )
    with pytest.raises(ValueError, match="kind of network 'cell' is registered already"):
        exec(code, cell)
    del NetworkConfig._kinds._entries["cell"], _BUILDERS._entries["cell"]
    exec(code, cell)
    first = cell["Built"]
    exec(code, cell)
    assert _BUILDERS["cell"] is cell["Built"] is not first


def test_refuses_what_cannot_be_registered() -> None:
    with pytest.raises(TypeError, match=r"config must be a class of configs .* got OwnConfig\(classes=100"):
        msdnet.register_network(OwnConfig(), Own)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"config must be a class of configs .*NetworkConfig'>"):
        msdnet.register_network(NetworkConfig, Own)  # type: ignore[type-abstract]
    with pytest.raises(TypeError, match="build must be a network's class or a function of a config, got 'Own'"):
        msdnet.register_network(OwnConfig, "Own")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="network of the kind 'own' is registered already"):
        msdnet.register_network(OwnConfig, lambda config: Own(config))


def test_a_config_comes_back_from_a_file_as_it_was() -> None:
    config = OwnConfig(width=2, names=("c",))
    assert NetworkConfig.from_json(config.to_json()) == config


def test_a_config_has_its_last_exit_at_the_end_and_takes_any_image_unless_it_says_otherwise() -> None:
    assert (OwnConfig().depth, OwnConfig().smallest_side) == (2, 1)
    assert len(create_network(OwnConfig())(torch.zeros(1, 3, 1, 1))) == 2


# The module that defines it, on the command line


OWN = """
from tests.unit.test_own_networks import Own, OwnConfig
from msdnet import NetworkConfig, register_network
NetworkConfig._kinds.register("own", OwnConfig)
register_network(OwnConfig, Own)
"""


def test_a_command_imports_it_first(
    tmp_path: Path, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")  # what the command adds to the path is gone afterwards
    forget()
    Path("own_network.py").write_text(OWN)
    Path("network.json").write_text('{"kind": "own", "width": 2}')
    assert UNKNOWN.partition(" ")[0] in run_here("show", "network.json").stderr
    shown = run_here("--import", "own_network", "show", "network.json", "--image-size", "32")
    assert shown.stdout.startswith("network.json: own, 2 exits\n")


def test_a_module_that_is_not_there_is_told_from_one_that_needs_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    done = run_here("--import", "nowhere", "models")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "msdnet: --import nowhere: no module of this name is in this folder, or installed\n"
    Path("needy.py").write_text("import nowhere_else")
    with pytest.raises(ModuleNotFoundError, match="nowhere_else"):
        run_here("--import", "needy", "models")


class CountsFromTheStart(Own):
    """Does some of its work before the first stage."""

    def start(self, images: Tensor, *, lazy: bool) -> State:
        return super().start(nn.functional.conv2d(images, torch.ones(3, 3, 1, 1, device=images.device)), lazy=lazy)


def test_what_is_done_before_the_first_stage_is_part_of_what_it_costs() -> None:
    plain, more = (kind(OwnConfig(classes=3)).costs(8) for kind in (Own, CountsFromTheStart))
    assert [a - b for a, b in zip(more, plain, strict=True)] == [9 * 8 * 8] * len(plain)


class HalvesWhatItSees(Own):
    """Has a number that is not among its weights: it follows from how the network is made."""

    def __init__(self, config: OwnConfig) -> None:
        super().__init__(config)
        self.register_buffer("scale", torch.full((1,), 0.5), persistent=False)

    def start(self, images: Tensor, *, lazy: bool) -> State:
        return super().start(images * self.get_buffer("scale"), lazy=lazy)


def test_what_is_not_among_the_weights_is_as_the_network_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_BUILDERS._entries, "own", HalvesWhatItSees)
    before = torch.get_rng_state()
    assert empty_network(OwnConfig()).get_buffer("scale").tolist() == [0.5]
    assert torch.equal(torch.get_rng_state(), before)
    data = ColouredSquares()
    train(RECIPE, data=data, network=OwnConfig(), out=tmp_path / "run", device="cpu", display=Display())
    assert msdnet.load_network(tmp_path / "run").get_buffer("scale").tolist() == [0.5]
