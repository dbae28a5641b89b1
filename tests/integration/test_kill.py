"""A training that is killed at random moments, or stopped, by the command line, and resumed: nothing is lost."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from PIL import Image

from msdnet.training.checkpoint import load_tensors
from tests.helpers import TINY

RECIPE = """
epochs = 6
batch_size = 8
average_decay = 0.9
evaluate_every = 3
[optimiser]
learning_rate = 0.02
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A recipe, a network and a folder of small images."""
    (tmp_path / "mine.toml").write_text(RECIPE)
    (tmp_path / "tiny.json").write_text(TINY.to_json())
    draw = random.Random(0)
    for name in ("cat", "dog"):
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True)
        for i in range(50):
            image = Image.new("RGB", (20, 20), tuple(draw.randrange(256) for _ in range(3)))
            image.save(folder / f"{i}.png")
    return tmp_path


def msdnet(place: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "msdnet", "train", *arguments, "--device", "cpu", "--checkpoint-seconds", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def start(place: Path, out: str, workers: int = 0) -> "subprocess.Popen[str]":
    options = ("--data", "images", "--network", "tiny.json", "--image-size", "16", "--workers", str(workers))
    return msdnet(place, "mine.toml", *options, "--out", out)


def finish(process: "subprocess.Popen[str]") -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


def wait_for_checkpoint(path: Path, newer_than: float) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_mtime <= newer_than:
        assert time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.01)


def test_killed_stopped_and_resumed_equals_uninterrupted(place: Path) -> None:
    whole = start(place, "whole")
    process, draw, kills = start(place, "broken"), random.Random(7), 0
    checkpoint = place / "broken" / "checkpoint.safetensors"
    for number in (signal.SIGKILL, signal.SIGTERM):
        wait_for_checkpoint(checkpoint, checkpoint.stat().st_mtime if checkpoint.exists() else 0)
        if number == signal.SIGKILL:
            time.sleep(draw.uniform(0, 0.4))
            kills += process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        if number == signal.SIGTERM:
            assert process.returncode == 128 + signal.SIGTERM, "the run was over before it could be stopped"
            assert "stopped by SIGTERM" in errors
            assert "msdnet train --resume broken" in errors
            assert errors.count("\n") == 1
        process = msdnet(place, "--resume", "broken")
    assert "6 epochs" in finish(process)
    finish(whole)
    assert kills >= 1, "the run was over before it could be killed"
    expected, _ = load_tensors(place / "whole" / "model.safetensors")
    resumed, _ = load_tensors(place / "broken" / "model.safetensors")
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    lines = [(place / name / "metrics.jsonl").read_text().count("\n") for name in ("whole", "broken")]
    assert lines == [6, 6]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the readers in /proc")
def test_a_reader_that_is_killed_is_told_in_one_line(place: Path) -> None:
    """As the system does where memory is short."""
    process = start(place, "run", workers=1)
    wait_for_checkpoint(place / "run" / "checkpoint.safetensors", 0)
    readers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(max(map(int, readers)), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.match(r"msdnet: a process that reads images has ended: DataLoader worker .*; if memory was short", errors)
    assert errors.count("\n") == 1


def test_a_checkpoint_is_called_useless_only_if_it_is(place: Path) -> None:
    """What is wrong where a whole one does not match is in another file."""
    process, checkpoint = start(place, "run"), place / "run" / "checkpoint.safetensors"
    wait_for_checkpoint(checkpoint, 0)
    process.kill()
    process.communicate(timeout=60)
    facts = place / "run" / "run.json"
    facts.write_text(facts.read_text().replace('"seed": 0', '"seed": 1'))
    _, errors = msdnet(place, "--resume", "run").communicate(timeout=60)
    assert "checkpoint.safetensors: made with another seed: 0 in the checkpoint, 1 in the run\n" in errors
    checkpoint.write_bytes(b"cut")
    _, errors = msdnet(place, "--resume", "run").communicate(timeout=60)
    assert "checkpoint.safetensors: not a whole safetensors file" in errors
    assert errors.endswith("; without this file the run begins anew\n")
