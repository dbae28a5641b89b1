"""Learning from another network: it must be there, be trained on the same images, and stay the same."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from msdnet.systems import WideResNetConfig
from msdnet.training import Interrupted, Recipe, Summary, resume, train
from msdnet.training.checkpoint import load_tensors
from msdnet.training.display import Display
from msdnet.training.recipe import Distillation, Loss, Optimiser
from msdnet.training.record import read_summary
from tests.helpers import TINY, ColouredSquares
from tests.unit.test_training import QUICK, StopAt

TAUGHT = Recipe(
    epochs=3,
    batch_size=16,
    optimiser=Optimiser(learning_rate=0.05),
    loss=Loss(distillation=Distillation(weight=1.0, teacher="network")),
)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = Path(tmp_path_factory.mktemp("runs")) / "teacher"
    network = WideResNetConfig(layers=10, widening=1)
    train(QUICK, data=ColouredSquares(), network=network, out=out, device="cpu", display=Display())
    return out


def learn(out: Path, recipe: Recipe = TAUGHT, **options: Any) -> Summary:
    settings: dict[str, Any] = {"data": ColouredSquares(), "network": TINY, "display": Display(), "device": "cpu"}
    return train(recipe, out=out, **(settings | options))


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_tensors(out / "model.safetensors")[0]


def test_a_student_learns_otherwise_than_alone(teacher: Path, tmp_path: Path) -> None:
    taught = learn(tmp_path / "taught", teacher=teacher)
    learn(tmp_path / "alone", QUICK)
    assert min(taught.held_out_accuracy) > 0.8
    one, other = weights(tmp_path / "taught"), weights(tmp_path / "alone")
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_taught_run_is_resumed_with_its_teacher(teacher: Path, tmp_path: Path) -> None:
    learn(tmp_path / "whole", teacher=teacher)
    with pytest.raises(Interrupted):
        learn(tmp_path / "parts", teacher=teacher, display=StopAt(7))
    resume(tmp_path / "parts", data=ColouredSquares(), device="cpu", display=Display())
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_a_finished_student_is_tested_without_its_teacher(tmp_path: Path) -> None:
    teacher = tmp_path / "teacher"
    learn(teacher, QUICK)
    learn(tmp_path / "taught", teacher=teacher)
    shutil.rmtree(teacher)
    summary = resume(tmp_path / "taught", data=ColouredSquares(), test=True, device="cpu", display=Display())
    assert summary.test_accuracy is not None


def test_a_finished_student_is_tested_as_it_is_without_its_checkpoint(teacher: Path, tmp_path: Path) -> None:
    """Nothing is trained again: of all its files, only the summary changes."""
    finished = learn(tmp_path, teacher=teacher)
    (tmp_path / "checkpoint.safetensors").unlink()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir() if path.is_file()}
    before.pop(tmp_path / "summary.json")
    tested = resume(tmp_path, data=ColouredSquares(), test=True, device="cpu", display=Display())
    assert tested.test_accuracy is not None
    assert tested == dataclasses.replace(finished, test_accuracy=tested.test_accuracy) == read_summary(tmp_path)
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir() if path.is_file()}
    after.pop(tmp_path / "summary.json")
    assert after == before


def test_refuses_another_teacher_half_way(teacher: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    learn(other, QUICK)
    with pytest.raises(Interrupted):
        learn(tmp_path / "parts", teacher=teacher, display=StopAt(7))
    with pytest.raises(ValueError, match="another teacher than the run was started with"):
        resume(tmp_path / "parts", data=ColouredSquares(), teacher=other, device="cpu", display=Display())


def test_refuses_a_teacher_that_has_seen_held_out_images(teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a teacher trained on other data: held-out images: 24 there, 12 in this run"):
        learn(tmp_path / "out", teacher=teacher, data=ColouredSquares(held_out=12))
    assert not (tmp_path / "out").exists()


def test_refuses_a_teacher_that_is_missing_or_of_no_use(teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"learns from another network: a teacher \(--teacher\) is needed"):
        learn(tmp_path / "out")
    with pytest.raises(ValueError, match="learns from no other network"):
        learn(tmp_path / "out", QUICK, teacher=teacher)
    with pytest.raises(FileNotFoundError, match="no training run here"):
        learn(tmp_path / "out", teacher=tmp_path / "nowhere")
    assert not (tmp_path / "out").exists()
