"""Measuring a trained network: every exit and every budget, on the held-out and on the test images."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from msdnet.data import ImageData
from msdnet.evaluation import BudgetPoint, budget_point
from msdnet.files import Part
from msdnet.machine import describe_machine
from msdnet.networks import StagedNetwork
from msdnet.policy import METHODS, Judged, Measure, PolicyFamily, judge_logits
from msdnet.reproduce.measurement import Measurement
from msdnet.reproduce.subjects import Subject, trained_for
from msdnet.training import StopSignal, all_logits

__all__ = ["BUDGETS", "describe_test", "measure"]

# Average multiply-adds per image of 32 pixels, and ten times as many for large images. The same for all networks, so
# that the best of several can be told for each.
BUDGETS = tuple(
    million * 1e6
    for million in (
        *(10, 12, 15, 17, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100, 120, 150, 200, 250, 300, 400, 500, 700),
        *(1000, 1500, 2000),
    )
)
_BATCH = 250
_MEASURE: Measure = "largest"  # of confidence, as in the paper


def measure(
    subject: Subject,
    network: StagedNetwork,
    data: ImageData,
    runs: Sequence[Mapping[str, Any]],
    training: Mapping[str, Any] | None,
    stop: StopSignal,
) -> Measurement:
    """All that figures need to know of a network.

    - runs: the facts of its run, or of its members' runs
    - training: what is to be told of its training
    - stop: heeded after every batch and every budget, since all of them take minutes on a CPU
    """
    held_out, test = (_judged(network, data, part, stop) for part in ("held_out", "test"))
    side = data.image_shape[1:]
    costs, whole_costs = network.costs(side), network.costs(side, lazy=False)
    points = _points(subject.name, held_out, test, costs, whole_costs, _scale(side))
    device = next(network.parameters()).device
    gpu = {"hardware": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}
    return Measurement(
        name=subject.name,
        dataset=data.name,
        network=network.config.to_dict(),
        recipe=dataclasses.asdict(subject.recipe),
        seeds=tuple(trained.seed for trained in trained_for(subject)),
        images=runs[0]["images"] | describe_test(data) | _unreadable(data, held_out=held_out, test=test),
        parameters=network.parameter_count,
        costs=costs,
        whole_costs=whole_costs,
        cost_alone=network.cost_alone(side),
        held_out_accuracy=held_out.accuracy,
        test_accuracy=test.accuracy,
        points=tuple(stop.heeded(points)),
        training=training,
        trained_by=tuple({"msdnet": run["msdnet"], "torch": run["torch"]} for run in runs),
        made_by=describe_machine() | gpu | {"torch": torch.__version__},
    )


def describe_test(data: ImageData) -> dict[str, Any]:
    """What it is tested on, beside what `describe_data` says of the rest."""
    fingerprint = data.test_fingerprint
    return {"test": data.size("test")} | ({} if fingerprint is None else {"test_sha256": fingerprint})


def _unreadable(data: ImageData, *, held_out: Judged, test: Judged) -> dict[str, Any]:
    """How many images could not be read, where there are any: systems that were judged by others are not compared."""
    parts: dict[Part, Judged] = {"held_out": held_out, "test": test}
    counts = {part: data.size(part) - len(judged.correct) for part, judged in parts.items()}
    return {"unreadable": counts} if any(counts.values()) else {}


def _judged(network: StagedNetwork, data: ImageData, part: Part, stop: StopSignal) -> Judged:
    return judge_logits(*all_logits(network, stop.heeded(data.batches(part, _BATCH))), measures=(_MEASURE,))


def _points(
    name: str, held_out: Judged, test: Judged, costs: Sequence[int], whole_costs: Sequence[int], scale: int
) -> Iterator[BudgetPoint]:
    """What each budget that the network can keep brings; thresholds are fitted on the held-out images."""
    if len(costs) == 1:
        return
    budgets = [scale * budget for budget in BUDGETS if whole_costs[0] <= scale * budget]
    for method in METHODS:
        family = PolicyFamily(held_out.confidence[_MEASURE], held_out.correct, whole_costs, method=method)
        for budget in budgets:
            yield budget_point(name, family.policy(budget), test.confidence[_MEASURE], test.correct, costs)


def _scale(side: tuple[int, int]) -> int:
    """By how much budgets are larger than those of small images."""
    return 10 if max(side) > 64 else 1
