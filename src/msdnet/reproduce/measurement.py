"""What was measured of one system: a file under results/, from which figures are drawn."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdnet.checks import from_mapping, make_tuples, table_from_json
from msdnet.config import NetworkConfig
from msdnet.evaluation import BudgetPoint
from msdnet.reproduce.subjects import Subject, trained_for
from msdnet.training import Recipe
from msdnet.training.checkpoint import write_atomically

__all__ = ["Measurement", "check_comparable", "read_measurement", "save_result"]

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How good a network or an ensemble is at each exit and at each budget, and how it came about."""

    format: int = FORMAT
    name: str
    dataset: str
    network: Mapping[str, Any]
    """Its config."""
    recipe: Mapping[str, Any]
    seeds: tuple[int, ...]
    """Of the training; of an ensemble, of every member's."""
    images: Mapping[str, Any]
    """What it was trained, held out and tested on."""
    parameters: int
    costs: tuple[int, ...]
    """Multiply-adds to each exit, computed lazily."""
    whole_costs: tuple[int, ...]
    """The same by whole layers, as published figures count; budgets are in these."""
    cost_alone: int
    """Of the network as a whole, run for its last exit alone."""
    held_out_accuracy: tuple[float, ...]
    test_accuracy: tuple[float, ...]
    points: tuple[BudgetPoint, ...]
    """What budgets bring, by both kinds of policy; none where there is one exit only."""
    training: Mapping[str, Any] | None
    """Seconds, and its share of them where networks were trained side by side; nothing for an ensemble."""
    trained_by: tuple[Mapping[str, Any], ...]
    """Versions that trained it, or each member; commits may differ between results, versions of msdnet may not."""
    made_by: Mapping[str, Any]
    """Versions, hardware and commit of the measuring."""

    def __post_init__(self) -> None:
        make_tuples(self, "seeds", "trained_by", "costs", "whole_costs", "held_out_accuracy", "test_accuracy")
        points = (p if isinstance(p, BudgetPoint) else from_mapping(BudgetPoint, p, "a point") for p in self.points)
        object.__setattr__(self, "points", tuple(points))

    def by(self, method: str) -> list[BudgetPoint]:
        """The budgets' points by one kind of policy."""
        return [point for point in self.points if point.method == method]

    def save(self, path: Path) -> None:
        save_result(path, dataclasses.asdict(self))


def save_result(path: Path, values: Mapping[str, Any]) -> None:
    """Write a file of results: whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(values, indent=2) + "\n").encode())


def read_measurement(path: Path) -> Measurement:
    """What was measured before; `FileNotFoundError` if it was not."""
    return from_mapping(Measurement, table_from_json(path.read_text(), str(path), FORMAT), str(path))


def check_comparable(measured: Sequence[tuple[Subject, Path, Measurement]]) -> None:
    """Refuse to draw into one figure what was not made in one way; the file that differs is named."""
    for subject, path, found in measured:
        _check(path, "network", NetworkConfig.from_dict(found.network).to_dict(), subject.network.to_dict())
        recipe = from_mapping(Recipe, found.recipe, f"{path}: recipe")  # what is newer than the file has its default
        _check(path, "recipe", dataclasses.asdict(recipe), dataclasses.asdict(subject.recipe))
        _check(path, "seeds", found.seeds, [trained.seed for trained in trained_for(subject)])
    for _, path, found in measured:
        _, first_path, first = measured[0]
        _check(path, "images", found.images, first.images, f" in {first_path}")
        for version in (found.made_by["msdnet"], *(made["msdnet"] for made in found.trained_by)):
            _check(path, "msdnet's version", version, first.made_by["msdnet"], f" in {first_path}")


def _check(path: Path, what: str, found: object, expected: object, where: str = " in this experiment") -> None:
    found, expected = (json.loads(json.dumps(value)) for value in (found, expected))
    if found == expected:
        return
    if isinstance(found, dict) and isinstance(expected, dict):
        name = next(key for key in sorted(found.keys() | expected.keys()) if found.get(key) != expected.get(key))
        found, expected, what = found.get(name), expected.get(name), f"{what}: {name}"
    raise ValueError(
        f"{path}: made in another way, so it cannot be drawn beside the others: {what} is {found!r}, and {expected!r}"
        f"{where}. Give the options that it was made with, or another folder, or remove it and its run"
    )
