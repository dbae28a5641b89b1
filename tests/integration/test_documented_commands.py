"""Every command that README and docs show runs, in a small world: few images, a tiny network, one epoch.

What takes its time on purpose keeps its words and gets `SMALL` ones added; what it names is looked up as it stands.
`make`, `pip` and the demo are left to test_wheel.py, torchrun to test_processes.py, and docker to who has it.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from PIL import Image

from msdnet.cli import app
from msdnet.files import CIFAR
from msdnet.models import find_bundle
from msdnet.presets import PRESETS
from msdnet.reproduce import EXPERIMENTS, GALLERY, find_experiment
from msdnet.systems import SYSTEMS
from msdnet.training import recipe_names
from tests.helpers import TINY, run_here

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SMALL = {
    "train": "--epochs 1 --subset 24 --batch-size 8 --network network.json",
    "reproduce": "--epochs 1 --subset 24 --batch-size 8",
}
LEFT_OUT = ("make", "pip", "docker", "msdnet demo")
DEEP = replace(TINY, exits=(1, 6, 12))  # its first exit takes less than 30% of what the last takes


def commands(page: Path) -> list[str]:
    shown = re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text(), re.DOTALL)
    lines = [line for block in shown for line in re.sub(r"\\\n *", "", block).splitlines()]
    return [line for line in lines if not line.startswith(LEFT_OUT)]


@pytest.mark.parametrize("command", sorted({command for page in PAGES for command in commands(page)}))
def test_is_understood(command: str) -> None:
    """Without the words that make it small: its options, and the names that it gives."""
    _, name, *arguments = shlex.split(command[command.index("msdnet ") :], comments=True)
    group: Any = typer.main.get_command(app)
    assert name in group.commands
    given = group.commands[name].make_context(name, arguments).params  # an option that is not known ends here
    if given.get("recipe"):
        assert given["recipe"] in recipe_names()
    if given.get("network"):
        assert given["network"] in {*PRESETS, *SYSTEMS, "network.json"}
    if name == "reproduce" and given["name"]:
        assert given["name"] in {*EXPERIMENTS, GALLERY}


def test_commands_for_two_cores_train_every_network_of_the_ablation() -> None:
    shown = [command for command in commands(ROOT / "docs/experiments.md") if "reproduce ablation" in command]
    named = [name for command in shown for name in re.findall(r"--only (\S+)", command)]
    assert len(shown) == 2
    assert sorted(named) == sorted(subject.name for subject in find_experiment("ablation").subjects)


# A small world. It has whatever a page takes as given when it says `msdnet export runs/first`, say.


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Pictures, data sets, a network, and what its training brings."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MSDNET_DATA", str(folder / "cifar"))  # instead of a download
        write_cifar100(folder / "cifar", patch)
        (folder / "data").symlink_to("cifar")
        for name in ("photos/cat", "photos/dog", "new"):
            write_pictures(folder / name)
        Image.new("RGB", (40, 30), "red").save("door.jpg")
        Path("network.json").write_text(DEEP.to_json())
        for name, data in (("first", ""), ("mine", "--data photos/ --image-size 32")):
            run(f"msdnet train fast {SMALL['train']} --out given/runs/{name} {data}").check_returncode()
            run(f"msdnet export given/runs/{name} --out given/bundles/{name}").check_returncode()
        for name in ("a", "b"):
            run(f"msdnet export given/runs/first --out given/bundles/{name}").check_returncode()
        yield folder


def write_cifar100(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Noise of all classes, in files of a few records."""
    layout = replace(CIFAR["cifar100"], records_per_file=(300, 200), held_out=100)
    patch.setitem(CIFAR._entries, "cifar100", layout)
    folder = root / layout.folder
    folder.mkdir(parents=True)
    (folder / layout.names_file).write_text("\n".join(find_bundle("cifar100-anytime").manifest.classes))
    for files, count in zip((layout.train_files, layout.test_files), layout.records_per_file, strict=True):
        records = np.random.default_rng(count).integers(0, 256, (count, layout.record_bytes), dtype=np.uint8)
        records[:, : layout.label_bytes] = np.arange(count)[:, None] % 100
        records.tofile(folder / files[0])


def write_pictures(folder: Path) -> None:
    chance = np.random.default_rng(len(folder.name))
    folder.mkdir(parents=True)
    for k in range(40):
        Image.fromarray(chance.integers(0, 256, (30, 40, 3), dtype=np.uint8)).save(folder / f"{k}.jpg")


def run(command: str) -> "subprocess.CompletedProcess[str]":
    """As a shell would, in this process where it can."""
    if "|" in command:
        there = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        shell = ["bash", "-o", "pipefail", "-c", command]
        return subprocess.run(shell, env=os.environ | there, capture_output=True, text=True, check=False)
    return run_here(*shlex.split(command[command.index("msdnet ") :], comments=True)[1:])


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_runs(page: Path, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for thing in world.iterdir():
        (tmp_path / thing.name).symlink_to(thing)
    shutil.copytree(ROOT / "results/reproduction", tmp_path / "results/reproduction")  # what --draw draws
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        if command.startswith("torchrun"):
            continue
        words = shlex.split(command, comments=True)
        for word in words:
            if (world / "given" / word).is_dir() and not Path(word).exists():
                shutil.copytree(world / "given" / word, word)
        if "--out" in words:
            shutil.rmtree(words[words.index("--out") + 1], ignore_errors=True)
        done = run(made_small(command))
        assert done.returncode == 0, f"{command}: {done.stderr}"


def made_small(command: str) -> str:
    name = command.partition("msdnet ")[2].split()[0]
    if name not in SMALL or any(word in command for word in ("--resume", "--list", "--draw", "gallery")):
        return command
    small = SMALL[name]
    small += " --image-size 32" if name == "train" and "photos/" in command else ""
    small += " --only resnet_mc" if name == "reproduce" and "--only" not in command else ""
    return f"{command.partition('#')[0]} {small}"
