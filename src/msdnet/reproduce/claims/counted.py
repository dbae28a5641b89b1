"""Claims for which nothing needs to be trained: networks are built without values, and counted."""

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from msdnet.config import NetworkConfig
from msdnet.models import find_bundle, model_names
from msdnet.presets import preset_config
from msdnet.reproduce.claims.claim import Claim, Finding, NotMeasured, Results
from msdnet.reproduce.imagenet import MSDNETS

if TYPE_CHECKING:
    from torch import Tensor, nn

    from msdnet.networks import StagedNetwork

__all__ = ["CLAIMS"]

_SIDE, _IMAGENET_SIDE = 32, 224
_ANYTIME = "cifar_anytime"
_SMALL_MODEL = "cifar10-small"


def _outline(network: str | NetworkConfig) -> "StagedNetwork":
    from msdnet.networks import outline  # with torch, which the claims of the gallery do not need

    return outline(network)


@cache
def _millions(network: str | NetworkConfig, *, lazy: bool = False, side: int = _SIDE) -> list[float]:
    """Multiply-adds to each exit."""
    return [cost / 1e6 for cost in _outline(network).costs(side, lazy=lazy)]


@cache
def _parameters(network: str | NetworkConfig) -> float:
    """In millions."""
    return _outline(network).parameter_count / 1e6


def _small_model(_: Results) -> Finding:
    """A model of the package, as its manifest tells of it."""
    if _SMALL_MODEL not in model_names():
        raise NotMeasured(_SMALL_MODEL)
    manifest = find_bundle(_SMALL_MODEL).manifest
    if manifest.test is None:
        raise NotMeasured(f"{_SMALL_MODEL} on test images")
    parameters, error = _parameters(manifest.network), 100 * (1 - manifest.test.accuracy[-1])
    words = f"the model `{_SMALL_MODEL}`: {parameters:.2f} M parameters, {error:.2f}% of the test images wrong"
    if "teacher" in manifest.provenance:
        words += (
            f"; trained by `{manifest.provenance['recipe']['name']}`, unlike the paper's: another network taught it"
        )
    return Finding(words, parameters < 1 and error < 7)


def _reduction(_: Results) -> Finding:
    reduced, full = (
        _millions(replace(preset_config(_ANYTIME), reduction=reduction))[-1] for reduction in ("blocks", "none")
    )
    words = (
        f"the anytime network takes {reduced:.1f} instead of {full:.1f} million multiply-adds to its last exit, in "
        "training forward and backward; how accurate it is without was not measured"
    )
    return Finding(words, reduced < full)


def _lazy_evaluation(_: Results) -> Finding:
    lazy, whole = _millions(_ANYTIME, lazy=True), _millions(_ANYTIME)
    pairs = list(zip(lazy, whole, strict=True))
    fewer = sum(one < other for one, other in pairs)
    words = (
        f"the anytime network takes {lazy[0]:.1f} instead of {whole[0]:.1f} million multiply-adds to its first exit, "
        f"fewer at {fewer} of {len(pairs)} exits"
    )
    return Finding(words, fewer > 0 and all(one <= other for one, other in pairs))


def _filters_of_densenets(_: Results) -> Finding:
    """It holds if DenseNets also cost twice as much, and in part if that alone is not so."""
    words, found = [], []
    for name, written in {"densenet_bc_100_12": "DenseNet-100", "resnet_110": "ResNet-110"}.items():
        shares, parameters, cost = _share_at_full_size(name), _parameters(name), _millions(name)[-1]
        words.append(
            f"{written}: {shares:.0%} of the multiply-adds at full size, {parameters:.2f} M parameters, "
            f"{cost:.0f} M multiply-adds, {cost / parameters:.0f} for each parameter"
        )
        found.append((shares, parameters, cost))
    (shares, parameters, cost), (its_shares, its_parameters, its_cost) = found
    more_filters = shares > its_shares and parameters < its_parameters
    greatly = cost > 2 * its_cost
    return Finding("; ".join(words), more_filters and greatly, in_part=more_filters and not greatly)


def _ranges_on_imagenet(_: Results) -> Finding:
    """It holds if no two begin, or end, at the same cost."""
    costs = {name: _millions(name, side=_IMAGENET_SIDE) for name in MSDNETS}
    words = (f"`{name}` from {each[0]:,.0f} to {each[-1]:,.0f}" for name, each in costs.items())
    differ = all(len({each[exit] for each in costs.values()}) == len(costs) for exit in (0, -1))
    return Finding(f"from the first exit to the last, {', '.join(words)} million multiply-adds", differ)


def _years(_: Results) -> Finding:
    years = 1e12 * 0.1 / (365.25 * 24 * 3600)
    return Finding(f"{years:,.0f} years", round(years, -1) == 3170)


def _share_at_full_size(name: str) -> float:
    """Of a network's multiply-adds, those that make maps as high and wide as the images."""
    import torch
    from torch import nn

    from msdnet.cost import on_meta

    network, costs = on_meta(_outline(name)), Counter[int]()

    def count(module: "nn.Module", _inputs: object, made: "Tensor") -> None:
        assert isinstance(module, nn.Conv2d)
        costs[made.shape[-1]] += made[0].numel() * module.weight[0].numel()

    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(count)
    network(torch.empty(1, 3, _SIDE, _SIDE, device="meta"))
    return costs[_SIDE] / costs.total()


CLAIMS = (
    Claim("an MSDNet with less than 1 million parameters has a test error below 7.0% on CIFAR-10", "2", _small_model),
    Claim("network reduction reduces the computational cost of training and testing", "4.1", _reduction),
    Claim("lazy evaluation leaves out what the next classifier does not need", "4.1", _lazy_evaluation),
    Claim("ImageNet: each of the three MSDNets covers a different range of budgets", "5.2", _ranges_on_imagenet),
    Claim("0.1 s more for each of a trillion images would add 3170 years", "1", _years),
    Claim(
        "DenseNets apply more filters to high-resolution maps than ResNets: fewer parameters, a much greater cost",
        "5.3",
        _filters_of_densenets,
    ),
)
