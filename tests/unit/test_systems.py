"""The other systems are what their papers say they are."""

import pytest
import torch

from msdnet import NetworkConfig, create_network
from msdnet.systems import SYSTEMS, WideResNetConfig
from tests.helpers import run_stages, settle


@pytest.mark.parametrize(
    ("name", "classes", "millions"),
    # From the tables of Zagoruyko and Komodakis (2016).
    [("wide_resnet_40_4", 10, 8.9), ("wide_resnet_16_8", 10, 11.0), ("wide_resnet_28_10", 10, 36.5)],
)
def test_wide_resnets_have_the_published_size(name: str, classes: int, millions: float) -> None:
    with torch.device("meta"):
        network = create_network(name, classes=classes)
    assert round(sum(p.numel() for p in network.parameters()) / 1e6, 1) == millions


def test_a_wide_resnet_has_the_published_cost() -> None:
    """WRN-28-10: 5.2 billion multiply-adds."""
    with torch.device("meta"):
        (cost,) = create_network("wide_resnet_28_10", classes=10).costs(32)
    assert round(cost / 1e9, 1) == 5.2


def test_systems_run_in_stages() -> None:
    network = settle(create_network(WideResNetConfig(layers=10, widening=1, classes=7)))
    images = torch.randn(4, 3, 32, 32)
    with torch.inference_mode():
        whole = network(images)
    for one, other in zip(run_stages(network, images), whole, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", SYSTEMS)
def test_configs_survive_json(name: str) -> None:
    assert NetworkConfig.from_json(SYSTEMS[name].to_json()) == SYSTEMS[name]


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"layers": 20}, r"6 n \+ 4"), ({"layers": 4}, r"6 n \+ 4"), ({"widening": 0}, "widening must be at least 1")],
)
def test_refuses(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WideResNetConfig(**fields)


def test_refuses_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match="kind must be one of msdnet, wide_resnet; got 'resnext'"):
        NetworkConfig.from_dict({"kind": "resnext"})
