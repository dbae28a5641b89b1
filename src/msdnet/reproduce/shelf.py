"""What stands there of an experiment: results in files, runs in folders, how far each has come, and whether it is what
it should be. Reads only: a `Workshop` does what is missing.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msdnet.bundle import RUN
from msdnet.checks import check_same
from msdnet.errors import NewerFormatError, path_of, text_of
from msdnet.files import in_words
from msdnet.reproduce.measurement import Measurement, Refused, read_measurement
from msdnet.reproduce.subjects import Subject, Trained, trained_for
from msdnet.reproduce.timekeeping import machine_seconds
from msdnet.training import is_finished
from msdnet.training.checkpoint import check_same_run, load_facts
from msdnet.training.record import defined_by, read_run, read_summary
from msdnet.training.trainer import CHECKPOINT, MODEL, SUMMARY

__all__ = ["Shelf", "Standing"]

Standing = Literal["measured", "trained", "begun", "missing"]


@dataclass(frozen=True)
class Shelf:
    """The results and the runs of systems on one set of data."""

    results: Path
    """A folder with a file for each system that was measured."""
    runs: Path
    """A folder with a folder for each network that is trained."""

    def file_of(self, subject: Subject | Measurement) -> Path:
        return self.results / f"{subject.name}.json"

    def run_of(self, trained: Trained) -> Path:
        return self.runs / trained.name

    def measured(self, subject: Subject) -> Measurement | None:
        """What is known of it, if it was measured."""
        try:
            return read_measurement(self.file_of(subject))
        except FileNotFoundError:
            return None

    def standing(self, subject: Subject) -> Standing:
        """How far it has come; an ensemble as far as the least of its members."""
        return "measured" if self.file_of(subject).exists() else self.training_standing(subject)

    def training_standing(self, subject: Subject) -> Standing:
        """How far its training has come, measured or not: an ensemble asks the networks themselves."""
        if not self.untrained(subject):
            return "trained"
        begun = any((self.run_of(trained) / RUN).exists() for trained in trained_for(subject))
        return "begun" if begun else "missing"

    def untrained(self, subject: Subject) -> list[Trained]:
        """The network, or those of an ensemble's members, whose training is not finished."""
        return [trained for trained in trained_for(subject) if not is_finished(self.run_of(trained))]

    def progress(self, trained: Trained) -> dict[str, Any] | None:
        """How far its last checkpoint is, if there is one."""
        path = self.run_of(trained) / CHECKPOINT
        return load_facts(path)["progress"] if path.exists() else None

    def share_trained(self, trained: Trained) -> float:
        """Which part of its epochs is done, by its last checkpoint."""
        progress = self.progress(trained)
        return 0.0 if progress is None else float(progress["epoch"] / trained.recipe.epochs)

    def training_of(self, trained: Trained) -> dict[str, Any]:
        """What is to be told of a training that is finished."""
        run = self.run_of(trained)
        summary = read_summary(run)
        return {
            "seconds": summary.seconds,
            "machine_seconds": machine_seconds(run, summary.seconds),
            "images_per_second": summary.images_per_second,
            "processes": summary.processes,
            "precision": read_run(run)["precision"],
        }

    def check_images(self, measured: Iterable[Measurement], images: dict[str, Any]) -> None:
        """Refuse what was measured of other images than these."""
        refused = Refused()
        hint = "made of other images than those here; give these, or another folder for results (--results)"
        for one in measured:
            # Which of them can be read is known only when they are.
            found = {name: value for name, value in one.images.items() if name != "unreadable"}
            with refused.noting(self.file_of(one)):
                check_same(hint, in_words(found), in_words(images), places=("in the results", "in the data"))
        refused.tell()

    def fault_of(self, trained: Trained, images: dict[str, Any] | None) -> str:
        """What keeps its run from being used, if anything does; images are compared if they are known."""
        run = self.run_of(trained)
        if not any((run / name).exists() for name in (RUN, CHECKPOINT, SUMMARY)):
            return ""
        try:
            self.check_run(trained, images)
            if is_finished(run):
                read_summary(run)
                check_same_run(run / MODEL, load_facts(run / MODEL), read_run(run))
            else:
                self.progress(trained)
        except (ValueError, OSError) as error:
            return self.reason(trained, error)
        return ""

    def check_run(self, trained: Trained, images: dict[str, Any] | None) -> None:
        """Refuse a run that was made for something else, or on other images than these, where they are known."""
        folder = self.run_of(trained)
        facts = read_run(folder)
        network, recipe = defined_by(facts, folder)
        found = {
            "network": network.to_dict(),
            "recipe": dataclasses.asdict(recipe),
            "seed": facts["seed"],
        }
        wanted = {
            "network": trained.network.to_dict(),
            "recipe": dataclasses.asdict(trained.recipe),
            "seed": trained.seed,
        }
        if images is not None:
            found["images"], wanted["images"] = in_words(facts["images"]), in_words(images)
        hint = "trained in another way; remove it or choose another folder for runs (--runs)"
        check_same(f"{folder}: {hint}", found, wanted, places=("in the run", "in this experiment"))

    def reason(self, subject: Subject, error: BaseException) -> str:
        """What went wrong; where a file of a run is damaged, what can be done."""
        why, path = text_of(error), path_of(error)
        elsewhere = isinstance(error, NewerFormatError | OSError) and not isinstance(error, FileNotFoundError)
        if path is None or elsewhere:
            return why  # the place is at fault, or this version is too old, and the run is whole
        damaged = [run for run in map(self.run_of, trained_for(subject)) if path.is_relative_to(run)]
        return f"{why}; without {damaged[0]} it would be trained anew" if damaged else why
