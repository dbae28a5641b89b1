"""A bundle is read as it was written, or not at all."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import msdnet
from msdnet.amounts import in_millions
from msdnet.bundle import CARD, HELD_OUT, MANIFEST, STAGES, WEIGHTS, Bundle, ImageSpec, Manifest
from msdnet.card import write_card
from msdnet.export import export as exporting
from msdnet.models import find_bundle
from tests.helpers import tiny_bundle


@pytest.fixture
def copied(tiny: Bundle, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny.folder, tmp_path / "copy"))


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = json.loads((folder / MANIFEST).read_text())
    change(values)
    (folder / MANIFEST).write_text(json.dumps(values))


def test_the_manifest_comes_back_as_it_was(tiny: Bundle) -> None:
    assert Manifest.from_json(tiny.manifest.to_json()) == tiny.manifest
    assert tiny.manifest.files.keys() == {WEIGHTS, HELD_OUT, STAGES, "stage_01.onnx", "stage_02.onnx", "stage_03.onnx"}


def test_there_is_nothing_in_the_folder_that_the_manifest_does_not_name(tiny: Bundle) -> None:
    assert {path.name for path in tiny.folder.iterdir()} == {*tiny.manifest.files, MANIFEST, CARD}


@pytest.mark.parametrize("name", [WEIGHTS, HELD_OUT, STAGES])
def test_a_missing_file_is_named(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name}: missing from the bundle"):
        msdnet.load(copied)


@pytest.mark.parametrize("name", [WEIGHTS, HELD_OUT, STAGES])
def test_a_truncated_file_is_refused(copied: Path, name: str) -> None:
    (copied / name).write_bytes((copied / name).read_bytes()[:-7])
    with pytest.raises(ValueError, match=f"{name}: damaged or altered"):
        msdnet.load(copied)


@pytest.mark.parametrize("name", [WEIGHTS, HELD_OUT, STAGES, "stage_02.onnx"])
@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_a_single_flipped_bit_is_noticed(copied: Path, name: str, engine: Any) -> None:
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    with pytest.raises(ValueError, match="damaged or altered"):
        msdnet.load(copied, engine=engine)


def test_a_manifest_of_a_newer_version_says_so(copied: Path) -> None:
    edit(copied, lambda values: values.update(format=99, new_field=1))
    with pytest.raises(ValueError, match="format 99 is newer than this version of msdnet reads"):
        msdnet.load(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.pop("costs"), "must have the field 'costs'"),
        (lambda v: v.update(costs=v["costs"][:-1]), "costs must have a number for each of 3 exits"),
        (lambda v: v.update(costs=v["costs"][::-1]), "costs must increase"),
        (lambda v: v.update(classes=["one"]), "classes must be 3 names, got 1"),
        (lambda v: v["images"].update(std=[0.1, 0.0, 0.1]), "std must be"),
        (lambda v: v["images"].update(mean=[0.1]), "1 or 3 channels"),
        (lambda v: v["files"].pop(WEIGHTS), f"checksum of {WEIGHTS}"),
        (lambda v: v.update(temperatures=[1, 0, 1]), "temperatures must be"),
        (lambda v: v["network"].update(scales="two"), "scales must be a whole number"),
        (lambda v: v.update(colour="red"), "no field 'colour'"),
        (lambda v: v.pop("format"), "must have the field 'format'"),
        (lambda v: v.update(files=[]), "files must be a table"),
        (lambda v: v.update(network=None), "network and images must be tables"),
        (lambda v: v.update(images=None), "network and images must be tables"),
        (lambda v: v.update(classes="abc"), "classes must be a list of names"),
        (lambda v: v.update(provenance=5), "provenance must be a table of fields, got 5"),
        (lambda v: v.update(provenance={"data": None}), "provenance: data must be a table of fields, got None"),
        (lambda v: v.update(provenance={"recipe": "mine"}), "provenance: recipe must be a table of fields, got 'mine'"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(copied: Path, change: Any, message: str) -> None:
    edit(copied, change)
    with pytest.raises((ValueError, TypeError), match=message):
        Bundle(copied)


def test_broken_json_and_an_empty_folder_are_told_apart(copied: Path, tmp_path: Path) -> None:
    (copied / MANIFEST).write_text("{")
    with pytest.raises(ValueError, match=r"manifest\.json: manifest: not JSON"):
        Bundle(copied)
    (copied / MANIFEST).write_bytes(b"{\xff")
    with pytest.raises(ValueError, match=r"manifest\.json: damaged \(it is no text\); get the bundle again"):
        Bundle(copied)
    with pytest.raises(FileNotFoundError, match="no bundle is there"):
        Bundle(tmp_path / "nowhere")
    (tmp_path / "run.json").touch()
    with pytest.raises(FileNotFoundError, match="a training run is there: msdnet export"):
        Bundle(tmp_path)


def test_bundles_of_different_weights_have_different_fingerprints(tiny: Bundle, tmp_path: Path) -> None:
    assert Bundle(tiny.folder).fingerprint == tiny.fingerprint
    assert tiny_bundle(tmp_path / "other", seed=5).fingerprint != tiny.fingerprint


def test_an_image_is_never_cropped_larger_than_it_is_resized() -> None:
    with pytest.raises(ValueError, match="resize must be at least 32"):
        ImageSpec(side=32, resize=30, mean=(0.5,), std=(0.5,))


def test_a_bundle_of_an_older_format_is_refused(copied: Path) -> None:
    edit(copied, lambda values: values.update(format=1))
    with pytest.raises(ValueError, match="format 1 is of an older msdnet than this reads"):
        msdnet.load(copied)


def test_a_fingerprint_is_of_the_model_alone(copied: Path) -> None:
    before = Bundle(copied).fingerprint
    edit(copied, lambda values: values.update(name="another", provenance={"told": "later"}))
    assert Bundle(copied).fingerprint == before
    edit(copied, lambda values: values.update(classes=["a", "b", "c"]))
    edit(copied, lambda values: values["images"].update(resize=20))
    assert Bundle(copied).fingerprint == before, "thresholds are fitted to none of these"
    edit(copied, lambda values: values.update(temperatures=[2.0, 2.0, 2.0]))
    assert Bundle(copied).fingerprint != before


def test_results_that_are_kept_know_their_models_again() -> None:
    results = Path(__file__).parents[2] / "results"
    kept = json.loads((results / "reproduction/gallery.json").read_text())
    kept_too, *_ = json.loads((results / "policies_trained_cpu.json").read_text())["models"]
    for told in (kept, kept_too):
        assert find_bundle(told["model"]).fingerprint == told["fingerprint"]


def test_the_card_tells_what_the_manifest_says(tiny: Bundle) -> None:
    card = (tiny.folder / CARD).read_text()
    manifest = tiny.manifest
    assert manifest.held_out is not None
    assert f"tells 3 classes apart in images of 12 x 12 pixels, for {in_millions(manifest.costs[0])} to" in card
    for accuracy in manifest.held_out.accuracy:
        assert f"| {100 * accuracy:.2f} |" in card
    budgets = [line.split(" | ") for line in card.partition("## Budgets")[2].splitlines() if line.startswith("| ")][1:]
    spent = [row[1] for row in budgets]
    assert len(spent) > 1
    assert spent == sorted(set(spent), key=float), "none does what the one above it does"
    (tiny.folder / CARD).unlink()
    msdnet.load(tiny.folder)  # nothing depends on it
    (tiny.folder / CARD).write_text(card)


def test_names_of_classes_do_not_break_the_card(tiny: Bundle) -> None:
    card = write_card(dataclasses.replace(tiny.manifest, classes=("a\nb", "<script>", "c")), None)
    assert "Classes: a\\nb, &lt;script>, c.\n" in card


def test_the_card_says_nothing_of_a_training_that_it_does_not_know(tiny: Bundle) -> None:
    told = dataclasses.replace(tiny.manifest, provenance={"recipe": {"optimiser": "adamw"}})
    assert write_card(told, None) == write_card(tiny.manifest, None)


@pytest.mark.parametrize(
    ("data", "epochs", "told"),
    [
        ({"dataset": "folder"}, 1, ["Data: a folder of images for each class; 60 training images", ", 1 epoch in "]),
        ({"dataset": "cifar10"}, 2, ["Data: cifar10; 60 training images held out", ", 2 epochs in batches of 8"]),
        ({"name": "my squares"}, 2, ["Data: my squares; "]),
    ],
)
def test_the_card_tells_of_the_training(tiny: Bundle, data: dict[str, str], epochs: int, told: list[str]) -> None:
    recipe = {"name": "fast", "epochs": epochs, "batch_size": 8}
    manifest = dataclasses.replace(tiny.manifest, provenance={"recipe": recipe, "data": data})
    card = write_card(manifest, None)
    assert all(words in card for words in told)
    without = write_card(dataclasses.replace(manifest, held_out=None), None)
    assert "its held-out images are not in this bundle, so that no budget can be set" in without
    assert "\n\n\n" not in card + without, "nothing is said of what there is nothing to say of"


def test_of_two_exports_to_one_place_the_first_to_end_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = exporting._check
    made: list[Bundle] = []

    def disturbed(network: Any, bundle: Bundle) -> None:
        if not made:
            made.append(bundle)
            made.append(tiny_bundle(tmp_path / "bundle", seed=5))
        check(network, bundle)

    monkeypatch.setattr(exporting, "_check", disturbed)
    with pytest.raises(FileExistsError, match="bundle: is there already; remove it or choose another place"):
        tiny_bundle(tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == [tmp_path / "bundle"]
    assert Bundle(tmp_path / "bundle").fingerprint == made[1].fingerprint
    msdnet.load(tmp_path / "bundle")
