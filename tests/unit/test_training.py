"""The training loop on small data: it learns, it can be stopped anywhere, and it loses nothing."""

import dataclasses
import errno
import json
import multiprocessing
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from msdnet import MSDNetConfig, create_network
from msdnet.data import UNREADABLE, Batch, DataConfig, Epoch, ImageData, Part, Shard, open_data
from msdnet.data.folder import FolderData
from msdnet.device import training_precision
from msdnet.errors import DamagedError
from msdnet.export.averaging import averaged
from msdnet.training import (
    DivergenceError,
    Interrupted,
    Recipe,
    Summary,
    all_logits,
    exit_accuracies,
    load_run,
    resume,
    train,
)
from msdnet.training import trainer as trainer_module
from msdnet.training.checkpoint import load_tensors, save_tensors
from msdnet.training.display import Display, EpochFigures, LiveDisplay, PlainDisplay
from msdnet.training.recipe import Augmentation, Distillation, Loss, Optimiser, Schedule
from msdnet.training.record import read_run
from msdnet.training.run import make_step
from msdnet.training.step import CompiledStep, Step
from tests.helpers import SMALL_SYSTEMS, TINY, ColouredSquares

QUICK = Recipe(epochs=3, batch_size=16, optimiser=Optimiser(learning_rate=0.05))
# Every option at once, so that resuming is tried with all the state there can be.
EVERYTHING = Recipe(
    epochs=3,
    batch_size=16,
    optimiser=Optimiser(learning_rate=0.05, decay_norms_and_biases=False),
    schedule=Schedule(kind="cosine", warmup_epochs=0.5),
    loss=Loss(label_smoothing=0.1, distillation=Distillation(weight=0.5), balance_gradients=True, boosting=0.5),
    augmentation=Augmentation(distort=0.3, erase=0.2, mixup=0.2, cutmix=0.3, until=0.6),
    average_decay=0.8,
    select="best",
)


BOOSTED = dataclasses.replace(QUICK, name="boosted", loss=Loss(boosting=0.5))


class StopAt(Display):
    """Sends this process a signal after so many steps in all."""

    def __init__(self, step: int, number: signal.Signals = signal.SIGTERM) -> None:
        self.left, self.number = step, number

    def step(self, epoch: int, step: int) -> None:  # noqa: ARG002
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(self.number)


def run(out: Path, recipe: Recipe = QUICK, **options: Any) -> Summary:
    settings: dict[str, Any] = {"data": ColouredSquares(), "network": TINY, "display": Display(), "device": "cpu"}
    return train(recipe, out=out, **(settings | options))


def go_on(out: Path, **options: Any) -> Summary:
    settings: dict[str, Any] = {"data": ColouredSquares(), "display": Display(), "device": "cpu"}
    return resume(out, **(settings | options))


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_tensors(out / "model.safetensors")[0]


def metrics(out: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("images_per_second", "seconds")} for line in lines]


@pytest.mark.parametrize("recipe", [QUICK, EVERYTHING], ids=["quick", "everything"])
def test_learns_at_every_exit(recipe: Recipe, tmp_path: Path) -> None:
    summary = run(tmp_path, recipe.lasting(12), test=True)
    assert min(summary.held_out_accuracy) > 0.8  # chance is a third
    assert summary.test_accuracy is not None
    assert min(summary.test_accuracy) > 0.8
    assert json.loads((tmp_path / "summary.json").read_text())["test_accuracy"] == list(summary.test_accuracy)


def test_test_images_are_left_alone_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    batches = ColouredSquares.batches

    def noted(self: ColouredSquares, part: Part, batch_size: int) -> Iterator[Batch]:
        asked.append(part)
        return batches(self, part, batch_size)

    monkeypatch.setattr(ColouredSquares, "batches", noted)
    assert run(tmp_path).test_accuracy is None
    assert set(asked) == {"held_out"}


def test_labels_as_shares_are_counted_like_labels() -> None:
    images, labels = torch.randn(8, 3, 12, 12), torch.tensor([0, 1, 2, 0, 1, 2, 0, UNREADABLE])
    counted = []
    for given in (labels, (labels[:, None] == torch.arange(3)).float()):
        torch.manual_seed(0)
        step = Step(create_network(TINY, classes=3), QUICK, (12, 12))
        step(Batch(images, given), 0.0)
        counted.append([*step.correct.tolist(), int(step.seen), float(step.loss)])
    assert counted[0] == pytest.approx(counted[1])
    assert counted[0][-2] == 7


def test_the_loss_of_boosting_is_of_what_the_network_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDNET_PRECISION", "float32")
    images, labels = torch.randn(8, 3, 12, 12), torch.randint(0, 3, (8,))
    network = create_network(TINY, classes=3, averaging=0.5)
    step = Step(network, BOOSTED, (12, 12))
    step(Batch(images, labels), 0.0)  # a learning rate of 0 changes no weight
    with torch.inference_mode():
        own = torch.stack(network(images), dim=1)  # in training mode: of each exit by itself
    answers = torch.from_numpy(averaged(own.numpy(), network.config.exit_shares))
    cross_entropies = [float(functional.cross_entropy(answers[:, exit], labels)) for exit in range(len(TINY.exits))]
    assert float(step.loss) == pytest.approx(sum(cross_entropies), abs=1e-5)


@pytest.mark.parametrize("quick", [True, False])
def test_a_processor_learns_in_bfloat16_where_it_multiplies_it_by_itself(
    quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MSDNET_PRECISION", raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: quick)
    assert training_precision(torch.device("cpu")) == (torch.bfloat16 if quick else torch.float32)
    assert training_precision(torch.device("cuda")) == torch.bfloat16
    monkeypatch.setenv("MSDNET_PRECISION", "float32")
    assert training_precision(torch.device("cpu")) == training_precision(torch.device("cuda")) == torch.float32
    monkeypatch.setenv("MSDNET_PRECISION", "half")
    with pytest.raises(ValueError, match="MSDNET_PRECISION must be one of float32, bfloat16; got 'half'"):
        Step(create_network(TINY), QUICK, (12, 12))


def test_both_precisions_learn_the_same_to_what_bfloat16_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps are rounded to 8 bits, so that losses differ by a little; weights stay float32."""
    batch = Batch(torch.randn(32, 3, 12, 12), torch.randint(0, 3, (32,)))
    losses: dict[str, list[float]] = {}
    for precision in ("float32", "bfloat16"):
        monkeypatch.setenv("MSDNET_PRECISION", precision)
        torch.manual_seed(0)
        step = Step(create_network(TINY, classes=3), QUICK, (12, 12))
        losses[precision] = []
        for _ in range(10):
            step(batch, 0.01)
            losses[precision].append(float(step.loss))
        assert {parameter.dtype for parameter in step.network.parameters()} == {torch.float32}
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)
    assert losses["bfloat16"][-1] < losses["bfloat16"][0]


def test_a_run_keeps_its_precision_wherever_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for precision in ("float32", "bfloat16"):
        monkeypatch.setenv("MSDNET_PRECISION", precision)
        run(tmp_path / precision)
        with pytest.raises(Interrupted):
            run(tmp_path / f"parts_{precision}", display=StopAt(7))
    for precision, other in (("float32", "bfloat16"), ("bfloat16", "float32")):
        monkeypatch.setenv("MSDNET_PRECISION", other)
        assert read_run(tmp_path / f"parts_{precision}")["precision"] == precision
        go_on(tmp_path / f"parts_{precision}")
        whole, parts = weights(tmp_path / precision), weights(tmp_path / f"parts_{precision}")
        assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++"))), reason="there is no C++ compiler")
@pytest.mark.parametrize("balanced", [False, True])
def test_compiled_kernels_learn_the_same(balanced: bool) -> None:
    recipe = dataclasses.replace(QUICK, loss=Loss(balance_gradients=balanced))
    batch = Batch(torch.randn(16, 3, 12, 12), torch.randint(0, 3, (16,)))
    losses: dict[type[Step], list[float]] = {Step: [], CompiledStep: []}
    for kind, found in losses.items():
        torch.manual_seed(0)
        step = kind(create_network(TINY, classes=3), recipe, (12, 12), precision=torch.float32)
        assert hasattr(step._forward, "_orig_mod") == (kind is CompiledStep), "as torch.compile's modules have it"
        for _ in range(4):
            step(batch, 0.05)
            found.append(float(step.loss))
    assert losses[CompiledStep] == pytest.approx(losses[Step], rel=1e-4)


@pytest.mark.slow
def test_a_compiled_run_goes_on_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDNET_KERNELS", "compiled")
    whole = run(tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(tmp_path / "parts", display=StopAt(7))
    monkeypatch.delenv("MSDNET_KERNELS")
    assert go_on(tmp_path / "parts").held_out_accuracy == pytest.approx(whole.held_out_accuracy, abs=0.1)
    assert load_run(tmp_path / "parts", data=ColouredSquares(), device="cpu").network.exit_count == len(TINY.exits)


@pytest.mark.slow
def test_many_networks_of_a_process_are_compiled() -> None:
    """Torch counts them as one, compiled again and again, and gives up after eight."""
    torch._dynamo.reset()
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for growth in range(2, 12):
        network = create_network(dataclasses.replace(TINY, growth=growth))
        CompiledStep(network, QUICK, (12, 12))(Batch(torch.randn(4, 3, 12, 12), torch.zeros(4, dtype=torch.long)), 0.1)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] - before >= 10


def test_kernels_are_compiled_where_that_is_wanted_and_there_is_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = partial(make_step, TINY, QUICK, ColouredSquares())
    monkeypatch.setattr(torch, "compile", lambda network, **_: network)
    assert type(made(torch.device("cpu"))) is Step
    monkeypatch.setenv("MSDNET_KERNELS", "compiled")
    assert type(made(torch.device("cpu"))) is CompiledStep
    at_random = make_step(SMALL_SYSTEMS["stochastic"], QUICK, ColouredSquares(), torch.device("cpu"))
    assert type(at_random) is Step, "which torch.compile would take apart"
    with pytest.raises(ValueError, match="MSDNET_KERNELS=compiled is for training on a CPU, not on meta"):
        made(torch.device("meta"))

    def without_compiler(*_: object, **__: object) -> None:
        raise RuntimeError("No working C++ compiler\nand a hundred lines more")

    monkeypatch.setattr(torch, "compile", without_compiler)
    with pytest.raises(ValueError, match=r"torch\.compile does not work here \(No working C\+\+ compiler\)$"):
        run(tmp_path / "run")
    assert not (tmp_path / "run").exists(), "nothing was begun"


@pytest.mark.parametrize("network", [TINY, dataclasses.replace(TINY, averaging=2)], ids=["none", "another power"])
def test_a_step_boosts_only_what_answers_with_such_averages(network: MSDNetConfig) -> None:
    with pytest.raises(ValueError, match=r"recipe boosted boosts exits that answer with averages of power 0\.5"):
        Step(create_network(network), BOOSTED, (12, 12))


def test_a_slow_average_leaves_the_first_weights_behind(tmp_path: Path) -> None:
    """After 48 steps a plain average with this decay would still be 95% initial weights."""
    summary = run(tmp_path, dataclasses.replace(QUICK.lasting(8), average_decay=0.999))
    assert min(summary.held_out_accuracy) > 0.8


@pytest.mark.parametrize("recipe", [QUICK, EVERYTHING], ids=["quick", "everything"])
@pytest.mark.parametrize("stops", [(1,), (6,), (7, 5), (18,)])
def test_a_resumed_run_equals_an_uninterrupted_one(recipe: Recipe, stops: tuple[int, ...], tmp_path: Path) -> None:
    run(tmp_path / "whole", recipe)
    start, *later = stops
    with pytest.raises(Interrupted, match="stopped by SIGTERM after epoch"):
        run(tmp_path / "parts", recipe, display=StopAt(start))
    for stop in later:
        with pytest.raises(Interrupted):
            go_on(tmp_path / "parts", display=StopAt(stop))
    go_on(tmp_path / "parts")
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")


@pytest.mark.parametrize("system", ["resnet_mc", "stochastic", "densenet_mc", "fractalnet"])
def test_other_systems_learn_and_are_resumed_as_exactly(system: str, tmp_path: Path) -> None:
    """Those that draw what takes part in a step go on with the draws where they were stopped."""
    recipe = dataclasses.replace(QUICK, epochs=6, average_decay=0.8)
    summary = run(tmp_path / "whole", recipe, network=SMALL_SYSTEMS[system])
    assert min(summary.held_out_accuracy) > 0.6  # chance is a third
    with pytest.raises(Interrupted):
        run(tmp_path / "parts", recipe, network=SMALL_SYSTEMS[system], display=StopAt(8))
    go_on(tmp_path / "parts")
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_a_network_that_draws_at_random_goes_on_after_another_kind_of_device(tmp_path: Path) -> None:
    """With new draws: no device can go on with those of another kind."""
    with pytest.raises(Interrupted):
        run(tmp_path, network=SMALL_SYSTEMS["stochastic"], display=StopAt(8))
    tensors, facts = load_tensors(tmp_path / "checkpoint.safetensors")
    del tensors["cpu_random_state"], tensors["torch_random_state"]
    save_tensors(tmp_path / "checkpoint.safetensors", tensors | {"cuda_random_state": torch.zeros(16)}, facts)
    assert go_on(tmp_path).epochs == QUICK.epochs


def test_a_run_without_a_checkpoint_is_resumed_from_its_start(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    with pytest.raises(RuntimeError, match="power cut"):
        run(tmp_path / "parts", display=_Failing())
    go_on(tmp_path / "parts")
    assert all(torch.equal(w, weights(tmp_path / "parts")[name]) for name, w in weights(tmp_path / "whole").items())


class _Failing(Display):
    def step(self, epoch: int, step: int) -> None:  # noqa: ARG002
        if step == 3:
            raise RuntimeError("power cut")


def test_signals_are_handled_as_before_once_the_run_is_over(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted) as stop:
        run(tmp_path, display=StopAt(2, signal.SIGINT))
    assert stop.value.signal_number == signal.SIGINT
    assert str(stop.value).endswith(f"; go on with: msdnet train --resume {tmp_path}")
    assert stop.value.told("msdnet --import own").endswith(f" msdnet --import own train --resume {tmp_path}")
    assert Interrupted("stopped", 2, Path("my runs/a")).told("msdnet").endswith(" --resume 'my runs/a'")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_finished_run_stays_as_it_is_and_is_tested_once(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert go_on(tmp_path) == first
    tested = go_on(tmp_path, test=True)
    assert tested.test_accuracy is not None
    assert go_on(tmp_path) == tested, "what was seen of the test images is kept"
    other = ColouredSquares()
    other._images.zero_()  # were they looked at again, the answers would differ
    assert resume(tmp_path, data=other, test=True, display=Display(), device="cpu") == tested


@pytest.mark.parametrize("test", [False, True])
def test_a_finished_run_without_its_network_is_refused_rather_than_trained_again(tmp_path: Path, test: bool) -> None:
    first = run(tmp_path)
    model = tmp_path / "model.safetensors"
    whole = {name: tensor.clone() for name, tensor in load_tensors(model)[0].items()}  # which are the file's own
    model.write_bytes(model.read_bytes()[:1000])
    with pytest.raises(DamagedError, match=r"not a whole safetensors file .*; with summary\.json removed, --resume"):
        go_on(tmp_path, test=test)
    model.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"finished, but its model\.safetensors is gone; with summary\.json removed"
    ):
        go_on(tmp_path, test=test)
    (tmp_path / "summary.json").unlink()
    assert go_on(tmp_path).held_out_accuracy == first.held_out_accuracy
    made_again = load_tensors(model)[0]
    assert made_again.keys() == whole.keys()
    assert all(torch.equal(made_again[name], tensor) for name, tensor in whole.items())


class _Parts(ColouredSquares):
    """Without images in some parts, or with images there that cannot be read."""

    def __init__(self, empty: Sequence[Part] = (), unreadable: Sequence[Part] = ()) -> None:
        super().__init__()
        self._parts |= {part: slice(0, 0) for part in empty}
        self._unreadable = unreadable

    def batches(self, part: Part, batch_size: int) -> Iterator[Batch]:
        for batch in super().batches(part, batch_size):
            unreadable = torch.full_like(batch.labels, UNREADABLE)
            yield batch._replace(labels=unreadable) if part in self._unreadable else batch


@pytest.mark.parametrize("part", ["test", "held_out"])
def test_data_without_images_to_judge_by_are_refused_before_any_training(tmp_path: Path, part: Part) -> None:
    message = {"test": "squares: has no test images", "held_out": "squares: no images are held out"}[part]
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "out", data=_Parts(empty=[part]), test=True)
    assert not (tmp_path / "out").exists()


def test_no_accuracy_is_made_up_for_test_images_that_are_not_there(tmp_path: Path) -> None:
    finished = run(tmp_path, data=_Parts(empty=["test"]))
    with pytest.raises(ValueError, match="squares: has no test images"):
        go_on(tmp_path, data=_Parts(empty=["test"]), test=True)
    assert go_on(tmp_path) == finished


def test_test_images_that_cannot_be_read_leave_a_finished_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there must be test images of squares that can be read"):
        run(tmp_path, data=_Parts(unreadable=["test"]), test=True)
    assert go_on(tmp_path).test_accuracy is None
    assert go_on(tmp_path, test=True).test_accuracy is not None


@pytest.mark.parametrize("judge", [exit_accuracies, all_logits])
@pytest.mark.parametrize("data", [_Parts(empty=["held_out"]), _Parts(unreadable=["held_out"])], ids=["none", "unread"])
def test_a_network_is_not_judged_by_nothing(judge: Callable[..., Any], data: ImageData) -> None:
    with pytest.raises(ValueError, match="there must be images that can be read to judge a network by, got none"):
        judge(create_network(TINY, classes=3), data.batches("held_out", 8))


def test_a_run_that_skips_unreadable_images_from_now_on_says_so(tmp_path: Path) -> None:
    """Also to those that open it afterwards; and its folder stays locked meanwhile."""
    photos, out = tmp_path / "photos", tmp_path / "run"
    for name in ("ant", "bee"):
        (photos / name).mkdir(parents=True)
        for k in range(40):
            Image.new("RGB", (12, 12), (k, 2 * k, 90)).save(photos / name / f"{k}.png")
    config = DataConfig(dataset="folder", root=str(photos), crop_size=12, workers=0)
    data = open_data(config)
    assert isinstance(data, FolderData)
    for part in ("train", "held_out"):
        (photos / data.paths(part)[0]).write_bytes(b"")
    with pytest.raises(ValueError, match="unreadable image"):
        run(out, data=config)

    class Intruder(Display):
        def step(self, epoch: int, step: int) -> None:
            if (epoch, step) == (1, 1):
                with pytest.raises(ValueError, match="another process is training here"):
                    go_on(out, data=None)

    with pytest.warns(UserWarning, match="unreadable image"):
        go_on(out, data=None, unreadable="skip", display=Intruder())
    assert read_run(out)["data"] == dataclasses.asdict(config) | {"unreadable": "skip", "root": str(photos)}
    network, images, _ = load_run(out, device="cpu")
    assert images is not None
    with pytest.warns(UserWarning, match="unreadable image"):
        assert len(all_logits(network, images.batches("held_out", 8))[1]) == images.size("held_out") - 1
    strict = load_run(out, device="cpu", unreadable="fatal").data
    assert strict is not None
    with pytest.raises(ValueError, match="unreadable image"):
        list(strict.batches("held_out", 8))


def test_a_folder_is_for_one_training_at_a_time(tmp_path: Path) -> None:
    class Intruder(Display):
        def step(self, epoch: int, step: int) -> None:
            if (epoch, step) == (1, 1):
                with pytest.raises(ValueError, match="another process is training here"):
                    go_on(tmp_path)
                seen.append(step)

    seen: list[int] = []
    run(tmp_path, display=Intruder())
    assert seen == [1]


def test_a_folder_may_be_on_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which locks a file only for those who could write it."""

    def lock(file: TextIO, _: int) -> None:
        if not file.writable():
            raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr("fcntl.flock", lock)
    assert run(tmp_path).epochs == QUICK.epochs


def test_a_folder_that_cannot_be_locked_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", lock)
    message = r"its file system does not lock files \(No locks available\), .*; choose a folder elsewhere"
    with pytest.raises(ValueError, match=message):
        run(tmp_path)


def test_handlers_of_signals_that_are_not_pythons_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a program that has Python inside it: they could not be put back."""
    handler = signal.getsignal

    def known(number: int) -> Any:
        return None if number == signal.SIGTERM else handler(number)

    monkeypatch.setattr("signal.getsignal", known)
    assert run(tmp_path).epochs == QUICK.epochs


def test_a_killed_run_is_not_locked_by_the_readers_it_leaves_behind(tmp_path: Path) -> None:
    """Workers are forked, and outlive a run that is killed by some seconds."""

    class Forking(Display):
        def step(self, epoch: int, step: int) -> None:
            if (epoch, step) == (0, 1):
                child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(20,))
                child.start()
                children.append(child)
                raise RuntimeError("killed")

    children: list[Any] = []
    with pytest.raises(RuntimeError, match="killed"):
        run(tmp_path, display=Forking())
    try:
        go_on(tmp_path)
        assert children[0].is_alive()
    finally:
        children[0].kill()


def test_divergence_names_step_rate_and_checkpoint(tmp_path: Path) -> None:
    wild = Recipe(epochs=3, batch_size=16, optimiser=Optimiser(learning_rate=1e30))
    with pytest.raises(
        DivergenceError, match=r"the loss is (nan|inf) at epoch 1, step 2, with a learning rate of 1e\+30; no"
    ):
        run(tmp_path, wild)


def test_an_epochs_batches_are_taken_to_their_end(tmp_path: Path) -> None:
    """Data that are read by other processes keep these for the next epoch, unless one is broken off."""

    class Noting(ColouredSquares):
        ended = 0

        def training_batches(self, epoch: Epoch) -> Iterator[Batch]:
            yield from super().training_batches(epoch)
            self.ended += 1

    for number, recipe in enumerate((QUICK, EVERYTHING)):
        data = Noting()
        run(tmp_path / str(number), recipe.lasting(2), data=data)
        assert data.ended == 2


def test_weights_that_a_step_spoilt_are_never_saved(tmp_path: Path) -> None:
    """The loss of the spoiling step is still finite, so that it alone would let the checkpoint pass."""
    wild = Recipe(epochs=3, batch_size=16, optimiser=Optimiser(learning_rate=1e38, weight_decay=1e3))
    with pytest.raises(DivergenceError, match="weights are not finite at epoch 1, step 1"):
        run(tmp_path, wild, checkpoint_seconds=0)
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_divergence_in_the_last_step_of_an_epoch_is_named_by_that_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of six steps overflows the weights, while its own loss is still finite."""

    def rate(_recipe: Recipe, epoch: float) -> float:
        return 1e38 if epoch > 1.8 else 1e-6

    monkeypatch.setattr(trainer_module, "learning_rate", rate)
    recipe = Recipe(epochs=3, batch_size=16, optimiser=Optimiser(weight_decay=1e3))
    with pytest.raises(DivergenceError, match="weights are not finite at epoch 2, step 6"):
        run(tmp_path, recipe, checkpoint_seconds=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "not that of a run: no data, images, network, precision, recipe, resize, seed in it"),
        ('{"seed": 1', "run.json: not JSON"),
        ("[]", "must be a table of fields, got list"),
    ],
)
def test_refuses_a_run_file_of_nonsense(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        go_on(tmp_path)
    with pytest.raises(ValueError, match=message):
        run(tmp_path)


def test_a_run_file_that_was_cut_short_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"seed": 1')
    for attempt in (go_on, run):
        with pytest.raises(ValueError, match=rf"nothing was trained here yet: remove {path}, and start anew"):
            attempt(tmp_path)
    path.unlink()
    run(tmp_path)
    path.write_text('{"seed": 1')
    for attempt in (go_on, run):
        with pytest.raises(ValueError, match="put back a copy of it, or start anew with another --out"):
            attempt(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"seed": 2**32}, "seed must be below 4294967296"),
        ({"checkpoint_seconds": -5}, "checkpoint_seconds must be at least 0, got -5"),
        ({"recipe": BOOSTED, "network": "densenet_mc"}, "recipe boosted boosts the exits of an MSDNet"),
        (
            {"recipe": BOOSTED, "network": dataclasses.replace(TINY, averaging=1)},
            "recipe boosted boosts with power 0.5, the network averages with 1.0",
        ),
        ({"device": "gpu"}, "device must be cpu, cuda or cuda:N, got 'gpu'"),
        ({"device": "cuda:99"}, "device must be cpu.* got 'cuda:99'"),
    ],
)
def test_refuses_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


class _Broken(ColouredSquares):
    """From the fourth batch of the second epoch on, nothing but infinities."""

    def training_batches(self, epoch: Epoch) -> Iterator[Batch]:
        for k, batch in enumerate(super().training_batches(epoch)):
            yield batch._replace(images=batch.images * float("inf")) if (epoch.number, k) >= (1, 3) else batch


def test_the_checkpoint_before_a_divergence_is_good(tmp_path: Path) -> None:
    with pytest.raises(
        DivergenceError, match=r"epoch 2, step 4.* the last good checkpoint is .*checkpoint.safetensors"
    ):
        train(QUICK, data=_Broken(), network=TINY, out=tmp_path, display=Display(), device="cpu", checkpoint_seconds=0)
    tensors, facts = load_tensors(tmp_path / "checkpoint.safetensors")
    assert (facts["progress"]["epoch"], facts["progress"]["step"]) == (1, 3)
    assert all(t.isfinite().all() for name, t in tensors.items() if name.startswith("network/"))
    assert min(go_on(tmp_path).held_out_accuracy) > 0.5  # on sound data it goes on from there


def test_best_is_chosen_on_held_out_images(tmp_path: Path) -> None:
    recipe = Recipe(epochs=4, batch_size=16, optimiser=Optimiser(learning_rate=0.3), select="best")
    summary = run(tmp_path, recipe)
    means = [sum(line["held_out_accuracy"]) / 3 for line in metrics(tmp_path)]
    assert sum(summary.held_out_accuracy) / 3 == pytest.approx(max(means))


def test_the_best_is_kept_though_later_epochs_are_worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accuracies, seen = iter([0.2, 0.9, 0.5]), []

    def judged(self: trainer_module.Trainer) -> tuple[float, ...]:
        seen.append({name: tensor.clone() for name, tensor in self.step.result.state_dict().items()})
        return (next(accuracies, 0.9),)

    monkeypatch.setattr(trainer_module.Trainer, "_held_out_accuracy", judged)
    summary = run(tmp_path, dataclasses.replace(QUICK, select="best"))
    _, best, last, at_the_end = seen
    assert all(torch.equal(tensor, best[name]) for name, tensor in weights(tmp_path).items())
    assert all(torch.equal(tensor, best[name]) for name, tensor in at_the_end.items())
    assert not all(torch.equal(tensor, best[name]) for name, tensor in last.items())
    assert summary.held_out_accuracy == (0.9,)


def test_the_held_out_images_are_looked_at_once_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def judged(_: trainer_module.Trainer) -> tuple[float, ...]:
        looks.append(0.5)
        return (0.5,)

    monkeypatch.setattr(trainer_module.Trainer, "_held_out_accuracy", judged)
    run(tmp_path, dataclasses.replace(QUICK, epochs=2))
    assert len(looks) == 2


def test_weight_decay_spares_what_it_is_told_to() -> None:
    network = create_network(TINY, classes=3)
    decays = {}
    for wanted in (True, False):
        optimiser = Optimiser(weight_decay=0.01, decay_norms_and_biases=wanted)
        step = Step(network, dataclasses.replace(QUICK, optimiser=optimiser), (12, 12), precision=torch.float32)
        decays[wanted] = {
            parameter.ndim > 1: group["weight_decay"]
            for group in step.optimiser.param_groups
            for parameter in group["params"]
        }
    assert decays == {True: {True: 0.01, False: 0.01}, False: {True: 0.01, False: 0.0}}


def test_the_average_moves_as_its_decay_says() -> None:
    """By a tenth at most once it is under way: 9 / 10 at the first step, 9 / 11 at the second, ..., then 1 - 0.9."""
    step = Step(create_network(TINY, classes=3), dataclasses.replace(QUICK, average_decay=0.9), (12, 12))
    batch = Batch(torch.randn(8, 3, 12, 12), torch.arange(8) % 3)
    assert step.average is not None
    name = "heads.0.4.weight"
    expected = step.network.state_dict()[name].clone()
    for number in range(100):
        step(batch, 0.05)
        expected += max(9 / (10 + number), 0.1) * (step.network.state_dict()[name] - expected)
    torch.testing.assert_close(step.average.state_dict()[name], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("system", ["fractalnet", "stochastic"])
def test_each_process_draws_for_its_own_share(system: str, tmp_path: Path) -> None:
    drawn = {}
    for rank in (0, 1):
        torch.manual_seed(0)
        step = make_step(SMALL_SYSTEMS[system], QUICK, ColouredSquares(side=32), torch.device("cpu"))
        shard = Shard(rank, 2)
        trainer_module.Trainer(step, ColouredSquares(), tmp_path, {}, seed=0, display=Display(), shard=shard)
        assert step.random_numbers is not None
        drawn[rank] = (step.random_numbers.initial_seed(), torch.initial_seed())
    assert drawn[0][0] != drawn[1][0]
    assert drawn[0][1] != drawn[1][1]
    assert drawn[0][1] == 0, "the first draws as if it were alone"


def test_what_fails_before_its_first_step_leaves_its_folder_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(self: Step, batch: Batch) -> None:  # noqa: ARG001
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(Step, "_compute", no_memory)
        with pytest.raises(RuntimeError, match="out of memory"):
            run(tmp_path / "run")
    run(tmp_path / "run", QUICK.in_batches(8))


def test_what_fails_later_keeps_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute, steps = Step._compute, iter(range(10))

    def fails_later(self: Step, batch: Batch) -> None:
        if next(steps) == 2:
            raise RuntimeError("out of memory")
        compute(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Step, "_compute", fails_later)
        with pytest.raises(RuntimeError, match="out of memory"):
            run(tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run already"):
        run(tmp_path / "run", seed=1)


def test_a_network_of_another_run_is_not_taken_for_the_runs_own(tmp_path: Path) -> None:
    run(tmp_path / "one")
    run(tmp_path / "other", seed=1)
    shutil.copy(tmp_path / "other" / "model.safetensors", tmp_path / "one")
    with pytest.raises(ValueError, match=r"model\.safetensors: made with another seed: 1 in the model, 0 in the run"):
        load_run(tmp_path / "one", data=ColouredSquares())
    (tmp_path / "stale").mkdir()
    shutil.copy(tmp_path / "other" / "model.safetensors", tmp_path / "stale")
    with pytest.raises(ValueError, match=r"holds what a run has made, without its run\.json"):
        run(tmp_path / "stale")


def test_data_are_no_path(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="data must be a DataConfig, which says where images are, or ImageData, got 'd"):
        run(tmp_path, data="data/")


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"epochs": np.int64(1), "batch_size": np.int32(16)}
    recipe = Recipe(**numbers, optimiser=Optimiser(learning_rate=np.float32(0.125)))  # type: ignore[arg-type]
    run(tmp_path, recipe, seed=np.int64(3))
    facts = read_run(tmp_path)
    assert (facts["seed"], facts["recipe"]["epochs"], facts["recipe"]["optimiser"]["learning_rate"]) == (3, 1, 0.125)
    json.dumps(dataclasses.asdict(DataConfig(subset=np.int64(30), held_out_seed=np.int64(1))))  # type: ignore[arg-type]


def test_evaluates_as_often_as_asked_and_at_the_end(tmp_path: Path) -> None:
    run(tmp_path, Recipe(epochs=5, batch_size=16, evaluate_every=2))
    assert [line["held_out_accuracy"] is not None for line in metrics(tmp_path)] == [False, True, False, True, True]


def test_what_another_run_left_behind_does_not_finish_a_new_one(tmp_path: Path) -> None:
    run(tmp_path)
    for name in ("run.json", "checkpoint.safetensors"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"holds what a run has made, without its run\.json; choose another folder"):
        run(tmp_path, seed=1)


def test_a_folder_is_used_once(tmp_path: Path) -> None:
    run(tmp_path)
    before = weights(tmp_path)
    with pytest.raises(ValueError, match="holds a run already; go on with it by --resume"):
        run(tmp_path, seed=1)
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(tmp_path).items())


def test_refuses_to_resume_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no training run here"):
        go_on(tmp_path)


@pytest.mark.parametrize(("field", "change"), [("network", {"growth": 8}), ("seed", 5), ("recipe", {"epochs": 9})])
def test_refuses_a_checkpoint_of_another_run(tmp_path: Path, field: str, change: Any) -> None:
    with pytest.raises(Interrupted):
        run(tmp_path, display=StopAt(3))
    facts = json.loads((tmp_path / "run.json").read_text())
    facts[field] = facts[field] | change if isinstance(change, dict) else change
    (tmp_path / "run.json").write_text(json.dumps(facts))
    named = f"{field}: {next(iter(change))}" if isinstance(change, dict) else field
    with pytest.raises(
        ValueError, match=f"checkpoint.safetensors: made with another {named}: .* in the checkpoint, .* in the run"
    ):
        go_on(tmp_path)


def test_refuses_a_checkpoint_of_other_data(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(tmp_path, display=StopAt(3))
    with pytest.raises(ValueError, match="started with other data: held-out images: 12 in the data, 24 in the run"):
        resume(tmp_path, data=ColouredSquares(held_out=12), display=Display(), device="cpu")
    other = ColouredSquares()
    other.classes = ("red", "green", "yellow")
    with pytest.raises(ValueError, match=r"started with other data: classes: .*'yellow'\] in the data"):
        resume(tmp_path, data=other, display=Display(), device="cpu")
    with pytest.raises(ValueError, match=r"started with data of its own, 'squares': .*resume\(\.\.\., data=\.\.\.\)"):
        resume(tmp_path, display=Display(), device="cpu")


def test_refuses_a_batch_larger_than_the_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"batches of 97 are more than the 96 training images: batch_size"):
        run(tmp_path / "out", Recipe(epochs=1, batch_size=97))
    assert not (tmp_path / "out").exists(), "a run that never started leaves the folder free"


def test_the_seed_decides_everything(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(tmp_path / name, seed=seed)
    a, b, c = (weights(tmp_path / name)["heads.0.4.weight"] for name in "abc")
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_plain_display_prints_one_line_per_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, display=PlainDisplay())
    lines = capsys.readouterr().out.splitlines()
    about = lines.pop(0)
    assert about.startswith("squares: 96 images to train on, 24 held out, 3 classes; network: 3 exits, ")
    assert about.endswith("those of the first, the middle and the last exit.")
    assert len(lines) == 3
    assert lines[0].startswith("epoch 1/3  loss ")
    assert all(word in lines[0] for word in ("train", "held-out", "images/s", "left"))


@pytest.mark.parametrize(("exits", "told"), [((1, 2), "those of both exits."), ((2,), "on the CPU. ")])
def test_which_exits_are_shown_is_told_of_few(
    exits: tuple[int, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = dataclasses.replace(TINY, exits=exits)
    run(tmp_path, dataclasses.replace(QUICK, epochs=1), network=network, display=PlainDisplay())
    assert capsys.readouterr().out.splitlines()[0].endswith(told)


def test_live_display_shows_the_newest_figures(capsys: pytest.CaptureFixture[str]) -> None:
    display = LiveDisplay()
    display.start(epochs=2, steps=3)
    display.step(0, 2)
    display.epoch(EpochFigures(1, 2, 1.5, 0.1, (0.5, 0.6, 0.7), (0.4, 0.5, 0.6), 1234.0, 3.0))
    display.say("a message of :cat: [bold]")
    display.stop()
    shown = capsys.readouterr().out
    assert "a message of :cat: [bold]" in shown, "as it is"
    assert "loss 1.500" in shown
    assert "1,234" in shown


def test_loading_a_run_leaves_torchs_random_numbers_alone(tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = torch.get_rng_state()
    network, _, _ = load_run(tmp_path / "run", device="cpu", open_data=False)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(network.state_dict()[name], value) for name, value in weights(tmp_path / "run").items())


def test_the_model_file_is_all_it_takes_to_build_the_network(tmp_path: Path) -> None:
    summary = run(tmp_path)
    tensors, facts = load_tensors(tmp_path / "model.safetensors")
    network = create_network(MSDNetConfig.from_dict(facts["network"]))
    network.load_state_dict(tensors)
    assert exit_accuracies(network, ColouredSquares().batches("held_out", 8)) == pytest.approx(
        summary.held_out_accuracy
    )
