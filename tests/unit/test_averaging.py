"""The choice of an average of exits: what is compared is what the networks then answer, and held-out images decide."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from msdnet.bundle import HELD_OUT, Bundle
from msdnet.config import MSDNetConfig
from msdnet.data.base import Batch
from msdnet.export import averaging, export_run
from msdnet.export.averaging import POWERS, averaged, choose_averaging
from msdnet.files import Part
from msdnet.networks import create_network
from msdnet.runtime.tensors import read_tensors
from msdnet.training import train
from msdnet.training.display import Display
from msdnet.training.recipe import Loss
from tests.helpers import TINY, ColouredSquares, settle
from tests.unit.test_training import QUICK


class HeldOutOnly(ColouredSquares):
    """Whose test images nobody may look at."""

    looks = 0

    def batches(self, part: Part, batch_size: int) -> Iterator[Batch]:
        assert part == "held_out"
        self.looks += 1
        return super().batches(part, batch_size)


@pytest.mark.parametrize("power", POWERS)
def test_averages_of_logits_are_what_a_network_answers(power: float | None) -> None:
    plain = settle(create_network(TINY, classes=3, averaging=None), side=12)
    made = create_network(TINY, classes=3, averaging=power).eval()
    made.load_state_dict(plain.state_dict())
    images = torch.randn(5, 3, 12, 12)
    with torch.inference_mode():
        own, answers = (torch.stack(network(images), dim=1).numpy() for network in (plain, made))
    assert averaged(own, made.config.exit_shares) == pytest.approx(answers, abs=1e-5)


def test_the_best_on_the_images_is_chosen_and_of_equals_the_simplest() -> None:
    chance = np.random.default_rng(0)
    labels = chance.integers(0, 3, 400)
    truth = np.eye(3, dtype=np.float32)[labels]
    # Each exit sees the truth under noise of its own: the more of them are averaged, the better.
    noisy = np.stack([truth + chance.normal(0, 1, truth.shape) for _ in TINY.exits], axis=1).astype(np.float32)
    choice = choose_averaging(TINY, noisy, labels)
    assert choice.power == 0
    assert list(choice.accuracy) == ["none", "0", "0.5", "1", "2"]
    assert np.mean(choice.accuracy["0"]) == max(np.mean(accuracy) for accuracy in choice.accuracy.values())
    alike = np.repeat(truth[:, None], len(TINY.exits), axis=1)
    assert choose_averaging(TINY, alike, labels).power is None
    assert choose_averaging(TINY, alike, labels, (2.0, 0.25, 1.0)).power == 0.25


def test_as_many_right_answers_are_as_good_at_whichever_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though their mean accuracies may differ by a rounding error."""
    right = {None: (3, 2, 1), 0.0: (1, 2, 3)}
    assert np.mean([0.3, 0.2, 0.1]) < np.mean([0.1, 0.2, 0.3])

    def logits(counts: tuple[int, ...]) -> NDArray[np.float32]:
        correct = np.arange(10)[:, None] < np.array(counts)
        return np.stack([correct, ~correct], axis=2).astype(np.float32)

    monkeypatch.setattr(averaging, "averaged", lambda _, shares: logits(right[None if shares is None else 0.0]))
    for powers in ((None, 0.0), (0.0, None)):
        assert choose_averaging(TINY, logits(right[None]), np.zeros(10, np.int64), powers).power is None


def averaging_of(bundle: Bundle) -> float | None:
    config = bundle.manifest.network
    assert isinstance(config, MSDNetConfig)
    return config.averaging


@pytest.mark.parametrize("half", [False, True])
def test_a_run_is_exported_with_the_best_and_no_test_image_is_seen(tmp_path: Path, half: bool) -> None:
    data = HeldOutOnly()
    train(QUICK, data=data, network=TINY, out=tmp_path / "run", device="cpu", display=Display())
    data.looks = 0
    bundle = export_run(tmp_path / "run", tmp_path / "bundle", data=data, averaging="best", half=half, device="cpu")
    assert data.looks == 1, "enough for the choice and for what the bundle keeps"
    judged = export_run(tmp_path / "run", tmp_path / "same", data=data, averaging=averaging_of(bundle), half=half)
    for name, values in read_tensors(judged, HELD_OUT).items():
        assert read_tensors(bundle, HELD_OUT)[name] == pytest.approx(values, abs=1e-5)
    told = bundle.manifest.provenance["averaging"]
    assert bundle.manifest.held_out is not None
    assert bundle.manifest.held_out.accuracy == pytest.approx(told["held_out_accuracy"][told["chosen"]])
    assert list(told["held_out_accuracy"]) == ["none", "0", "0.5", "1", "2"]
    power = averaging_of(bundle)
    assert told["chosen"] == ("none" if power is None else f"{power:g}")
    with pytest.raises(ValueError, match="found on held-out images"):
        export_run(tmp_path / "run", tmp_path / "x", data=data, averaging="best", held_out=False, device="cpu")


def test_the_power_that_a_run_was_boosted_with_is_compared_too(tmp_path: Path) -> None:
    data, recipe = HeldOutOnly(), replace(QUICK, loss=Loss(boosting=1.5))
    train(recipe, data=data, network=TINY, out=tmp_path / "run", device="cpu", display=Display())
    bundle = export_run(tmp_path / "run", tmp_path / "bundle", data=data, averaging="best", device="cpu")
    assert "1.5" in bundle.manifest.provenance["averaging"]["held_out_accuracy"]
