"""Where experiments are done: trains what is missing, measures what is trained, and keeps one file for each."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch

from msdnet.bundle import RUN
from msdnet.checks import check_folder_writable, check_same, check_whole
from msdnet.data import DataConfig, ImageData, UnreadableImageError, open_data
from msdnet.device import pick_device
from msdnet.errors import path_of, text_of
from msdnet.files import FOLDER, SIDE
from msdnet.naming import counted
from msdnet.networks import StagedNetwork, create_network, empty_network
from msdnet.reproduce.measure import describe_test, measure
from msdnet.reproduce.measurement import Measurement, Refused, read_measurement
from msdnet.reproduce.subjects import Joint, Subject, Trained, trained_for
from msdnet.reproduce.timekeeping import machine_seconds, noting_time
from msdnet.training import StopSignal, Summary, is_finished, load_run, resume, together, train
from msdnet.training.checkpoint import load_facts
from msdnet.training.display import Display, EpochFigures, duration
from msdnet.training.distributed import (
    first_on_machine_first,
    is_first,
    join_processes,
    several_processes,
)
from msdnet.training.record import defined_by, describe_data, read_run, read_summary
from msdnet.training.side_by_side import ALONE, SharedTime
from msdnet.training.trainer import CHECKPOINT
from msdnet.writing import is_disk_full

__all__ = ["Failure", "Standing", "Workshop"]

Standing = Literal["measured", "trained", "begun", "missing"]


@dataclass(frozen=True)
class Failure:
    """A subject that came to nothing, and why; the others are not touched by it."""

    name: str
    why: str


@dataclass(frozen=True)
class Workshop:
    """A folder of runs, a folder of results, and the data."""

    data: DataConfig
    results: Path
    runs: Path
    device: str | None = None
    at_once: int = 1
    """Networks that are trained side by side."""
    say: Callable[[str], None] = field(default=print)
    name: str | None = None
    """Of the data, where it is not that of the data set."""
    time: SharedTime = field(default_factory=SharedTime, repr=False, compare=False)
    """Of the machine, for those that are trained side by side."""

    def __post_init__(self) -> None:
        check_whole("at_once (--at-once)", self.at_once)

    @cached_property
    def opened(self) -> ImageData:
        """The data. Of a folder all images are found by this, and none is read."""
        device = pick_device(self.device)
        join_processes(device)
        with first_on_machine_first():
            return open_data(self.data.found(), device)

    def tell(self, line: str) -> None:
        """Once, however many processes torchrun has started."""
        if is_first():
            self.say(line)

    def file_of(self, subject: Subject | Measurement) -> Path:
        return self.results / (self.name or self.data.dataset) / f"{subject.name}.json"

    def run_of(self, trained: Trained) -> Path:
        return self.runs / (self.name or self.data.dataset) / trained.name

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
        runs = [self.run_of(trained) for trained in trained_for(subject)]
        if all(is_finished(run) for run in runs):
            return "trained"
        return "begun" if any((run / RUN).exists() for run in runs) else "missing"

    def share_trained(self, trained: Trained) -> float:
        """Which part of its epochs is done, by its last checkpoint."""
        progress = self._progress(trained)
        return 0.0 if progress is None else float(progress["epoch"] / trained.recipe.epochs)

    def _progress(self, trained: Trained) -> dict[str, Any] | None:
        """How far its last checkpoint is, if there is one."""
        path = self.run_of(trained) / CHECKPOINT
        return load_facts(path)["progress"] if path.exists() else None

    def carry_out(self, subjects: Iterable[Subject], beside: Iterable[Measurement] = ()) -> list[Failure]:
        """Train and measure what is not measured yet. What was interrupted goes on where it was.

        - beside: what is to be drawn with it; refused before anything is trained if it was made of other images
        """
        if self.at_once > 1 and several_processes():
            raise ValueError("several networks at once (--at-once) are for one process: torchrun's train one together")
        if self.at_once > 1 and self.data.dataset == FOLDER:
            raise ValueError("several networks at once (--at-once) are for data in memory, not for a folder of images")
        join_processes(pick_device(self.device))
        wanted = [subject for subject in subjects if self.standing(subject) != "measured"]
        if not wanted:
            return []
        data = self.opened  # without data, or places to write to, nothing can be done: better told now
        for trained in (trained for subject in wanted for trained in trained_for(subject)):
            trained.recipe.check_fills_a_batch(data.size("train"))
        with first_on_machine_first():
            for folder in {self.file_of(wanted[0]).parent, self.run_of(trained_for(wanted[0])[0]).parent}:
                check_folder_writable(folder)
            self.check_images(beside)
        return self._carry_out(wanted, data)

    def check_images(self, measured: Iterable[Measurement]) -> None:
        """Refuse what was measured of other images than those that are here."""
        here, refused = describe_data(self.opened) | describe_test(self.opened), Refused()
        hint = "made of other images than those here; give these, or another folder for results (--results)"
        for one in measured:
            # Which of them can be read is known only when they are.
            images = {name: value for name, value in one.images.items() if name != "unreadable"}
            with refused.noting(self.file_of(one)):
                check_same(f"{hint}: images", images, here)
        refused.tell()

    def _carry_out(self, wanted: Sequence[Subject], data: ImageData) -> list[Failure]:
        needed = {trained.name: trained for subject in wanted for trained in trained_for(subject)}
        to_train = [one for one in needed.values() if not is_finished(self.run_of(one))]
        self.tell(f"networks to train: {len(to_train)}, systems to measure: {len(wanted)}")
        failures = self._do(partial(self._train, data), self._costliest_first(to_train), self.at_once)
        told, ready = {failure.name for failure in failures}, []
        for subject in wanted:
            without = [one.name for one in trained_for(subject) if not is_finished(self.run_of(one))]
            if not without:
                ready.append(subject)
            elif subject.name not in told:
                failures.append(Failure(subject.name, f"not measured without {', '.join(without)}"))
        failures += self._do(partial(self._measure, data), ready, 1, told=failures)
        # What could not be measured after its training was tried once more.
        still = {failure.name: failure for failure in failures}
        measured = {subject.name for subject in ready if self.file_of(subject).exists()}
        return [failure for name, failure in still.items() if name not in measured]

    def _costliest_first(self, networks: Sequence[Trained]) -> list[Trained]:
        """So that the last to end is a short one."""
        side = self.data.crop_size if self.data.dataset == FOLDER else SIDE

        def cost(trained: Trained) -> int:
            with torch.device("meta"):
                return create_network(trained.network).costs(side, lazy=False)[-1]

        return sorted(networks, key=cost, reverse=True)

    def _do(
        self,
        work: Callable[[Any, StopSignal], None],
        subjects: Sequence[Subject],
        at_once: int,
        told: Sequence[Failure] = (),
    ) -> list[Failure]:
        """What came to nothing, told of unless it was before. What every other one would meet as well is raised."""
        jobs = [partial(work, subject) for subject in subjects]
        failures = []
        # Closed in any case: those under way beside one that raises are to stop before it is told.
        with closing(together(jobs, at_once=at_once, device=pick_device(self.device))) as ends:
            for done in ends:
                if done.error is None:
                    continue
                if isinstance(done.error, UnreadableImageError) or is_disk_full(done.error):
                    raise done.error
                failures.append(Failure(subjects[done.place].name, self.reason(subjects[done.place], done.error)))
                if failures[-1] not in told:
                    self.tell(f"{failures[-1].name}: failed: {failures[-1].why}")
        return failures

    def reason(self, subject: Subject, error: BaseException) -> str:
        """What went wrong; where a file of a run is damaged, what can be done."""
        why, path = text_of(error), path_of(error)
        if path is None or (isinstance(error, OSError) and not isinstance(error, FileNotFoundError)):
            return why  # the place is at fault, and the run is whole
        damaged = [run for run in map(self.run_of, trained_for(subject)) if path.is_relative_to(run)]
        return f"{why}; without {damaged[0]} it would be trained anew" if damaged else why

    def _train(self, data: ImageData, trained: Trained, stop: StopSignal) -> None:
        with noting_time(self.run_of(trained), self.time):
            summary = self._trained(data, trained, stop)
        held_out = _percent(summary.held_out_accuracy)
        self.tell(f"{trained.name}: trained in {summary.seconds:,.0f} s, held-out {held_out}")
        if is_first():  # of several processes under torchrun, which only train together
            with ALONE:
                self._measure(data, trained, stop)

    def _trained(self, data: ImageData, trained: Trained, stop: StopSignal) -> Summary:
        folder, options = self.run_of(trained), {"device": self.device, "stop": stop}
        reading = {"root": self.data.root, "workers": self.data.workers}
        reading |= {"unreadable": "skip"} if self.data.unreadable == "skip" else {}
        if (folder / RUN).exists():
            self._check_run(trained, data)
            display = _Lines(trained.name, self.tell, _goes_on(self._progress(trained)))
            return resume(folder, display=display, **options, **reading)  # type: ignore[arg-type]
        return train(
            trained.recipe,
            data=self.data,
            network=trained.network,
            out=folder,
            seed=trained.seed,
            display=_Lines(trained.name, self.tell),
            **options,  # type: ignore[arg-type]
        )

    def _measure(self, data: ImageData, subject: Subject, stop: StopSignal) -> None:
        if self.file_of(subject).exists() or not is_first():
            return
        members = trained_for(subject)
        for trained in members:
            self._check_run(trained, data)
        self.tell(f"{subject.name}: measuring")
        runs = [load_run(self.run_of(trained), data=data, device=self.device) for trained in members]
        networks = [run.network for run in runs]
        network = self._joined(subject, networks) if isinstance(subject, Joint) else networks[0]
        training = None if isinstance(subject, Joint) else self._training_of(subject)
        measured = measure(subject, network, data, [run.facts for run in runs], training, stop)
        measured.save(self.file_of(subject))
        self.tell(f"{subject.name}: test {_percent(measured.test_accuracy)}, in {self.file_of(subject)}")
        for part, count in measured.images.get("unreadable", {}).items():
            if count:
                self.tell(
                    f"{subject.name}: images of the part {part} that could not be read and are left out: {count:,}"
                )

    def _check_run(self, trained: Trained, data: ImageData) -> None:
        """Refuse a run that was made for something else, or on other images."""
        folder = self.run_of(trained)
        facts = read_run(folder)
        network, recipe = defined_by(facts, folder)
        found = {
            "network": network.to_dict(),
            "recipe": dataclasses.asdict(recipe),
            "seed": facts["seed"],
            "images": facts["images"],
        }
        wanted = {
            "network": trained.network.to_dict(),
            "recipe": dataclasses.asdict(trained.recipe),
            "seed": trained.seed,
            "images": describe_data(data),
        }
        hint = "trained in another way; remove it or choose another folder for runs (--runs)"
        check_same(f"{folder}: {hint}", found, wanted)

    def _joined(self, ensemble: Joint, members: Sequence[StagedNetwork]) -> StagedNetwork:
        joined = empty_network(dataclasses.replace(ensemble.network, classes=members[0].config.classes))
        for place, member in enumerate(members):
            joined.members[place].load_state_dict(member.state_dict())  # type: ignore[index, union-attr]
        return joined.to(next(members[0].parameters()).device).eval()

    def _training_of(self, trained: Trained) -> dict[str, Any]:
        summary = read_summary(self.run_of(trained))
        return {
            "seconds": summary.seconds,
            "machine_seconds": machine_seconds(self.run_of(trained), summary.seconds),
            "images_per_second": summary.images_per_second,
            "processes": summary.processes,
        }


class _Lines(Display):
    """A line every few epochs, with the network's name, since several train at once."""

    def __init__(self, name: str, say: Callable[[str], None], beginning: str = "") -> None:
        self._name, self._say, self._beginning = name, say, beginning

    def start(self, epochs: int, steps: int) -> None:
        if self._beginning:  # told now that nothing stands in the way, another process least of all
            self._say(f"{self._name}: {self._beginning}")
        self._say(f"{self._name}: training, epochs: {epochs:,}, steps in each: {steps:,}")

    def epoch(self, figures: EpochFigures) -> None:
        if figures.held_out_accuracy is not None and figures.epoch < figures.epochs:
            self._say(
                f"{self._name}: epoch {figures.epoch} of {figures.epochs}, loss {figures.loss:.3f}, held-out "
                f"{_percent(figures.held_out_accuracy)}, {duration(figures.seconds_left)} left"
            )


def _goes_on(progress: Mapping[str, Any] | None) -> str:
    """From where; the step too, since of a stop in the first epoch no epoch would tell that anything was saved."""
    if progress is None:
        return "no checkpoint there, so it begins again"
    return f"goes on, epochs done: {progress['epoch']}, and {counted(progress['step'], 'step')} of the next"


def _percent(accuracies: Sequence[float]) -> str:
    return " ".join(f"{100 * accuracy:.1f}" for accuracy in accuracies) + " %"
