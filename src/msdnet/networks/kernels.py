"""BN, and the ReLU after it, for training on an NVIDIA GPU: kernels in Triton.

Torch's own BN in bfloat16 has a few threads for each channel, which leaves most of a GPU idle where channels are few,
and its ReLU reads and writes every map once more. Here maps with their channels last are a matrix (rows, channels),
where a row is a pixel of an image. Programs take some channels and some of the rows each. A first kernel sums up each
program's rows, a second adds up these sums and does the rest; the same for gradients. All is added in a fixed order, so
that the same training gives the same network again.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["norm"]

_CHANNELS_EACH = 32  # of a program, at most
_SUMMED_AT_ONCE = 4096  # values that a program of the first kernel has under way
_MOST_SUMS = 64  # of each channel, to be added up by every program of the second
_CHANGED_AT_ONCE = 2048  # values that such a program has under way
_MOST_PROGRAMS = 1056  # eight for each processor of the largest GPUs


def norm(maps: Tensor, layer: nn.BatchNorm2d, *, relu: bool) -> Tensor:
    """What `layer` makes of maps (N, C, H, W) with the channels last, in training; its running statistics move."""
    made: Tensor = _Norm.apply(maps, layer.weight, layer.bias, layer, relu)
    return made


class _Norm(torch.autograd.Function):
    """Keeps what went in; what ReLU cut off follows from that."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, layer: nn.BatchNorm2d, relu: bool) -> Tensor:
        made, mean, inverse_std = torch.empty_like(maps), torch.empty_like(weight), torch.empty_like(weight)
        first, second = _to_sum(maps), _to_change(maps)
        sums = first.room_for_sums(maps)
        running = (layer.running_mean, layer.running_var, layer.num_batches_tracked)
        with torch.cuda.device_of(maps):  # Triton launches on the current device, whichever that is
            _sum[first.grid](maps, sums, **first.arguments)
            _normalise[second.grid](
                *(maps, made, sums, weight, bias, mean, inverse_std, *running),
                *(first.parts, layer.momentum, layer.eps),
                **second.arguments,
                parts_block=triton.next_power_of_2(first.parts),
                relu=relu,
            )
        ctx.save_for_backward(maps, weight, bias, mean, inverse_std)
        ctx.relu = relu
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        maps, *known = ctx.saved_tensors
        above = above.contiguous(memory_format=torch.channels_last)
        of_maps, of_weight, of_bias = torch.empty_like(maps), torch.empty_like(known[0]), torch.empty_like(known[1])
        first, second = _to_sum(maps), _to_change(maps)
        sums = first.room_for_sums(maps)
        with torch.cuda.device_of(maps):
            _sum_gradients[first.grid](maps, above, sums, *known, **first.arguments, relu=ctx.relu)
            _gradients[second.grid](
                *(maps, above, of_maps, sums, *known, of_weight, of_bias, first.parts),
                **second.arguments,
                parts_block=triton.next_power_of_2(first.parts),
                relu=ctx.relu,
            )
        return of_maps, of_weight, of_bias, None, None


class _Division(NamedTuple):
    """How a matrix is divided among programs."""

    grid: tuple[int, int]
    """Over channels and over rows."""
    arguments: dict[str, int]
    """For a kernel."""

    @property
    def parts(self) -> int:
        """Of the rows."""
        return self.grid[1]

    def room_for_sums(self, maps: Tensor) -> Tensor:
        """Two of each part for every channel."""
        return torch.empty(self.parts, 2, maps.shape[1], dtype=torch.float32, device=maps.device)


def _to_sum(maps: Tensor) -> _Division:
    """Few enough parts that adding up their sums takes no time; each has much under way, since programs are few."""
    return _divide(maps, _SUMMED_AT_ONCE, blocks_each=2, most_parts=_MOST_SUMS, warps=8)


def _to_change(maps: Tensor) -> _Division:
    """As many parts as keep a GPU busy, but more than one block for each, since each adds up all sums first."""
    strips = triton.cdiv(maps.shape[1], _CHANNELS_EACH)
    return _divide(maps, _CHANGED_AT_ONCE, blocks_each=2, most_parts=max(1, _MOST_PROGRAMS // strips), warps=4)


def _divide(maps: Tensor, at_once: int, *, blocks_each: int, most_parts: int, warps: int) -> _Division:
    count, channels, height, width_of_maps = maps.shape
    rows = count * height * width_of_maps
    width = min(_CHANNELS_EACH, triton.next_power_of_2(channels))
    block = at_once // width
    blocks = triton.cdiv(rows, block)
    rows_each = block * triton.cdiv(blocks, min(most_parts, triton.cdiv(blocks, blocks_each)))
    # A compiler that knows a power of two by which channels can be divided reads so many values at once.
    aligned = min(16, channels & -channels)
    arguments = {"rows": rows, "groups": channels // aligned, "rows_each": rows_each}
    arguments |= {"aligned": aligned, "block": block, "width": width, "num_warps": warps}
    return _Division((triton.cdiv(channels, width), triton.cdiv(rows, rows_each)), arguments)


_SIZES = ["rows", "rows_each", "parts"]  # for which nothing is to be compiled anew


@triton.jit(do_not_specialize=_SIZES)
def _sum(maps, sums, rows, groups, rows_each, aligned: tl.constexpr, block: tl.constexpr, width: tl.constexpr):
    """Sums of the values of some rows, and of their squares, all less the first row's.

    That is about as large as they are, so that squares lose nothing however far the values are from zero.
    """
    channels = groups * aligned
    channel = tl.program_id(0) * width + tl.arange(0, width)
    inside = channel < channels
    first = tl.load(maps + channel, inside, other=0.0).to(tl.float32)[None, :]
    plain, squared = tl.zeros((block, width), tl.float32), tl.zeros((block, width), tl.float32)
    start = tl.program_id(1) * rows_each
    end = tl.minimum(start + rows_each, rows)
    for at in tl.range(start, end, block, loop_unroll_factor=4):
        row = at + tl.arange(0, block)
        here = (row < end)[:, None] & inside[None, :]
        value = tl.load(maps + row.to(tl.int64)[:, None] * channels + channel[None, :], here, other=0.0)
        value = tl.where(here, value.to(tl.float32) - first, 0.0)
        plain += value
        squared += value * value
    _keep(sums, tl.sum(plain, 0), tl.sum(squared, 0), channel, inside, channels)


@triton.jit
def _keep(sums, one, other, channel, inside, channels):
    """Two sums of this part of the rows."""
    place = sums + tl.program_id(1) * 2 * channels + channel
    tl.store(place, one, inside)
    tl.store(place + channels, other, inside)


@triton.jit
def _added_up(sums, channel, inside, channels, parts, parts_block: tl.constexpr):
    """Both kinds of sums over all parts."""
    part = tl.arange(0, parts_block)
    here = (part < parts)[:, None] & inside[None, :]
    place = sums + part[:, None] * 2 * channels + channel[None, :]
    return tl.sum(tl.load(place, here, other=0.0), 0), tl.sum(tl.load(place + channels, here, other=0.0), 0)


@triton.jit(do_not_specialize=_SIZES)
def _normalise(
    maps, made, sums, weight, bias, mean, inverse_std, running_mean, running_variance, batches,
    parts, momentum, epsilon, rows, groups, rows_each,
    aligned: tl.constexpr, block: tl.constexpr, width: tl.constexpr, parts_block: tl.constexpr, relu: tl.constexpr,
):  # fmt: skip
    """BN and, if asked for, ReLU. The first program of its channels moves the running statistics, and notes the mean
    and one over the standard deviation for what goes backward.
    """
    channels = groups * aligned
    channel = tl.program_id(0) * width + tl.arange(0, width)
    inside = channel < channels
    plain, squared = _added_up(sums, channel, inside, channels, parts, parts_block)
    off = plain / rows
    average = tl.load(maps + channel, inside, other=0.0).to(tl.float32) + off
    variance = tl.maximum(squared / rows - off * off, 0.0)
    scale = tl.rsqrt(variance + epsilon)
    if tl.program_id(1) == 0:
        tl.store(mean + channel, average, inside)
        tl.store(inverse_std + channel, scale, inside)
        before = tl.load(running_mean + channel, inside, other=0.0)
        tl.store(running_mean + channel, before + momentum * (average - before), inside)
        unbiased = variance * rows / tl.maximum(rows - 1, 1)
        before = tl.load(running_variance + channel, inside, other=0.0)
        tl.store(running_variance + channel, before + momentum * (unbiased - before), inside)
        if tl.program_id(0) == 0:
            tl.store(batches, tl.load(batches) + 1)
    average = average[None, :]
    scale = (scale * tl.load(weight + channel, inside, other=0.0))[None, :]
    shift = tl.load(bias + channel, inside, other=0.0)[None, :]
    start = tl.program_id(1) * rows_each
    for at in range(start, tl.minimum(start + rows_each, rows), block):
        row = at + tl.arange(0, block)
        here = (row < rows)[:, None] & inside[None, :]
        place = row.to(tl.int64)[:, None] * channels + channel[None, :]
        value = (tl.load(maps + place, here, other=0.0).to(tl.float32) - average) * scale + shift
        tl.store(made + place, tl.maximum(value, 0.0) if relu else value, here)


@triton.jit
def _line(weight, bias, mean, inverse_std, channel, inside):
    """What BN did to some channels: (value - average) * scale + shift, scale being weight / deviation."""
    average = tl.load(mean + channel, inside, other=0.0)[None, :]
    inverse = tl.load(inverse_std + channel, inside, other=0.0)
    scale = (tl.load(weight + channel, inside, other=0.0) * inverse)[None, :]
    return average, inverse, scale, tl.load(bias + channel, inside, other=0.0)[None, :]


@triton.jit
def _through_relu(maps, above, place, here, average, scale, shift, relu: tl.constexpr):
    """How far values are off the average, and the gradients that reach BN; ReLU holds back those of what it cut off."""
    off = tl.load(maps + place, here, other=0.0).to(tl.float32) - average
    gradient = tl.load(above + place, here, other=0.0).to(tl.float32)
    if relu:
        gradient = tl.where(off * scale + shift > 0.0, gradient, 0.0)
    return off, gradient


@triton.jit(do_not_specialize=_SIZES)
def _sum_gradients(
    maps, above, sums, weight, bias, mean, inverse_std, rows, groups, rows_each,
    aligned: tl.constexpr, block: tl.constexpr, width: tl.constexpr, relu: tl.constexpr,
):  # fmt: skip
    """Sums of the gradients of some rows, and of them times the normalised values."""
    channels = groups * aligned
    channel = tl.program_id(0) * width + tl.arange(0, width)
    inside = channel < channels
    average, inverse, scale, shift = _line(weight, bias, mean, inverse_std, channel, inside)
    plain, moved = tl.zeros((block, width), tl.float32), tl.zeros((block, width), tl.float32)
    start = tl.program_id(1) * rows_each
    end = tl.minimum(start + rows_each, rows)
    for at in tl.range(start, end, block, loop_unroll_factor=2):
        row = at + tl.arange(0, block)
        here = (row < end)[:, None] & inside[None, :]
        place = row.to(tl.int64)[:, None] * channels + channel[None, :]
        off, gradient = _through_relu(maps, above, place, here, average, scale, shift, relu)
        plain += gradient
        moved += gradient * off
    _keep(sums, tl.sum(plain, 0), tl.sum(moved, 0) * inverse, channel, inside, channels)


@triton.jit(do_not_specialize=_SIZES)
def _gradients(
    maps, above, of_maps, sums, weight, bias, mean, inverse_std, of_weight, of_bias, parts, rows, groups, rows_each,
    aligned: tl.constexpr, block: tl.constexpr, width: tl.constexpr, parts_block: tl.constexpr, relu: tl.constexpr,
):  # fmt: skip
    """Gradients of the maps and, by the first program of its channels, of weight and bias."""
    channels = groups * aligned
    channel = tl.program_id(0) * width + tl.arange(0, width)
    inside = channel < channels
    plain, moved = _added_up(sums, channel, inside, channels, parts, parts_block)
    if tl.program_id(1) == 0:
        tl.store(of_bias + channel, plain, inside)
        tl.store(of_weight + channel, moved, inside)
    average, inverse, scale, shift = _line(weight, bias, mean, inverse_std, channel, inside)
    plain, moved = (plain / rows)[None, :], (moved * inverse / rows)[None, :]
    start = tl.program_id(1) * rows_each
    for at in range(start, tl.minimum(start + rows_each, rows), block):
        row = at + tl.arange(0, block)
        here = (row < rows)[:, None] & inside[None, :]
        place = row.to(tl.int64)[:, None] * channels + channel[None, :]
        off, gradient = _through_relu(maps, above, place, here, average, scale, shift, relu)
        tl.store(of_maps + place, scale * (gradient - plain - off * moved), here)
