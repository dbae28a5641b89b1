"""The network against the published counts, against itself stage by stage, and against bad input."""

import re
import time
from typing import Any

import pytest
import torch
from torch import nn

import msdnet
from msdnet import NetworkConfig, create_network, even, growing
from msdnet.networks import MSDNet
from tests.helpers import distance, run_stages, settle

# Parameters and cumulative multiply-adds of whole layers, 100 classes at 32 px or 1,000 at 224 px.
EVEN_BEGINNING = (14_967_296, 25_259_008, 37_467_648, 51_667_968, 61_744_640, 73_590_784, 87_206_400, 99_483_648)
PUBLISHED = {
    "cifar_anytime_7": (
        3_067_960,
        (14_967_296, 25_259_008, 36_780_544, 45_972_480, 56_933_888, 66_529_280, 75_487_744),
    ),
    "cifar_anytime_10": (4_955_644, (*EVEN_BEGINNING, 109_548_032, 121_086_976)),
    "cifar_anytime": (5_597_760, (*EVEN_BEGINNING, 109_548_032, 121_086_976, 134_100_480)),
    "cifar_batch_4": (1_419_516, (6_792_704, 14_209_024, 25_887_232, 37_735_424)),
    "cifar_batch_5": (2_078_924, (6_792_704, 14_209_024, 27_278_848, 41_373_696, 58_087_936)),
    "cifar_batch_8": (
        5_310_564,
        (6_792_704, 14_209_024, 27_041_280, 48_054_272, 81_006_080, 111_947_776, 152_118_784, 191_821_824),
    ),
    "imagenet_4": (23_958_408, (337_214_464, 681_654_272, 1_003_659_008, 1_249_626_240, 1_355_606_016)),
}
LAZY_ANYTIME_7 = (13_256_192, 23_252_992, 35_760_640, 44_805_120, 55_619_072, 66_529_280, 75_487_744)


def side_of(preset: str) -> int:
    return 224 if preset.startswith("imagenet") else 32


def parameter_count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("preset", PUBLISHED)
def test_parameters_and_costs_are_the_published_ones(preset: str) -> None:
    network = create_network(preset)
    parameters, costs = PUBLISHED[preset]
    assert parameter_count(network) == parameters
    assert network.costs(side_of(preset), lazy=False) == costs


def test_lazy_costs_are_the_published_ones() -> None:
    assert create_network("cifar_anytime_7").costs(image_size=32) == LAZY_ANYTIME_7


def test_cifar_small_is_under_a_million_parameters() -> None:
    network = create_network("cifar_small")
    assert network.config.classes == 10
    assert parameter_count(network) < 1_000_000


@pytest.mark.parametrize("preset", msdnet.PRESETS)
def test_staged_equals_whole_and_keeping_rows_changes_nothing(preset: str) -> None:
    side, rows = (96, 4) if preset.startswith("imagenet") else (32, 8)
    network = settle(create_network(preset), side, rows=rows)
    images = torch.randn(rows, 3, side, side)
    with torch.inference_mode():
        whole = network(images)
        assert max(map(distance, run_stages(network, images), whole)) <= 1e-5
        kept, state = torch.arange(rows), network.begin(images)
        for reference in whole:
            rows_left = torch.randperm(len(kept))[: max(len(kept) - 1, 1)]
            kept, state = kept[rows_left], network.keep(state, rows_left)
            logits, state = network.advance(state)
            assert float((logits - reference[kept]).abs().max()) <= 1e-5 * float(reference.abs().max())


def test_a_mask_keeps_rows_too(small_network: MSDNet) -> None:
    images = torch.randn(4, 3, 32, 32)
    mask = torch.tensor([True, False, False, True])
    with torch.inference_mode():
        _, state = small_network.advance(small_network.begin(images))
        logits, _ = small_network.advance(small_network.keep(state, mask))
        assert distance(logits, small_network(images)[1][mask]) <= 1e-5


def test_all_rows_may_leave(small_network: MSDNet) -> None:
    _, state = small_network.advance(small_network.begin(torch.randn(2, 3, 32, 32)))
    logits, _ = small_network.advance(small_network.keep(state, torch.tensor([], dtype=torch.long)))
    assert logits.shape == (0, 7)


def test_a_state_holds_only_what_later_stages_read(small_network: MSDNet) -> None:
    state = small_network.begin(torch.randn(2, 3, 32, 32))
    for stage in small_network.grid.lazy_stages:
        _, state = small_network.advance(state)
        assert set(state.maps) == set(stage.hands_on)
    assert not state.maps


def test_a_state_can_be_advanced_twice(small_network: MSDNet) -> None:
    """Advancing leaves the old state as it was: an in-place operation on a shared map would show here."""
    _, state = small_network.advance(small_network.begin(torch.randn(2, 3, 32, 32)))
    before = {name: tensor.clone() for name, tensor in state.maps.items()}
    first, _ = small_network.advance(state)
    again, _ = small_network.advance(state)
    assert torch.equal(first, again)
    assert all(torch.equal(before[name], tensor) for name, tensor in state.maps.items())


def test_every_parameter_gets_a_gradient() -> None:
    for reduction in ("blocks", "tail", "none"):
        network = create_network("cifar_batch_4", reduction=reduction)
        sum(logits.square().sum() for logits in network(torch.randn(2, 3, 32, 32))).backward()
        assert [name for name, parameter in network.named_parameters() if parameter.grad is None] == []


def test_initialisation_is_he_fan_out_in_every_convolution() -> None:
    convolutions = [module for module in create_network("cifar_anytime").modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) > 100
    for convolution in convolutions:
        kernel = convolution.kernel_size[0] * convolution.kernel_size[1]
        expected = (2 / (kernel * convolution.out_channels)) ** 0.5
        tolerance = 5 / (2 * convolution.weight.numel()) ** 0.5  # five standard errors of a standard deviation
        assert float(convolution.weight.detach().std()) == pytest.approx(expected, rel=tolerance)
        assert convolution.bias is None


def test_norms_and_linear_biases_start_neutral() -> None:
    for module in create_network("cifar_batch_4").modules():
        if isinstance(module, nn.BatchNorm2d):
            assert torch.equal(module.weight, torch.ones_like(module.weight))
            assert torch.equal(module.bias, torch.zeros_like(module.bias))
        elif isinstance(module, nn.Linear):
            assert torch.equal(module.bias, torch.zeros_like(module.bias))
            assert float(module.weight.detach().std()) > 0


def test_building_the_largest_preset_is_quick_and_silent(capfd: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    create_network("imagenet_7_paper")
    assert time.perf_counter() - start < 2
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("stem", "scales", "height", "width", "channels"),
    [
        ("cifar", 3, 24, 24, 3),
        ("cifar", 3, 28, 28, 1),
        ("cifar", 3, 33, 57, 3),
        ("cifar", 3, 512, 24, 3),
        ("cifar", 3, 9, 9, 3),
        ("imagenet", 4, 96, 96, 3),
        ("imagenet", 4, 130, 97, 1),
        ("imagenet", 4, 512, 512, 3),
        ("imagenet", 4, 65, 65, 3),
    ],
)
def test_any_input_size(stem: str, scales: int, height: int, width: int, channels: int) -> None:
    factors = (1, 2, 4, 4)[:scales]
    sizes: dict[str, Any] = {"scales": scales, "channel_factors": factors, "bottleneck_factors": factors}
    network = create_network("cifar_batch_4", stem=stem, input_channels=channels, **sizes).eval()
    with torch.inference_mode():
        assert [tuple(x.shape) for x in network(torch.randn(2, channels, height, width))] == [(2, 100)] * 4
    assert network.costs((height, width))[0] > 0


def test_at_the_papers_sizes_pooling_is_two_by_two() -> None:
    seen: list[tuple[int, ...]] = []
    for preset in ("cifar_batch_4", "imagenet_4"):
        network = create_network(preset).eval()
        pool = next(m for m in network.heads[0].modules() if isinstance(m, nn.AdaptiveAvgPool2d))
        pool.register_forward_hook(lambda _module, inputs, _output: seen.append(tuple(inputs[0].shape[2:])))
        with torch.inference_mode():
            network.advance(network.begin(torch.randn(1, 3, side_of(preset), side_of(preset))))
    assert seen == [(2, 2), (2, 2)]


SWITCHES = ("dense", "multi_scale", "intermediate_classifiers")


@pytest.mark.parametrize("off", [*[(name,) for name in SWITCHES], SWITCHES])
def test_ablations_run_and_every_parameter_learns(off: tuple[str, ...]) -> None:
    network = create_network("cifar_batch_4", **dict.fromkeys(off, False))
    settled = settle(network)
    images = torch.randn(4, 3, 32, 32)
    with torch.inference_mode():
        whole = settled(images)
        assert max(map(distance, run_stages(settled, images), whole)) <= 1e-5
    assert len(whole) == (1 if "intermediate_classifiers" in off else 4)
    costs = settled.costs(32)
    assert list(costs) == sorted(set(costs))
    sum(logits.square().sum() for logits in settled.train()(images)).backward()
    assert all(parameter.grad is not None for parameter in settled.parameters())


def test_without_dense_connections_early_maps_do_not_reach_later_layers_directly(small_network: MSDNet) -> None:
    """With them, blanking every convolution past layer 1 still leaves the seed's maps in the last cell."""

    def last_map_depends_on_image(dense: bool) -> bool:
        network = create_network(small_network.config, dense=dense, reduction="none").eval()
        for name, parameter in network.cells.named_parameters():
            if not name.startswith("layer0"):
                nn.init.zeros_(parameter)
        with torch.inference_mode():
            one, other = (network(torch.randn(1, 3, 32, 32))[-1] for _ in range(2))
        return not torch.equal(one, other)

    assert last_map_depends_on_image(dense=True)
    assert not last_map_depends_on_image(dense=False)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.zeros(3, 32, 32), ValueError, "images must have shape (N, channels, height, width), got (3, 32, 32)"),
        (torch.zeros(1, 1, 32, 32), ValueError, "images must have 3 channels (input_channels), got 1"),
        (
            torch.zeros(1, 3, 32, 32, dtype=torch.uint8),
            TypeError,
            "floating-point numbers, normalised; got torch.uint8",
        ),
        (
            torch.zeros(1, 3, 32, 32, dtype=torch.float64),
            TypeError,
            "must be torch.float32 like the weights, got torch.float64",
        ),
        (
            torch.zeros(1, 3, 8, 32),
            ValueError,
            "at least 9 pixels high and wide for 3 scales with the cifar stem, got 8 x 32",
        ),
        ([[1.0]], TypeError, "images must be a torch tensor, got list"),
    ],
)
def test_refuses_images(small_network: MSDNet, images: Any, error: type[Exception], message: str) -> None:
    for run in (small_network, small_network.begin):
        with pytest.raises(error, match=re.escape(message)):
            run(images)


def test_costs_refuse_a_size_that_is_too_small(small_network: MSDNet) -> None:
    with pytest.raises(ValueError, match="at least 9 pixels high and wide"):
        small_network.costs(8)


def test_autocast_may_mix_precisions(small_network: MSDNet) -> None:
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert small_network(torch.zeros(1, 3, 32, 32, dtype=torch.bfloat16))[0].shape == (1, 7)


def test_there_is_no_stage_after_the_last(small_network: MSDNet) -> None:
    state = small_network.begin(torch.randn(1, 3, 32, 32))
    for _ in range(3):
        _, state = small_network.advance(state)
    with pytest.raises(ValueError, match="all 3 exits have answered"):
        small_network.advance(state)


def test_create_network_takes_configs_and_overrides() -> None:
    network = create_network(NetworkConfig(exits=growing(2)), exits=even(2, 1, 2), classes=3)
    assert network.config == NetworkConfig(exits=(2, 3), classes=3)


@pytest.mark.parametrize(
    ("arguments", "overrides", "error", "message"),
    [
        ("cifar_anytme", {}, ValueError, "did you mean 'cifar_anytime'?"),
        ("cifar_anytime", {"clases": 10}, ValueError, "did you mean 'classes'?"),
        ("cifar_anytime", {"classes": 0}, ValueError, "classes must be at least 1, got 0"),
        (7, {}, TypeError, "network must be a preset's name or a NetworkConfig, got int"),
    ],
)
def test_create_network_refuses(
    arguments: Any, overrides: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        create_network(arguments, **overrides)


def test_forward_is_what_the_paper_writes_down(small_network: MSDNet) -> None:
    """The whole network once more, by hand: 5 layers in blocks of 2, so layers 3 and 5 each drop a scale."""
    images, cells = torch.randn(2, 3, 32, 32), small_network.cells
    with torch.inference_mode():
        x = {1: cells["layer0_scale1"](images)}
        for s in (2, 3):
            x[s] = cells[f"layer0_scale{s}"](x[s - 1])
        outputs: list[torch.Tensor] = []
        for layer, scales in ((1, (1, 2, 3)), (2, (1, 2, 3)), (3, (2, 3)), (4, (2, 3)), (5, (3,))):
            new = {}
            for s in scales:
                cell: Any = cells[f"layer{layer}_scale{s}"]
                strided = [] if s == 1 or s - 1 not in x else [cell.strided(x[s - 1])]
                new[s] = torch.cat([x[s], *strided, cell.regular(x[s])], dim=1)
                if layer in (3, 5):
                    new[s] = cell.transition(new[s])
            x = new
            if layer in small_network.config.exits:
                outputs.append(small_network.heads[len(outputs)](x[3]))
        assert all(map(torch.equal, outputs, small_network(images)))


def test_a_network_has_no_cells_but_those_of_its_grid(small_network: MSDNet) -> None:
    assert len(small_network.cells) == 3 + 3 + 3 + 2 + 2 + 1
