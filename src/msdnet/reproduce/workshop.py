"""Where experiments are done: trains what is missing, measures what is trained, and keeps one file for each."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from msdnet.checks import from_mapping
from msdnet.config import NetworkConfig
from msdnet.data import DataConfig, open_data
from msdnet.files import FOLDER, SIDE
from msdnet.networks import StagedNetwork, create_network
from msdnet.reproduce.measure import measure
from msdnet.reproduce.measurement import Measurement, read_measurement
from msdnet.reproduce.subjects import Ensemble, Subject, Trained, trained_for
from msdnet.training import Recipe, StopSignal, Summary, load_run, resume, together, train
from msdnet.training.display import Display, EpochFigures
from msdnet.training.distributed import is_first, pick_device, processes, wait_for_all
from msdnet.training.run import RUN, read_run
from msdnet.training.together import ALONE
from msdnet.training.trainer import MODEL, SUMMARY, check_same

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

    def file_of(self, subject: Subject) -> Path:
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
        if self.file_of(subject).exists():
            return "measured"
        runs = [self.run_of(trained) for trained in trained_for(subject)]
        if all((run / MODEL).exists() and (run / SUMMARY).exists() for run in runs):
            return "trained"
        return "begun" if any((run / RUN).exists() for run in runs) else "missing"

    def carry_out(self, subjects: Iterable[Subject]) -> list[Failure]:
        """Train and measure what is not measured yet. What was interrupted goes on where it was."""
        with processes(pick_device(self.device)):
            return self._carry_out([subject for subject in subjects if self.standing(subject) != "measured"])

    def _carry_out(self, wanted: Sequence[Subject]) -> list[Failure]:
        if wanted and is_first():
            open_data(self.data.found(), "cpu")  # without which nothing can be done: better told once, and now
        wait_for_all()
        to_train = {trained.name: trained for subject in wanted for trained in trained_for(subject)}
        failures = self._do(self._train, self._costliest_first(self._untrained(to_train.values())), self.at_once)
        lost = {failure.name for failure in failures}
        for subject in wanted:
            without = sorted({trained.name for trained in trained_for(subject)} & lost - {subject.name})
            if without:
                failures.append(Failure(subject.name, f"not measured without {', '.join(without)}"))
        lost |= {failure.name for failure in failures}
        return failures + self._do(self._measure, [subject for subject in wanted if subject.name not in lost], 1)

    def _untrained(self, candidates: Iterable[Trained]) -> list[Trained]:
        return [one for one in candidates if not (self.run_of(one) / SUMMARY).exists()]

    def _costliest_first(self, networks: Sequence[Trained]) -> list[Trained]:
        """So that the last to end is a short one."""
        side = self.data.crop_size if self.data.dataset == FOLDER else SIDE

        def cost(trained: Trained) -> int:
            with torch.device("meta"):
                return create_network(trained.network).costs(side, lazy=False)[-1]

        return sorted(networks, key=cost, reverse=True)

    def _do(self, work: Callable[[Any, StopSignal], None], subjects: Sequence[Subject], at_once: int) -> list[Failure]:
        jobs = [partial(work, subject) for subject in subjects]
        failures = []
        for done in together(jobs, at_once=at_once, device=pick_device(self.device)):
            if done.error is not None:
                failures.append(Failure(subjects[done.place].name, str(done.error)))
                self.say(f"{failures[-1].name}: failed: {failures[-1].why}")
        return failures

    def _train(self, trained: Trained, stop: StopSignal) -> None:
        folder, options = self.run_of(trained), {"device": self.device, "stop": stop}
        display = _Lines(trained.name, self.say)
        if (folder / RUN).exists():
            self._check_run(trained)
            summary = resume(folder, root=self.data.root, display=display, **options)  # type: ignore[arg-type]
        else:
            summary = train(
                trained.recipe,
                data=self.data,
                network=trained.network,
                out=folder,
                seed=trained.seed,
                display=display,
                **options,  # type: ignore[arg-type]
            )
        if is_first():  # of several processes under torchrun, which only train together
            self.say(
                f"{trained.name}: trained in {summary.seconds:,.0f} s, held-out {_percent(summary.held_out_accuracy)}"
            )
            with ALONE:
                self._measure(trained, stop)

    def _measure(self, subject: Subject, _stop: StopSignal) -> None:
        if self.file_of(subject).exists() or not is_first():
            return
        for trained in trained_for(subject):
            self._check_run(trained)
        runs = [load_run(self.run_of(trained), device=self.device, open_data=False) for trained in trained_for(subject)]
        data = open_data(self.data.found(), pick_device(self.device))
        networks = [run.network for run in runs]
        network = self._joined(subject, networks) if isinstance(subject, Ensemble) else networks[0]
        training = None if isinstance(subject, Ensemble) else self._training_of(subject)
        measured = measure(subject, network, data, runs[0].facts["images"], training)
        measured.save(self.file_of(subject))
        self.say(f"{subject.name}: test {_percent(measured.test_accuracy)}, in {self.file_of(subject)}")

    def _check_run(self, trained: Trained) -> None:
        """Refuse a run that was made for something else."""
        folder = self.run_of(trained)
        facts = read_run(folder)
        recipe = from_mapping(Recipe, facts["recipe"], f"{folder}: recipe")
        pairs = {
            "network": (NetworkConfig.from_dict(facts["network"]).to_dict(), trained.network.to_dict()),
            "recipe": (dataclasses.asdict(recipe), dataclasses.asdict(trained.recipe)),
            "seed": (facts["seed"], trained.seed),
        }
        for name, (found, wanted) in pairs.items():
            hint = "trained in another way; remove it or choose another folder for runs (--runs)"
            check_same(f"{folder}: {hint}: {name}", found, wanted)

    def _joined(self, ensemble: Ensemble, members: Sequence[StagedNetwork]) -> StagedNetwork:
        joined = create_network(dataclasses.replace(ensemble.network, classes=members[0].config.classes))
        for place, member in enumerate(members):
            joined.members[place].load_state_dict(member.state_dict())  # type: ignore[index, union-attr]
        return joined.to(next(members[0].parameters()).device).eval()

    def _training_of(self, trained: Trained) -> dict[str, Any]:
        summary: Summary = resume(self.run_of(trained))  # a finished run only tells what it brought
        return {
            "seconds": summary.seconds,
            "images_per_second": summary.images_per_second,
            "peak_memory_bytes": summary.peak_memory_bytes,
            "at_once": self.at_once,
        }


class _Lines(Display):
    """A line every few epochs, with the network's name, since several train at once."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name, self._say = name, say

    def epoch(self, figures: EpochFigures) -> None:
        if figures.held_out_accuracy is not None and figures.epoch < figures.epochs:
            self._say(
                f"{self._name}: epoch {figures.epoch} of {figures.epochs}, loss {figures.loss:.3f}, held-out "
                f"{_percent(figures.held_out_accuracy)}, {figures.seconds:.1f} s an epoch"
            )


def _percent(accuracies: Sequence[float]) -> str:
    return " ".join(f"{100 * accuracy:.1f}" for accuracy in accuracies) + " %"
