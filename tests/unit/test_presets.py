from collections.abc import Mapping
from typing import Any

import pytest

import msdnet
from msdnet import MSDNetConfig, even, preset_config, register_preset
from msdnet.naming import Registry
from msdnet.presets import network_config
from msdnet.systems import SYSTEMS


def test_every_network_of_the_paper_has_a_name() -> None:
    anytime = {f"cifar_anytime{suffix}" for suffix in ("", "_10", "_7")}
    batch = {f"cifar_batch_{n}" for n in range(4, 9)}
    imagenet = {f"imagenet_{k}{suffix}" for k in (4, 6, 7) for suffix in ("", "_paper")}
    assert set(msdnet.PRESETS) == anytime | batch | imagenet | {"cifar_small"}


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown preset 'cifar_anytme'; did you mean 'cifar_anytime'\?"):
        preset_config("cifar_anytme")


def test_a_preset_nothing_like_any_other_is_answered_with_all() -> None:
    with pytest.raises(ValueError, match="known: cifar_anytime, cifar_anytime_10, "):
        preset_config("?")


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="preset 'cifar_anytime' is registered already"):
        register_preset("cifar_anytime", MSDNetConfig(exits=(2,)))
    assert preset_config("cifar_anytime").exits[-1] == 24


def test_the_same_again_is_no_second_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a cell of a notebook is run twice."""
    monkeypatch.setattr(msdnet.PRESETS, "_entries", dict(msdnet.PRESETS.items()))
    for _ in range(2):
        register_preset("mine", MSDNetConfig(exits=(2, 4)))
    assert preset_config("mine").exits == (2, 4)
    with pytest.raises(ValueError, match="preset 'mine' is registered already"):
        register_preset("mine", MSDNetConfig(exits=(2, 5)))


def test_registries_are_mappings() -> None:
    assert isinstance(msdnet.PRESETS, Mapping)
    assert dict(msdnet.PRESETS) == dict(msdnet.PRESETS.items())
    assert msdnet.PRESETS.get("cifar_anytime") == preset_config("cifar_anytime")
    assert msdnet.PRESETS.get("mine") is None
    with pytest.raises(KeyError) as unknown:
        msdnet.PRESETS["cifar_anytme"]
    assert str(unknown.value) == "unknown preset 'cifar_anytme'; did you mean 'cifar_anytime'?"


def test_a_system_is_known_by_name_as_a_preset_is() -> None:
    for known in (msdnet.PRESETS, SYSTEMS):
        assert all(network_config(name) == config for name, config in known.items())
    with pytest.raises(ValueError, match=r"unknown network 'stochastic_11'; did you mean 'stochastic_110'\?"):
        network_config("stochastic_11")


def test_a_system_is_no_preset_and_is_told_from_one() -> None:
    with pytest.raises(ValueError, match=r"'resnet_20' is no preset .* create_network\('resnet_20'\) builds it"):
        preset_config("resnet_20")


def test_only_configs_are_registered() -> None:
    with pytest.raises(TypeError, match="config must be an MSDNetConfig, got dict"):
        register_preset("mine", {"exits": (2,)})  # type: ignore[arg-type]
    assert "mine" not in msdnet.PRESETS


def test_registry_keeps_the_order_of_registration() -> None:
    registry: Registry[int] = Registry("number")
    registry.register("two", 2)
    registry.register("one", 1)
    assert list(registry) == ["two", "one"]
    assert list(registry.items()) == [("two", 2), ("one", 1)]
    assert len(registry) == 2
    assert "three" not in registry
    assert len({registry, registry, Registry[int]("number")}) == 2  # each is itself


@pytest.mark.parametrize("name", [3, "", None])
def test_a_name_is_a_word(name: Any) -> None:
    with pytest.raises(TypeError, match="a preset's name must be a word, got"):
        register_preset(name, MSDNetConfig(exits=(2,)))


def test_capitals_do_not_hide_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="did you mean 'cifar_anytime'"):
        preset_config("CIFAR_ANYTIME")


def test_the_kind_of_a_network_stays() -> None:
    with pytest.raises(ValueError, match="kind cannot be replaced: the network is a msdnet, got 'resnet'"):
        network_config("cifar_small", kind="resnet")
    assert network_config("cifar_small", kind="msdnet") == preset_config("cifar_small")


@pytest.mark.parametrize("scales", [2, 4])
def test_factors_that_nobody_set_follow_the_number_of_scales(scales: int) -> None:
    assert network_config("cifar_anytime", scales=scales) == MSDNetConfig(exits=even(4, 2, 11), scales=scales)
    own = MSDNetConfig(exits=(2, 4), bottleneck_factors=(0, 0, 0))
    with pytest.raises(ValueError, match=f"bottleneck_factors must have one entry for each of {scales} scales"):
        network_config(own, scales=scales)
    given = network_config(own, scales=2, bottleneck_factors=(0, 1))
    assert given == MSDNetConfig(exits=(2, 4), scales=2, bottleneck_factors=(0, 1))
