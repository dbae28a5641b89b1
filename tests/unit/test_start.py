"""Networks that were trained before: taken as they are, or to start another training with."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import msdnet
from msdnet.bundle import CARD, RUN, Bundle
from msdnet.data import ArrayData, ImageData, Normalisation
from msdnet.export import export_run
from msdnet.networks import create_network
from msdnet.samples import cifar10
from msdnet.training import Recipe, load_run, resume, train
from msdnet.training.checkpoint import load_tensors
from msdnet.training.display import Display
from msdnet.training.recipe import Optimiser
from msdnet.training.start import find_start
from msdnet.training.trainer import MODEL
from tests.helpers import TINY, ColouredSquares, run_here

RECIPE = Recipe(name="quick", epochs=1, batch_size=16, average_decay=0.9)
# Nothing is learnt: weights stay what they were at the start, to a few digits.
STILL = dataclasses.replace(RECIPE, optimiser=Optimiser(learning_rate=1e-9, weight_decay=0))
LAST = [f"heads.{exit}.4" for exit in range(3)]  # the linear layers


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("runs") / "first", recipe=RECIPE, network=TINY)


def run(out: Path, *, data: ImageData | None = None, recipe: Recipe = STILL, **options: Any) -> Path:
    train(recipe, data=data or ColouredSquares(), out=out, device="cpu", display=Display(), **options)
    return out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """But those that no optimiser changes."""
    return {name: t for name, t in load_tensors(folder / MODEL)[0].items() if "running" not in name and t.dim()}


def renamed(*classes: str) -> ImageData:
    """The same images by other names, some of them under one."""
    data = ColouredSquares()
    data.classes = classes
    data._labels = data._labels % len(classes)
    return data


def test_a_models_network_answers_as_the_model_does() -> None:
    model, pixels = msdnet.load("cifar10-small"), cifar10().images[:6]
    network = msdnet.load_network("cifar10-small")
    assert not network.training
    spec = model.manifest.images
    images = Normalisation(spec.mean, spec.std)(torch.from_numpy(pixels).permute(0, 3, 1, 2))
    state = model.engine.begin(pixels)
    with torch.inference_mode():
        for logits in network(images):
            expected, state = model.engine.logits(state)
            assert np.allclose(logits.numpy(), expected, atol=1e-3)


def test_a_runs_network_is_loaded_like_a_models(first: Path) -> None:
    images = torch.randn(2, 3, 12, 12)
    expected = load_run(first, device="cpu", open_data=False).network(images)
    for logits, reference in zip(msdnet.load_network(first)(images), expected, strict=True):
        assert torch.equal(logits, reference)
    with pytest.raises(FileNotFoundError, match="no folder and no model of the package is called 'cifar10-smal'"):
        msdnet.load_network("cifar10-smal")


@pytest.mark.parametrize("kind", ["run", "bundle"])
def test_a_training_starts_with_the_weights_it_is_given(first: Path, tmp_path: Path, kind: str) -> None:
    data, start = ColouredSquares(), first
    if kind == "bundle":
        start = export_run(first, tmp_path / "bundle", data=data, device="cpu").folder
    out = run(tmp_path / "out", start=start, seed=5)
    assert weights(out).keys() == weights(first).keys()
    for name, tensor in weights(out).items():
        assert torch.allclose(tensor, weights(first)[name], atol=1e-6), name
    drawn = run(tmp_path / "drawn", network=TINY, seed=5)
    assert not torch.allclose(weights(drawn)[f"{LAST[0]}.weight"], weights(first)[f"{LAST[0]}.weight"], atol=1e-2)


@pytest.mark.parametrize("classes", [("red", "other"), ("red", "green", "violet")], ids=["fewer", "others"])
def test_what_depends_on_the_classes_is_made_anew(first: Path, tmp_path: Path, classes: tuple[str, ...]) -> None:
    out = weights(run(tmp_path / "out", data=renamed(*classes), start=first, seed=5))
    torch.manual_seed(5)
    fresh = create_network(TINY, classes=len(classes)).state_dict()
    for name, tensor in out.items():
        source = fresh if name.rpartition(".")[0] in LAST else weights(first)
        assert torch.allclose(tensor, source[name], atol=1e-6), name


def test_a_network_that_differs_in_no_weight_may_be_another(first: Path, tmp_path: Path) -> None:
    averaging = dataclasses.replace(TINY, averaging=1.0)
    out = weights(run(tmp_path / "out", network=averaging, start=first))
    assert torch.allclose(out[f"{LAST[1]}.weight"], weights(first)[f"{LAST[1]}.weight"], atol=1e-6)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (dataclasses.replace(TINY, head_width=16), "of another network: head_width: 8 there, 16 here$"),
        (dataclasses.replace(TINY, exits=(1, 2)), r"of another network: exits: \(1, 2, 3\) there, \(1, 2\) here$"),
        ("resnet_20", "of another network: a msdnet, not a resnet$"),
    ],
)
def test_refuses_the_weights_of_another_network(first: Path, tmp_path: Path, network: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "out", network=network, start=first)
    assert not (tmp_path / "out").exists()


def test_grey_images_do_not_fit_a_network_for_colour(first: Path, tmp_path: Path) -> None:
    grey = ArrayData(np.zeros((40, 12, 12, 1), np.uint8), np.arange(40) % 3, ("red", "green", "blue"), held_out=8)
    with pytest.raises(ValueError, match=r"of another network: input_channels: 3 there, 1 here$"):
        run(tmp_path / "out", data=grey, start=first)


def test_a_run_tells_what_it_started_with_and_goes_on_exactly(first: Path, tmp_path: Path) -> None:
    before = Path(shutil.copytree(first, tmp_path / "before"))
    out = run(tmp_path / "out", recipe=RECIPE, start=before)
    facts = json.loads((out / RUN).read_text())["start"]
    assert (facts["name"], facts["folder"]) == ("before", str(before))
    (tmp_path / "again").mkdir()
    shutil.copy(out / RUN, tmp_path / "again")  # as it is until the first checkpoint
    resume(tmp_path / "again", data=ColouredSquares(), device="cpu", display=Display())
    for name, tensor in weights(out).items():
        assert torch.equal(weights(tmp_path / "again")[name], tensor), name


def test_a_run_that_has_not_begun_refuses_another_start(first: Path, tmp_path: Path) -> None:
    before = Path(shutil.copytree(first, tmp_path / "before"))
    out = run(tmp_path / "out", start=before)
    for file in out.iterdir():
        if file.is_file() and file.name != RUN:
            file.unlink()
    shutil.rmtree(before)
    run(before, network=TINY, seed=9)
    options: dict[str, Any] = {"data": ColouredSquares(), "device": "cpu", "display": Display()}
    with pytest.raises(ValueError, match="before: other weights than the run was started with"):
        resume(out, **options)
    shutil.rmtree(before)
    with pytest.raises(FileNotFoundError, match="has no checkpoint yet, and would start with its weights"):
        resume(out, **options)


def test_a_run_with_a_checkpoint_goes_on_without_its_start(first: Path, tmp_path: Path) -> None:
    before = Path(shutil.copytree(first, tmp_path / "before"))
    out = run(tmp_path / "out", start=before)
    shutil.rmtree(before)
    (out / "summary.json").unlink()
    assert resume(out, data=ColouredSquares(), device="cpu", display=Display()).epochs == 1


def test_a_bundle_tells_what_its_run_started_with_but_not_where_that_was(first: Path, tmp_path: Path) -> None:
    bundle: Bundle = export_run(
        run(tmp_path / "out", start=first), tmp_path / "bundle", data=ColouredSquares(), device="cpu"
    )
    assert bundle.manifest.provenance["start"].keys() == {"name", "weights"}
    assert "- Started with the weights of first\n" in (bundle.folder / CARD).read_text()


def test_the_command_takes_it_for_a_new_run_alone(first: Path) -> None:
    refused = run_here("train", "--resume", str(first), "--start", "cifar10-small")
    assert "--resume goes on as the run was started" in refused.stderr
    unknown = run_here(
        "train", "fast", "--out", str(first.parent / "new"), "--start", "nowhere", "--dataset", "cifar10"
    )
    assert unknown.stderr.startswith("msdnet: no folder and no model of the package is called 'nowhere'")


def test_a_run_of_a_models_name_hides_no_model(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cifar10-small").symlink_to(first)
    assert find_start("cifar10-small").classes == msdnet.load("cifar10-small").classes
    assert find_start("./cifar10-small").classes == find_start(first).classes != find_start("cifar10-small").classes


def test_a_start_knows_the_size_of_its_images(first: Path) -> None:
    assert find_start(first).side == json.loads((first / "run.json").read_text())["images"]["shape"][-1]
    assert find_start("cifar10-small").side == 32
