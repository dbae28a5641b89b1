"""Networks in PyTorch, each a sequence of stages."""

from typing import Any

from msdnet.config import NetworkConfig
from msdnet.networks.msdnet import MSDNet
from msdnet.networks.staged import StagedNetwork, State
from msdnet.presets import network_config

__all__ = ["MSDNet", "StagedNetwork", "State", "create_network"]


def create_network(network: str | NetworkConfig, **overrides: Any) -> MSDNet:
    """A network with fresh weights, from a preset's name or a config; overrides replace fields of the config."""
    return MSDNet(network_config(network, **overrides))
