"""Our BN is torch's, with and without ReLU. Without a GPU, kernels are interpreted, in a process of their own."""

import copy
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from msdnet.networks.layers import ConvNormReLU, Layers, own_norm

SHAPES = [
    (4, 12, 8, 8),  # channels that no large power of two divides
    (3, 40, 5, 7),  # more than a program takes
    (2, 100, 3, 3),
    (2, 3, 2, 2),
    (5, 1, 3, 3),
    (9, 16, 9, 16),  # several programs for the rows, the last with fewer
]
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def results_of(norm: nn.BatchNorm2d, maps: Tensor, made: Tensor, above: Tensor) -> dict[str, Tensor]:
    made.backward(above.to(made.dtype))  # type: ignore[no-untyped-call]
    assert maps.grad is not None
    assert norm.weight.grad is not None
    assert norm.bias.grad is not None
    gradients = {"of maps": maps.grad, "of weight": norm.weight.grad, "of bias": norm.bias.grad}
    return {"made": made.detach(), **gradients, **dict(norm.named_buffers())}


def check_norm(shape: tuple[int, ...], dtype: torch.dtype, relu: bool, device: str) -> None:
    from msdnet.networks import kernels

    torch.manual_seed(0)
    theirs = nn.BatchNorm2d(shape[1])
    nn.init.normal_(theirs.weight)
    nn.init.normal_(theirs.bias)
    ours = copy.deepcopy(theirs).to(device)
    maps = (3 * torch.randn(shape) + 20).to(dtype).to(memory_format=torch.channels_last)
    above = torch.randn(shape).to(dtype)
    exact = maps.double().requires_grad_()
    theirs = theirs.double()
    expected = results_of(theirs, exact, theirs(exact).relu() if relu else theirs(exact), above)
    mine = maps.to(device).requires_grad_()
    found = results_of(ours, mine, kernels.norm(mine, ours, relu=relu), above.to(device))
    assert found["made"].dtype == found["of maps"].dtype == dtype
    assert found["made"].is_contiguous(memory_format=torch.channels_last)
    for name, value in expected.items():
        if name == "num_batches_tracked":
            assert found[name] == value == 1
            continue
        off = (found[name].cpu().double() - value).norm() / value.norm().clamp(min=1e-3)
        assert off < TOLERANCE[dtype], f"{name} of {shape}, {dtype}, relu {relu}: off by {off:.1e}"


def check_some_norms() -> None:
    """Every shape, every type, with and without ReLU, but not all together: a GPU has time for that."""
    for place, shape in enumerate(SHAPES):
        check_norm(shape, [*TOLERANCE][place % len(TOLERANCE)], relu=place < len(SHAPES) / 2, device="cpu")


def check_device() -> None:
    """Whatever launches kernels, forward and backward, does so with the device of the maps as the current one."""
    entered: list[tuple[int, ...]] = []

    class Noted(torch.cuda.device_of):
        def __init__(self, maps: Tensor) -> None:
            super().__init__(maps)  # type: ignore[no-untyped-call]
            entered.append(tuple(maps.shape))

    with patch.object(torch.cuda, "device_of", Noted):
        check_norm(SHAPES[0], torch.float32, relu=True, device="cpu")
    assert entered == [SHAPES[0]] * 2, entered


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_our_norm_is_torchs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from tests.unit import test_kernels as t; t.check_some_norms(); t.check_device()"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_bn_and_its_relu_are_one_where_a_gpu_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the kernels, which notes what it is asked for."""
    asked = []

    def stand_in(maps: Tensor, layer: nn.BatchNorm2d, *, relu: bool) -> Tensor:
        asked.append((layer, relu))
        return layer(maps).relu() if relu else layer(maps)  # type: ignore[no-any-return]

    def own_norm_for(layer: nn.Module, _maps: Tensor) -> object:
        return stand_in if isinstance(layer, nn.BatchNorm2d) else None

    layers = Layers(ConvNormReLU(3, 4, kernel=3), nn.BatchNorm2d(4), nn.Flatten(), nn.ReLU())
    images = torch.randn(2, 3, 8, 8)
    expected = nn.Sequential(*layers[0].children(), *layers[1:])(images)
    monkeypatch.setattr("msdnet.networks.layers._own_norm_for", own_norm_for)
    assert torch.equal(layers(images), expected)
    assert asked == [(layers[0][1], True), (layers[1], False)]  # type: ignore[index]


def test_whose_kernels_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDNET_KERNELS", "torch")
    assert own_norm() is None
    monkeypatch.setenv("MSDNET_KERNELS", "onw")
    with pytest.raises(ValueError, match="MSDNET_KERNELS"):
        own_norm()


def test_without_triton_torchs_kernels_train_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msdnet.networks.kernels", None)
    with pytest.warns(UserWarning, match="needs Triton"):
        assert own_norm() is None
    monkeypatch.setenv("MSDNET_KERNELS", "own")
    with pytest.raises(ValueError, match="needs Triton"):
        own_norm()
