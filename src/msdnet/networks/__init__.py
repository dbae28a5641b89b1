"""Networks in PyTorch, each a sequence of stages."""

import dataclasses
from typing import Any

from msdnet.config import NetworkConfig
from msdnet.networks.msdnet import MSDNet
from msdnet.networks.staged import StagedNetwork, State
from msdnet.presets import preset_config

__all__ = ["MSDNet", "StagedNetwork", "State", "create_network"]


def create_network(network: str | NetworkConfig, **overrides: Any) -> MSDNet:
    """A network with fresh weights, from a preset's name or a config; overrides replace fields of the config."""
    config = preset_config(network) if isinstance(network, str) else network
    if not isinstance(config, NetworkConfig):
        raise TypeError(f"network must be a preset's name or a NetworkConfig, got {type(network).__name__}")
    return MSDNet(NetworkConfig.from_dict(dataclasses.asdict(config) | overrides))
