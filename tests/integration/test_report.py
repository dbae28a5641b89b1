"""What people look at: the report, the tables of budgets and times, and the demo."""

import base64
import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import msdnet
from msdnet.bundle import Bundle, ImageSpec
from msdnet.data.base import Batch
from msdnet.evaluation import Evaluation
from msdnet.export import export_network
from msdnet.files import Labelled
from msdnet.networks import create_network
from msdnet.report import write_report
from msdnet.report.charts import NARROW, WIDE
from msdnet.report.gallery import EasyAndHard, choose, easy_and_hard, even_budget, find_labels, gallery
from msdnet.samples import cifar10
from msdnet.training import train
from msdnet.training.display import Display
from tests.helpers import TINY, ColouredSquares, one_exit, settle, tiny_bundle
from tests.unit.test_training import QUICK


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "msdnet", *arguments], capture_output=True, text=True, check=False)


class _Page(HTMLParser):
    """Which tags are open, and what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.titles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


def read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    assert not page.open
    assert all(source.startswith("data:image/") for source in page.loads), "nothing comes from elsewhere"
    return page


@pytest.fixture(scope="module")
def squares() -> Labelled:
    random = np.random.default_rng(3)
    images = random.integers(0, 256, (120, 12, 12, 3), dtype=np.uint8)
    return Labelled("squares", images, random.integers(0, 3, 120), ("red", "green", "blue"))


def test_a_report_is_one_file_with_everything_in_it(tiny: Bundle, squares: Labelled, tmp_path: Path) -> None:
    written = write_report(
        msdnet.load(tiny.folder), tmp_path / "report.html", data=squares, figures=tmp_path / "figures"
    )
    page = read(tmp_path / "report.html")
    assert page.titles == [
        *("Accuracy against multiply-adds", "Accuracy against time", "Where images leave"),
        *("Reliability of the confidences", "Which classes are hard", "Easy and hard images", "Provenance"),
    ]
    told = (tmp_path / "report.html").read_text()
    title = f"{tiny.manifest.name}: accuracy within budgets"
    assert f"<title>{title}</title>" in told
    assert f'<h1>{title}</h1><p class="lead">Report on a model of 3 classes, 12 x 12 pixels, 3 exits, ' in told
    names = {path.name for path in written}
    assert names >= {"report.html", "anytime.svg", "budgeted.svg", "time.svg", "leaving.svg", "reliability.svg"}
    assert (tmp_path / "figures" / "anytime.svg").read_text().startswith("<svg")


def test_the_cost_of_a_class_is_told_beside_its_bar(tiny: Bundle, squares: Labelled, tmp_path: Path) -> None:
    write_report(msdnet.load(tiny.folder), tmp_path / "report.html", data=squares)
    page = (tmp_path / "report.html").read_text()
    assert "<th>of full cost</th>" in page
    shares = re.findall(r'<td><span class="bar" style="width:(\d+)%"></span> (\d+)%</td>', page)
    assert len(shares) == 3
    assert all(float(width) == pytest.approx(0.7 * float(share), abs=1) for width, share in shares)


def test_without_images_the_held_out_ones_speak(tiny: Bundle, tmp_path: Path) -> None:
    write_report(msdnet.load(tiny.folder), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "60 images: held out, and what thresholds were fitted to" in page
    assert re.search(r"The same on this machine \(ONNX Runtime, \d+ threads?\): one image alone", page)
    bare = tiny_bundle(tmp_path / "bare", held_out=False)
    with pytest.raises(ValueError, match="has no held-out confidences, which a report needs"):
        write_report(msdnet.load(bare.folder), tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


def test_easy_images_leave_first_and_hard_ones_last(tiny: Bundle) -> None:
    random = np.random.default_rng(0)
    right, sure = random.random((120, 3)) < (0.5, 0.6, 0.7), random.random((120, 3))
    found = Evaluation(msdnet.load(tiny.folder), "squares", sure, right, "largest", 1.0)
    budget = even_budget(found.model.costs)
    easy, hard = easy_and_hard(found, found.exit_indices(budget, method="paper"))
    exits = found.exit_indices(budget, method="paper")
    assert easy.tolist() == [exit == 0 and image[0] for exit, image in zip(exits, right, strict=True)]
    assert hard.tolist() == [exit == 2 and not image[0] and image[2] for exit, image in zip(exits, right, strict=True)]
    assert 0 < hard.sum() < (~right[:, 0] & right[:, 2]).sum(), "not those that left on the way"


def test_the_gallery_draws_some_of_each_class_at_random(squares: Labelled) -> None:
    easy = np.arange(120) % 2 == 0
    found = EasyAndHard(easy, ~easy)
    chosen = list(choose(found, squares.labels))
    assert len(chosen) == 3
    for label, some_easy, some_hard in chosen:
        for some, among in ((some_easy, easy), (some_hard, ~easy)):
            all_of_them = np.flatnonzero((squares.labels == label) & among).tolist()
            assert len(set(some)) == 6 < len(all_of_them)
            assert set(some) <= set(all_of_them)
            assert sorted(some) != all_of_them[:6], "not the first"
    assert list(choose(found, squares.labels)) == chosen, "the same every time"
    assert list(choose(found, squares.labels, [chosen[1].label])) == [chosen[1]], "whichever others are shown"


def shown_classes(page: str) -> list[str]:
    return re.findall("<th>(red|green|blue|dark_red)</th>", page)


def test_classes_without_hard_images_are_shown_where_there_are_no_others(squares: Labelled) -> None:
    red, green, blue = (squares.labels == label for label in range(3))
    first = np.arange(120) < 60
    for easy, hard, expected in (
        (red | green & first, green & ~first, ["green"]),
        (red & first, blue | red & ~first, ["red", "blue"]),  # blue has more hard ones, and nothing beside them
        (red | blue, green & False, ["red", "blue"]),
        (red & False, green & False, ["red", "green", "blue"]),
    ):
        assert shown_classes(gallery(EasyAndHard(easy, hard), squares)) == expected
    assert shown_classes(gallery(EasyAndHard(red, green), squares, [2, 0])) == ["blue", "red"], "as they are asked for"


def test_the_gallery_says_what_there_is_nothing_of(squares: Labelled) -> None:
    red, green = (squares.labels == label for label in (0, 1))
    nothing = "No image of these classes was wrong at the first exit and left at the last with the right answer."
    both, easy_alone = (gallery(EasyAndHard(red, green), squares, wanted) for wanted in ([0, 1, 2], [0]))
    assert both.count(">none<") == 4
    assert nothing not in both
    assert nothing in easy_alone


def decoded(page: str) -> list[Image.Image]:
    sources = re.findall(r'<img src="data:image/\w+;base64,([^"]+)"', page)
    return [Image.open(io.BytesIO(base64.b64decode(source))) for source in sources]


def test_a_grey_model_is_reported_with_its_images(tmp_path: Path) -> None:
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 256, (60, 12, 12, 1), dtype=np.uint8), random.integers(0, 3, 60)
    bundle = export_network(
        settle(create_network(TINY, classes=3, input_channels=1), side=12),
        tmp_path / "bundle",
        name="grey",
        classes=("a", "b", "c"),
        images=ImageSpec(side=12, resize=12, mean=(0.0,), std=(1.0,)),
        held_out=[Batch(torch.from_numpy(images).permute(0, 3, 1, 2) / 255, torch.from_numpy(labels))],
    )
    data = Labelled("grey", images, labels, ("a", "b", "c"))
    write_report(msdnet.load(bundle.folder), tmp_path / "report.html", data=data)
    shown = decoded((tmp_path / "report.html").read_text())
    assert shown
    given = {image.tobytes() for image in images}
    assert {(image.mode, image.tobytes() in given) for image in shown} == {("L", True)}


def test_images_of_every_kind_are_shown(squares: Labelled) -> None:
    pixels = np.full((1, 12, 12, 3), (200, 100, 50), np.uint8)
    found = EasyAndHard(np.array([True]), np.array([False]))
    for images in (pixels, pixels / 255, (pixels / 255).astype(np.float32), [Image.fromarray(pixels[0])]):
        (shown,) = decoded(gallery(found, replace(squares, images=images, labels=np.zeros(1, np.int64))))
        assert np.abs(np.asarray(shown).astype(int) - pixels[0]).max() <= (4 if shown.format == "JPEG" else 0)


def test_a_picture_that_is_shown_stays_as_it_is(squares: Labelled, tmp_path: Path) -> None:
    Image.new("RGB", (800, 800), "red").save(tmp_path / "photo.jpg")
    with Image.open(tmp_path / "photo.jpg") as photo:
        data = replace(squares, images=[photo], labels=np.zeros(1, np.int64))
        gallery(EasyAndHard(np.array([True]), np.array([False])), data)
        assert photo.size == (800, 800)


@pytest.mark.parametrize("size", [(300, 200), (40, 30)])
def test_photos_are_shown_upright(tmp_path: Path, size: tuple[int, int]) -> None:
    upright, exif = Image.new("RGB", size, "red"), Image.Exif()
    upright.paste("blue", (0, 0, size[0], size[1] // 2))
    exif[0x0112] = 6  # the camera was held on its side
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "photo.jpg", exif=exif)
    data = Labelled("photos", [str(tmp_path / "photo.jpg")], np.zeros(1, np.int64), ("one",))
    (shown,) = decoded(gallery(EasyAndHard(np.array([True]), np.array([False])), data))
    side = min(96, *size)
    assert shown.size == (side, side)
    colours = [shown.getpixel((side // 2, y)) for y in (side // 8, side - side // 8)]
    assert np.abs(np.array(colours) - [(0, 0, 255), (255, 0, 0)]).max() < 40


def test_classes_can_be_asked_for(tiny: Bundle, squares: Labelled, tmp_path: Path) -> None:
    model = msdnet.load(tiny.folder)
    with pytest.raises(ValueError, match="no class is called 'gren'; did you mean 'green'"):
        write_report(model, tmp_path / "report.html", data=squares, classes=["gren"])
    with pytest.raises(ValueError, match=r"give labelled images \(--data\)"):
        write_report(model, tmp_path / "report.html", classes=["green"])
    write_report(model, tmp_path / "report.html", data=squares, classes=["green"])
    assert shown_classes((tmp_path / "report.html").read_text()) == ["green"]


def test_classes_are_shown_by_their_names_and_found_however_these_are_typed(squares: Labelled) -> None:
    spaced = replace(squares, classes=("dark_red", "green", "light_blue"))
    assert find_labels(["dark red", "light_blue", "dark_red"], spaced) == [0, 2], "each once"
    assert shown_classes(gallery(EasyAndHard(squares.labels == 0, squares.labels == 0), spaced)) == ["dark_red"]
    both = replace(squares, classes=("dark_red", "dark red", "blue"))
    assert find_labels(["dark red"], both) == [1]


def test_every_chart_is_drawn_for_a_screen_and_for_a_phone(tiny: Bundle, tmp_path: Path) -> None:
    write_report(msdnet.load(tiny.folder), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    for where, width in (("screen", WIDE), ("phone", NARROW)):
        assert len(re.findall(rf'<div class="{where}"><svg [^>]*viewBox="0 0 {width} ', page)) == 5
    assert "min-width: 28rem" not in page, "nothing makes a phone scroll sideways"


@pytest.mark.parametrize(("dataset", "counted"), [("folder", "lazy"), ("cifar10", "whole layers")])
def test_the_axis_says_what_a_cost_counts(tiny: Bundle, tmp_path: Path, dataset: str, counted: str) -> None:
    """Published curves count whole layers, and a model beside them is counted as they are."""
    folder = shutil.copytree(tiny.folder, tmp_path / "bundle")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"provenance": {"data": {"dataset": dataset}}}))
    write_report(msdnet.load(folder), tmp_path / "report.html", figures=tmp_path)
    costs = tiny.manifest.costs if counted == "lazy" else tiny.manifest.whole_costs
    for name in ("anytime", "budgeted"):
        drawn = (tmp_path / f"{name}.svg").read_text()
        assert f"million multiply-adds per image ({counted}), logarithmic" in drawn
        assert ("(published)" in drawn) == (counted == "whole layers")
    assert f" at {costs[0] / 1e6:.4g}</title>" in (tmp_path / "anytime.svg").read_text()
    page = (tmp_path / "report.html").read_text()
    assert ("published by others, counting whole layers" in page) == (counted == "whole layers")


def test_costs_may_be_as_large_as_they_come(tmp_path: Path, squares: Labelled) -> None:
    """Those of a Wide ResNet are five thousand million: multiplied, more than numpy counts to."""
    folder = one_exit(tmp_path / "bundle").folder
    manifest = json.loads((folder / "manifest.json").read_text())
    large = {"costs": [5_240_000_000], "whole_costs": [5_240_000_000]}
    (folder / "manifest.json").write_text(json.dumps(manifest | large))
    write_report(msdnet.load(folder), tmp_path / "report.html", data=squares)
    assert "of a budget of 5,240.0 million" in (tmp_path / "report.html").read_text()


def test_a_run_is_reported_with_its_training(tmp_path: Path) -> None:
    train(QUICK, data=ColouredSquares(), network=TINY, out=tmp_path / "run", device="cpu", display=Display())
    bundle = tiny_bundle(tmp_path / "bundle")
    write_report(msdnet.load(bundle.folder), tmp_path / "report.html", run=tmp_path / "run")
    assert "Training" in read(tmp_path / "report.html").titles
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_text(metrics.read_text()[:100])
    with pytest.raises(ValueError, match=r"metrics\.jsonl: "):
        write_report(msdnet.load(bundle.folder), tmp_path / "report.html", run=tmp_path / "run")


def test_budgets_and_times_in_tables(tiny: Bundle, tmp_path: Path) -> None:
    shown = run("budget", str(tiny.folder), "--plot", str(tmp_path / "budget.svg"))
    assert shown.returncode == 0, shown.stderr
    assert "on 60 held-out images" in shown.stdout
    assert (tmp_path / "budget.svg").read_text().startswith("<svg")
    rows = json.loads(run("budget", str(tiny.folder), "--budgets", "90%,100%", "--json").stdout)
    policy = msdnet.load(tiny.folder).policy(tiny.manifest.costs[-1])
    assert rows[1]["accuracy"] == pytest.approx(policy.accuracy_)
    times = json.loads(run("profile", str(tiny.folder), "--batches", "1,4", "--seconds", "0.05", "--json").stdout)
    assert [entry["batch"] for entry in times] == [1, 4]
    assert all(len(entry["typical"]) == 3 for entry in times)
    assert "--batches must be whole numbers" in run("profile", str(tiny.folder), "--batches", "1,x").stderr
    told = run("profile", str(tiny.folder), "--threads", "1", "--seconds", "0.05").stdout
    assert f"{tiny.manifest.name} on ONNX Runtime, 1 thread: medians of the time for a whole batch" in told
    assert "seconds must be above 0" in run("profile", str(tiny.folder), "--seconds", "0").stderr
    drawn = run("show", str(tiny.folder)).stdout
    assert "3 exits, 3 layers, 2 scales" in drawn
    assert "held-out accuracy" in drawn
    assert "classes: red, green, blue\n" in drawn


def test_what_cannot_be_written_is_told_at_once(tiny: Bundle, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for out, why in (
        ("no/such", "there is no folder "),
        ("folder", "is a folder"),
        ("file/below", "there is no folder"),
    ):
        for command in (["report", "--out"], ["demo", "--model", str(tiny.folder), "--out"], ["budget", "--plot"]):
            name, *options = command
            target = [] if name == "demo" else [str(tiny.folder)]
            done = run(name, *target, *options, str(tmp_path / out))
            assert (done.returncode, done.stdout) == (1, "")
            assert f"msdnet: {tmp_path / out}: {why}" in done.stderr
    assert "must end in .svg" in run("budget", str(tiny.folder), "--plot", str(tmp_path / "b.png")).stderr
    assert run("budget", str(tiny.folder), "--plot", "/dev/stdout").stdout.startswith("<svg")


def test_a_budget_that_brings_nothing_more_is_not_shown_again(tmp_path: Path) -> None:
    """Here the second exit is never better than the first: all leave there, whatever the budget."""
    model = msdnet.load(tiny_bundle(tmp_path / "bundle").folder)
    right = np.repeat(model.held_out("correct")[:, :1], 3, axis=1)
    model._held_out = {**model._held_out, "correct": right}  # type: ignore[dict-item]
    write_report(model, tmp_path / "report.html", figures=tmp_path)
    leaving = (tmp_path / "leaving.svg").read_text()
    assert len(re.findall(r">budget [\d.]+ M<", leaving)) == 1
    assert "what gains nothing on the held-out images is not spent" in (tmp_path / "report.html").read_text()


def test_the_report_command(tiny: Bundle, tmp_path: Path) -> None:
    done = run("report", str(tiny.folder), "--out", str(tmp_path / "r.html"), "--figures", str(tmp_path / "figures"))
    assert done.returncode == 0, done.stderr
    assert f"wrote {tmp_path / 'r.html'}" in done.stdout
    read(tmp_path / "r.html")


def test_the_demo(tmp_path: Path) -> None:
    images = cifar10()
    network = settle(create_network(TINY, classes=10))
    pixels = torch.from_numpy(images.images[:100]).permute(0, 3, 1, 2) / 255
    bundle = export_network(
        network,
        tmp_path / "bundle",
        name="quick",
        classes=images.classes,
        images=ImageSpec(side=32, resize=32, mean=(0.0,) * 3, std=(1.0,) * 3),
        held_out=[Batch(pixels, torch.from_numpy(images.labels[:100]))],
    )
    done = run("demo", "--model", str(bundle.folder), "--out", str(tmp_path / "demo.html"))
    assert done.returncode == 0, done.stderr
    assert "It classifies 1,000 images of cifar10 test" in done.stdout
    rows = re.findall(r"^ budget .*% +([\d.]+ M) .*x\s*$", done.stdout, re.MULTILINE)
    assert len(set(rows)) == len(rows) > 1, "what spends no more than another is not shown"
    assert "Easy and hard images" in read(tmp_path / "demo.html").titles


def test_the_demo_wants_a_model_of_these_classes(tiny: Bundle) -> None:
    refused = run("demo", "--model", str(tiny.folder))
    assert refused.returncode == 1
    assert "where the model knows 3" in refused.stderr
