"""Multiply-adds of anything made of torch modules, counted by running it on the meta device.

Only convolutions and linear layers (matrix products) count, which is what the paper calls FLOPs.
Knows nothing of any particular network.
"""

import copy
from collections.abc import Callable
from itertools import chain
from typing import ParamSpec, TypeVar

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["multiply_adds", "on_meta", "skeleton"]

M = TypeVar("M", bound=nn.Module)
P = ParamSpec("P")
R = TypeVar("R")


def on_meta(module: M) -> M:
    """A copy in evaluation mode whose tensors have shapes but no values; the original's are not copied."""
    tensors = chain(module.parameters(), module.buffers())
    twins = {id(tensor): _like_on_meta(tensor) for tensor in tensors}
    return copy.deepcopy(module, memo=twins).eval()


def skeleton(module: M) -> M:
    """A copy on the meta device without norms: they change no shape, count for nothing, and take most of the time."""
    twin = on_meta(module)
    for part in twin.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.forward = _as_it_is  # type: ignore[assignment, method-assign]
    return twin


def _as_it_is(maps: torch.Tensor) -> torch.Tensor:
    return maps


def multiply_adds(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> tuple[int, R]:
    """The multiply-adds that a call takes, and what it returns."""
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        result = function(*args, **kwargs)
    return counter.get_total_flops() // 2, result  # torch counts a multiply-add as two operations


def _like_on_meta(tensor: torch.Tensor) -> torch.Tensor:
    twin = tensor.detach().to("meta")
    return nn.Parameter(twin, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else twin
