"""Networks in PyTorch, each a sequence of stages."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import torch

from msdnet.config import MSDNetConfig, NetworkConfig
from msdnet.naming import Registry
from msdnet.networks.chain import Chain
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
    "Chain",
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
    "outline",
    "register_network",
]

C = TypeVar("C", bound=NetworkConfig)

_BUILDERS: Registry[Callable[[Any], StagedNetwork]] = Registry("network of the kind")


def register_network(config: type[C], build: Callable[[C], StagedNetwork]) -> None:
    """Say what builds the networks of a kind: the class of the network itself, or a function of a config."""
    if not (isinstance(config, type) and issubclass(config, NetworkConfig) and hasattr(config, "kind")):
        raise TypeError(f'config must be a class of configs (class Own(NetworkConfig, kind="own")), got {config!r}')
    if not callable(build):
        raise TypeError(f"build must be a network's class or a function of a config, got {build!r}")
    _BUILDERS.register(config.kind, build)


def _ensemble(config: EnsembleConfig) -> Ensemble:
    return Ensemble(config, [create_network(member) for member in config.members])


def _torchvision(config: TorchvisionConfig) -> StagedNetwork:
    from msdnet.networks.imagenet import TorchvisionNetwork  # here, since it alone needs torchvision

    return TorchvisionNetwork(config)


register_network(MSDNetConfig, MSDNet)
register_network(WideResNetConfig, WideResNet)
register_network(ResNetConfig, ResNet)
register_network(DenseNetConfig, DenseNet)
register_network(FractalNetConfig, FractalNet)
register_network(EnsembleConfig, _ensemble)
register_network(TorchvisionConfig, _torchvision)


@overload
def create_network(network: MSDNetConfig, **overrides: Any) -> MSDNet: ...
@overload
def create_network(network: str | NetworkConfig, **overrides: Any) -> StagedNetwork: ...
def create_network(network: str | NetworkConfig, **overrides: Any) -> StagedNetwork:
    """A network with fresh weights, from a name or a config; overrides replace fields of the config."""
    config = network_config(network, **overrides)
    if config.kind not in _BUILDERS:
        name = type(config).__name__
        raise ValueError(f"nothing is known to build a {name}: register_network({name}, ...) says what does")
    return _BUILDERS[config.kind](config)


def outline(network: str | NetworkConfig, **overrides: Any) -> StagedNetwork:
    """A network without values, on the meta device: for its shapes, costs and parameters, nothing is drawn."""
    with torch.device("meta"):
        return create_network(network, **overrides)


def empty_network(config: NetworkConfig) -> StagedNetwork:
    """A network of zeros, to load weights into: torch's random state stays as it is.

    Weights are drawn only where a network has buffers that no file of weights has: what is in them, it alone can say.
    """
    network = outline(config)
    if {name for name, _ in network.named_buffers(remove_duplicate=False)} <= network.state_dict().keys():
        network.to_empty(device="cpu")
    else:
        with torch.device("cpu"), torch.random.fork_rng(devices=[]):
            network = create_network(config)
    for tensor in network.state_dict().values():
        tensor.zero_()
    return network
