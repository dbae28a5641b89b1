"""Image classification under a budget: one network with many exits.

Importing this package needs no torch; the functions that do need it import it when they are called.
"""

from typing import TYPE_CHECKING, Any

from msdnet.config import NetworkConfig, even, growing
from msdnet.presets import PRESETS, preset_config, register_preset
from msdnet.version import VERSION

if TYPE_CHECKING:
    from msdnet.networks import MSDNet

__version__ = VERSION

__all__ = ["PRESETS", "NetworkConfig", "create_network", "even", "growing", "preset_config", "register_preset"]


def create_network(network: str | NetworkConfig, **overrides: Any) -> "MSDNet":
    """A network with fresh weights, from a preset's name or a config; overrides replace fields of the config.

    >>> create_network("cifar_anytime", classes=10).exit_count
    11
    """
    try:
        from msdnet import networks
    except ModuleNotFoundError as error:
        raise ImportError(f"create_network needs {error.name}: pip install 'msdnet[train]'") from error
    return networks.create_network(network, **overrides)
