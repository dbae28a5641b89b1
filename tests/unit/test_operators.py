"""Whatever a network may be made of becomes ONNX that computes the same, or is refused by its name."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnxruntime
import pytest
import safetensors.numpy
import torch
from torch import nn

from msdnet.export import StoredWeights, whole_graph
from msdnet.export.operators import FUNCTIONS, MADE_OF, METHODS
from msdnet.networks import StagedNetwork
from msdnet.networks.chain import Chain
from msdnet.systems import WideResNetConfig

OfTwo: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class _Sums(Chain):
    """Operations that a network may consist of beside those of the ones that are here."""

    def __init__(self) -> None:
        heads = [
            nn.Sequential(nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(3, 4)),
            nn.Sequential(nn.AdaptiveAvgPool2d((2, None)), _Flat(), nn.Linear(48, 4)),
        ]
        super().__init__(WideResNetConfig(layers=10, widening=1, classes=4), [_Doubled(), _Doubled()], heads)


class _Flat(nn.Module):
    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        pooled = nn.functional.adaptive_avg_pool2d(maps, output_size=[2, 8])  # type: ignore[arg-type]
        return torch.flatten(pooled, start_dim=1)


class _Twice(nn.Module):
    """What it makes of a map, and the map, which is no more what it was if that works in place."""

    def __init__(self, step: nn.Module) -> None:
        super().__init__()
        self.step = step

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        changed = self.step(maps)
        return changed + maps  # type: ignore[no-any-return]


class _Doubled(nn.Module):
    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return 2 * (maps + maps) * 0.5 + 1


class _Step(nn.Module):
    """Something that is done with two maps of numbers from 0.5 to 1.5, whose logarithms and quotients exist."""

    def __init__(self, step: OfTwo) -> None:
        super().__init__()
        self.one, self.other, self.step = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 1), step

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        one, other = (torch.sigmoid(convolution(maps)) + 0.5 for convolution in (self.one, self.other))
        return self.step(one, other)


_OF_TWO = ("add", "sub", "mul", "div", "truediv", "maximum", "minimum", "clamp_min", "clamp_max")
_WITH_OPTIONS: dict[str, OfTwo] = {
    "cat": lambda one, other: torch.cat([one, other], axis=1),  # type: ignore[call-arg]
    "flatten": lambda one, _: torch.flatten(one, start_dim=1),
    "mean": lambda one, _: one - torch.mean(one, 1, keepdims=True),  # type: ignore[call-overload]
    "adaptive_avg_pool2d": lambda one, _: nn.functional.adaptive_avg_pool2d(one, (2, 4)),
    "clamp": lambda one, _: torch.clamp(one, max=1.1),
    "clip": lambda one, _: torch.clip(one, 0.7, 1.3),
    "hardtanh": lambda one, other: nn.functional.hardtanh(one - other, -0.1, max_val=0.2, inplace=True),
    "gelu": lambda one, other: nn.functional.gelu(8 * (one - other), approximate="tanh"),
}
_METHODS_WITH_OPTIONS: dict[str, OfTwo] = {
    "flatten": lambda one, _: one.flatten(1),
    "mean": lambda one, _: one.mean((-2, -1)),
    "clamp": lambda one, _: one.clamp(min=0.9),
    "clip": lambda one, _: one.clip(0.7, 1.3),
}


def steps() -> dict[str, OfTwo]:
    """A call of every function and method that can be exported; those without options on numbers of both signs."""
    found: dict[str, OfTwo] = {}
    for function in (*FUNCTIONS, *MADE_OF):
        name, called = function.__name__, f"{function.__module__}.{function.__name__}"
        if name in _WITH_OPTIONS:
            found[called] = _WITH_OPTIONS[name]
        elif name in _OF_TWO:
            found[called] = function
        elif name == "log":
            found[called] = lambda one, _, function=function: function(one)  # type: ignore[misc]
        else:
            found[called] = lambda one, other, function=function: function(8 * (one - other))  # type: ignore[misc]
    for name in METHODS:
        if name in _METHODS_WITH_OPTIONS:
            found[f".{name}"] = _METHODS_WITH_OPTIONS[name]
        elif name in _OF_TWO:
            found[f".{name}"] = lambda one, other, name=name: getattr(one, name)(other)  # type: ignore[misc]
        else:
            found[f".{name}"] = lambda one, _, name=name: getattr(one, name)()  # type: ignore[misc]
    return found


@pytest.mark.parametrize("step", steps().values(), ids=steps().keys())
def test_every_function_and_method_is_exported(step: OfTwo, tmp_path: Path) -> None:
    head = nn.Sequential(_Step(step), nn.Flatten())
    check_graph(Chain(WideResNetConfig(layers=10, widening=1, classes=4), [nn.Identity()], [head]), tmp_path)


ACTIVATIONS = [
    nn.SiLU(inplace=True),
    nn.GELU(),
    nn.Hardswish(),
    nn.Hardsigmoid(),
    nn.Hardtanh(-0.5, 0.4),
    nn.ReLU6(),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Sigmoid(),
    nn.Tanh(),
]


class _Squeezed(nn.Module):
    """Channels are weighted by what their means say (squeeze and excitation)."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Conv2d(3, 2, 1), nn.Conv2d(2, 3, 1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        means = maps.mean((2, 3), keepdim=True)
        weights: torch.Tensor = self.wide(nn.functional.relu(self.narrow(means), True)).sigmoid()
        return maps * weights


class _Own(nn.Module):
    """A block of somebody's own that works in place on what it has made itself."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.inplace = nn.Conv2d(3, 3, 1), True

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(self.convolution(maps), self.inplace)


def test_a_block_of_ones_own_may_work_in_place_on_what_is_its_own(tmp_path: Path) -> None:
    head = nn.Sequential(_Twice(_Own()), nn.Flatten())
    check_graph(Chain(WideResNetConfig(layers=10, widening=1, classes=4), [nn.Identity()], [head]), tmp_path)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_modern_blocks_are_exported(activation: nn.Module, tmp_path: Path) -> None:
    blocks = [nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), activation, nn.Dropout2d(inplace=True)), _Squeezed()]
    heads = [nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4)) for _ in blocks]
    check_graph(Chain(WideResNetConfig(layers=10, widening=1, classes=4), blocks, heads), tmp_path)


def test_sums_and_numbers_are_exported(tmp_path: Path) -> None:
    check_graph(_Sums(), tmp_path)


@pytest.mark.parametrize("missing", [("weight", "bias"), ("bias",)], ids=str)
def test_a_norm_without_weights_is_exported(missing: tuple[str, ...], tmp_path: Path) -> None:
    norm = nn.BatchNorm2d(3, affine=missing == ("bias",))
    for name in missing:
        norm.register_parameter(name, None)
    norm.running_mean, norm.running_var = torch.tensor([0.5, 0.0, -2.0]), torch.tensor([0.1, 1.0, 4.0])
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))
    check_graph(Chain(WideResNetConfig(layers=10, widening=1, classes=4), [norm], [head]), tmp_path)


def test_a_norm_with_statistics_that_moves_them_no_more_is_exported(tmp_path: Path) -> None:
    norm = nn.BatchNorm2d(3)
    norm.running_mean, norm.track_running_stats = torch.tensor([0.5, 0.0, -2.0]), False
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))
    check_graph(Chain(WideResNetConfig(layers=10, widening=1, classes=4), [norm], [head]), tmp_path)


def check_graph(network: StagedNetwork, tmp_path: Path) -> None:
    network = network.eval()
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    content = safetensors.numpy.save(weights)
    (tmp_path / "weights.safetensors").write_bytes(content)
    graph = whole_graph(network, 8, StoredWeights("weights.safetensors", content))
    (tmp_path / "whole.onnx").write_bytes(graph.SerializeToString())
    session = onnxruntime.InferenceSession(tmp_path / "whole.onnx", providers=["CPUExecutionProvider"])
    images = 6 * torch.randn(2, 3, 8, 8)
    with torch.inference_mode():
        expected = network(images)
    results = session.run(None, {session.get_inputs()[0].name: images.numpy()})
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, other.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (nn.AdaptiveAvgPool2d(3), r"adaptive_avg_pool2d: only windows side by side .* not \(3, 3\) of \(8, 8\) pixels"),
        (nn.Mish(), "mish: no ONNX counterpart is known$"),
        (nn.ELU(), "elu: no ONNX counterpart is known$"),
        (nn.Conv2d(3, 3, 3, padding="same"), r"Conv2d\(.*\): only a number of zeros as padding"),
        (nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect"), r"Conv2d\(.*\): only a number of zeros as padding"),
        (nn.AvgPool2d(2, divisor_override=3), r"AvgPool2d\(.*\): no ONNX counterpart is known for divisor_override"),
        (_Step(lambda one, _: one.mean()), "mean: say over which dimensions"),
        (_Step(lambda one, _: one.mean(())), "mean: say over which dimensions"),
        (_Step(lambda one, _: torch.mean(input=one, dim=1)), "mean: give the map first, not by its name"),
        (_Step(lambda one, _: one.mean(1, dtype=torch.float32)), "mean: no ONNX counterpart is known for dtype"),
        (_Step(lambda one, other: torch.add(one, other, alpha=2)), "add: no ONNX counterpart is known for alpha"),
        (_Step(lambda one, _: one + nn.functional.relu(one, True)), "relu: it works in place, on a map that is read"),
        (_Twice(nn.SiLU(inplace=True)), "mul.*: it works in place, on a map that is read once more"),
        (_Twice(nn.ReLU(inplace=True)), r".*: it works in place, on a map that is read once more"),
        (nn.BatchNorm2d(3, track_running_stats=False), r"BatchNorm2d\(.*\): without running statistics"),
        (nn.Flatten(0), r"Flatten\(.*\): all dimensions after the first can be flattened, not those from 0 to -1"),
    ],
    ids=str,
)
def test_what_has_no_counterpart_is_refused_by_its_name(step: nn.Module, why: str) -> None:
    head = nn.Sequential(step, nn.ReLU())
    network = Chain(WideResNetConfig(layers=10, widening=1, classes=4), [nn.Identity()], [head])
    with pytest.raises(ValueError, match=f"^the network cannot be exported: {why}"):
        whole_graph(network, 8, StoredWeights("weights.safetensors", safetensors.numpy.save({})))
