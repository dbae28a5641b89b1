"""Networks in PyTorch, each a sequence of stages."""

from typing import Any, overload

import torch

from msdnet.config import MSDNetConfig, NetworkConfig
from msdnet.networks.densenet import DenseNet
from msdnet.networks.ensemble import Ensemble
from msdnet.networks.fractalnet import FractalNet
from msdnet.networks.msdnet import MSDNet
from msdnet.networks.resnet import ResNet
from msdnet.networks.staged import StagedNetwork, State
from msdnet.networks.wide_resnet import WideResNet
from msdnet.presets import network_config
from msdnet.systems import (
    DenseNetConfig,
    EnsembleConfig,
    FractalNetConfig,
    ResNetConfig,
    TorchvisionConfig,
    WideResNetConfig,
)

__all__ = [
    "DenseNet",
    "Ensemble",
    "FractalNet",
    "MSDNet",
    "ResNet",
    "StagedNetwork",
    "State",
    "WideResNet",
    "create_network",
    "empty_network",
]


def _ensemble(config: EnsembleConfig) -> Ensemble:
    return Ensemble(config, [create_network(member) for member in config.members])


def _torchvision(config: TorchvisionConfig) -> StagedNetwork:
    from msdnet.networks.imagenet import TorchvisionNetwork  # here, since it alone needs torchvision

    return TorchvisionNetwork(config)


_KINDS: dict[type[NetworkConfig], Any] = {
    MSDNetConfig: MSDNet,
    WideResNetConfig: WideResNet,
    ResNetConfig: ResNet,
    DenseNetConfig: DenseNet,
    FractalNetConfig: FractalNet,
    EnsembleConfig: _ensemble,
    TorchvisionConfig: _torchvision,
}


@overload
def create_network(network: MSDNetConfig, **overrides: Any) -> MSDNet: ...
@overload
def create_network(network: str | NetworkConfig, **overrides: Any) -> StagedNetwork: ...
def create_network(network: str | NetworkConfig, **overrides: Any) -> StagedNetwork:
    """A network with fresh weights, from a name or a config; overrides replace fields of the config."""
    config = network_config(network, **overrides)
    built: StagedNetwork = _KINDS[type(config)](config)
    return built


def empty_network(config: NetworkConfig) -> StagedNetwork:
    """A network of zeros, to load weights into: none are drawn, so torch's random state stays as it is."""
    with torch.device("meta"):
        network = create_network(config)
    network.to_empty(device="cpu")
    for tensor in network.state_dict().values():
        tensor.zero_()
    return network
