"""What only a GPU can show: run with `make test-gpu`."""

import copy
import dataclasses
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from msdnet import create_network, preset_config
from msdnet.data import Batch, DataConfig
from msdnet.networks import MSDNet
from msdnet.training import Interrupted, Recipe, StopSignal, Summary, resume, together, train
from msdnet.training.checkpoint import load_tensors
from msdnet.training.display import Display
from msdnet.training.recipe import Distillation, Loss, Optimiser
from msdnet.training.side_by_side import ALONE
from msdnet.training.step import GraphedStep, Step
from msdnet.training.streams import ScalesSideBySide
from tests.helpers import SMALL_SYSTEMS, ColouredSquares
from tests.unit.test_kernels import SHAPES, TOLERANCE, check_norm
from tests.unit.test_training import StopAt

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
kernels = pytest.importorskip("msdnet.networks.kernels", reason="needs Triton", exc_type=ImportError)
RECIPE = Recipe(
    epochs=1,
    batch_size=32,
    optimiser=Optimiser(learning_rate=0.05),
    loss=Loss(distillation=Distillation(weight=0.5, teacher="later_half")),
    average_decay=0.9,
)


def network_on(device: str) -> MSDNet:
    torch.manual_seed(0)
    return create_network(preset_config("cifar_batch_5"), classes=10).to(device).to(memory_format=torch.channels_last)


def some_batches(device: str, count: int = 6) -> list[Batch]:
    generator = torch.Generator().manual_seed(3)
    return [
        Batch(
            torch.randn(32, 3, 32, 32, generator=generator).to(device),
            torch.randint(0, 10, (32,), generator=generator).to(device),
        )
        for _ in range(count)
    ]


def losses(step: Step, batches: list[Batch]) -> list[float]:
    found = []
    for batch in batches:
        step(batch, 0.05)
        found.append(float(step.loss))
    return found


@pytest.mark.parametrize("mixed", [False, True])
def test_a_graphed_step_does_what_a_plain_one_does(mixed: bool) -> None:
    batches = some_batches("cuda")
    if mixed:
        batches = [Batch(images, torch.eye(10, device="cuda")[labels] * 0.9 + 0.01) for images, labels in batches]
    plain, graphed = Step(network_on("cuda"), RECIPE, (32, 32)), GraphedStep(network_on("cuda"), RECIPE, (32, 32))
    assert losses(plain, batches) == pytest.approx(losses(graphed, batches), rel=2e-2)
    assert int(graphed.correct.sum()) == pytest.approx(int(plain.correct.sum()), abs=20)
    assert plain.state().keys() == graphed.state().keys()


def test_warming_up_and_capturing_leave_no_trace() -> None:
    """The first step's loss is that of untouched weights; BN has counted one batch, not the warm-up's."""
    step = GraphedStep(network_on("cuda"), RECIPE, (32, 32))
    first = some_batches("cuda", 1)[0]
    reference = Step(network_on("cuda"), RECIPE, (32, 32))
    assert losses(step, [first]) == pytest.approx(losses(reference, [first]), rel=1e-3)
    counters = [t for name, t in step.state().items() if name.endswith("num_batches_tracked") and "average" not in name]
    assert {int(counter) for counter in counters} == {1}


def test_batches_of_another_size_run_without_the_graph() -> None:
    step = GraphedStep(network_on("cuda"), RECIPE, (32, 32))
    first, second = some_batches("cuda", 2)
    step(first, 0.05)
    step(Batch(second.images[:8], second.labels[:8]), 0.05)
    step(second, 0.05)
    assert step.loss.isfinite()


def test_the_gpu_agrees_with_the_cpu() -> None:
    """bfloat16 against float32: the same training within a few percent of the loss."""
    gpu = losses(GraphedStep(network_on("cuda"), RECIPE, (32, 32)), some_batches("cuda"))
    cpu = losses(Step(network_on("cpu"), RECIPE, (32, 32)), some_batches("cpu"))
    assert gpu == pytest.approx(cpu, rel=5e-2)


def test_scales_side_by_side_are_the_same_network() -> None:
    network = network_on("cuda")
    twin = copy.deepcopy(network)
    images = some_batches("cuda", 1)[0].images
    together, alone = ScalesSideBySide(network)(images), twin(images)
    assert all(map(torch.equal, together, alone))
    for logits in (together, alone):
        torch.autograd.backward(torch.stack(logits).square().mean())
    for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5)


def test_a_graphed_step_fills_maps_up_and_trains_the_same_network() -> None:
    class PlainGraphedStep(GraphedStep):
        def _quickest(self, network: nn.Module) -> nn.Module:
            assert isinstance(network, MSDNet)
            return ScalesSideBySide(network)

    steps = [kind(network_on("cuda"), RECIPE, (32, 32)) for kind in (GraphedStep, PlainGraphedStep)]
    filled_up, plain = [
        all(layer.weight.shape[0] % 8 == 0 for layer in step._runner.modules() if isinstance(layer, nn.Conv2d))
        for step in steps
    ]
    assert filled_up
    assert not plain
    before = {name: tensor.clone() for name, tensor in steps[0].state().items()}
    batches = some_batches("cuda")
    assert losses(steps[0], batches) == pytest.approx(losses(steps[1], batches), rel=2e-2)
    after, expected = (step.state() for step in steps)
    assert after.keys() == expected.keys()
    for part in ("network/", "average/", "momentum/"):
        names = [name for name in after if name.startswith(part) and after[name].is_floating_point()]
        off, moved = (
            sum(float((after[name] - other[name]).square().sum()) for name in names) for other in (expected, before)
        )
        assert off < 0.1 * moved, part  # of squares


def test_many_steps_side_by_side_are_many_steps_one_after_the_other() -> None:
    """Memory that one stream gave up and another still read would show as a loss that wanders off."""
    batches = some_batches("cuda", 40)
    graphed, plain = GraphedStep(network_on("cuda"), RECIPE, (32, 32)), Step(network_on("cuda"), RECIPE, (32, 32))
    assert losses(graphed, batches)[-10:] == pytest.approx(losses(plain, batches)[-10:], rel=0.1)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [*SHAPES, (256, 48, 32, 32), (64, 120, 16, 16)])
def test_our_norm_is_torchs(shape: tuple[int, ...], dtype: torch.dtype, relu: bool) -> None:
    check_norm(shape, dtype, relu, "cuda")


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_our_norm_runs_where_its_maps_are() -> None:
    """As in a training loop of somebody's own, which need not set the current device."""
    assert torch.cuda.current_device() == 0
    check_norm(SHAPES[0], torch.float32, True, "cuda:1")
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("name", ["cifar_batch_5", *SMALL_SYSTEMS])
def test_networks_train_alike_with_our_norm(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SMALL_SYSTEMS[name] if name in SMALL_SYSTEMS else preset_config(name)
    recipe = dataclasses.replace(RECIPE, loss=Loss(), average_decay=0.0)
    asked, norm, found = [], kernels.norm, {}

    def noted(maps: Tensor, layer: nn.BatchNorm2d, *, relu: bool) -> Tensor:  # and nothing kept that autograd needs
        asked.append(relu)
        made: Tensor = norm(maps, layer, relu=relu)
        return made

    monkeypatch.setattr(kernels, "norm", noted)
    for whose in ("torch", "own"):
        monkeypatch.setenv("MSDNET_KERNELS", whose)
        torch.manual_seed(0)
        network = create_network(config, classes=10).to("cuda").to(memory_format=torch.channels_last)
        found[whose] = losses(GraphedStep(network, recipe, (32, 32)), some_batches("cuda"))
        assert bool(asked) is (whose == "own")
    assert found["own"] == pytest.approx(found["torch"], rel=0.03)
    assert found["own"][-1] != found["own"][0]


def test_our_norm_captured_again_is_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDNET_KERNELS", "own")
    recipe = dataclasses.replace(RECIPE, loss=Loss(), average_decay=0.0)
    one, other = (losses(GraphedStep(network_on("cuda"), recipe, (32, 32)), some_batches("cuda")) for _ in range(2))
    assert one == other


def test_training_on_a_folder_with_workers(tmp_path: Path) -> None:
    """A thread pins the next batch while the graph is captured."""
    for k, name in enumerate(("cat", "dog")):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(60):
            Image.new("RGB", (40, 40), (255 * k, 4 * i, 0)).save(tmp_path / "images" / name / f"{i}.png")
    data = DataConfig(dataset="folder", root=str(tmp_path / "images"), crop_size=32, workers=2)
    recipe = Recipe(epochs=3, batch_size=16, optimiser=Optimiser(learning_rate=0.02))
    summary = train(recipe, data=data, network="cifar_batch_4", out=tmp_path / "run", display=Display())
    assert min(summary.held_out_accuracy) > 0.8


def test_a_run_is_stopped_and_resumed(tmp_path: Path) -> None:
    recipe = Recipe(epochs=4, batch_size=16, optimiser=Optimiser(learning_rate=0.02), average_decay=0.5)
    with pytest.raises(Interrupted):
        train(recipe, data=OnGpu(), network="cifar_batch_4", out=tmp_path, display=StopAt(8))
    summary = resume(tmp_path, data=OnGpu(), display=Display())
    assert min(summary.held_out_accuracy) > 0.8
    assert summary.peak_memory_bytes is not None
    assert summary.peak_memory_bytes > 0


def test_a_teacher_beside_its_student_says_the_same_as_alone() -> None:
    recipe = dataclasses.replace(RECIPE, loss=Loss(distillation=Distillation(weight=1.0, teacher="network")))
    torch.manual_seed(1)
    teacher = create_network("wide_resnet_16_8", classes=10).to("cuda").to(memory_format=torch.channels_last)
    batches = some_batches("cuda")
    graphed = losses(GraphedStep(network_on("cuda"), recipe, (32, 32), teacher=teacher), batches)
    plain = losses(Step(network_on("cuda"), recipe, (32, 32), teacher=teacher), batches)
    assert graphed == pytest.approx(plain, rel=2e-2)


class OnGpu(ColouredSquares):
    def __init__(self) -> None:
        super().__init__(side=32)
        self._images, self._labels = self._images.cuda(), self._labels.cuda()


def test_trainings_side_by_side_start_and_evaluate_whenever_they_do(tmp_path: Path) -> None:
    """Each captures its graph while others evaluate and save, which they do after every epoch."""
    recipe = Recipe(epochs=6, batch_size=16, optimiser=Optimiser(learning_rate=0.02))
    networks = [*SMALL_SYSTEMS.values(), preset_config("cifar_batch_4"), preset_config("cifar_batch_5")]

    def job(place: int, stop: StopSignal) -> Summary:
        return train(
            recipe,
            data=OnGpu(),
            network=networks[place],
            out=tmp_path / str(place),
            display=Display(),
            stop=stop,
            checkpoint_seconds=0.1,
        )

    jobs = [partial(job, place) for place in range(len(networks))]
    done = list(together(jobs, at_once=4, device=torch.device("cuda")))
    assert [one.error for one in done] == [None] * len(networks)
    assert all(one.result is not None and one.result.epochs == 6 for one in done)


@pytest.mark.parametrize("system", ["stochastic", "fractalnet"])
def test_a_network_draws_at_random_while_others_capture_their_graphs(system: str) -> None:
    """A capture takes hold of the GPU's random state, but not of the network's own."""
    captures, under_way, over = 6, threading.Event(), threading.Event()
    recipe = dataclasses.replace(RECIPE, loss=Loss(), average_decay=0.0)

    def draw(_stop: StopSignal) -> int:
        network = create_network(SMALL_SYSTEMS[system], classes=10).to("cuda")
        step, batches, steps = GraphedStep(network, recipe, (32, 32)), some_batches("cuda"), 0
        with ALONE:  # its own capture, as every training does it
            losses(step, batches[:1])
        under_way.set()
        while not over.is_set():
            losses(step, batches)
            steps += len(batches)
        return steps

    def capture(_stop: StopSignal) -> int:
        try:
            assert under_way.wait(timeout=120)
            for _ in range(captures):
                with ALONE:
                    losses(GraphedStep(network_on("cuda"), recipe, (32, 32)), some_batches("cuda", 1))
        finally:
            over.set()
        return captures

    done = list(together([draw, capture], at_once=2, device=torch.device("cuda")))
    assert [one.error for one in done] == [None, None]
    assert all(one.result is not None and one.result >= captures for one in done)


@pytest.mark.parametrize("system", ["stochastic", "fractalnet"])
def test_networks_that_draw_at_random_go_on_as_if_never_stopped(system: str, tmp_path: Path) -> None:
    """What they draw comes from a state that is part of every checkpoint, and warming up takes nothing from it."""
    recipe = Recipe(epochs=3, batch_size=16, optimiser=Optimiser(learning_rate=0.02))
    options: dict[str, Any] = {"data": OnGpu(), "network": SMALL_SYSTEMS[system]}
    train(recipe, out=tmp_path / "whole", display=Display(), **options)
    with pytest.raises(Interrupted):
        train(recipe, out=tmp_path / "parts", display=StopAt(8), **options)
    resume(tmp_path / "parts", data=OnGpu(), display=Display())
    whole, parts = (load_tensors(tmp_path / way / "model.safetensors")[0] for way in ("whole", "parts"))
    for name, tensor in whole.items():
        torch.testing.assert_close(parts[name], tensor, rtol=1e-3, atol=1e-4)
