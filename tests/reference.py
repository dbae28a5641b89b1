"""Size and cost of a multi-scale dense network, derived from its published rules alone.

This is a test oracle: it shares no code with the package, builds no tensors and needs only the standard library.
A cell is one scale of one layer (with the transition that follows it, if any); layer 0 is the seed layer, scale 0 the
finest. Multiply-adds are those of convolutions and linear layers only.
"""

import math
from typing import NamedTuple

Cell = tuple[int, int]  # (layer, scale)


class Counts(NamedTuple):
    """Trainable parameters, and cumulative multiply-adds to each exit by whole layers and by needed cells only."""

    parameters: int
    whole: tuple[int, ...]
    lazy: tuple[int, ...]


class _Cost(NamedTuple):
    parameters: int
    multiply_adds: int


class _Net(NamedTuple):
    growth: int
    factors: tuple[int, ...]
    bottlenecks: tuple[int, ...]
    present: list[range]  # the scales that each layer outputs
    channels: list[tuple[int, int]]  # after each layer, before and after its transition, in units of the finest scale
    transitions: set[int]  # the layers that a transition follows
    areas: list[int]  # positions in a map of each scale


def _total(costs: list[_Cost]) -> _Cost:
    return _Cost(sum(cost.parameters for cost in costs), sum(cost.multiply_adds for cost in costs))


def _half(size: int) -> int:
    return -(-size // 2)


def _conv_bn(kernel: int, inputs: int, outputs: int, area: int) -> _Cost:
    """A bias-free convolution and its batch norm; area is that of the output map."""
    weights = kernel * kernel * inputs * outputs
    return _Cost(weights + 2 * outputs, weights * area)


def _unit(inputs: int, outputs: int, bottleneck: int, area_in: int, area_out: int) -> _Cost:
    middle = min(inputs, bottleneck * outputs)
    # The stride sits in the 3x3, so the 1x1 still works at the size of the input.
    return _total([_conv_bn(1, inputs, middle, area_in), _conv_bn(3, middle, outputs, area_out)])


def _head(inputs: int, hidden: int, classes: int, height: int, width: int) -> _Cost:
    middle = _half(height) * _half(width)
    final = _half(_half(height)) * _half(_half(width))
    linear = _Cost((hidden + 1) * classes, hidden * classes)
    return _total([_conv_bn(3, inputs, hidden, middle), _conv_bn(3, hidden, hidden, final), linear])


def _present(reduction: str, depth: int, layers: int, scales: int) -> list[range]:
    """The scales of layers 0 to depth; the schedule follows the nominal number of layers, not the built depth."""
    interval, numbers = -(-layers // scales), range(1, depth + 1)
    counts = {
        "blocks": [scales - (layer - 1) // interval for layer in numbers],
        "tail": [min(scales, layers - layer + 1) for layer in numbers],
        "none": [scales for _ in numbers],
    }[reduction]
    return [range(scales - count, scales) for count in (scales, *counts)]


def _transitions(reduction: str, present: list[range], layers: int) -> set[int]:
    if reduction == "blocks":
        return {layer for layer in range(1, len(present)) if len(present[layer]) < len(present[layer - 1])}
    # Layer 0, which floor(layers / 3) names in very shallow networks, is the seed and never has a transition.
    return {layers // 3, 2 * layers // 3} - {0} if reduction == "tail" else set()


def _channels(depth: int, seed: int, growth: int, transitions: set[int], ratio: float) -> list[tuple[int, int]]:
    channels = [(seed, seed)]
    for layer in range(1, depth + 1):
        grown = channels[-1][1] + growth
        channels.append((grown, math.floor(grown * ratio) if layer in transitions else grown))
    return channels


def _stem(stem: str, inputs: int, outputs: int, height: int, width: int) -> tuple[_Cost, int, int]:
    """The finest seed map's cost and size."""
    if stem == "cifar":
        return _conv_bn(3, inputs, outputs, height * width), height, width
    if stem == "imagenet":
        height, width = _half(height), _half(width)
        return _conv_bn(7, inputs, outputs, height * width), _half(height), _half(width)  # then the max pool
    raise ValueError(f"unknown stem {stem!r}")


def _cell(net: _Net, layer: int, scale: int) -> _Cost:
    before = net.channels[layer - 1][1]
    outputs, area, parts = net.growth * net.factors[scale], net.areas[scale], []
    if scale - 1 in net.present[layer - 1]:
        finer, strided = scale - 1, outputs // 2
        outputs -= strided
        # The strided half takes the finer scale's bottleneck factor, on its own output channels.
        parts.append(_unit(before * net.factors[finer], strided, net.bottlenecks[finer], net.areas[finer], area))
    parts.append(_unit(before * net.factors[scale], outputs, net.bottlenecks[scale], area, area))
    if layer in net.transitions:
        wide, narrow = (count * net.factors[scale] for count in net.channels[layer])
        parts.append(_conv_bn(1, wide, narrow, area))
    return _total(parts)


def _needed(net: _Net, layer: int) -> set[Cell]:
    """The cells behind an exit at this layer, which reads the coarsest scale; the whole seed layer is among them."""
    needed = {(0, scale) for scale in net.present[0]}
    row = {net.present[0][-1]}
    for current in range(layer, 0, -1):
        needed |= {(current, scale) for scale in row}
        row |= {scale - 1 for scale in row if scale - 1 in net.present[current - 1]}
    return needed


def reference_counts(
    *, exits: tuple[int, ...], layers: int, classes: int, input_channels: int, scales: int, seed_channels: int,
    growth: int, channel_factors: tuple[int, ...], bottleneck_factors: tuple[int, ...], stem: str,
    head_width: int | None, reduction: str, transition_ratio: float, height: int, width: int,
) -> Counts:  # fmt: skip
    """Count the parameters of the cells that some exit reads, and the multiply-adds to reach each exit."""
    present = _present(reduction, exits[-1], layers, scales)
    transitions = _transitions(reduction, present, layers)
    channels = _channels(exits[-1], seed_channels, growth, transitions, transition_ratio)
    seeds = [seed_channels * factor for factor in channel_factors]
    stem_cost, height, width = _stem(stem, input_channels, seeds[0], height, width)
    costs, areas = {(0, 0): stem_cost}, [height * width]
    for scale in range(1, scales):
        height, width = _half(height), _half(width)
        areas.append(height * width)
        costs[0, scale] = _conv_bn(3, seeds[scale - 1], seeds[scale], areas[scale])
    net = _Net(growth, channel_factors, bottleneck_factors, present, channels, transitions, areas)
    needs = [_needed(net, layer) for layer in exits]
    built = set[Cell]().union(*needs)
    costs |= {cell: _cell(net, *cell) for cell in built if cell[0] > 0}
    tops = [channels[layer][1] * channel_factors[scales - 1] for layer in exits]
    # From here height and width are those of the coarsest map, which is all that a head reads.
    heads = [_head(top, head_width or top, classes, height, width) for top in tops]
    whole, lazy = [], []
    for index, layer in enumerate(exits):
        so_far = _total(heads[: index + 1]).multiply_adds
        lazily = set[Cell]().union(*needs[: index + 1])
        whole.append(so_far + sum(costs[cell].multiply_adds for cell in built if cell[0] <= layer))
        lazy.append(so_far + sum(costs[cell].multiply_adds for cell in lazily))
    parameters = _total([*heads, *(costs[cell] for cell in built)]).parameters
    return Counts(parameters, tuple(whole), tuple(lazy))
