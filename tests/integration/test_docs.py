"""The documentation is true: its figures and tables are what the project makes, and its commands run."""

import doctest
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from PIL import Image

import msdnet
from msdnet.bundle import Bundle
from msdnet.cli import app
from tests.helpers import TINY, tiny_bundle

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
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


def test_tables_are_those_the_project_makes() -> None:
    figures = script("figures")
    for path in figures.PAGES:
        page = (ROOT / path).read_text()
        assert figures.refreshed(page) == page, f"{path} is out of date: make figures"
        assert re.search(r"<!-- \w+: begin -->\n\|", page), f"{path} has lost its table"


def test_readme_commands_run(tmp_path: Path) -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert commands[0].startswith("pip install ")  # `make test` has done this
    for command in commands[1:]:
        program, *arguments = shlex.split(command)
        assert program == "msdnet"
        subprocess.run([sys.executable, "-m", "msdnet", *arguments], cwd=tmp_path, check=True, capture_output=True)


def documented_commands() -> list[str]:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL)
    return sorted(
        {line[line.index("msdnet ") :] for block in blocks for line in block.splitlines() if "msdnet " in line}
    )


@pytest.mark.parametrize("command", documented_commands())
def test_documented_commands_are_understood(command: str) -> None:
    """Those that take hours are not run, but their words must be ones that the command line knows."""
    _, name, *arguments = shlex.split(command, comments=True)
    group: Any = typer.main.get_command(app)
    context = group.commands[name].make_context(name, arguments)
    assert context.params or not arguments, "its words were taken as options and arguments"


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

chance = np.random.default_rng(0)
costs = msdnet.load("bundles/first").costs
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


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs/api.md").read_text()
    assert set(re.findall(r"^::: msdnet\.(\w+)\n    options:\n      heading_level: 3$", page, re.MULTILINE)) == set(
        msdnet.__all__
    )


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
