"""Image classification under a budget: one network with many exits.

Importing this package needs no torch: names that do need it are imported when they are first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from msdnet.config import NetworkConfig, even, growing
from msdnet.presets import PRESETS, preset_config, register_preset
from msdnet.version import VERSION

if TYPE_CHECKING:
    from msdnet.networks import MSDNet, create_network

__version__ = VERSION

__all__ = [
    "PRESETS",
    "MSDNet",
    "NetworkConfig",
    "create_network",
    "even",
    "growing",
    "preset_config",
    "register_preset",
]

# Public names by the module that brings them, and the extra that brings what the module needs.
_LAZY = {
    "MSDNet": ("msdnet.networks", "train"),
    "create_network": ("msdnet.networks", "train"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'msdnet' has no attribute {name!r}")
    module, extra = _LAZY[name]
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"msdnet.{name} needs {error.name}: pip install 'msdnet[{extra}]'") from error


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
