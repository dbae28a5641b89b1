import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from msdnet import MSDNetConfig, even, growing


def test_exit_helpers_give_the_papers_layers() -> None:
    assert even(4, 2, 11) == tuple(2 * (i + 1) for i in range(1, 12))  # appendix A: the 2(i + 1)th layers
    assert even(7, 4, 5) == tuple(4 * i + 3 for i in range(1, 6))  # appendix A: the (k i + 3)th layers
    assert growing(8) == (1, 3, 6, 10, 15, 21, 28, 36)


def test_is_frozen_and_hashable() -> None:
    config = MSDNetConfig(exits=(2,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.growth = 8  # type: ignore[misc]
    assert hash(config) == hash(MSDNetConfig(exits=(2,)))


def test_lists_become_tuples() -> None:
    config = MSDNetConfig(exits=[2, 4], channel_factors=[1, 2, 4])  # type: ignore[arg-type]
    assert config.exits == (2, 4)
    assert config == MSDNetConfig(exits=(2, 4))


@pytest.mark.parametrize("scales", [1, 2, 3, 4, 5])
def test_factors_follow_from_the_scales_unless_given(scales: int) -> None:
    config, factors = MSDNetConfig(exits=(2, 5), scales=scales), (1, 2, 4, 4, 4)[:scales]
    assert config.channel_factors == config.bottleneck_factors == factors
    given = MSDNetConfig(exits=(2, 5), scales=scales, channel_factors=factors, bottleneck_factors=factors)
    assert (config, hash(config), config.to_json()) == (given, hash(given), given.to_json())


def test_numpy_numbers_become_plain_ones() -> None:
    config = MSDNetConfig(exits=np.array([2, 4]), classes=np.int64(10), head_width=np.int32(8))  # type: ignore[arg-type]
    assert config == MSDNetConfig(exits=(2, 4), classes=10, head_width=8)
    assert MSDNetConfig.from_json(config.to_json()) == config


def test_depth_follows_the_last_exit_unless_given() -> None:
    assert MSDNetConfig(exits=(2, 5)).depth == 5
    assert MSDNetConfig(exits=(2, 5), layers=9).depth == 9


def test_without_intermediate_classifiers_only_the_last_exit_is_built() -> None:
    assert MSDNetConfig(exits=(2, 5), intermediate_classifiers=False).exit_layers == (5,)


def test_smallest_side_grows_with_stem_and_scales() -> None:
    assert MSDNetConfig(exits=(2,)).smallest_side == 9
    assert MSDNetConfig(exits=(2,), stem="imagenet").smallest_side == 33


def test_json_is_plain_and_comes_back_equal() -> None:
    config = MSDNetConfig(exits=(2, 5), head_width="input", dense=False, transition_ratio=0.25, layers=7)
    assert json.loads(config.to_json())["exits"] == [2, 5]
    assert MSDNetConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"growth": 5, "channel_factors": (1, 1, 2)}, ValueError, "growth must be even .* got growth 5 x .* scale 2"),
        ({"exits": (2, 9), "layers": 8}, ValueError, r"exits must not lie beyond the last layer, 8; got \(2, 9\)"),
        ({"exits": (4, 4)}, ValueError, r"exits must increase from one to the next, got \(4, 4\)"),
        ({"exits": (6, 4)}, ValueError, r"exits must increase from one to the next, got \(6, 4\)"),
        ({"exits": ()}, ValueError, "exits must name at least one layer, got none"),
        ({"exits": (0, 4)}, ValueError, "each of exits must be at least 1, got 0"),
        ({"exits": 4}, TypeError, "exits must be a list of whole numbers, got 4"),
        ({"exits": {2: 4}}, TypeError, "exits must be a list of whole numbers"),
        ({"exits": b"24"}, TypeError, "exits must be a list of whole numbers"),
        ({"exits": "4"}, TypeError, "exits must be a list of whole numbers, got '4'"),
        ({"exits": (2.0,)}, TypeError, "each of exits must be a whole number, got 2.0"),
        (
            {"channel_factors": (1, 2)},
            ValueError,
            r"channel_factors must have one entry for each of 3 scales, got \(1, 2\)",
        ),
        (
            {"bottleneck_factors": (1, 2, 4, 4)},
            ValueError,
            "bottleneck_factors must have one entry for each of 3 scales",
        ),
        ({"classes": 0}, ValueError, "classes must be at least 1, got 0"),
        ({"classes": True}, TypeError, "classes must be a whole number, got True"),
        ({"classes": "10"}, TypeError, "classes must be a whole number, got '10'"),
        ({"input_channels": 0}, ValueError, "input_channels must be at least 1, got 0"),
        ({"scales": 0}, ValueError, "scales must be at least 1, got 0"),
        ({"layers": 0}, ValueError, "layers must be at least 1, got 0"),
        ({"stem": "resnet"}, ValueError, "stem must be one of cifar, imagenet; got 'resnet'"),
        ({"reduction": "block"}, ValueError, "reduction must be one of blocks, tail, none; got 'block'"),
        ({"transition_ratio": 0}, ValueError, "transition_ratio must be above 0 and at most 1, got 0"),
        ({"transition_ratio": float("nan")}, ValueError, "transition_ratio must be above 0 and at most 1, got nan"),
        (
            {"transition_ratio": "half"},
            TypeError,
            "transition_ratio must be a number above 0 and at most 1, got 'half'",
        ),
        ({"head_width": "wide"}, TypeError, "head_width must be a whole number or \"input\", got 'wide'"),
        ({"head_width": 0}, ValueError, "head_width must be at least 1, got 0"),
        ({"dense": 1}, TypeError, "dense must be true or false, got 1"),
        ({"multi_scale": False, "reduction": "none"}, ValueError, 'reduction must be "blocks" when multi_scale is off'),
    ],
)
def test_refuses(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MSDNetConfig(**({"exits": (2, 4)} | fields))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{"exits": [2], "grwoth": 6}', ValueError, "no field 'grwoth'; did you mean 'growth'?"),
        ('{"growth": 6}', ValueError, "must have the field 'exits'"),
        ("[2, 4]", TypeError, "a network config must be a table of fields, got list"),
        ('{"exits": [2', ValueError, "a network config must be JSON: "),
    ],
)
def test_refuses_json(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MSDNetConfig.from_json(text)


@pytest.mark.parametrize("arguments", [(0, 2, 3), (4, 0, 3), (4, 2, 0), (4, 2, -1)])
def test_even_refuses(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        even(*arguments)
