"""The network against the published counts, against itself stage by stage, and against bad input."""

import dataclasses
import re
import time
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import msdnet
from msdnet import MSDNetConfig, create_network, even, growing, preset_config
from msdnet.networks import MSDNet
from msdnet.plan import Cell
from tests.helpers import close, run_stages, settle
from tests.reference import Counts, reference_counts

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
SWITCHES = ("dense", "multi_scale", "intermediate_classifiers")
LAZY_ANYTIME_7 = (13_256_192, 23_252_992, 35_760_640, 44_805_120, 55_619_072, 66_529_280, 75_487_744)


def side_of(preset: str) -> int:
    return 224 if preset.startswith("imagenet") else 32


def parameter_count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def counted(config: MSDNetConfig, side: int) -> Counts:
    """Parameters and costs by the independent derivation."""
    values = dataclasses.asdict(config) | {"layers": config.depth}
    assert values.pop("averaging") is None
    for switch in SWITCHES:
        assert values.pop(switch)
    values["head_width"] = None if config.head_width == "input" else config.head_width
    return reference_counts(**values, height=side, width=side)


@pytest.mark.parametrize("preset", msdnet.PRESETS)
def test_every_preset_agrees_with_the_independent_derivation(preset: str) -> None:
    with torch.device("meta"):
        network = create_network(preset)
    expected = counted(preset_config(preset), side_of(preset))
    assert parameter_count(network) == expected.parameters
    assert network.costs(side_of(preset)) == expected.lazy
    assert network.costs(side_of(preset), lazy=False) == expected.whole


def test_where_there_are_no_values_none_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take half of the time."""
    drawn: list[torch.Tensor] = []
    monkeypatch.setattr("torch.nn.init.kaiming_normal_", lambda weight, **_: drawn.append(weight))
    with torch.device("meta"):
        network = create_network("cifar_small")
    assert drawn == []
    create_network("cifar_small")
    assert len(drawn) == sum(isinstance(part, torch.nn.Conv2d) for part in network.modules()) > 0


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
        assert all(map(close, run_stages(network, images), whole))
        kept, state = torch.arange(rows), network.begin(images)
        for reference in whole:
            rows_left = torch.randperm(len(kept))[: max(len(kept) - 1, 1)]
            kept, state = kept[rows_left], network.keep(state, rows_left)
            logits, state = network.advance(state)
            assert close(logits, reference[kept], scale=reference)


def test_a_mask_keeps_rows_too(small_network: MSDNet) -> None:
    images = torch.randn(4, 3, 32, 32)
    mask = torch.tensor([True, False, False, True])
    with torch.inference_mode():
        _, state = small_network.advance(small_network.begin(images))
        logits, _ = small_network.advance(small_network.keep(state, mask))
        assert close(logits, small_network(images)[1][mask])


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
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        create_network("imagenet_7_paper")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 2
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


@pytest.mark.parametrize("off", [*[(name,) for name in SWITCHES], SWITCHES])
def test_ablations_run_and_every_parameter_learns(off: tuple[str, ...]) -> None:
    network = create_network("cifar_batch_4", **dict.fromkeys(off, False))
    settled = settle(network)
    images = torch.randn(4, 3, 32, 32)
    with torch.inference_mode():
        whole = settled(images)
        assert all(map(close, run_stages(settled, images), whole))
    assert len(whole) == (1 if "intermediate_classifiers" in off else 4)
    costs = settled.costs(32)
    assert list(costs) == sorted(set(costs))
    sum(logits.square().sum() for logits in settled.train()(images)).backward()
    assert all(parameter.grad is not None for parameter in settled.parameters())


def test_without_bottlenecks_all_convolutions_are_3x3() -> None:
    plain = dict.fromkeys(SWITCHES, False)
    with_them, without = (
        create_network("cifar_batch_4", bottleneck_factors=f, **plain) for f in ((1, 2, 4), (0, 0, 0))
    )
    kernels = [
        [m.kernel_size for m in network.modules() if isinstance(m, nn.Conv2d)] for network in (with_them, without)
    ]
    assert kernels[1] == [kernel for kernel in kernels[0] if kernel != (1, 1)] == [(3, 3)] * (1 + 10 + 2)
    images = torch.randn(2, 3, 32, 32)
    with torch.inference_mode():
        settled = settle(without)
        assert all(map(close, run_stages(settled, images), settled(images)))


def test_without_dense_connections_early_maps_do_not_reach_later_layers_directly(small_network: MSDNet) -> None:
    """With them, blanking every convolution past the seed layer still leaves the seed's maps in the last cell."""

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
            "at least 9 pixels high and wide, got 8 x 32",
        ),
        (
            torch.zeros(1, 3, 32, 32, device="meta"),
            ValueError,
            "images must be on cpu like the weights, got them on meta",
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


@pytest.mark.parametrize("size", ["32", 32.0, (3, 32, 32), -1, (32, 0)])
def test_costs_refuse_what_is_no_size(small_network: MSDNet, size: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="image_size must be"):
        small_network.costs(size)


@pytest.mark.parametrize(
    "rows", [0, [0, 1], torch.tensor(1), torch.tensor([1, 0], dtype=torch.uint8), torch.ones(2, 1)]
)
def test_keep_refuses_what_are_no_rows(small_network: MSDNet, rows: Any) -> None:
    state = small_network.begin(torch.randn(2, 3, 32, 32))
    with pytest.raises(TypeError, match="rows must be a tensor of one dimension, a mask"):
        small_network.keep(state, rows)


def test_autocast_may_mix_precisions(small_network: MSDNet) -> None:
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert small_network(torch.zeros(1, 3, 32, 32, dtype=torch.bfloat16))[0].shape == (1, 7)


def test_double_precision_is_refused_under_autocast_too(small_network: MSDNet) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(TypeError, match=r"must be torch\.float32 like"):
        small_network(torch.zeros(1, 3, 32, 32, dtype=torch.float64))


def test_a_mask_must_cover_the_rows(small_network: MSDNet) -> None:
    with pytest.raises(ValueError, match="rows must have an entry for each of 2 rows, got a mask of 3"):
        small_network.keep(small_network.begin(torch.randn(2, 3, 32, 32)), torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize("rows", [[2], [0, -3], [5, 1]])
def test_indices_must_be_those_of_rows(small_network: MSDNet, rows: list[int]) -> None:
    state = small_network.begin(torch.randn(2, 3, 32, 32))
    with pytest.raises(IndexError, match=f"rows must be among the 2 of the state, got {min(rows)} to {max(rows)}"):
        small_network.keep(state, torch.tensor(rows))
    for fitting in ([], [1, -2, 0]):
        kept = small_network.keep(state, torch.tensor(fitting, dtype=torch.int64))
        assert {len(tensor) for tensor in kept.maps.values()} == {len(fitting)}


def test_there_is_no_stage_after_the_last(small_network: MSDNet) -> None:
    state = small_network.begin(torch.randn(1, 3, 32, 32))
    for _ in range(3):
        _, state = small_network.advance(state)
    with pytest.raises(ValueError, match="all 3 exits have answered"):
        small_network.advance(state)


def test_create_network_takes_configs_and_overrides() -> None:
    network = create_network(MSDNetConfig(exits=growing(2)), exits=even(2, 1, 2), classes=3)
    assert network.config == MSDNetConfig(exits=(2, 3), classes=3)


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


def plain_conv(x: torch.Tensor, weights: dict[str, torch.Tensor], name: str, stride: int = 1) -> torch.Tensor:
    """Convolution, BN, ReLU as torch's functions have them, from a state dict."""
    kernel = weights[f"{name}.0.weight"]
    x = functional.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
    mean, variance, weight, bias = (
        weights[f"{name}.1.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
    )
    return functional.relu(functional.batch_norm(x, mean, variance, weight, bias, training=False, eps=1e-5))


@pytest.mark.parametrize("stem", ["cifar", "imagenet"])
def test_units_stems_and_heads_are_what_the_paper_names(stem: str) -> None:
    """Exit 1 at layer 2 of a network of two blocks, from nothing but its weights and torch's functions."""
    sizes: dict[str, Any] = {"scales": 2, "channel_factors": (1, 2), "bottleneck_factors": (1, 2)}
    network = settle(create_network("cifar_batch_4", exits=(2,), stem=stem, **sizes), side=48)
    weights, images = dict(network.state_dict()), torch.randn(3, 3, 48, 48)

    def unit(x: torch.Tensor, name: str, stride: int = 1) -> torch.Tensor:
        return plain_conv(plain_conv(x, weights, f"{name}.0"), weights, f"{name}.1", stride)

    fine = plain_conv(images, weights, "cells.layer0_scale1.0", stride=1 if stem == "cifar" else 2)
    fine = fine if stem == "cifar" else functional.max_pool2d(fine, 3, stride=2, padding=1)
    coarse = plain_conv(fine, weights, "cells.layer0_scale2", stride=2)
    name = "cells.layer1_scale2"
    new_coarse = torch.cat([coarse, unit(fine, f"{name}.strided", 2), unit(coarse, f"{name}.regular")], dim=1)
    fine = torch.cat([fine, unit(fine, "cells.layer1_scale1.regular")], dim=1)
    name = "cells.layer2_scale2"
    last = torch.cat([new_coarse, unit(fine, f"{name}.strided", 2), unit(new_coarse, f"{name}.regular")], dim=1)
    last = plain_conv(last, weights, f"{name}.transition")
    head = plain_conv(plain_conv(last, weights, "heads.0.0", stride=2), weights, "heads.0.1", stride=2)
    logits = functional.linear(head.mean(dim=(2, 3)), weights["heads.0.4.weight"], weights["heads.0.4.bias"])
    with torch.inference_mode():
        assert close(network(images)[0], logits)


def test_batch_norm_is_torchs_own() -> None:
    norms = [module for module in create_network("cifar_batch_4").modules() if isinstance(module, nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-5, 0.1)}


def unit_cost(inputs: int, outputs: int, factor: int, pixels_in: int, pixels_out: int) -> int:
    bottleneck = min(inputs, factor * outputs)
    return inputs * bottleneck * pixels_in + 9 * bottleneck * outputs * pixels_out


def test_cost_of_one_scale_at_a_time_by_hand() -> None:
    """Six layers in blocks of two at 32, 16 and 8 pixels; heads on the scale that the network is at."""
    for dense in (True, False):
        network = create_network("cifar_batch_4", exits=(2, 4, 6), multi_scale=False, dense=dense)
        width, total, expected = 16, 27 * 16 * 32**2, []
        for layer in range(1, 7):
            block = (layer - 1) // 2  # how often the image has been halved
            factor, pixels = 2**block, (32 >> block) ** 2
            if layer in (3, 5):  # the strided step, which narrows what was concatenated to half
                read, new = width * factor // 2, (width + 6) // 2 if dense else 6
                bottleneck = min(read // 2 if dense else read, factor // 2 * new * factor)
                total += read * bottleneck * 4 * pixels + 9 * bottleneck * new * factor * pixels
                width = new
            else:
                total += unit_cost(width * factor, 6 * factor, factor, pixels, pixels)
                width = width + 6 if dense else 6
            if layer % 2 == 0:
                head = 9 * width * factor * 128 * pixels // 4 + 9 * 128 * 128 * pixels // 16 + 128 * 100
                total += head
                expected.append(total)
        assert network.costs(32) == tuple(expected)


def test_cost_without_dense_connections_by_hand() -> None:
    network = create_network(
        "cifar_batch_4", exits=(1, 2), scales=2, channel_factors=(1, 2), bottleneck_factors=(1, 2), dense=False
    )
    seeds = 27 * 16 * 32**2 + 9 * 16 * 32 * 16**2
    first = unit_cost(16, 6, 1, 32**2, 16**2) + unit_cost(32, 6, 2, 16**2, 16**2)  # two halves of the coarse growth
    fine = unit_cost(16, 6, 1, 32**2, 32**2)
    second = unit_cost(6, 6, 1, 32**2, 16**2) + unit_cost(12, 6, 2, 16**2, 16**2)
    head = 9 * 12 * 128 * 8**2 + 9 * 128 * 128 * 4**2 + 128 * 100
    assert network.costs(32) == (seeds + first + head, seeds + first + head + fine + second + head)


def test_compiles_without_a_graph_break(small_network: MSDNet) -> None:
    network = create_network(small_network.config).eval()
    images = torch.randn(2, 3, 32, 32)
    with torch.inference_mode():
        whole = torch.compile(network, fullgraph=True, backend="eager")(images)
        assert all(map(close, whole, network(images)))
        first, _ = torch.compile(network.advance, fullgraph=True, backend="eager")(network.begin(images))
        assert close(first, whole[0])


def test_maps_are_forgotten_as_soon_as_nothing_reads_them() -> None:
    """While a stage runs, it holds about one map for each scale, not all that it computed."""
    network = settle(create_network(preset_config("cifar_batch_8"), exits=(36,)))
    held: list[int] = []
    compute = network.compute

    def counting(cell: Cell, maps: Any) -> torch.Tensor:
        held.append(len(maps))
        return compute(cell, maps)

    network.compute = counting  # type: ignore[method-assign]
    with torch.inference_mode():
        network(torch.randn(1, 3, 32, 32))
    assert max(held) <= 2 * network.config.scales


def test_a_network_has_no_cells_but_those_of_its_grid(small_network: MSDNet) -> None:
    assert len(small_network.cells) == 3 + 3 + 3 + 2 + 2 + 1


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_averaged_exits_answer_for_all_before_them(small_network: MSDNet, power: float) -> None:
    averaged = create_network(small_network.config, averaging=power)
    averaged.load_state_dict(small_network.state_dict())
    images = torch.randn(4, 3, 32, 32)
    with torch.inference_mode():
        alone = small_network(images)
        together = averaged.eval()(images)
        for k, answer in enumerate(together):
            weights = [(j + 1) ** power for j in range(k + 1)]
            expected = sum(w * z for w, z in zip(weights, alone, strict=False)) / sum(weights)
            torch.testing.assert_close(answer, expected)
        torch.testing.assert_close(list(run_stages(averaged, images)), together)
        state = averaged.begin(images)
        for answer in together:
            logits, state = averaged.advance(state)
            torch.testing.assert_close(logits[-1], answer[3])
            state = averaged.keep(state, torch.tensor([len(logits) - 1]))
    assert averaged.costs(32) == small_network.costs(32)


def test_averaged_exits_learn_each_by_itself(small_network: MSDNet) -> None:
    averaged = create_network(small_network.config, averaging=1.0)
    averaged.load_state_dict(small_network.state_dict())
    images = torch.randn(4, 3, 32, 32)
    for answer, alone in zip(averaged.train()(images), small_network.train()(images), strict=True):
        assert torch.equal(answer, alone)
