"""Real CIFAR-100: read as published, and learnt from."""

from pathlib import Path

import pytest
import torch

from msdnet import MSDNetConfig
from msdnet.data import DataConfig
from msdnet.data.cifar import CifarData
from msdnet.training import Recipe, train
from msdnet.training.display import Display
from msdnet.training.recipe import Optimiser, Schedule


@pytest.fixture(scope="module", params=[pytest.param("cifar10", marks=pytest.mark.slow), "cifar100"])
def data(request: pytest.FixtureRequest) -> CifarData:
    return CifarData(request.param, request.getfixturevalue(f"{request.param}_root"))


def test_parts_are_the_papers(data: CifarData) -> None:
    classes = 100 if data.name == "cifar100" else 10
    assert (data.size("train"), data.size("held_out"), data.size("test")) == (45_000, 5_000, 10_000)
    assert len(data.classes) == classes
    assert data.classes[0] in ("apple", "airplane")
    (test,) = data.batches("test", 10_000)
    assert torch.equal(test.labels.bincount(), torch.full((classes,), 10_000 // classes))


@pytest.mark.slow
def test_normalisation_is_that_of_the_training_images(data: CifarData) -> None:
    pixels = torch.cat([data._images["train"], data._images["held_out"]]).double() / 255
    assert pixels.mean(dim=(0, 1, 2)).tolist() == pytest.approx(data.normalisation.mean, abs=1e-4)
    assert pixels.std(dim=(0, 1, 2)).tolist() == pytest.approx(data.normalisation.std, abs=1e-4)


@pytest.mark.slow
def test_a_tiny_network_beats_chance_at_every_exit(cifar100_root: Path, tmp_path: Path) -> None:
    network = MSDNetConfig(exits=(1, 2, 4), seed_channels=8, growth=4, head_width=48)
    recipe = Recipe(
        epochs=3,
        batch_size=32,
        optimiser=Optimiser(learning_rate=0.1, weight_decay=5e-4),
        schedule=Schedule(kind="cosine", warmup_epochs=0.5),
        evaluate_every=3,
    )
    data = DataConfig(dataset="cifar100", root=str(cifar100_root), subset=2_000, held_out=1_000)
    summary = train(recipe, data=data, network=network, out=tmp_path, display=Display(), device="cpu")
    assert min(summary.held_out_accuracy) > 0.03  # chance is 0.01, and its standard error on 1,000 images 0.003
