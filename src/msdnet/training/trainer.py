"""The training loop: epochs of steps, evaluated, shown, and saved so that nothing is ever lost.

A run's folder holds `run.json` (what is trained on what, and how), `metrics.jsonl` (a line per epoch),
`checkpoint.safetensors` (all it takes to go on) and, in the end, `model.safetensors` and `summary.json`.
"""

import dataclasses
import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

import torch
from torch import Tensor

from msdnet.amounts import counted
from msdnet.data.base import Batch, Epoch, ImageData, Shard
from msdnet.errors import of_file
from msdnet.tables import make_tuples
from msdnet.training.augmentation import augmented_batches
from msdnet.training.checkpoint import check_same_run, load_tensors, save_tensors
from msdnet.training.display import Display, EpochFigures, MetricsFile
from msdnet.training.distributed import from_first, largest_of_all, wait_for_all
from msdnet.training.evaluation import accuracies_on
from msdnet.training.recipe import Recipe
from msdnet.training.schedule import learning_rate
from msdnet.training.side_by_side import ALONE, Interrupted, StopSignal
from msdnet.training.step import Step
from msdnet.writing import write_atomically

__all__ = ["CHECKPOINT", "MODEL", "SUMMARY", "DivergenceError", "Summary", "Trainer"]

CHECKPOINT, MODEL, SUMMARY = "checkpoint.safetensors", "model.safetensors", "summary.json"
# Losses stay on the device and are looked at every so many steps, since looking makes the device wait.
_STEPS_BETWEEN_CHECKS = 100
_STEPS_BETWEEN_AGREEMENTS = 10
_TORCH_RANDOM_STATE = "torch_random_state"  # that dropout draws from, in networks that do not draw by themselves


class DivergenceError(ArithmeticError):
    """The loss is no longer a finite number."""


@dataclass(frozen=True)
class Summary:
    """What came of a training."""

    folder: str
    epochs: int
    held_out_accuracy: tuple[float, ...]
    test_accuracy: tuple[float, ...] | None
    costs: tuple[int, ...]
    parameters: int
    seconds: float
    images_per_second: float
    peak_memory_bytes: int | None
    processes: int = 1
    """That trained it together, at the end: another number may have begun."""

    def __post_init__(self) -> None:
        make_tuples(self, "held_out_accuracy", "test_accuracy", "costs")

    def save(self, folder: Path) -> None:
        write_atomically(folder / SUMMARY, (json.dumps(dataclasses.asdict(self), indent=2) + "\n").encode())


@dataclass
class _Progress:
    """How far a run has come; part of every checkpoint."""

    epoch: int = 0
    step: int = 0
    """Steps done in this epoch."""
    seconds: float = 0.0
    best: float = -1.0
    """The best mean accuracy on the held-out images so far."""


class Trainer:
    """Trains one network on one data set into one folder."""

    def __init__(
        self,
        step: Step,
        data: ImageData,
        folder: Path,
        facts: dict[str, Any],
        *,
        seed: int,
        display: Display,
        shard: Shard,
        stop: StopSignal | None = None,
        checkpoint_seconds: float = 60,
    ) -> None:
        self.step = step
        self.recipe: Recipe = step.recipe
        self.data = data
        self.folder = folder
        self.facts = facts
        self.seed = seed
        self.display = display
        self.shard = shard
        self.checkpoint_seconds = checkpoint_seconds
        self.recipe.check_fills_a_batch(data.size("train"))
        self.steps = data.steps(self.recipe.batch_size)
        if self.recipe.batch_size % shard.world:
            raise ValueError(
                f"batch_size must be a multiple of the {shard.world} processes, got {self.recipe.batch_size}"
            )
        self.progress = _Progress()
        self._draw_apart()
        self._newest_accuracy: tuple[float, ...] | None = None
        self._best: dict[str, Tensor] = {}
        self._losses = torch.zeros(self.steps, device=step.device)
        self._checked = 0
        self._stop = stop or StopSignal()

    @property
    def begun(self) -> bool:
        """Whether a step has been done."""
        return self.progress.epoch > 0 or self.progress.step > 0

    @property
    def leads(self) -> bool:
        """Whether this is the process that evaluates, shows and saves."""
        return self.shard.rank == 0

    @property
    def _random_state(self) -> str:
        """Its name in a checkpoint. No kind of device can go on with another's, and draws anew instead."""
        return f"{self.step.device.type}_random_state"

    def resume(self) -> None:
        """Go on from the folder's checkpoint."""
        path = self.folder / CHECKPOINT
        tensors, facts = load_tensors(path)
        check_same_run(path, facts, self.facts)
        with of_file(path):
            if tuple(tensors["held_out_indices"].tolist()) != self.data.held_out_indices:
                raise ValueError("made with other data: another set of images was held out")
        self.step.load_state(tensors)
        self.step.correct.copy_(tensors["correct"])
        self.step.seen.copy_(tensors["seen"])
        self._losses.copy_(tensors["losses"])
        self._best = {name.removeprefix("best/"): t for name, t in tensors.items() if name.startswith("best/")}
        self.progress = _Progress(**facts["progress"])
        self._checked = self.progress.step
        if self.step.random_numbers is not None and self._random_state in tensors:
            self.step.random_numbers.set_state(tensors[self._random_state])
        if _TORCH_RANDOM_STATE in tensors:
            torch.set_rng_state(tensors[_TORCH_RANDOM_STATE])
        self._draw_apart()

    def _draw_apart(self) -> None:
        """Of several processes, each draws by itself for its share of a batch; the first as if it were alone."""
        if self.leads:
            return
        turn = (self.seed * 1_000_003 + self.progress.epoch * self.steps + self.progress.step) * 1_009 + self.shard.rank
        torch.manual_seed(turn % 2**63)
        if self.step.random_numbers is not None:
            self.step.random_numbers.manual_seed(turn % 2**63)

    def run(self) -> Summary:
        """Train to the end; the test images are never looked at."""
        if self.leads:
            self._metrics = MetricsFile(self.folder, self.progress.epoch)
        self.display.start(self.recipe.epochs, self.steps)
        self.display.say(self._describe())
        try:
            with self._stop.noted():
                self._started = self._saved = time.monotonic()
                while self.progress.epoch < self.recipe.epochs:
                    self._run_epoch()
        finally:
            self.display.stop()
        return self._finish()

    def _run_epoch(self) -> None:
        progress, first, began = self.progress, self.progress.step, time.monotonic()
        self.step.network.train()
        rest = Epoch(self.recipe.batch_size, progress.epoch, self.seed, first, self.shard)
        batches = augmented_batches(self.data, self.recipe, rest)
        with ALONE:  # the first batch may run kernels that are new, and the first step capture a graph
            self._take(next(batches))
        for batch in batches:
            self._save_if_due()
            self._take(batch)
            if progress.step % _STEPS_BETWEEN_CHECKS == 0:
                self._check_losses()
                rate = (progress.step - first) * self.recipe.batch_size / (time.monotonic() - began)
                with ALONE:
                    mean = float(self._losses[: progress.step].mean())
                self.display.running(mean, rate)
        self._check_losses()
        seconds = (time.monotonic() - began) * self.steps / (self.steps - first)
        with ALONE:
            self._end_epoch(self.steps * self.recipe.batch_size / seconds, seconds)

    def _take(self, batch: Batch) -> None:
        """One step; its loss stays on the device."""
        progress = self.progress
        self.step(batch, self._rate(progress.epoch, progress.step))
        self._losses[progress.step].copy_(self.step.loss)
        progress.step += 1
        self.display.step(progress.epoch, progress.step)

    def _rate(self, epoch: int, step: int) -> float:
        """The learning rate of a step: that of its middle, so that a warm-up does not begin with nothing."""
        return learning_rate(self.recipe, epoch + (step + 0.5) / self.steps)

    def _describe(self) -> str:
        """What is trained on what, for a person."""
        data, recipe, network = self.data, self.recipe, self.step.network
        which = "the first, the middle and the last exit" if network.exit_count > 2 else "both exits"
        several = f"The loss is the sum over exits; accuracies are those of {which}."
        parameters = network.parameter_count
        on_gpu = self.step.device.type == "cuda"
        return (
            f"{data.name}: {data.size('train'):,} images to train on, {data.size('held_out'):,} held out, "
            f"{len(data.classes)} classes; network: {counted(network.exit_count, 'exit')}, {parameters / 1e6:.2f} M "
            f"parameters; recipe {recipe.name}: {counted(recipe.epochs, 'epoch')} of "
            f"{counted(self.steps, 'batch', 'batches')} of {recipe.batch_size}; "
            f"on {torch.cuda.get_device_name(self.step.device) if on_gpu else 'the CPU'}. "
            f"{several if network.exit_count > 1 else ''}"
        )

    def _end_epoch(self, images_per_second: float, seconds: float) -> None:
        progress = self.progress
        rate = self._rate(progress.epoch, self.steps - 1)
        train_accuracy = tuple((self.step.correct / self.step.seen.clamp(min=1)).tolist())
        loss = float(self._losses.mean())
        progress.epoch, progress.step, self._checked = progress.epoch + 1, 0, 0
        self.step.correct.zero_()
        self.step.seen.zero_()
        last = progress.epoch == self.recipe.epochs
        held_out = self._evaluate_held_out() if last or progress.epoch % self.recipe.evaluate_every == 0 else None
        if self.leads:
            figures = EpochFigures(
                progress.epoch, self.recipe.epochs, loss, rate, train_accuracy, held_out, images_per_second, seconds
            )
            self._metrics.write(figures)
            self.display.epoch(figures)
        self._save_if_due(now=last)

    def _evaluate_held_out(self) -> tuple[float, ...] | None:
        accuracies = None
        if self.leads:
            accuracies = self._newest_accuracy = self._held_out_accuracy()
            mean = sum(accuracies) / len(accuracies)
            if self.recipe.select == "best" and mean > self.progress.best:
                self.progress.best = mean
                self._best = {name: t.detach().clone() for name, t in self.step.result.state_dict().items()}
        wait_for_all()
        return accuracies

    def _held_out_accuracy(self) -> tuple[float, ...]:
        return accuracies_on(self.step.result, self.data, "held_out", self.recipe.batch_size)

    def _check_losses(self) -> None:
        """Stop if a loss since the last check is not finite: nothing is saved past that point."""
        fresh = self._losses[self._checked : self.progress.step]
        self._catch_up()
        with ALONE:
            bad = (~fresh.isfinite()).nonzero()
        if len(bad):
            first = int(bad[0])
            self._diverged(f"the loss is {float(fresh[first])}", self._checked + first)
        self._checked = self.progress.step

    def _catch_up(self) -> None:
        """Wait for the steps that the device was given: not `ALONE`, which other trainings would wait for as well."""
        if self.step.device.type == "cuda":
            torch.cuda.current_stream(self.step.device).synchronize()

    def _check_weights(self) -> None:
        """Stop if the last step spoilt the weights: its own loss does not show it yet."""
        tensors = [tensor for tensor in self.step.state().values() if tensor.is_floating_point()]
        if not torch.stack([tensor.isfinite().all() for tensor in tensors]).all():
            self._diverged("weights are not finite", self.progress.step - 1)

    def _diverged(self, what: str, step: int) -> NoReturn:
        """Of a step in this epoch; -1 is the last one of the epoch before."""
        epoch, step = divmod(self.progress.epoch * self.steps + step, self.steps)
        rate = self._rate(epoch, step)
        checkpoint = self.folder / CHECKPOINT
        last_good = (
            f"the last good checkpoint is {checkpoint}" if checkpoint.exists() else "no checkpoint was saved yet"
        )
        where = f"epoch {epoch + 1}, step {step + 1}"
        raise DivergenceError(f"{what} at {where}, with a learning rate of {rate:.4g}; {last_good}")

    def _save_if_due(self, now: bool = False) -> None:
        """Save when it is time to, when the run is over, or when a signal asks to stop."""
        due = now or time.monotonic() - self._saved >= self.checkpoint_seconds
        stop_signal = self._agreed_signal()
        if stop_signal or due:
            self._catch_up()
            with ALONE:
                self._check_losses()
                self._check_weights()
                if self.leads:
                    self._save()
            self._saved = time.monotonic()
        if stop_signal:
            wait_for_all()  # torchrun ends every process as soon as one is gone
            name, where = signal.Signals(stop_signal).name, f"epoch {self.progress.epoch}, step {self.progress.step}"
            raise Interrupted(f"stopped by {name} after {where}", stop_signal, run=self.folder)

    def _agreed_signal(self) -> int:
        """The signal that asks this run to stop; several processes agree on it now and then, to stop together."""
        if self.shard.world == 1:
            return self._stop.number
        return largest_of_all(self._stop.number) if self.progress.step % _STEPS_BETWEEN_AGREEMENTS == 0 else 0

    def _save(self) -> None:
        elapsed = self.progress.seconds + time.monotonic() - self._started
        progress = dataclasses.replace(self.progress, seconds=elapsed)
        tensors = self.step.state() | {f"best/{name}": tensor for name, tensor in self._best.items()}
        tensors |= {
            "correct": self.step.correct,
            "seen": self.step.seen,
            "losses": self._losses,
            "held_out_indices": torch.tensor(self.data.held_out_indices),
            _TORCH_RANDOM_STATE: torch.get_rng_state(),
        }
        if self.step.random_numbers is not None:
            tensors[self._random_state] = self.step.random_numbers.get_state()
        facts = self.facts | {"progress": dataclasses.asdict(progress)}
        save_tensors(self.folder / CHECKPOINT, tensors, facts)

    def _finish(self) -> Summary:
        """Evaluate what was trained and write it down; the first process does, and the others hear of it."""
        with ALONE:
            summary = self._summarise() if self.leads else None
        return from_first(cast(Summary, summary))

    def _summarise(self) -> Summary:
        network, accuracy = self.step.result, self._newest_accuracy
        if self._best:
            network.load_state_dict(self._best)
            accuracy = None
        seconds = self.progress.seconds + time.monotonic() - self._started
        cuda = self.step.device.type == "cuda"
        summary = Summary(
            folder=str(self.folder),
            epochs=self.recipe.epochs,
            held_out_accuracy=accuracy or self._held_out_accuracy(),
            test_accuracy=None,
            costs=network.costs(self.data.image_shape[1:]),
            parameters=network.parameter_count,
            seconds=seconds,
            images_per_second=self.recipe.epochs * self.steps * self.recipe.batch_size / seconds,
            peak_memory_bytes=torch.cuda.max_memory_reserved(self.step.device) if cuda else None,
            processes=self.shard.world,
        )
        save_tensors(self.folder / MODEL, network.state_dict(), self.facts)
        summary.save(self.folder)
        return summary
