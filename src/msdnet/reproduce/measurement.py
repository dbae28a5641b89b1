"""What was measured of one system: a file under results/, from which figures are drawn."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdnet.checks import check_number, check_same, check_whole
from msdnet.config import NetworkConfig
from msdnet.errors import FileError, NewerFormatError, of_file, reason_of
from msdnet.evaluation import BudgetPoint
from msdnet.files import in_words
from msdnet.reproduce.subjects import Subject, trained_for
from msdnet.tables import from_mapping, make_tuples, read_as
from msdnet.training import Recipe
from msdnet.writing import write_atomically

__all__ = [
    "Measurement",
    "Refused",
    "check_each",
    "read_measurement",
    "save_result",
]

FORMAT = 1

_WAY_OUT = (
    "delete it, and the system is measured again (trained first, where its run is gone), or put back a copy of it"
)


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
    """What it was trained, held out and tested on, and how many of the latter two could not be read, if any."""
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
    """Seconds, its share of them where networks were trained side by side, and the number of processes (older files do
    not tell it: one); nothing for an ensemble."""
    trained_by: tuple[Mapping[str, Any], ...]
    """Versions that trained it, or each member; commits may differ between results, versions of msdnet may not."""
    made_by: Mapping[str, Any]
    """Versions, hardware and commit of the measuring."""

    def __post_init__(self) -> None:
        of_exits = ("costs", "whole_costs", "held_out_accuracy", "test_accuracy")
        for name in ("seeds", "trained_by", "points", *of_exits):
            if getattr(self, name) is None:
                raise TypeError(f"{name} must be a list, got nothing")
            make_tuples(self, name)
        exits = len(self.costs)
        for name in of_exits:
            values = getattr(self, name)
            if not values or len(values) != exits:
                raise ValueError(f"{name} must have an entry for each of {exits} exits, got {len(values)}")
            for value in values:
                if name.endswith("costs"):
                    check_whole(f"each of {name}", value)
                else:
                    check_number(f"each of {name}", value, low=0, high=1)
            if name.endswith("costs") and list(values) != sorted(values):
                raise ValueError(f"{name} must not fall from one exit to the next, got {values}")
        self._check_tables()
        points = (p if isinstance(p, BudgetPoint) else from_mapping(BudgetPoint, p, "a point") for p in self.points)
        object.__setattr__(self, "points", tuple(points))

    def _check_tables(self) -> None:
        check_whole("parameters", self.parameters)
        check_whole("cost_alone", self.cost_alone)
        if not self.trained_by:
            raise ValueError("trained_by must tell what trained it, got nothing")
        given = ("network", "recipe", "images", "made_by", *(["training"] if self.training is not None else []))
        tables = [(name, getattr(self, name)) for name in given]
        for name, table in (*tables, *(("each of trained_by", made) for made in self.trained_by)):
            if not isinstance(table, Mapping):
                raise TypeError(f"{name} must be a table of fields, got {table!r}")
        for made in (self.made_by, *self.trained_by):
            if "msdnet" not in made:
                raise ValueError("made_by, and each of trained_by, must tell the version of msdnet")

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
    """What was measured before; `FileNotFoundError` if it was not. Of a damaged file it is told what can be done."""
    try:
        found = read_as(Measurement, path, FORMAT)
        with of_file(path):
            check_same("is of another system", found.name, path.stem, places=("in it", "by its name"))
    except NewerFormatError:
        raise
    except FileError as error:
        raise FileError(path, f"{error.why}; {_WAY_OUT}") from error
    return found


class Refused:
    """Files that cannot be used, and why. All are told at once: nobody is to mend one only to hear of the next."""

    def __init__(self) -> None:
        self._files: dict[str, list[Path]] = {}  # by what is wrong, which many may have in common

    @contextmanager
    def noting(self, path: Path) -> Iterator[None]:
        """What is refused inside is noted as wrong with this file, which need not be named."""
        try:
            yield
        except (ValueError, TypeError, IsADirectoryError) as error:
            self._files.setdefault(reason_of(error), []).append(path)

    def tell(self) -> None:
        """Raise an error if there are any."""
        told = [line for why, files in self._files.items() for line in _lines(why, files)]
        if len(self._files) > 1:
            count = sum(map(len, self._files.values()))
            told = [f"{count} result files cannot be used:", *(f"  {line}" for line in told)]
        if told:
            raise ValueError("\n".join(told))


def _lines(why: str, files: Sequence[Path]) -> list[str]:
    """What is wrong with one file, or with several, which then have a line each."""
    if len(files) == 1:
        return [f"{files[0]}: {why}"]
    return [f"{len(files)} result files: {why}:", *(f"  {file}" for file in files)]


def check_each(
    measured: Sequence[tuple[Subject, Path, Measurement]], refused: Refused, training_images: int | None = None
) -> None:
    """What was not made in one way does not go into one figure: note of each file that differs in what it does."""
    if not measured:
        return
    _, usual_path, usual = max(measured, key=lambda one: sum(_made_alike(one[2], other) for _, _, other in measured))
    precisions = [told for _, _, found in measured if (told := _precision(found))]
    most = max(precisions, key=precisions.count, default=None)
    for subject, path, found in measured:
        with refused.noting(path):
            _check_as_declared(subject, found, training_images)
            _check_as_usual(found, usual_path, usual)
            if (told := _precision(found)) not in (None, most):
                raise ValueError(f"trained in {told}, most in {most}: by MSDNET_PRECISION or what the machine can do")


def _check_as_declared(subject: Subject, found: Measurement, training_images: int | None) -> None:
    network, recipe = _as_written_now(found)
    there: dict[str, Any] = {"network": network, "recipe": recipe, "seeds": found.seeds}
    declared: dict[str, Any] = {
        "network": subject.network.to_dict(),
        "recipe": dataclasses.asdict(subject.recipe),
        "seeds": tuple(trained.seed for trained in trained_for(subject)),
    }
    if training_images is not None:
        there["training images"], declared["training images"] = found.images.get("training"), training_images
    check_same(_differs("this experiment"), there, declared, places=("here", "in this experiment"))


def _check_as_usual(found: Measurement, usual_path: Path, usual: Measurement) -> None:
    version = usual.made_by["msdnet"]
    others = [made["msdnet"] for made in (found.made_by, *found.trained_by) if made["msdnet"] != version]
    here = {"images": in_words(found.images), "msdnet's version": next(iter(others), version)}
    there = {"images": in_words(usual.images), "msdnet's version": version}
    check_same(_differs(str(usual_path)), here, there, places=("here", f"in {usual_path}"))


def _as_written_now(found: Measurement) -> tuple[dict[str, Any], dict[str, Any]]:
    """Its network and its recipe: what is newer than the file has its default."""
    try:
        recipe = from_mapping(Recipe, found.recipe, "recipe")
        return NetworkConfig.from_dict(found.network).to_dict(), dataclasses.asdict(recipe)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{error}; {_WAY_OUT}") from error


def _made_alike(one: Measurement, other: Measurement) -> bool:
    """Of the same images by the same version: most are, and the odd one is to be blamed, wherever it stands."""
    return one.images == other.images and one.made_by["msdnet"] == other.made_by["msdnet"]


def _precision(measured: Measurement) -> str | None:
    """Of its training: older files do not tell it, and an ensemble has none of its own."""
    return (measured.training or {}).get("precision")


def _differs(other: str) -> str:
    """The beginning of an error that ends with what differs."""
    advice = "give the options that it was made with, or another folder, or remove it and its run"
    return f"made in another way than {other}, so not to be drawn beside the others ({advice})"
