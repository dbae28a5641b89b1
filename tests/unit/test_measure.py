"""Measuring: thresholds come from the held-out images, accuracies and what is spent from the test images."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from msdnet import MSDNetConfig
from msdnet.policy import METHODS
from msdnet.reproduce import Measurement
from msdnet.reproduce.measure import BUDGETS, measure
from msdnet.reproduce.subjects import Trained
from msdnet.training import Recipe, StopSignal

CONFIG = MSDNetConfig(exits=(1, 2), classes=2)
LAZY, WHOLE = (9_000_000, 60_000_000), (12_000_000, 100_000_000)
RUN = {"images": {"training": 80}, "msdnet": "1.0", "torch": "2.0"}
# Of each part: the labels, and the logits of the second of two classes at both exits; those of the first are zeros.
ANSWERS = {
    # All are right, more or less confidently at the first exit.
    "held_out": ([0] * 8, np.linspace(-0.1, -0.8, 8), np.full(8, -5.0)),
    # More confident than any of these, and half of the time wrong; the last exit is wrong once.
    "test": ([0, 0, 1, 1], np.full(4, 3.0), np.array([-5.0, -5.0, 5.0, -5.0])),
}


class Network:
    """As much of one as measuring asks for."""

    config, parameter_count = CONFIG, 7

    def costs(self, side: tuple[int, int], *, lazy: bool = True) -> tuple[int, ...]:
        times = (side[0] // 32) ** 2
        return tuple(times * cost for cost in (LAZY if lazy else WHOLE))

    def cost_alone(self, side: tuple[int, int]) -> int:
        return self.costs(side, lazy=False)[-1]

    def parameters(self) -> Iterator[torch.Tensor]:
        yield torch.zeros(1)


def answers(_: Network, batches: Iterator[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Of the part of the data that the batches are of: logits (images, exits, classes), and labels."""
    labels, *of_second = ANSWERS[next(batches)]
    second = np.stack(of_second, axis=1)
    return np.stack([np.zeros_like(second), second], axis=2).astype(np.float32), np.array(labels)


def measured_at(side: int, monkeypatch: pytest.MonkeyPatch) -> Measurement:
    monkeypatch.setattr("msdnet.reproduce.measure.all_logits", answers)
    data: Any = SimpleNamespace(
        name="cifar10",
        image_shape=(3, side, side),
        batches=lambda part, _: iter([part]),
        size=lambda part: len(ANSWERS[part][1]),
        test_fingerprint=None,
    )
    network: Any = Network()
    return measure(Trained("small", CONFIG, Recipe(epochs=1, batch_size=8)), network, data, [RUN], None, StopSignal())


def test_thresholds_are_of_held_out_images_and_all_else_is_of_test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured_at(32, monkeypatch)
    assert found.held_out_accuracy == (1.0, 1.0)
    assert found.test_accuracy == (0.5, 0.75)
    (half,) = (point for point in found.by("paper") if point.budget == 50e6)
    assert 12e6 < half.held_out_cost <= 50e6, "some held-out images leave at the first exit"
    assert half.held_out_accuracy == 1.0
    # All test images are more confident than these.
    assert (half.left, half.cost, half.lazy_cost, half.accuracy) == ((4, 0), 12e6, 9e6, 0.5)


def test_costs_are_told_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured_at(32, monkeypatch)
    assert (found.costs, found.whole_costs, found.cost_alone) == (LAZY, WHOLE, WHOLE[-1])


@pytest.mark.parametrize(("side", "times"), [(32, 1), (64, 1), (224, 10)])
def test_large_images_get_ten_times_the_budgets(side: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are enough for the first exit, by both methods."""
    least = WHOLE[0] * (side // 32) ** 2
    found = measured_at(side, monkeypatch)
    for method in METHODS:
        budgets = [point.budget for point in found.by(method)]
        assert budgets == [times * budget for budget in BUDGETS if times * budget >= least]
