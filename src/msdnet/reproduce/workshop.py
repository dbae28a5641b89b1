"""Where experiments are done: what is not on the shelf yet is trained and measured, and put there."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from msdnet.bundle import RUN
from msdnet.checks import check_whole
from msdnet.data import DataConfig, ImageData, UnreadableImageError, open_data
from msdnet.device import pick_device
from msdnet.files import FOLDER, SIDE
from msdnet.networks import StagedNetwork, empty_network, outline
from msdnet.places import check_folder_writable
from msdnet.reproduce.lines import Lines, goes_on, percent
from msdnet.reproduce.measure import describe_test, measure
from msdnet.reproduce.measurement import Measurement
from msdnet.reproduce.shelf import Shelf
from msdnet.reproduce.subjects import Joint, Subject, Trained, trained_for
from msdnet.reproduce.timekeeping import noting_time
from msdnet.training import StopSignal, Summary, load_run, resume, together, train
from msdnet.training.distributed import (
    first_on_machine_first,
    is_first,
    join_processes,
    several_processes,
)
from msdnet.training.record import describe_data
from msdnet.training.side_by_side import ALONE, SharedTime
from msdnet.writing import is_disk_full

__all__ = ["Failure", "Workshop"]


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
    def shelf(self) -> Shelf:
        """What stands there already."""
        name = self.name or self.data.dataset
        return Shelf(self.results / name, self.runs / name)

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

    def carry_out(self, subjects: Iterable[Subject], beside: Iterable[Measurement] = ()) -> list[Failure]:
        """Train and measure what is not measured yet. What was interrupted goes on where it was.

        - beside: what is to be drawn with it; refused before anything is trained if it was made of other images
        """
        if self.at_once > 1 and several_processes():
            raise ValueError("several networks at once (--at-once) are for one process: torchrun's train one together")
        if self.at_once > 1 and self.data.dataset == FOLDER:
            raise ValueError("several networks at once (--at-once) are for data in memory, not for a folder of images")
        join_processes(pick_device(self.device))
        wanted = [subject for subject in subjects if self.shelf.standing(subject) != "measured"]
        if not wanted:
            return []
        data = self.opened  # without data, or places to write to, nothing can be done: better told now
        for trained in (trained for subject in wanted for trained in trained_for(subject)):
            trained.recipe.check_fills_a_batch(data.size("train"))
        with first_on_machine_first():
            for folder in (self.shelf.results, self.shelf.runs):
                check_folder_writable(folder)
            self.check_images(beside)
        return self._carry_out(wanted, data)

    def check_images(self, measured: Iterable[Measurement]) -> None:
        """Refuse what was measured of other images than those that are here."""
        self.shelf.check_images(measured, describe_data(self.opened) | describe_test(self.opened))

    def _carry_out(self, wanted: Sequence[Subject], data: ImageData) -> list[Failure]:
        to_train = {trained.name: trained for subject in wanted for trained in self.shelf.untrained(subject)}
        self.tell(f"networks to train: {len(to_train)}, systems to measure: {len(wanted)}")
        failures = self._do(partial(self._train, data), self._costliest_first(to_train.values()), self.at_once)
        told, ready = {failure.name for failure in failures}, []
        for subject in wanted:
            without = [one.name for one in self.shelf.untrained(subject)]
            if not without:
                ready.append(subject)
            elif subject.name not in told:
                failures.append(Failure(subject.name, f"not measured without {', '.join(without)}"))
        failures += self._do(partial(self._measure, data), ready, 1, told=failures)
        # What could not be measured after its training was tried once more.
        still = {failure.name: failure for failure in failures}
        measured = {subject.name for subject in ready if self.shelf.file_of(subject).exists()}
        return [failure for name, failure in still.items() if name not in measured]

    def _costliest_first(self, networks: Iterable[Trained]) -> list[Trained]:
        """So that the last to end is a short one."""
        side = self.data.crop_size if self.data.dataset == FOLDER else SIDE

        def cost(trained: Trained) -> int:
            return outline(trained.network).costs(side, lazy=False)[-1]

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
                failures.append(Failure(subjects[done.place].name, self.shelf.reason(subjects[done.place], done.error)))
                if failures[-1] not in told:
                    self.tell(f"{failures[-1].name}: failed: {failures[-1].why}")
        return failures

    def _train(self, data: ImageData, trained: Trained, stop: StopSignal) -> None:
        with noting_time(self.shelf.run_of(trained), self.time):
            summary = self._trained(data, trained, stop)
        held_out = percent(summary.held_out_accuracy)
        self.tell(f"{trained.name}: trained in {summary.seconds:,.0f} s, held-out {held_out}")
        if is_first():  # of several processes under torchrun, which only train together
            with ALONE:
                self._measure(data, trained, stop)

    def _trained(self, data: ImageData, trained: Trained, stop: StopSignal) -> Summary:
        folder, options = self.shelf.run_of(trained), {"device": self.device, "stop": stop}
        reading = {"root": self.data.root, "workers": self.data.workers}
        reading |= {"unreadable": "skip"} if self.data.unreadable == "skip" else {}
        if (folder / RUN).exists():
            self.shelf.check_run(trained, describe_data(data))
            display = Lines(trained.name, self.tell, goes_on(self.shelf.progress(trained)))
            return resume(folder, display=display, **options, **reading)  # type: ignore[arg-type]
        return train(
            trained.recipe,
            data=self.data,
            network=trained.network,
            out=folder,
            seed=trained.seed,
            display=Lines(trained.name, self.tell),
            **options,  # type: ignore[arg-type]
        )

    def _measure(self, data: ImageData, subject: Subject, stop: StopSignal) -> None:
        if self.shelf.file_of(subject).exists() or not is_first():
            return
        members = trained_for(subject)
        for trained in members:
            self.shelf.check_run(trained, describe_data(data))
        self.tell(f"{subject.name}: measuring")
        runs = [load_run(self.shelf.run_of(trained), data=data, device=self.device) for trained in members]
        networks = [run.network for run in runs]
        network = _joined(subject, networks) if isinstance(subject, Joint) else networks[0]
        training = None if isinstance(subject, Joint) else self.shelf.training_of(subject)
        measured = measure(subject, network, data, [run.facts for run in runs], training, stop)
        measured.save(self.shelf.file_of(subject))
        self.tell(f"{subject.name}: test {percent(measured.test_accuracy)}, in {self.shelf.file_of(subject)}")
        for part, count in measured.images.get("unreadable", {}).items():
            if count:
                self.tell(
                    f"{subject.name}: images of the part {part} that could not be read and are left out: {count:,}"
                )


def _joined(ensemble: Joint, members: Sequence[StagedNetwork]) -> StagedNetwork:
    joined = empty_network(dataclasses.replace(ensemble.network, classes=members[0].config.classes))
    for place, member in enumerate(members):
        joined.members[place].load_state_dict(member.state_dict())  # type: ignore[index, union-attr]
    return joined.to(next(members[0].parameters()).device).eval()
