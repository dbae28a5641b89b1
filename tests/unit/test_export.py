"""What a bundle takes over from its run: it brings images to their size as the held-out ones were."""

import json
from pathlib import Path

import numpy as np
import pytest

import msdnet
from msdnet.bundle import HELD_OUT
from msdnet.data import ArrayData, DataConfig, open_data
from msdnet.data.folder import FolderData
from msdnet.export import export_run
from msdnet.runtime.tensors import read_tensors
from msdnet.training import Recipe, train
from msdnet.training.display import Display
from msdnet.training.record import describe_data
from tests.helpers import TINY, ColouredSquares, run_here
from tests.unit.test_folder import texture

RECIPE = Recipe(epochs=1, batch_size=8)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> DataConfig:
    """Resized to 30 pixels, of which 12 are left: what is resized to less looks different."""
    root = tmp_path_factory.mktemp("photos")
    for index in range(40):
        path = root / ("train" if index < 36 else "val") / f"class{index % 2}" / f"{index:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        texture((40 + index, 50)).save(path)
    return DataConfig(dataset="folder", root=str(root), crop_size=12, resize=30, held_out=8, workers=0)


@pytest.fixture(scope="module")
def run(photos: DataConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that was given its data opened."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(RECIPE, data=open_data(photos), network=TINY, out=folder, device="cpu", display=Display())
    return folder


def test_a_bundle_sees_images_as_the_held_out_ones_were_seen(run: Path, photos: DataConfig, tmp_path: Path) -> None:
    data = open_data(photos)
    bundle = export_run(run, tmp_path / "bundle", data=data, device="cpu")
    assert bundle.manifest.images.resize == 30
    assert isinstance(data, FolderData)
    answers = msdnet.load(bundle.folder).classify([data.root / path for path in data.paths("held_out")])
    known = read_tensors(bundle, HELD_OUT)["largest"][:, -1]
    assert answers.confidences == pytest.approx(known, abs=1e-4)


def test_the_run_tells_it_where_no_data_are_at_hand(run: Path, tmp_path: Path) -> None:
    bundle = export_run(run, tmp_path / "bundle", held_out=False, device="cpu")
    assert bundle.manifest.images.resize == 30
    assert "resize" not in bundle.manifest.provenance


def test_images_that_are_taken_as_they_are_are_not_resized_to_more(tmp_path: Path) -> None:
    data = ColouredSquares()
    train(RECIPE, data=data, network=TINY, out=tmp_path / "run", device="cpu", display=Display())
    assert export_run(tmp_path / "run", tmp_path / "bundle", data=data, device="cpu").manifest.images.resize == 12


def test_data_that_only_python_has_are_asked_for_in_words_that_help(tmp_path: Path) -> None:
    data = ColouredSquares()
    train(RECIPE, data=data, network=TINY, out=tmp_path / "run", device="cpu", display=Display())
    refused = run_here("export", str(tmp_path / "run"), "--out", str(tmp_path / "bundle"))
    assert "'squares': only Python can give them again, by" in refused.stderr
    assert "export_run(..., data=...); msdnet export --no-held-out does without them" in refused.stderr
    done = run_here("export", str(tmp_path / "run"), "--out", str(tmp_path / "bundle"), "--no-held-out")
    assert done.returncode == 0


def test_data_without_test_images_are_told_before_anything_is_computed(tmp_path: Path) -> None:
    data = ArrayData(np.zeros((40, 12, 12, 3), np.uint8), [0, 1] * 20, ["a", "b"], held_out=8)
    train(Recipe(epochs=1, batch_size=16), data=data, network=TINY, out=tmp_path / "run", device="cpu")
    with pytest.raises(ValueError, match=r"arrays: has no test images to look at \(test, --test\)"):
        export_run(tmp_path / "run", tmp_path / "bundle", data=data, test=True, device="cpu")


def test_data_tell_what_a_network_takes(photos: DataConfig) -> None:
    data = open_data(photos)
    spec = data.image_spec
    assert (spec.side, spec.resize, spec.mean) == (data.image_shape[1], 30, data.normalisation.mean)
    data.image_shape = (3, 12, 14)
    with pytest.raises(ValueError, match="bundles are for square images, and these are 12 x 14"):
        data.image_spec  # noqa: B018


def test_a_resize_that_leaves_too_little_is_told_before_the_training(tmp_path: Path) -> None:
    data = ColouredSquares()
    data.resize = 10
    with pytest.raises(ValueError, match="resize must be at least 12, got 10"):
        train(RECIPE, data=data, network=TINY, out=tmp_path / "run", device="cpu", display=Display())
    assert not (tmp_path / "run").exists()


def test_data_are_described_as_in_the_results_that_are_there(photos: DataConfig) -> None:
    """A field more, and every measurement so far would be refused as one of other images."""
    results = Path(__file__).parents[2] / "results/reproduction/cifar100"
    paths = list(results.glob("*.json"))
    assert paths
    for path in paths:
        assert json.loads(path.read_text())["images"].keys() == describe_data(open_data(photos)).keys() | {"test"}
