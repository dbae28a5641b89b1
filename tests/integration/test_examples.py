"""The examples run as they are told to."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
from PIL import Image

from msdnet.bundle import Bundle

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(tmp_path_factory.mktemp("photos"))
    random = np.random.default_rng(0)
    for name, level in (("dark", 40), ("light", 200)):
        (folder / name).mkdir()
        for number in range(40):
            pixels = np.clip(level + 30 * random.standard_normal((24, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


def test_train_on_your_folder(photos: Path, tmp_path: Path) -> None:
    sizes = ("--epochs", "2", "--batch-size", "16", "--side", "24")
    shown = run("train_on_your_folder.py", str(photos), "--out", str(tmp_path / "mine"), *sizes)
    assert shown.count("multiply-adds per image:") == 3


def test_classify_within_time(tiny: Bundle, photos: Path) -> None:
    shown = run("classify_within_time.py", str(tiny.folder), str(photos), "--milliseconds", "50")
    assert "80 images in" in shown
    assert "most often:" in shown


def test_deadline_loop(tiny: Bundle) -> None:
    assert "20 frames, " in run("deadline_loop.py", str(tiny.folder), "--frames", "20", "--milliseconds", "50")


def test_service(tiny: Bundle, photos: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "service.py"), str(tiny.folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        address = service.stdout.readline().strip()
        try:
            with urlopen(address, data=(photos / "dark/1.png").read_bytes()) as answered:
                assert json.load(answered)["label"] in tiny.manifest.classes
            with pytest.raises(HTTPError) as refused, urlopen(address, data=b"no picture"):
                pass
            assert refused.value.code == 400
            assert "cannot be read (not an image)" in json.load(refused.value)["error"]
        finally:
            service.kill()


def test_every_example_is_tried() -> None:
    tried = Path(__file__).read_text()
    assert all(path.name in tried for path in EXAMPLES.glob("*.py"))
