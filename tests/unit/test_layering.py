"""Imports go down only, and what stays small imports nothing large: the rules of docs/architecture.md."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import msdnet

PACKAGE = Path(msdnet.__file__).parent
TABLE = re.findall(
    r"^\| [^|]+ \| (`[^|]+`) \|([^|]*)\|$",
    (Path(__file__).parents[2] / "docs/architecture.md").read_text(),
    re.MULTILINE,
)
# From the bottom up: the modules of a layer, and what they may import from outside the standard library.
LAYERS = [(re.findall(r"`(\w+)`", modules), set(re.findall(r"\w+", outside))) for modules, outside in reversed(TABLE)]
LEVEL = {module: level for level, (modules, _) in enumerate(LAYERS) for module in modules}


def module_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """`networks` for networks/msdnet.py, `config` for config.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield node.module or ""


@pytest.mark.parametrize("path", module_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    part = part_of(path)
    level = LEVEL[part]
    allowed = LAYERS[level][1]
    for name in imports_of(path):
        top, _, rest = name.partition(".")
        if top == "msdnet":
            target = rest.partition(".")[0] or "__init__"
            assert LEVEL[target] <= level, f"{part} imports {name}, which is above it"
        else:
            assert top in sys.stdlib_module_names or top in allowed, f"{part} imports {name}"


def test_commands_do_not_import_each_other() -> None:
    """What several of them need has a module of its own."""
    entry = PACKAGE / "cli/__init__.py"
    commands = {name for name in imports_of(entry) if name.startswith("msdnet.cli.")}
    assert len(commands) > 5
    for path in sorted(PACKAGE.glob("cli/*.py")):
        assert path == entry or not commands & {*imports_of(path)}, path.name


def test_every_module_has_its_layer() -> None:
    assert {part_of(path) for path in module_files()} == set(LEVEL)


@pytest.mark.parametrize("path", module_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_fit_their_limits(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") < 500
    assert ast.get_docstring(ast.parse(text)), "a module says what it does"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, f"{node.name} does not fit on a screen"
