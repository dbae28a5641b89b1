"""The other systems: networks that MSDNet is compared with or learns from, by name.

Knows configs only, as the presets do.
"""

from dataclasses import dataclass

from msdnet.checks import check_whole
from msdnet.config import NetworkConfig
from msdnet.naming import Registry

__all__ = ["SYSTEMS", "WideResNetConfig"]


@dataclass(frozen=True, kw_only=True)
class WideResNetConfig(NetworkConfig, kind="wide_resnet"):
    """A Wide ResNet for small images: three groups of blocks of two 3x3 convolutions, normalised before each."""

    layers: int = 28
    """Convolutions on the longest way, the three that widen shortcuts counted: 6 n + 4."""

    widening: int = 10
    """By how much the groups are wider than 16, 32 and 64 channels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("layers", "widening"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name)))
        if self.layers < 10 or (self.layers - 4) % 6:
            raise ValueError(f"layers must be 6 n + 4 (10, 16, 22, 28, ...), got {self.layers}")

    @property
    def depth(self) -> int:
        return self.layers

    @property
    def exit_layers(self) -> tuple[int, ...]:
        return (self.layers,)

    @property
    def smallest_side(self) -> int:
        return 4  # a pixel is left after two halvings

    @property
    def blocks(self) -> int:
        """In each of the three groups."""
        return (self.layers - 4) // 6


SYSTEMS: Registry[NetworkConfig] = Registry("network")

for _layers, _widening in ((16, 8), (28, 8), (28, 10), (40, 4)):
    SYSTEMS.register(f"wide_resnet_{_layers}_{_widening}", WideResNetConfig(layers=_layers, widening=_widening))
