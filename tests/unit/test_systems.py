"""The other systems are what their papers say they are, and what docs/experiments.md says."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from msdnet import NetworkConfig, create_network
from msdnet.cost import on_meta
from msdnet.networks import Ensemble, FractalNet, StagedNetwork, empty_network
from msdnet.networks.chance import Chance
from msdnet.networks.fractalnet import DropPath
from msdnet.systems import SYSTEMS, DenseNetConfig, EnsembleConfig, FractalNetConfig, ResNetConfig, WideResNetConfig
from tests.helpers import SMALL_SYSTEMS, close, run_stages, settle

PAGE = (Path(__file__).parents[2] / "docs/experiments.md").read_text()
TABLE = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d. ]+) \|$", PAGE, re.MULTILINE)
IMAGENET_TABLE = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) G \|$", PAGE, re.MULTILINE)


def on_meta_device(network: str | NetworkConfig, **overrides: Any) -> StagedNetwork:
    with torch.device("meta"):
        return create_network(network, **overrides)


def parameter_count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("name", "millions", "digits"),
    [
        # From the tables of Zagoruyko and Komodakis (2016).
        ("wide_resnet_40_4", 8.9, 1),
        ("wide_resnet_16_8", 11.0, 1),
        ("wide_resnet_28_10", 36.5, 1),
        # He et al. (2016), table 6.
        ("resnet_20", 0.27, 2),
        ("resnet_32", 0.46, 2),
        ("resnet_44", 0.66, 2),
        ("resnet_56", 0.85, 2),
        ("resnet_110", 1.7, 1),
        # Huang et al. (2017), table 2.
        ("densenet_bc_100_12", 0.8, 1),
    ],
)
def test_systems_have_the_published_size(name: str, millions: float, digits: int) -> None:
    """With the ten classes of CIFAR-10."""
    assert round(parameter_count(on_meta_device(name, classes=10)) / 1e6, digits) == millions


@pytest.mark.parametrize(("name", "published"), [("wide_resnet_28_10", "5.2e+09"), ("resnet_110", "2.53e+08")])
def test_systems_have_the_published_cost(name: str, published: str) -> None:
    digits = len(published.split("e")[0]) - 2
    assert f"{on_meta_device(name, classes=10).costs(32)[-1]:.{digits}e}" == published


@pytest.mark.parametrize(("name", "parameters", "costs"), TABLE)
def test_the_documented_table_is_right(name: str, parameters: str, costs: str) -> None:
    network = on_meta_device(name)
    assert f"{parameter_count(network) / 1e6:.2f}" == parameters
    assert " ".join(f"{cost / 1e6:.1f}" for cost in network.costs(32)) == costs


def test_the_documented_table_is_complete() -> None:
    assert [name for name, _, _ in TABLE + IMAGENET_TABLE] == list(SYSTEMS)


@pytest.mark.parametrize(("name", "parameters", "cost"), IMAGENET_TABLE)
def test_the_documented_table_for_imagenet_is_right(name: str, parameters: str, cost: str) -> None:
    network = create_network(name)
    assert f"{parameter_count(network) / 1e6:.2f}" == parameters
    assert f"{network.costs(224)[-1] / 1e9:.2f}" == cost


@pytest.mark.parametrize("name", ["alexnet", "googlenet", "resnet_10", "resnet_50", "densenet_37", "densenet_121"])
@torch.inference_mode()
def test_networks_of_torchvision_have_one_stage(name: str) -> None:
    network = create_network(f"imagenet_{name}", classes=7).eval()
    side = network.config.smallest_side
    images = torch.randn(2, 3, side, side)
    (logits,) = run_stages(network, images)
    assert logits.shape == (2, 7)
    assert close(logits, network(images)[0])
    with pytest.raises(ValueError, match=f"at least {side} pixels"):
        network(torch.randn(1, 3, side - 1, side - 1))


@pytest.mark.parametrize("name", ["resnet_10", "resnet_26", "resnet_34", "densenet_37", "densenet_57", "densenet_99"])
def test_networks_of_torchvision_have_the_depth_of_their_name(name: str) -> None:
    """Convolutions on the longest way, which 1x1 convolutions beside it (of ResNets) are not; and the classifier."""
    network = create_network(f"imagenet_{name}")
    convolutions = [
        path for path, m in network.named_modules() if isinstance(m, nn.Conv2d) and "downsample" not in path
    ]
    assert len(convolutions) + 1 == network.config.depth


@pytest.mark.parametrize("name", ["resnet_mc", "densenet_mc"])
@torch.inference_mode()
def test_classifiers_on_the_way_that_only_pool_take_smaller_images_and_hardly_any_cost(name: str) -> None:
    pooling = create_network(name, head_width=0).eval()
    assert pooling.config.smallest_side == 4
    images = torch.randn(2, 3, 4, 4)
    assert all(map(close, run_stages(pooling, images), pooling(images)))
    without, with_them = (
        create_network(name, **changes).costs(32)[-1] for changes in ({"exits": ()}, {"head_width": 0})
    )
    assert without < with_them < 1.01 * without


def test_an_ensemble_survives_json_and_hands_its_classes_on() -> None:
    config = EnsembleConfig(members=(SYSTEMS["resnet_20"], SYSTEMS["densenet_mc"]), classes=7)
    assert NetworkConfig.from_json(config.to_json()) == config
    assert {member.classes for member in config.members} == {7}
    assert config.exit_layers == (20, 72)
    with pytest.raises(ValueError, match="members must be networks, got none"):
        EnsembleConfig(members=())


@torch.inference_mode()
def test_an_ensemble_averages_probabilities_so_far() -> None:
    network = settle(create_network(SMALL_SYSTEMS["ensemble"]))
    images = torch.randn(3, 3, 32, 32)
    assert isinstance(network, Ensemble)
    members = [member(images)[-1].softmax(dim=1) for member in network.members]
    for exit, logits in enumerate(run_stages(network, images)):
        torch.testing.assert_close(logits.softmax(dim=1), torch.stack(members[: exit + 1]).mean(dim=0))


@torch.inference_mode()
def test_what_no_member_of_an_ensemble_thinks_possible_is_still_a_number() -> None:
    """Temperatures can be fitted to it."""
    network = settle(create_network(SMALL_SYSTEMS["ensemble"]))
    for name, parameter in network.named_parameters():
        if parameter.ndim == 2 or name.endswith("bias"):
            parameter.mul_(1e4)
    for logits in run_stages(network, torch.randn(3, 3, 32, 32)):
        assert logits.softmax(dim=1).amin() < 1e-20
        assert logits.isfinite().all()


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("resnet_20", 20),
        ("resnet_110", 110),
        ("resnet_mc", 62),
        ("densenet_bc_28_12", 28),
        ("densenet_bc_100_12", 100),
        ("densenet_star_58_8", 58),
        ("densenet_mc", 52),
    ],
)
def test_depth_is_the_number_of_layers(name: str, depth: int) -> None:
    """All convolutions that are not of a head are on the longest way; the last linear layer is counted too."""
    network = on_meta_device(name)
    of_heads = set(network.heads.modules())
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d) and m not in of_heads]
    assert len(convolutions) + 1 == network.config.depth == depth


@pytest.mark.parametrize(("name", "layers"), [("fractalnet_20", (5, 10, 20)), ("fractalnet_40", (5, 10, 20, 40))])
def test_a_fractalnet_has_a_column_for_each_exit_but_the_last(name: str, layers: tuple[int, ...]) -> None:
    network = on_meta_device(name)
    names = [path for path, module in network.named_modules() if isinstance(module, nn.Conv2d)]
    for column, depth in enumerate(layers):
        assert sum(f".columns.{column}." in path for path in names) == depth
    assert network.config.exit_layers == (*layers, network.config.depth)
    assert network.config.depth == layers[-1]


@pytest.mark.parametrize(
    ("name", "exits", "layers"),
    [("resnet_mc", 7, (9, 17, 29, 37, 49, 57, 62)), ("densenet_mc", 7, (7, 13, 24, 30, 41, 47, 52))],
)
def test_classifiers_are_where_the_paper_has_them(name: str, exits: int, layers: tuple[int, ...]) -> None:
    """After blocks 4 and 8 of each ten; after layers 6 and 12 of each sixteen, the stem and transitions counted too."""
    network = on_meta_device(name)
    assert network.exit_count == exits
    assert network.config.exit_layers == layers


@pytest.mark.parametrize(
    ("name", "fields", "cost"),
    [
        ("resnet_mc", {}, "1.54e+08"),
        ("resnet_mc", {"exits": ()}, "1.40e+08"),
        ("resnet_mc", {"head_width": 128}, "1.81e+08"),
        ("densenet_mc", {"growth": 10}, "1.08e+08"),
        ("densenet_mc", {}, "1.26e+08"),
        ("densenet_mc", {"growth": 12}, "1.46e+08"),
        ("densenet_mc", {"exits": ()}, "8.90e+07"),
    ],
)
def test_the_cost_of_classifiers_on_the_way_is_as_documented(name: str, fields: dict[str, Any], cost: str) -> None:
    assert f"{on_meta_device(name, **fields).costs(32)[-1]:.2e}" == cost


def test_growth_doubles_after_each_transition() -> None:
    assert DenseNetConfig(layers=16, growth=4, doubling=True).growths == (4, 4, 8, 8, 16, 16)
    assert DenseNetConfig(layers=16, growth=4).growths == (4,) * 6


@pytest.mark.parametrize("system", SMALL_SYSTEMS)
def test_staged_equals_whole_and_keeping_rows_changes_nothing(system: str) -> None:
    network = settle(create_network(SMALL_SYSTEMS[system]))
    images, rows = torch.randn(4, 3, 32, 32), torch.arange(4)
    with torch.inference_mode():
        whole = network(images)
        assert len(whole) == network.exit_count == len(network.config.exit_layers)
        assert all(map(close, run_stages(network, images), whole))
        state = network.begin(images)
        for reference in whole:
            left = torch.randperm(len(rows))[: max(len(rows) - 1, 1)]
            rows, state = rows[left], network.keep(state, left)
            logits, state = network.advance(state)
            assert close(logits, reference[rows], scale=reference)
    assert not state.maps


@pytest.mark.parametrize("system", SMALL_SYSTEMS)
def test_the_smallest_images_are_taken(system: str) -> None:
    network = create_network(SMALL_SYSTEMS[system]).eval()
    side = network.config.smallest_side
    assert all(logits.shape == (2, 5) for logits in network(torch.randn(2, 3, side, side)))


@pytest.mark.parametrize("system", SMALL_SYSTEMS)
def test_every_parameter_gets_a_gradient(system: str) -> None:
    network = create_network(SMALL_SYSTEMS[system])
    sum(logits.square().sum() for logits in network(torch.randn(2, 3, 32, 32))).backward()
    assert [name for name, parameter in network.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("system", SMALL_SYSTEMS)
def test_nothing_in_training_waits_for_a_value(system: str) -> None:
    """Tensors on the meta device have none: what could not be captured in a graph would fail here."""
    network = on_meta(create_network(SMALL_SYSTEMS[system])).train()
    assert len(network(torch.empty(2, 3, 32, 32, device="meta"))) == network.exit_count


def test_blocks_survive_less_often_the_deeper_they_are() -> None:
    survivals = ResNetConfig(layers=110, survival=0.5).survivals
    steps = [earlier - later for earlier, later in zip((1.0, *survivals), survivals, strict=False)]
    assert len(survivals) == 54
    assert survivals[-1] == 0.5
    assert steps == pytest.approx([0.5 / 54] * 54)
    assert set(ResNetConfig(layers=110).survivals) == {1.0}


def last_block(network: StagedNetwork) -> Any:
    return network.stages[-1][-1]  # type: ignore[index]


@torch.no_grad()
def test_a_block_is_skipped_as_often_as_it_should_be() -> None:
    """For the whole batch, and in training only."""
    block = last_block(create_network(SMALL_SYSTEMS["stochastic"])).train()
    maps = torch.rand(2, 64, 4, 4)
    with_branch, without = torch.relu(maps + block.branch(maps)), torch.relu(maps)
    torch.manual_seed(0)
    draws = [block(maps) for _ in range(400)]
    survived = [bool(torch.equal(draw, with_branch)) for draw in draws]
    assert all(torch.equal(draw, without) for draw, alive in zip(draws, survived, strict=True) if not alive)
    assert sum(survived) / 400 == pytest.approx(block.survival, abs=4 * (0.25 / 400) ** 0.5)


@torch.no_grad()
def test_outside_training_a_block_counts_as_often_as_it_survived() -> None:
    block = last_block(settle(create_network(SMALL_SYSTEMS["stochastic"])))
    maps = torch.rand(2, 64, 4, 4)
    assert block.survival == 0.5
    torch.testing.assert_close(block(maps), torch.relu(maps + 0.5 * block.branch(maps)))


@torch.no_grad()
def test_a_shortcut_takes_every_second_pixel_and_leaves_new_channels_zero() -> None:
    network = create_network(ResNetConfig(layers=8))
    (shortcut,) = (module for path, module in network.named_modules() if path.endswith("0.2.shortcut"))
    maps = torch.randn(2, 16, 7, 8)
    made = shortcut(maps)
    assert torch.equal(made[:, :16], maps[:, :, ::2, ::2])
    assert made.shape == (2, 32, 4, 4)
    assert not made[:, 16:].any()


@torch.no_grad()
def test_a_network_that_follows_one_column_is_that_column() -> None:
    network = settle(create_network(SMALL_SYSTEMS["fractalnet"]))
    assert isinstance(network, FractalNet)
    images = torch.randn(2, 3, 32, 32)
    join = DropPath(FractalNetConfig(columns=3, one_column_share=1), Chance(), images=2, device=images.device)
    columns = list(run_stages(network, images))[:3]
    for first, second in ((0, 1), (1, 2), (2, 0)):
        join.column = torch.eye(3, dtype=torch.bool)[[first, second]]  # each image follows one of its own
        logits = network.heads[0](network._join_columns(images, join))
        assert close(logits[0], columns[first][0])
        assert close(logits[1], columns[second][1])


@torch.no_grad()
def test_without_drop_path_columns_are_averaged() -> None:
    network = settle(create_network(SMALL_SYSTEMS["fractalnet"], path_drop=0, one_column_share=0))
    assert isinstance(network, FractalNet)
    images = torch.randn(2, 3, 32, 32)
    *_, whole = run_stages(network, images)
    join = DropPath(network.config, Chance(), images=2, device=images.device)
    assert close(network.heads[0](network._join_columns(images, join)), whole)


def test_training_a_fractalnet_counts_its_one_answer_once() -> None:
    """Every exit tells the same of the network that was drawn; its gradients are those of one loss, not of four."""
    network = create_network(SMALL_SYSTEMS["fractalnet"])
    *others, last = network(torch.randn(6, 3, 32, 32))
    assert all(torch.equal(other, last) for other in others)
    assert [logits.requires_grad for logits in (*others, last)] == [False, False, False, True]


@pytest.mark.parametrize("system", ["stochastic", "fractalnet"])
def test_what_a_network_draws_is_its_own(system: str) -> None:
    """With a seed it draws the same whatever else draws, and takes nothing from torch's own numbers."""
    network, images = create_network(SMALL_SYSTEMS[system]), torch.randn(8, 3, 32, 32)
    answers: list[Tensor] = []
    assert network.chance is not None
    for seed in (1, 1, 2):
        torch.rand(seed + len(answers))
        network.chance.seed(seed, images.device)
        before = torch.get_rng_state()
        answers.append(network(images)[-1])
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(answers[0], answers[1])
    assert not torch.equal(answers[0], answers[2])
    copied = copy.deepcopy(network).chance
    assert copied is not None
    assert copied.generator is None


def test_dropout_keeps_the_mean_and_is_gone_afterwards() -> None:
    network = create_network(SMALL_SYSTEMS["fractalnet"])
    lose = network.get_submodule("blocks.1.columns.0.0.1")
    maps = torch.ones(50, 20, 10, 10)
    lost = lose(maps)
    assert float((lost == 0).float().mean()) == pytest.approx(0.1, abs=0.01)
    assert float(lost.mean()) == pytest.approx(1, abs=0.01)
    assert lose.eval()(maps) is maps


def drawn(count: int, **fields: float) -> Tensor:
    """The weights (400, count) of a join's maps, for each of as many images."""
    torch.manual_seed(0)
    config = FractalNetConfig(columns=3, **fields)  # type: ignore[arg-type]
    return DropPath(config, Chance(), images=400, device=torch.device("cpu")).weights(count)


def test_a_join_keeps_at_least_one_column() -> None:
    weights = drawn(3, path_drop=1, one_column_share=0)
    assert torch.equal(weights.sort(dim=1).values, torch.tensor([[0.0, 0.0, 1.0]]).expand(400, 3))
    assert weights.mean(dim=0).tolist() == pytest.approx([1 / 3] * 3, abs=0.1)


def test_a_join_drops_columns_as_often_as_it_should() -> None:
    weights = drawn(3, path_drop=0.15, one_column_share=0)
    assert weights.sum(dim=1).tolist() == pytest.approx([1] * 400)
    assert float((weights == 0).float().mean()) == pytest.approx(0.15, abs=0.05)


def test_every_column_is_followed_equally_often() -> None:
    assert drawn(3, one_column_share=1).mean(dim=0).tolist() == pytest.approx([1 / 3] * 3, abs=0.1)
    # A join of two has no part in the shallowest column, and then takes both.
    assert {tuple(weights.tolist()) for weights in drawn(2, one_column_share=1)} == {(0, 1), (0.5, 0.5), (1, 0)}


@pytest.mark.parametrize("name", SYSTEMS)
def test_configs_survive_json(name: str) -> None:
    assert NetworkConfig.from_json(SYSTEMS[name].to_json()) == SYSTEMS[name]


@pytest.mark.parametrize(
    ("config", "fields", "message"),
    [
        (WideResNetConfig, {"layers": 20}, r"6 n \+ 4"),
        (WideResNetConfig, {"layers": 4}, r"6 n \+ 4"),
        (WideResNetConfig, {"widening": 0}, "widening must be at least 1"),
        (ResNetConfig, {"layers": 21}, r"layers must be 6 n \+ 2 \(8, 14, 20, 26, ...\), got 21"),
        (ResNetConfig, {"layers": 2}, r"6 n \+ 2"),
        (ResNetConfig, {"survival": 0}, "survival must be above 0 and at most 1, got 0"),
        (ResNetConfig, {"survival": 1.5}, "survival must be above 0 and at most 1, got 1.5"),
        (ResNetConfig, {"layers": 20, "exits": (2, 2)}, r"exits must increase from one to the next, got \(2, 2\)"),
        (ResNetConfig, {"layers": 20, "exits": (9,)}, r"before the last block, 9, which always has one; got \(9,\)"),
        (ResNetConfig, {"exits": (0,)}, "each of exits must be at least 1, got 0"),
        (ResNetConfig, {"head_width": -1}, "head_width must be at least 0, got -1"),
        (DenseNetConfig, {"layers": 101}, r"layers must be 6 n \+ 4 \(10, 16, 22, 28, ...\), got 101"),
        (DenseNetConfig, {"growth": 0}, "growth must be at least 1, got 0"),
        (DenseNetConfig, {"layers": 16, "exits": (6,)}, "before the last unit, 6, which always has one"),
        (FractalNetConfig, {"columns": 0}, "columns must be at least 1, got 0"),
        (FractalNetConfig, {"widths": ()}, "widths must have an entry for each block, got none"),
        (FractalNetConfig, {"widths": (4, 4)}, "dropouts must have one entry for each of 2 blocks"),
        (
            FractalNetConfig,
            {"widths": (4,), "dropouts": (1,)},
            "each of dropouts must be at least 0 and below 1, got 1",
        ),
        (FractalNetConfig, {"path_drop": 2}, "path_drop must be at least 0 and at most 1, got 2"),
    ],
)
def test_refuses(config: type[NetworkConfig], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**fields)


def test_refuses_what_is_not_a_flag() -> None:
    with pytest.raises(TypeError, match="doubling must be true or false, got 1"):
        DenseNetConfig(doubling=1)  # type: ignore[arg-type]


def test_refuses_an_unknown_kind() -> None:
    known = "msdnet, wide_resnet, resnet, densenet, fractalnet, ensemble, torchvision"
    with pytest.raises(ValueError, match=f"kind must be one of {known}; got 'resnext'"):
        NetworkConfig.from_dict({"kind": "resnext"})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (("resnet_20",), r"each of members must be .* got 'resnet_20'; msdnet\.presets\.network_config\('resnet_20'\)"),
        ((ResNetConfig(layers=8), 5), "each of members must be a network's config, got 5$"),
        ("resnet_20", "members must be a list of networks' configs, got 'resnet_20'"),
        (ResNetConfig(layers=8), "members must be a list of networks' configs, got ResNetConfig"),
    ],
    ids=str,
)
def test_members_of_an_ensemble_are_configs(members: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        EnsembleConfig(members=members)


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match="kind of network 'resnet' is registered already"):

        class Another(NetworkConfig, kind="resnet"):
            pass

    assert isinstance(NetworkConfig.from_dict({"kind": "resnet"}), ResNetConfig)


@pytest.mark.parametrize("system", SMALL_SYSTEMS)
def test_an_empty_network_takes_weights_and_draws_none(system: str) -> None:
    drawn = create_network(SMALL_SYSTEMS[system])
    before = torch.get_rng_state()
    empty = empty_network(SMALL_SYSTEMS[system])
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(tensor.any() for tensor in empty.state_dict().values())
    empty.load_state_dict(drawn.state_dict())
    images = torch.randn(2, 3, 32, 32)
    for one, other in zip(empty.eval()(images), drawn.eval()(images), strict=True):
        assert torch.equal(one, other)
