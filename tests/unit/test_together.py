"""Several trainings at once: each brings what it brings alone, and none stops the others."""

import dataclasses
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from msdnet.config import MSDNetConfig
from msdnet.training import DivergenceError, Interrupted, Recipe, StopSignal, Summary, resume, together, train
from msdnet.training.checkpoint import load_tensors
from msdnet.training.display import Display
from msdnet.training.recipe import Augmentation, Optimiser
from msdnet.training.side_by_side import SharedTime
from tests.helpers import SMALL_SYSTEMS, TINY, ColouredSquares
from tests.unit.test_training import StopAt

CPU = torch.device("cpu")
RECIPE = Recipe(
    epochs=2, batch_size=16, optimiser=Optimiser(learning_rate=0.05), augmentation=Augmentation(distort=0.5, cutmix=0.5)
)
WILD = dataclasses.replace(RECIPE, optimiser=Optimiser(learning_rate=1e30))

Job = Callable[[StopSignal], Summary]


def job(out: Path, seed: int, recipe: Recipe = RECIPE, display: Display | None = None) -> Job:
    def work(stop: StopSignal) -> Summary:
        return train(
            recipe,
            data=ColouredSquares(),
            network=TINY,
            out=out / str(seed),
            seed=seed,
            device="cpu",
            display=display or Display(),
            stop=stop,
        )

    return work


def test_each_brings_what_it_brings_alone(tmp_path: Path) -> None:
    alone = [job(tmp_path / "alone", seed)(StopSignal()) for seed in range(3)]
    done = list(together([job(tmp_path / "together", seed) for seed in range(3)], at_once=3, device=CPU))
    assert sorted(one.place for one in done) == [0, 1, 2]
    for one in done:
        assert one.error is None
        assert one.result is not None
        assert one.result.held_out_accuracy == alone[one.place].held_out_accuracy
        ours, theirs = (
            load_tensors(tmp_path / way / str(one.place) / "model.safetensors")[0] for way in ("together", "alone")
        )
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_one_that_diverges_does_not_stop_the_others(tmp_path: Path) -> None:
    jobs = [job(tmp_path, 0, WILD), job(tmp_path, 1)]
    first, second = sorted(together(jobs, at_once=2, device=CPU))
    assert isinstance(first.error, DivergenceError)
    assert second.error is None
    assert second.result is not None
    assert second.result.epochs == 2


def test_a_signal_stops_all_and_nothing_is_lost(tmp_path: Path) -> None:
    long = dataclasses.replace(RECIPE, epochs=200)
    jobs = [job(tmp_path, 0, long, StopAt(8)), job(tmp_path, 1, long), job(tmp_path, 2, long)]
    with pytest.raises(Interrupted, match="stopped by SIGTERM; trainings under way are saved") as stopped:
        list(together(jobs, at_once=2, device=CPU))
    assert stopped.value.signal_number == signal.SIGTERM
    begun = [seed for seed in range(3) if (tmp_path / str(seed) / "checkpoint.safetensors").exists()]
    assert len(begun) == 2, "the third was never started"
    with pytest.raises(Interrupted):  # it can go on, and be stopped again
        resume(tmp_path / "0", data=ColouredSquares(), device="cpu", display=StopAt(3))


def interrupted(_: StopSignal) -> Summary:
    raise Interrupted("as another process was told", signal.SIGTERM)


def never(_: StopSignal) -> Summary:
    raise AssertionError("must not be begun")


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_stop_that_another_process_heard_of_is_one(at_once: int) -> None:
    with pytest.raises(Interrupted) as stopped:
        list(together([interrupted], at_once=at_once, device=CPU))
    assert stopped.value.signal_number == signal.SIGTERM


def test_nothing_is_begun_after_a_signal() -> None:
    def ends_well(_: StopSignal) -> None:
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        list(together([ends_well, never], at_once=1, device=CPU))


def test_a_second_signal_ends_one_at_a_time_at_once(tmp_path: Path) -> None:
    """As it does without anything around the training."""

    class Twice(Display):
        def step(self, epoch: int, step: int) -> None:  # noqa: ARG002
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        list(together([job(tmp_path, 0, RECIPE, Twice())], at_once=1, device=CPU))


def test_a_second_signal_of_another_kind_ends_it_at_once() -> None:
    stop = StopSignal()
    with stop.noted():
        signal.raise_signal(signal.SIGTERM)
        assert stop.number == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_whoever_stops_listening_stops_the_rest(tmp_path: Path) -> None:
    jobs = [job(tmp_path, 0), job(tmp_path, 1, dataclasses.replace(RECIPE, epochs=10_000))]
    for done in together(jobs, at_once=2, device=CPU):
        assert done.place == 0
        break
    assert (tmp_path / "1" / "checkpoint.safetensors").exists()


def test_networks_of_different_kinds_train_side_by_side(tmp_path: Path) -> None:
    kinds: list[MSDNetConfig | object] = [SMALL_SYSTEMS["resnet"], SMALL_SYSTEMS["fractalnet"]]

    def work(place: int, stop: StopSignal) -> Summary:
        data = ColouredSquares(side=32)
        network = kinds[place]
        return train(RECIPE, data=data, network=network, out=tmp_path / str(place), device="cpu", stop=stop)  # type: ignore[arg-type]

    done = list(together([lambda stop, p=p: work(p, stop) for p in range(2)], at_once=2, device=CPU))  # type: ignore[misc]
    assert all(one.error is None for one in done)


def test_those_that_run_side_by_side_share_the_time() -> None:
    now = [100.0]
    shared = SharedTime(clock=lambda: now[0])
    now[0] += 50  # in which nobody runs
    with shared.running() as first:
        now[0] += 6  # alone
        with shared.running() as second:
            now[0] += 8  # half of it each
            assert (first(), second()) == (10, 4)
        now[0] += 1
        assert first() == 11
    now[0] += 50
    with shared.running() as third:
        now[0] += 3
        assert third() == 3
