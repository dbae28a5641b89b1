"""The documentation is true: its figures and tables are what the project makes, and its commands run."""

import doctest
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load

import msdnet
from msdnet.bundle import CARD, HELD_OUT, Bundle
from msdnet.card import write_card
from msdnet.models import find_bundle, model_names
from msdnet.report.charts import PAPER
from msdnet.reproduce import CLAIMS, EXPERIMENTS, GALLERY, Claim, Gallery, read_measurement
from msdnet.reproduce.gallery import ShownClass, fingerprint
from msdnet.reproduce.studies import MEANS, expected_accuracy, prior_names
from msdnet.samples import cifar10
from tests.helpers import TINY, tiny_bundle
from tests.integration.test_reproduce_cli import make_up_results

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")  # as for a script, which finds those beside it
        spec.loader.exec_module(module)
    return module


def blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("name", ["figures", "pictures"])
def test_figures_are_those_the_project_draws(name: str) -> None:
    for path, drawing in script(name).drawings().items():
        assert (ROOT / path).read_text() == drawing, f"{path} is out of date: make figures"


def test_every_figure_is_drawn_and_shown() -> None:
    drawn = {Path(path).name for name in ("figures", "pictures") for path in script(name).drawings()}
    assert {path.name for path in (ROOT / "docs/figures").iterdir()} == drawn
    shown = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert {name for name in drawn if f"](figures/{name})" in shown} == drawn


PAGES = pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)


@PAGES
def test_percent_signs_have_no_space(page: Path) -> None:
    assert not re.findall(r".*\d %.*", page.read_text())


@PAGES
def test_rows_of_tables_have_a_line_each(page: Path) -> None:
    """Text that was wrapped with a table in it shows as one paragraph."""
    for line in page.read_text().splitlines():
        if "|---" in line:
            assert re.fullmatch(r"\s*\|(-+\|)+", line), line


def test_every_result_has_its_line_and_says_where_it_is_from() -> None:
    page = (ROOT / "results/README.md").read_text()
    listed = set(re.findall(r"`(\w+\.json)`", page))
    assert listed == {path.name for path in (ROOT / "results").glob("*.json")}
    for name in listed:
        record = json.loads((ROOT / "results" / name).read_text())
        assert record.keys() >= {"hardware", "msdnet", "commit", "date"}, name
    for command in re.findall(r"python -m (benchmarks\.\w+)", page):
        assert (ROOT / f"{command.replace('.', '/')}.py").exists()


def test_tables_are_those_the_project_makes() -> None:
    figures = script("figures")
    for path in figures.PAGES:
        page = (ROOT / path).read_text()
        assert figures.refreshed(page) == page, f"{path} is out of date: make figures"
        assert re.search(r"<!-- \w+: begin -->\n+[|\w`]", page), f"{path} has lost its tables"


@pytest.mark.parametrize("name", model_names())
def test_cards_of_the_models_are_those_the_project_writes(name: str) -> None:
    bundle = find_bundle(name)
    card = write_card(bundle.manifest, load((bundle.folder / HELD_OUT).read_bytes()))
    assert (bundle.folder / CARD).read_text() == card


# What the page says of the paper's experiments, from results made up


def page_of(results: Path) -> ModuleType:
    page = script("reproduced")
    vars(page)["RESULTS"] = results
    return page


def claimed(page: ModuleType) -> dict[Claim, str]:
    """The line of every claim, from the sections of the page."""
    rows: dict[Claim, str] = {}
    for topic in page.TOPICS.values():
        claims = [claim for claim in CLAIMS if claim.experiment in topic.experiments]
        rows |= zip(claims, list(page.topic_claims(topic))[2:], strict=True)
    return rows


def shown_figures(page: ModuleType) -> str:
    return "\n".join(line for topic in page.TOPICS.values() for line in page.topic_figures(topic))


def test_every_claim_has_its_section() -> None:
    page = script("reproduced")
    experiments = [experiment for topic in page.TOPICS.values() for experiment in topic.experiments]
    assert sorted(experiments, key=str) == sorted([*EXPERIMENTS, GALLERY, None], key=str)
    text = (ROOT / "docs/reproduction.md").read_text()
    for name, topic in page.TOPICS.items():
        section = text.split(f"\n## {topic.heading}\n")[1].split("\n## ")[0]
        for table in ("figures", "claims"):
            assert (f"<!-- {table}_{name}: begin -->" in section) == (f"{table}_{name}" in page.TABLES)
    assert len(claimed(page)) == len(CLAIMS)


def test_a_page_without_results_says_so(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    rows = claimed(page)
    not_yet = {claim.experiment for claim, row in rows.items() if claim.experiment and "| not measured yet: " in row}
    assert not_yet == set(EXPERIMENTS)
    assert any("of the 12 systems of `ablation` 12 are still to be measured | - |" in row for row in rows.values())
    of_imagenet = {claim.experiment for claim, row in rows.items() if "yet: ImageNet was not at hand." in row}
    assert of_imagenet == {name for name in EXPERIMENTS if "imagenet" in name}
    assert list(page.topic_figures(page.TOPICS["why"])) == ["\nNo figure yet: nothing of it is measured.\n"]
    assert list(page.training_time()) == ["\nNo networks are trained yet.\n"]


def test_a_page_shows_the_results_that_there_are(tmp_path: Path) -> None:
    for name in ("densenet-star", "ablation"):
        make_up_results(tmp_path, name)
    page = page_of(tmp_path)
    rows = claimed(page)
    for claim, row in rows.items():
        if claim.find and "test error below 7.0%" not in claim.says:  # which takes a model of the package
            of_what_is_there = "effectively adapt" in claim.says  # of MSDNets alone, which the first has, too
            judged = claim.experiment in ("densenet-star", "ablation", None) or of_what_is_there
            assert row.endswith(("| yes |", "| in part |", "| no |")) == judged, row
        assert row.replace(r"\|", "").count("|") == 5, "four cells"
    star = next(row for claim, row in rows.items() if claim.experiment == "densenet-star")
    assert r"DenseNets\* outperform DenseNets" in star
    drawn = set(page.drawn())
    assert {"densenet_star_anytime", "densenet_star_budgeted", "ablation", "anytime_cifar100"} <= drawn
    assert "why_final" not in drawn, "nothing is measured of it"
    assert set(re.findall(r"\]\(figures/(\w+)\.svg\)", shown_figures(page))) == drawn


def test_verdicts_add_up(tmp_path: Path) -> None:
    for name in ("densenet-star", "ablation"):
        make_up_results(tmp_path, name)
    page = page_of(tmp_path)
    verdicts = [row.rsplit("| ", 1)[1].removesuffix(" |") for row in claimed(page).values()]
    counts = [[int(count) for count in re.findall(r"\| (\d+)", row)] for row in list(page.verdicts_by_topic())[2:]]
    assert [sum(column) for column in zip(*counts, strict=True)] == [
        verdicts.count(verdict) for verdict in ("yes", "in part", "no", "-")
    ]


def test_what_is_said_of_imagenet_is_told_of_cifar100_without_a_verdict(tmp_path: Path) -> None:
    make_up_results(tmp_path, "budgeted-cifar100")
    rows = [row for claim, row in claimed(page_of(tmp_path)).items() if claim.elsewhere]
    assert len(rows) == 2
    for row in rows:
        assert re.search(r"not at hand\. .* On CIFAR-100, where the paper does not say it: .*\d.* \| - \|$", row)


def test_the_time_of_training_is_shared_by_what_was_trained_side_by_side(tmp_path: Path) -> None:
    """Where a training's share is not known, it may have had all."""
    make_up_results(tmp_path, "ablation")
    page = page_of(tmp_path)
    told = "\n12 networks were trained for this: {}.\n"
    assert list(page.training_time()) == [told.format("12 in 6.0 hours on a GPU")]
    path = tmp_path / "cifar100/ablation_plain.json"
    path.write_text(path.read_text().replace('"machine_seconds"', '"images_per_second"'))
    assert list(page.training_time()) == [told.format("12 in at most 7.5 hours on a GPU")]
    path.write_text(path.read_text().replace("a GPU", "a CPU"))  # whose hours are not added to those of a GPU
    assert list(page.training_time()) == [told.format("11 in 5.5 hours on a GPU, 1 in at most 2.0 hours on a CPU")]


def test_results_that_cannot_be_compared_are_not_drawn(tmp_path: Path) -> None:
    make_up_results(tmp_path, "ablation")
    path = tmp_path / "cifar100/ablation_plain.json"
    path.write_text(path.read_text().replace('"epochs": 10,', '"epochs": 7,'))
    page = page_of(tmp_path)
    with pytest.raises(ValueError, match=r"ablation_plain.json: made in another way.*epochs: 7 here"):
        page.drawn()


def test_the_gallery_is_shown_where_it_was_made(tmp_path: Path) -> None:
    cats = ShownClass(name="cat", images=90, left_rightly=2, needed_the_last=1, easy=(0, 8), hard=(33,))
    gallery = Gallery(
        model="quick",
        fingerprint="0",
        data=cifar10().name,
        images=1000,
        budget=3e6,
        left=(400, 600),
        right=(300, 400),
        classes=(cats,),
        shown_sha256=fingerprint(cifar10(), (cats,)),
        made_by={},
    )
    gallery.save(tmp_path / "gallery.json")
    page = page_of(tmp_path)
    assert page.drawn()["gallery"].svg(PAPER).count("<image ") == 3
    assert "](figures/gallery.svg)" in shown_figures(page)


@pytest.mark.parametrize("block", blocks("python"))
def test_readme_python_runs(block: str, tmp_path: Path, tiny: Bundle) -> None:
    shutil.copytree(tiny.folder, tmp_path / "bundles/first")  # what the commands before would have made
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# What a page takes as given. Its blocks run one after the other; those of docs/training.md would train for minutes.
GIVEN = {
    "docs/index.md": "",
    "docs/settings.md": "",
    "docs/your-data.md": "",
    "docs/deploying.md": "",
    "docs/budgets.md": """
import msdnet, numpy as np
from dataclasses import replace
from msdnet import samples

all_samples = samples.cifar10()
samples.cifar10 = lambda: replace(all_samples, images=all_samples.images[:200], labels=all_samples.labels[:200])
chance = np.random.default_rng(0)
costs = msdnet.load("cifar10-anytime").costs
confidence, correct = chance.random((100, len(costs))), chance.random((100, len(costs))) < 0.5


def camera():
    yield from chance.integers(0, 256, (20, 30, 40, 3), dtype=np.uint8)
""",
}


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Its first exit takes less than half of what the last takes, as in networks that are of use."""
    return tiny_bundle(Path(tmp_path_factory.mktemp("bundles")) / "deep", config=replace(TINY, exits=(1, 4, 8)))


@pytest.mark.parametrize("page", GIVEN)
def test_python_of_a_page_runs(page: str, tmp_path: Path, deep: Bundle) -> None:
    for name in ("first", "mine"):
        shutil.copytree(deep.folder, tmp_path / "bundles" / name)
    (tmp_path / "new").mkdir()
    for name in ("1.jpg", "2.jpg"):
        Image.new("RGB", (20, 30), "red").save(tmp_path / "new" / name)
    code = "\n".join([GIVEN[page], *blocks("python", page)])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_python_of_a_network_of_ones_own_runs(tmp_path: Path) -> None:
    """Its first block is a module. Each of the others has a process of its own, as the page says."""
    module, *others = blocks("python", "docs/extending.md")
    assert module.startswith("# own.py\n")
    (tmp_path / "own.py").write_text(module)
    for code in others:
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in (tmp_path / "bundles").iterdir()} == {"own", "adamw"}


def test_stages_run_without_this_package(deep: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(deep.folder, tmp_path / "bundles/first")
    (code,) = (block for block in blocks("python", "docs/deploying.md") if "InferenceSession" in block)
    assert "msdnet" not in code
    made: dict[str, Any] = {}
    exec(code, made)
    *_, last = msdnet.load(deep.folder).anytime(made["pixels"][0])
    np.testing.assert_allclose(made["probabilities"][0], last.probabilities, atol=1e-5)


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs/api.md").read_text()
    shown = re.findall(r"^::: msdnet\.(\w+)\n    options:\n      heading_level: 3$", page, re.MULTILINE)
    assert sorted(shown) == sorted([*msdnet.__all__, "MSDNetClassifier"])


def test_examples_in_docstrings_become_code() -> None:
    assert doctest.testmod(script("doctests")) == (0, 1)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_lists_are_lists_on_the_site_too(page: Path) -> None:
    """GitHub is less strict: there, blocks within a list may be indented by two, and a list may follow any line."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    assert not re.findall(r"\n\n {1,3}\S.*", text), "what belongs to a list is indented by four"
    assert not re.findall(r"\n(?!- |  \S).+\n- .*", text), "an empty line comes before a list"


def test_links_lead_somewhere() -> None:
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_what_weights_by_p_of_b_gain_over_the_opposite_is_as_measured() -> None:
    """Said by hand, among the verdicts that hang by a thread."""
    results = {path.stem: path for path in (ROOT / "results/reproduction/cifar100").glob("prior_*.json")}

    def expected(weighted_for: float, budgets: float) -> float:
        [name] = prior_names(weighted_for)
        return {place.x: place.y for place in expected_accuracy([read_measurement(results[name])])}[budgets / 1e6]

    small, *_, large = MEANS
    gains = expected(small, small) - expected(large, small), expected(large, large) - expected(small, large)
    page = " ".join((ROOT / "docs/reproduction.md").read_text().split())
    assert "by {:.1f} and {:.1f} points where more than one is asked".format(*gains) in page
    assert f"better there than those made for small ones | {gains[1]:.1f} points" in page
