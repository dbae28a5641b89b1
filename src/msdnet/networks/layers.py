"""Layers that the networks are made of."""

import warnings
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from msdnet.device import kernels_wanted

__all__ = [
    "Concat",
    "Conv2d",
    "ConvHead",
    "ConvNormReLU",
    "Layers",
    "Linear",
    "PoolHead",
    "head_on_the_way",
    "norm_relu",
    "own_norm",
]

Norm: TypeAlias = Callable[..., Tensor]


class Layers(nn.Sequential):
    """One layer after the other; in training on a GPU, BN and a ReLU that follows it are one."""

    def forward(self, maps: Tensor) -> Tensor:
        rest = list(self)
        while rest:
            layer, *rest = rest
            norm = _own_norm_for(layer, maps)
            if norm is None:
                maps = layer(maps)
            else:
                relu = bool(rest) and isinstance(rest[0], nn.ReLU)
                maps = norm(maps, layer, relu=relu)
                if relu:
                    rest = rest[1:]
        return maps


def _own_norm_for(layer: nn.Module, maps: Tensor) -> Norm | None:
    """BN by kernels of our own, where they are wanted, know the layer, and can read the maps."""
    if not (isinstance(layer, nn.BatchNorm2d) and layer.training and maps.is_cuda):
        return None
    usual = layer.affine and layer.track_running_stats and layer.momentum is not None
    ready = (
        maps.is_contiguous(memory_format=torch.channels_last)
        and maps.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and layer.weight.dtype == torch.float32
        and maps.numel() > maps.shape[1]  # or else there is no variance, and torch says so
        and torch.cuda.get_device_capability(maps.device) >= (8, 0)  # older ones know no bfloat16
        and not torch.compiler.is_compiling()
    )
    return own_norm() if usual and ready else None


def own_norm() -> Norm | None:
    """Our kernels, unless `MSDNET_KERNELS` names others or Triton is not here; `=own` insists on them."""
    whose = kernels_wanted()
    if whose not in (None, "own"):
        return None
    try:
        from msdnet.networks.kernels import norm
    except ImportError as error:  # Triton comes with torch, but not on every system
        if whose == "own":
            raise ValueError(f"MSDNET_KERNELS=own needs Triton, which is not here ({error})") from error
        warnings.warn(f"torch's BN trains, ours would be faster but needs Triton ({error})", stacklevel=2)
        return None
    return norm


class Conv2d(nn.Conv2d):
    """Starts with He's normal initialisation by fan-out; no convolution has a bias, BN follows or precedes each."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:  # where there are no values to draw, and trying doubles the time of building
            nn.init.kaiming_normal_(self.weight, mode="fan_out", nonlinearity="relu")


class Linear(nn.Linear):
    """Starts with torch's own weights and a bias of zero."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.bias)


def norm_relu(channels: int) -> tuple[nn.Module, nn.Module]:
    """What comes before a convolution where maps are not yet normalised."""
    return nn.BatchNorm2d(channels), nn.ReLU(inplace=True)


class ConvNormReLU(Layers):
    """A convolution, BN and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(
            Conv2d(inputs, outputs, kernel, stride),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class Concat(nn.Module):
    """Maps side by side. How many channels each has is for those who fill maps up (`msdnet.networks.padded`)."""

    def __init__(self, *channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, *maps: Tensor) -> Tensor:
        return torch.cat(maps, dim=1)


class ConvHead(nn.Sequential):
    """A classifier: two strided convolutions, average pooling over what is left (2x2 in the paper), linear."""

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__(
            ConvNormReLU(inputs, width, kernel=3, stride=2),
            ConvNormReLU(width, width, kernel=3, stride=2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            Linear(width, classes),
        )


class PoolHead(nn.Sequential):
    """A classifier: average pooling over the whole map, linear."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten(), Linear(inputs, classes))


def head_on_the_way(inputs: int, width: int, classes: int) -> ConvHead | PoolHead:
    """With convolutions so wide, or with none."""
    return ConvHead(inputs, width, classes) if width else PoolHead(inputs, classes)
