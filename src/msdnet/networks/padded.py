"""A twin of an MSDNet whose maps all have 8, 16, 24, ... channels, which trains faster.

What multiplies bfloat16 takes 8 channels or more at a time; of 15, libraries first make a copy that has 16, or they
fall back on slower kernels. Here every map is filled up with channels of zeros where it is made, and as long as all is
finite they stay zeros: the weights that make and read them begin as zeros, and have no gradient. All else is computed
as in the network itself. Its tensors become the first part of the twin's: what trains the one trains the other, and
nothing is copied to save or to test it.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from msdnet.networks.layers import Concat
from msdnet.networks.msdnet import MSDNet

__all__ = ["padded"]

_MULTIPLE = 8


def padded(network: MSDNet) -> MSDNet:
    """The twin of a network, in training. From here on the tensors of `network` are views of its twin's.

    A network whose maps all have such numbers of channels is its own twin, and so is one whose BN several GPUs share.
    """
    layers = list(network.modules())
    made = [layer.num_features for layer in layers if isinstance(layer, nn.BatchNorm2d)]
    if not any(channels % _MULTIPLE for channels in made) or any(isinstance(one, nn.SyncBatchNorm) for one in layers):
        return network
    twin = copy.deepcopy(network).train()
    stem = next(layer for layer in network.modules() if isinstance(layer, nn.Conv2d))
    for layer, wider in zip(network.modules(), twin.modules(), strict=True):
        if isinstance(layer, nn.Conv2d):
            _widen(layer, wider, axes=(0,) if layer is stem else (0, 1))  # images stay as they are
        elif isinstance(layer, nn.BatchNorm2d):
            _widen(layer, wider, axes=(0,))
        elif isinstance(layer, nn.Linear):
            _widen(layer, wider, axes=(1,))
    for name, layer in list(twin.named_modules()):
        if isinstance(layer, Concat):
            twin.set_submodule(name, _PaddedConcat(*layer.channels))
    return twin


def _widen(layer: nn.Module, wider: nn.Module, axes: tuple[int, ...]) -> None:
    """Fill the twin's tensors up with zeros along these axes; the layer's own become what they begin with."""
    own, twins = ([*module.parameters(), *module.buffers()] for module in (layer, wider))
    for tensor, twin in zip(own, twins, strict=True):
        shape = [_filled_up(size) if axis in axes else size for axis, size in enumerate(tensor.shape)]
        zeros = tensor.new_zeros(shape)
        twin.data = zeros.to(memory_format=torch.channels_last) if zeros.ndim == 4 else zeros
        begin = twin.data[tuple(map(slice, tensor.shape))]
        begin.copy_(tensor.data)
        tensor.data = begin


def _filled_up(channels: int) -> int:
    return channels + -channels % _MULTIPLE


class _PaddedConcat(Concat):
    """Maps side by side, each without the zeros that it was filled up with; of these, as many as are needed."""

    def forward(self, *maps: Tensor) -> Tensor:
        joined: Tensor = _Join.apply(self.channels, *maps)
        return joined


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, channels: tuple[int, ...], *maps: Tensor) -> Tensor:
        ctx.channels, ctx.widths = channels, [one.shape[1] for one in maps]
        pieces = [one[:, :count] for one, count in zip(maps, channels, strict=True)]
        missing = -sum(channels) % _MULTIPLE
        for one, count in zip(maps, channels, strict=True):
            # Never too few: all maps together have a multiple as well, of at least as many channels.
            pieces.append(one[:, count : count + missing])
            missing -= pieces[-1].shape[1]
        return torch.cat([piece for piece in pieces if piece.shape[1]], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        gradients, begin = [], 0
        for count, width in zip(ctx.channels, ctx.widths, strict=True):
            part = above[:, begin : begin + count]
            gradients.append(functional.pad(part, (0, 0, 0, 0, 0, width - count)))
            begin += count
        return None, *gradients
