"""What the steps of a network are called in ONNX: modules, functions, methods, and what is made of simpler ones."""

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

__all__ = ["FIRST_ALONE", "FUNCTIONS", "MADE_OF", "METHODS", "MODULES", "describe_module", "unsupported"]

Pair: TypeAlias = int | tuple[int, ...] | str


def unsupported(step: fx.Node | nn.Module, why: str) -> ValueError:
    name = getattr(step.target, "__name__", str(step.target)) if isinstance(step, fx.Node) else str(step)
    return ValueError(f"the network cannot be exported: {name}: {why}")


_Described: TypeAlias = tuple[str, tuple[str, ...], dict[str, Any]]
"""An ONNX operation, the names of the module's tensors that it takes, and its attributes."""


def _conv(module: nn.Conv2d) -> _Described:
    if isinstance(module.padding, str) or module.padding_mode != "zeros":
        raise unsupported(module, "only a number of zeros as padding has an ONNX counterpart")
    attributes = {
        "kernel_shape": list(module.kernel_size),
        "strides": list(module.stride),
        "pads": list(module.padding) * 2,
        "dilations": list(module.dilation),
        "group": module.groups,
    }
    return "Conv", ("weight", "bias"), attributes


def _norm(module: nn.BatchNorm2d) -> _Described:
    if module.running_mean is None or module.running_var is None:
        raise unsupported(module, "without running statistics, what it makes of an image depends on the others")
    return "BatchNormalization", ("weight", "bias", "running_mean", "running_var"), {"epsilon": module.eps}


def _max_pool(module: nn.MaxPool2d) -> _Described:
    return "MaxPool", (), {**_window(module), "dilations": list(_pair(module.dilation))}


def _average_pool(module: nn.AvgPool2d) -> _Described:
    if module.divisor_override is not None:
        raise unsupported(module, "no ONNX counterpart is known for divisor_override")
    return "AveragePool", (), {**_window(module), "count_include_pad": int(module.count_include_pad)}


def _window(module: nn.MaxPool2d | nn.AvgPool2d) -> dict[str, Any]:
    return {
        "kernel_shape": list(_pair(module.kernel_size)),
        "strides": list(_pair(module.stride)),
        "pads": list(_pair(module.padding)) * 2,
        "ceil_mode": int(module.ceil_mode),
    }


def _flatten_layer(module: nn.Flatten) -> _Described:
    return "Flatten", (), _flat(module, module.start_dim, module.end_dim)


def _linear(module: nn.Linear) -> _Described:  # noqa: ARG001
    return "Gemm", ("weight", "bias"), {"transB": 1}


MODULES: dict[type[nn.Module], Callable[[Any], _Described]] = {
    nn.Conv2d: _conv,
    nn.BatchNorm2d: _norm,
    nn.ReLU: lambda _: ("Relu", (), {}),
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _average_pool,
    nn.ConstantPad3d: lambda _: ("Pad", (), {}),
    nn.Flatten: _flatten_layer,
    nn.Linear: _linear,
    nn.Softmax: lambda module: ("Softmax", (), {"axis": module.dim}),
    nn.Identity: lambda _: ("Identity", (), {}),
    nn.Dropout: lambda _: ("Identity", (), {}),
    nn.Dropout2d: lambda _: ("Identity", (), {}),
}


def describe_module(module: nn.Module) -> _Described:
    return next(describe for kind, describe in MODULES.items() if isinstance(module, kind))(module)


def _options(node: fx.Node, *names: str) -> dict[str, Any]:
    """What a function is given beside its map, by name; torch also knows numpy's names."""
    if not node.args:
        raise unsupported(node, "give the map first, not by its name")
    by_name = {_NAMES_OF_NUMPY.get(name, name): value for name, value in node.kwargs.items()}
    given: dict[str, Any] = dict(zip(names, node.args[1:], strict=False)) | by_name
    unknown = given.keys() - set(names)
    if unknown:
        raise unsupported(node, f"no ONNX counterpart is known for {', '.join(sorted(unknown))}")
    return given


_NAMES_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}


def _joined(node: fx.Node) -> tuple[str, dict[str, Any]]:
    return "Concat", {"axis": _options(node, "dim").get("dim", 0)}


def _flatten(node: fx.Node) -> tuple[str, dict[str, Any]]:
    given = _options(node, "start_dim", "end_dim")
    return "Flatten", _flat(node, given.get("start_dim", 0), given.get("end_dim", -1))


def _flat(step: fx.Node | nn.Module, start: object, end: object) -> dict[str, Any]:
    if (start, end) != (1, -1):
        raise unsupported(step, f"all dimensions after the first can be flattened, not those from {start} to {end}")
    return {"axis": 1}


def _pooled_to(node: fx.Node) -> tuple[str, dict[str, Any]]:
    """Adaptive pooling: windows side by side, if the map is made of as many."""
    target = _options(node, "output_size")["output_size"]
    sides = cast(fx.Node, node.args[0]).meta["shape"][2:]
    numbers = target if isinstance(target, list | tuple) else (target, target)
    wanted = tuple(side if number is None else number for side, number in zip(sides, numbers, strict=True))
    if wanted == (1, 1):
        return "GlobalAveragePool", {}
    if any(side % number for side, number in zip(sides, wanted, strict=True)):
        raise unsupported(node, f"only windows side by side have an ONNX counterpart, not {wanted} of {sides} pixels")
    window = [side // number for side, number in zip(sides, wanted, strict=True)]
    return "AveragePool", {"kernel_shape": window, "strides": window}


def _mean(node: fx.Node) -> tuple[str, dict[str, Any]]:
    given = _options(node, "dim", "keepdim")
    dimensions = given.get("dim")
    axes = [dimensions] if isinstance(dimensions, int) else list(dimensions or ())
    if not axes:
        raise unsupported(node, "say over which dimensions")
    return "ReduceMean", {"axes": axes, "keepdims": int(given.get("keepdim", False))}


def _named(operation: str) -> Callable[[fx.Node], tuple[str, dict[str, Any]]]:
    return lambda _: (operation, {})


_SIMPLE: dict[str, tuple[Any, ...]] = {
    "Add": (torch.add, operator.add),
    "Sub": (torch.sub, operator.sub),
    "Mul": (torch.mul, operator.mul),
    "Div": (torch.div, operator.truediv),
    "Neg": (torch.neg, operator.neg),
    "Max": (torch.maximum, torch.clamp_min),
    "Min": (torch.minimum, torch.clamp_max),
    "Erf": (torch.erf,),
    "Log": (torch.log,),
    "Relu": (torch.relu,),
    "Sigmoid": (torch.sigmoid,),
    "Tanh": (torch.tanh,),
}
"""What takes maps and numbers in the same order, and has no attributes."""

FUNCTIONS: dict[Any, Callable[[fx.Node], tuple[str, dict[str, Any]]]] = {
    torch.cat: _joined,
    torch.flatten: _flatten,
    torch.mean: _mean,
    functional.adaptive_avg_pool2d: _pooled_to,
    **{function: _named(name) for name, functions in _SIMPLE.items() for function in functions},
}
FIRST_ALONE = (torch.flatten, torch.mean, functional.adaptive_avg_pool2d)
"""Those that take one map; all else that is given to them becomes attributes."""


def _clamp(maps: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    above = maps if min is None else torch.clamp_min(maps, min)
    return above if max is None else torch.clamp_max(above, max)


def _relu(maps: Tensor, inplace: bool = False) -> Tensor:  # noqa: ARG001
    return torch.relu(maps)


def _silu(maps: Tensor, inplace: bool = False) -> Tensor:  # noqa: ARG001
    return maps * torch.sigmoid(maps)


def _gelu(maps: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        return 0.5 * maps * (1 + torch.tanh(math.sqrt(2 / math.pi) * (maps + 0.044715 * maps * maps * maps)))
    return 0.5 * maps * (1 + torch.erf(maps * math.sqrt(0.5)))


def _hard_sigmoid(maps: Tensor, inplace: bool = False) -> Tensor:  # noqa: ARG001
    return _clamp(maps + 3, 0, 6) / 6


def _hard_swish(maps: Tensor, inplace: bool = False) -> Tensor:  # noqa: ARG001
    return maps * _hard_sigmoid(maps)


def _leaky_relu(maps: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:  # noqa: ARG001
    above = torch.relu(maps)
    return above + negative_slope * (maps - above)


def _hard_tanh(maps: Tensor, min_val: float = -1, max_val: float = 1, inplace: bool = False) -> Tensor:  # noqa: ARG001
    return _clamp(maps, min_val, max_val)


def _relu6(maps: Tensor, inplace: bool = False) -> Tensor:  # noqa: ARG001
    return _clamp(maps, 0, 6)


MADE_OF: dict[Any, Callable[..., Tensor]] = {
    torch.clamp: _clamp,
    torch.clip: _clamp,
    functional.relu: _relu,
    functional.silu: _silu,
    functional.gelu: _gelu,
    functional.hardsigmoid: _hard_sigmoid,
    functional.hardswish: _hard_swish,
    functional.hardtanh: _hard_tanh,
    functional.leaky_relu: _leaky_relu,
    functional.relu6: _relu6,
}
"""Functions that the trace has as the simpler ones that they are made of."""

_FUNCTIONS_OF_TORCH = (
    *(function for function in FUNCTIONS if function.__module__ != "_operator"),
    torch.clamp,
    torch.clip,
)
METHODS: dict[str, Callable[..., Tensor]] = {
    function.__name__: function for function in _FUNCTIONS_OF_TORCH if hasattr(Tensor, function.__name__)
}
"""Of tensors, and the functions that do the same."""


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))
