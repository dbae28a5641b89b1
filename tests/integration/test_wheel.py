"""The wheel as a stranger installs it, without torch and away from the checkout: every command does its work."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from PIL import Image

from msdnet import samples
from msdnet.extras import install
from tests.helpers import TINY

ROOT = Path(__file__).parents[2]
MODEL = "cifar10-small"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the command in bin/, and two pictures in photos/."""
    place = tmp_path_factory.mktemp("installed")
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    subprocess.run([sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", place, ROOT], check=True)
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    (wheel,) = place.glob("msdnet-*.whl")
    subprocess.run([place / "bin/python", *pip, "install", wheel], check=True)
    images = samples.cifar10().images
    (place / "photos").mkdir()
    for k in range(2):
        Image.fromarray(images[k]).save(place / "photos" / f"{k}.png")
    return place


def msdnet(place: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [place / "bin/msdnet", *arguments],
        cwd=place,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--version"], "msdnet 0."),
        (["--help"], "classify"),
        (["classify", "photos", "--budget", "40%"], "cat"),
        (["classify", "photos/1.png", "--deadline", "50ms", "--json"], '"label": "ship"'),
        (["budget", MODEL], "93.6"),
        (["profile", MODEL], "per image"),
        (["models"], "cifar100-anytime"),
        (["show", MODEL], "93.71"),
        (["show", "cifar_anytime"], "24 layers"),
        (["presets"], "cifar_anytime"),
        (["reproduce", "--list"], "anytime-cifar100"),
        (["evaluate", MODEL, "--data", "samples", "--budgets", "40%"], "19.23 M"),
        (["report", MODEL, "--data", "samples", "--out", "report.html"], "report.html"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_every_command_works(installed: Path, arguments: list[str], said: str) -> None:
    done = msdnet(installed, *arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "fast", "--out", "run"],
        ["export", "run", "--out", "bundle"],
        ["reproduce", "anytime-cifar100", "--plan"],
    ],
    ids=["train", "export", "reproduce"],
)
def test_what_needs_torch_says_how_to_get_it(installed: Path, arguments: list[str]) -> None:
    done = msdnet(installed, *arguments)
    assert done.returncode == 1
    assert done.stderr == f"msdnet: this command needs torch: {install('train')}\n"


@pytest.mark.slow
def test_with_torch_it_trains_exports_and_reproduces(installed: Path) -> None:
    """What training takes is lent by the environment of the tests; msdnet itself is the wheel's."""
    torch = {"PYTHONPATH": sysconfig.get_path("purelib")}
    (installed / "network.json").write_text(TINY.to_json())
    for name in ("cat", "dog"):
        (installed / "mine" / name).mkdir(parents=True)
        for k in range(20):
            Image.new("RGB", (20, 20), (12 * k, 100, 100)).save(installed / "mine" / name / f"{k}.png")
    of_training = "--data mine --network network.json --image-size 16 --epochs 1 --batch-size 8 --out runs/mine"
    for command in (
        f"train fast {of_training}",
        "export runs/mine --out bundles/mine",
        "classify mine --model bundles/mine",
        "reproduce --list",
    ):
        done = msdnet(installed, *command.split(), **torch)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    code = "import msdnet; print(msdnet.__file__)"
    found = subprocess.run(
        [installed / "bin/python", "-c", code], env=os.environ | torch, capture_output=True, text=True, check=True
    )
    assert str(installed) in found.stdout


def test_the_demo_classifies_and_writes_a_report_that_needs_no_network(installed: Path) -> None:
    done = msdnet(installed, "demo", "--model", MODEL)
    assert done.returncode == 0, done.stderr
    assert "all to the last exit" in done.stdout
    page = (installed / "msdnet-demo.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org/", "").replace("https://arxiv.org/", "")


def test_a_picture_of_the_package_is_answered_in_python_too(installed: Path) -> None:
    code = (
        "import msdnet; print(msdnet.load('cifar10-anytime').classify(['photos/0.png'], budget=30e6).labels.tolist())"
    )
    done = subprocess.run(
        [installed / "bin/python", "-c", code], cwd=installed, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [samples.cifar10().labels[0]]
