"""The documentation is true: its figures and tables are what the project makes, and its commands run."""

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from msdnet.bundle import Bundle
from msdnet.cli import app

ROOT = Path(__file__).parents[2]


def figures_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "docs/figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_figures_are_those_the_project_draws() -> None:
    for path, drawing in figures_script().drawings().items():
        assert (ROOT / path).read_text() == drawing, f"{path} is out of date: make figures"


def test_tables_are_those_the_project_makes() -> None:
    script = figures_script()
    for path in script.PAGES:
        page = (ROOT / path).read_text()
        assert script.refreshed(page) == page, f"{path} is out of date: make figures"
        assert re.search(r"<!-- \w+: begin -->\n\|", page), f"{path} has lost its table"


def test_readme_commands_run(tmp_path: Path) -> None:
    commands = [line for block in readme_blocks("sh") for line in block.splitlines()]
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
    _, name, *arguments = shlex.split(command)
    group: Any = typer.main.get_command(app)
    context = group.commands[name].make_context(name, arguments)
    assert context.params, "its words were taken as options and arguments"


@pytest.mark.parametrize("block", readme_blocks("python"))
def test_readme_python_runs(block: str, tmp_path: Path, tiny: Bundle) -> None:
    shutil.copytree(tiny.folder, tmp_path / "bundles/first")  # what the commands before would have made
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_links_lead_somewhere() -> None:
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
