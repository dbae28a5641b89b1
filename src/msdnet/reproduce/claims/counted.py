"""Claims about costs, for which nothing needs to be trained: networks are built without values, and counted."""

from dataclasses import replace

import torch

from msdnet.config import NetworkConfig
from msdnet.networks import StagedNetwork, create_network
from msdnet.presets import preset_config
from msdnet.reproduce.claims.claim import Claim, Finding, Measured

__all__ = ["CLAIMS"]

_SIDE = 32
_ANYTIME = "cifar_anytime"


def _network(network: str | NetworkConfig) -> StagedNetwork:
    with torch.device("meta"):
        return create_network(network)


def _millions(network: str | NetworkConfig, *, lazy: bool = False) -> list[float]:
    """Multiply-adds to each exit."""
    return [cost / 1e6 for cost in _network(network).costs(_SIDE, lazy=lazy)]


def _reduction(_: Measured) -> Finding:
    reduced, full = (
        _millions(replace(preset_config(_ANYTIME), reduction=reduction))[-1] for reduction in ("blocks", "none")
    )
    words = f"the anytime network takes {reduced:.1f} instead of {full:.1f} million multiply-adds to its last exit"
    return Finding(words, reduced < full)


def _lazy_evaluation(_: Measured) -> Finding:
    lazy, whole = _millions(_ANYTIME, lazy=True), _millions(_ANYTIME)
    pairs = list(zip(lazy, whole, strict=True))
    fewer = sum(one < other for one, other in pairs)
    words = (
        f"the anytime network takes {lazy[0]:.1f} instead of {whole[0]:.1f} million multiply-adds to its first exit, "
        f"fewer at {fewer} of {len(pairs)} exits"
    )
    return Finding(words, fewer > 0 and all(one <= other for one, other in pairs))


def _with_classifiers(_: Measured) -> Finding:
    """It holds within a tenth."""
    resnet, densenet = (_millions(name)[-1] for name in ("resnet_mc", "densenet_mc"))
    words = f"ResNet-MC {resnet:.0f}, DenseNet-MC {densenet:.0f} million"
    return Finding(words, all(abs(cost / 130 - 1) <= 0.1 for cost in (resnet, densenet)))


def _filters_of_densenets(_: Measured) -> Finding:
    """What a parameter is used for grows with the size of the maps that it works on."""
    words, uses, parameters = [], [], []
    for name, written in {"densenet_bc_100_12": "DenseNet-100", "resnet_110": "ResNet-110"}.items():
        network = _network(name)
        parameters.append(sum(parameter.numel() for parameter in network.parameters()) / 1e6)
        cost = network.costs(_SIDE)[-1] / 1e6
        uses.append(cost / parameters[-1])
        words.append(
            f"{written} {parameters[-1]:.2f} M parameters, {cost:.0f} M multiply-adds, {uses[-1]:.0f} for each"
        )
    return Finding("; ".join(words), parameters[0] < parameters[1] and uses[0] > uses[1])


CLAIMS = (
    Claim("network reduction reduces the computational cost of training and testing", "4.1", _reduction),
    Claim("lazy evaluation leaves out what the next classifier does not need", "4.1", _lazy_evaluation),
    Claim("ResNet-MC and DenseNet-MC take about 1.3e8 multiply-adds when fully evaluated", "5.1", _with_classifiers),
    Claim(
        "DenseNets apply more filters to high-resolution maps than ResNets: fewer parameters, but a greater cost",
        "5.3",
        _filters_of_densenets,
    ),
)
