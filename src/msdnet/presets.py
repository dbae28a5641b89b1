"""The paper's networks by name.

Knows configs only; `msdnet.create_network` builds what is named here.
"""

from typing import Any

from msdnet.config import MSDNetConfig, NetworkConfig, even, growing
from msdnet.naming import Registry, did_you_mean
from msdnet.systems import SYSTEMS

__all__ = ["PRESETS", "network_config", "preset_config", "register_preset"]

PRESETS: Registry[MSDNetConfig] = Registry("preset")


def register_preset(name: str, config: MSDNetConfig) -> None:
    """Make a network known by name; a name can be given once."""
    if not isinstance(config, MSDNetConfig):
        raise TypeError(f"config must be an MSDNetConfig, got {type(config).__name__}")
    if name in SYSTEMS:
        raise ValueError(f"{name!r} is the name of a system already")
    PRESETS.register(name, config)


def preset_config(name: str) -> MSDNetConfig:
    """The config of a preset, which is an MSDNet's.

    >>> preset_config("cifar_anytime").exits
    (4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
    """
    if name in SYSTEMS:
        raise ValueError(
            f"{name!r} is no preset of an MSDNet but another network: create_network({name!r}) builds it, "
            f"msdnet.presets.network_config({name!r}) is its config"
        )
    return PRESETS[name]


def network_config(network: str | NetworkConfig, **overrides: Any) -> NetworkConfig:
    """The config of a preset or of a system, or the one given, with some fields replaced.

    An MSDNet's factors that are the usual ones follow the number of scales.

    >>> network_config("cifar_anytime", classes=10).classes
    10
    """
    if isinstance(network, str):
        known: dict[str, NetworkConfig] = {**dict(PRESETS.items()), **dict(SYSTEMS.items())}
        if network not in known:
            raise ValueError(f"unknown network {str(network)!r}; {did_you_mean(network, known)}")
        network = known[network]
    if not isinstance(network, NetworkConfig):
        raise TypeError(f"network must be a preset's name or a NetworkConfig, got {type(network).__name__}")
    if overrides.get("kind", network.kind) != network.kind:
        raise ValueError(f"kind cannot be replaced: the network is a {network.kind}, got {overrides['kind']!r}")
    return network.replaced(overrides)


def _imagenet(exits: tuple[int, ...]) -> MSDNetConfig:
    return MSDNetConfig(
        exits=exits,
        classes=1000,
        scales=4,
        seed_channels=32,
        growth=16,
        stem="imagenet",
        head_width="input",
    )


# Anytime prediction on CIFAR: the paper's 11 exits, and the 10 and 7 of the two released codes.
register_preset("cifar_anytime", MSDNetConfig(exits=even(4, 2, 11)))
register_preset("cifar_anytime_10", MSDNetConfig(exits=even(4, 2, 10)))
register_preset("cifar_anytime_7", MSDNetConfig(exits=even(4, 2, 7)))

# Budgeted batch on CIFAR: 10, 15, 21, 28 and 36 layers.
for _n in range(4, 9):
    register_preset(f"cifar_batch_{_n}", MSDNetConfig(exits=growing(_n)))

# ImageNet, both settings: exits where the released codes put them, and at the paper's layers k * i + 3.
for _k in (4, 6, 7):
    register_preset(f"imagenet_{_k}", _imagenet(even(_k, _k, 5)))
    register_preset(f"imagenet_{_k}_paper", _imagenet(even(_k + 3, _k, 5)))

# Under a million parameters with CIFAR-10's ten classes: narrow heads, which hold most of the parameters elsewhere.
register_preset("cifar_small", MSDNetConfig(exits=(3, 6, 10, 15), head_width=64, classes=10))
