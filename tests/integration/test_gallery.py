"""`msdnet reproduce gallery`: easy images beside hard ones, chosen by a model and drawn from the same images."""

import base64
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

import msdnet
from msdnet.bundle import MANIFEST, Bundle, ImageSpec
from msdnet.data.base import Batch
from msdnet.evaluation import evaluate
from msdnet.export import export_network
from msdnet.networks import create_network
from msdnet.report.charts import PAPER
from msdnet.reproduce import Gallery, make_gallery, read_gallery
from msdnet.samples import cifar10
from tests.helpers import TINY, run_here, tiny_bundle


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_here("reproduce", "gallery", *arguments)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Of CIFAR-10's classes, after a few steps of training: enough for some images to be easy, and others hard."""
    torch.manual_seed(0)
    images = cifar10()
    pixels = (torch.from_numpy(images.images).permute(0, 3, 1, 2) / 255 - 0.5) / 0.25
    labels = torch.from_numpy(images.labels)
    network = create_network(replace(TINY, exits=(1, 3, 6)), classes=10)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for step in range(24):
        rows = torch.arange(100) + 100 * (step % 8)
        loss = sum(functional.cross_entropy(logits, labels[rows]) for logits in network(pixels[rows]))
        assert isinstance(loss, torch.Tensor)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return export_network(
        network.eval(),
        Path(tmp_path_factory.mktemp("bundles")) / "quick",
        name="quick",
        classes=images.classes,
        images=ImageSpec(side=32, resize=32, mean=(0.5,) * 3, std=(0.25,) * 3),
        held_out=[Batch(pixels[800:], labels[800:])],
    )


@pytest.fixture(scope="module")
def made(bundle: Bundle) -> Gallery:
    return make_gallery(msdnet.load(bundle.folder), cifar10())


def test_it_shows_who_left_rightly_at_the_first_exit_and_who_needed_the_last(bundle: Bundle, made: Gallery) -> None:
    """Counted anew, from what every exit says of every image."""
    model, images = msdnet.load(bundle.folder), cifar10()
    found = evaluate(model, images)
    exits = model.policy(made.budget, method="paper").exit_indices(found.confidence)
    assert made.left == tuple((exits == exit).sum() for exit in range(3))
    rightly = found.correct[np.arange(1000), exits]
    assert made.right == tuple((rightly & (exits == exit)).sum() for exit in range(3))
    assert sum(made.left) == made.images == 1000
    assert made.budget == np.mean(model.costs)
    assert min(made.left) > 200, "about as many leave at each exit"
    assert 0 < len(made.classes) <= 6
    for one in made.classes:
        mine = images.labels == images.classes.index(one.name)
        easy = mine & (exits == 0) & found.correct[:, 0]
        hard = mine & ~found.correct[:, 0] & (exits == 2) & found.correct[:, 2]
        assert (one.images, one.left_rightly, one.needed_the_last) == (mine.sum(), easy.sum(), hard.sum())
        assert len(one.easy) == min(6, easy.sum())
        assert len(one.hard) == min(6, hard.sum())
        assert easy[list(one.easy)].all()
        assert hard[list(one.hard)].all()
        for shown, among in ((one.easy, easy), (one.hard, hard)):
            assert len(shown) == among.sum() or list(shown) != sorted(shown), "drawn at random"
    assert any(one.easy for one in made.classes)
    assert all(one.hard for one in made.classes), "rather fewer rows"


def test_one_that_is_damaged_is_kept_and_it_is_told_what_can_be_done(tmp_path: Path) -> None:
    file = tmp_path / "gallery.json"
    for content in ("{", '{"format": 1}', '{"format": 9}'):
        file.write_text(content)
        refused = run_here("reproduce", "gallery", "--results", str(tmp_path))
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"msdnet: {file}")
        assert refused.stderr.endswith("; give another folder (--results), or delete it\n")
        assert refused.stderr.count("\n") == 1
        assert file.read_text() == content


def test_the_figure_holds_the_images_themselves(made: Gallery) -> None:
    images = cifar10()
    svg = made.chart(images).svg(PAPER)
    ElementTree.fromstring(svg)
    shown = [image for one in made.classes for image in (*one.easy, *one.hard)]
    assert svg.count("<image ") == len(shown)
    assert svg == made.chart(images).svg(PAPER)
    pictures = {
        Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB").tobytes()
        for data in re.findall('href="data:image/png;base64,([^"]+)"', svg)
    }
    assert pictures == {images.images[image].tobytes() for image in shown}


def test_it_says_that_images_left_where_they_were_right(made: Gallery) -> None:
    """The first exit is right about many more, which it is not sure of and keeps."""
    svg = made.chart(cifar10()).svg(PAPER)
    said = " ".join(re.findall(rf'style="fill:{PAPER.faint}" >(.+?)</text>', svg))
    assert "right at the first exit, and left there" in said
    assert "wrong at the first exit and passed on; right at the last, and left there" in said


def test_it_is_drawn_from_its_own_images_only(made: Gallery) -> None:
    images = cifar10()
    with pytest.raises(ValueError, match=r"the gallery is of cifar10 test.*not of others"):
        made.chart(replace(images, name="others"))


def test_a_model_without_held_out_confidences_is_refused(tmp_path: Path) -> None:
    model = msdnet.load(tiny_bundle(tmp_path / "bundle", held_out=False).folder)
    with pytest.raises(ValueError, match="tiny has no held-out confidences"):
        make_gallery(model, cifar10())


def test_a_model_of_one_exit_has_no_easy_and_hard_images(tmp_path: Path) -> None:
    model = msdnet.load(tiny_bundle(tmp_path / "bundle", config=replace(TINY, exits=(3,))).folder)
    with pytest.raises(ValueError, match="tiny has one exit"):
        make_gallery(model, cifar10())


def test_a_model_of_other_classes_asks_for_its_own_images(tmp_path: Path) -> None:
    folder = tiny_bundle(tmp_path / "bundle").folder
    refused = run("--model", str(folder), "--results", str(tmp_path), "--class", "red")
    assert refused.returncode == 1
    assert "tiny knows other classes than cifar10 test, the first 1,000; --data names its own" in refused.stderr


def test_a_place_for_figures_that_is_none_is_told_at_once(bundle: Bundle, tmp_path: Path) -> None:
    options = ["--model", str(bundle.folder), "--results", str(tmp_path), "--figures", __file__]
    refused = run(*options)
    assert refused.returncode == 1
    assert "test_gallery.py: a file, not a folder" in refused.stderr
    assert not (tmp_path / "gallery_quick.json").exists()


def test_the_command_makes_it_and_draws_it_again(bundle: Bundle, tmp_path: Path) -> None:
    options = ["--model", str(bundle.folder), "--results", str(tmp_path / "results")]
    done = run(*options, "--class", "cat", "--class", "ship")
    assert done.returncode == 0, done.stderr
    assert "quick on cifar10 test, the first 1,000: 1,000 images" in done.stdout
    said = r"\n  cat +\d+ of 103 left at the first exit with the right answer, \d+ left at the last with the"
    assert re.search(said, done.stdout)
    assert "The paper: early classifiers recognise prototypical images" in done.stdout
    record = read_gallery(tmp_path / "results/gallery_quick_cat_ship.json")
    assert [one.name for one in record.classes] == ["cat", "ship"]
    figure = tmp_path / "results/figures/gallery_quick_cat_ship.svg"
    drawn = figure.read_text()
    figure.unlink()
    told = json.loads(run(*options, "--class", "cat", "--class", "ship", "--draw", "--json").stdout)
    assert str(figure) in told["files"]
    assert figure.read_text() == drawn
    assert told["gallery"]["left"] == list(record.left)
    assert [(one["section"], one["finding"]) for one in told["claims"]] == [("5.2", None)]
    assert told["claims"][0]["reason"].startswith("for the eye")
    refused = run(*options, "--class", "cut")
    assert refused.returncode == 1
    assert "no class is called 'cut'; did you mean 'cat'" in refused.stderr


def with_other_temperatures(bundle: Bundle, folder: Path) -> Path:
    other = shutil.copytree(bundle.folder, folder)
    manifest = json.loads((other / MANIFEST).read_text())
    temperatures = [2 * value for value in manifest["temperatures"]]
    (other / MANIFEST).write_text(json.dumps(manifest | {"temperatures": temperatures}))
    return other


def test_it_is_drawn_for_the_model_that_made_it_only(bundle: Bundle, made: Gallery, tmp_path: Path) -> None:
    other = with_other_temperatures(bundle, tmp_path / "other")
    made.save(tmp_path / "gallery_quick.json")
    refused = run("--model", str(other), "--results", str(tmp_path), "--draw")
    assert refused.returncode == 1
    assert "made by another quick than this; give the same (--model, --data)" in refused.stderr
    assert not (tmp_path / "figures").exists()


def test_what_was_made_of_something_else_is_not_replaced(bundle: Bundle, made: Gallery, tmp_path: Path) -> None:
    file = tmp_path / "gallery_quick.json"
    other = with_other_temperatures(bundle, tmp_path / "other")
    for before, model, why in (
        (made, other, "made by another quick than this"),
        (replace(made, asked=("cat",)), bundle.folder, "made with --class cat, not without --class"),
        (replace(made, data="photos"), bundle.folder, "made of photos (1,000 images), not of cifar10 test"),
        (replace(made, shown_sha256="0"), bundle.folder, "made of other images than these of the name cifar10 test"),
    ):
        before.save(file)
        kept = file.read_text()
        refused = run("--model", str(model), "--results", str(tmp_path))
        assert refused.returncode == 1
        assert why in refused.stderr
        assert "give another folder (--results), or delete it" in refused.stderr
        assert file.read_text() == kept
        assert not (tmp_path / "figures").exists()


def test_the_same_is_made_again(bundle: Bundle, tmp_path: Path) -> None:
    options = ["--model", str(bundle.folder), "--results", str(tmp_path), "--class", "cat"]
    assert run(*options).returncode == 0
    file = tmp_path / "gallery_quick_cat.json"
    before = read_gallery(file)
    assert before.asked == ("cat",)
    replace(before, budget=1.0).save(file)
    assert run(*options).returncode == 0
    assert read_gallery(file) == before


def test_other_images_can_be_given(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name in ("blue", "green", "red"):
        for number in range(8):
            path = tmp_path / "images/val" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(random.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(path)
    bundle = tiny_bundle(tmp_path / "bundle")
    done = run("--model", str(bundle.folder), "--data", str(tmp_path / "images"), "--results", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert sum(json.loads(done.stdout)["gallery"]["left"]) == 24


def test_nothing_is_to_be_trained() -> None:
    assert run("--plan").stdout.startswith("Nothing to train: it takes the model cifar10-anytime")
    assert json.loads(run("--plan", "--json").stdout) == {"networks": [], "seconds": 0.0, "ensembles": []}
