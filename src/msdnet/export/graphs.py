"""Any staged network as ONNX graphs: one for each stage, these behind a switch, or one for all of them.

The network is traced once, stage after stage; the trace is cut after each exit's answer. Weights are not in the
graphs: these point to where each lies in a safetensors file beside them, as ONNX provides for large models.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, fx, nn

from msdnet.bundle import IMAGES, STAGE, STAGE_NAMES
from msdnet.cost import on_meta
from msdnet.export.operators import FIRST_ALONE, FUNCTIONS, MADE_OF, METHODS, MODULES, describe_module, unsupported
from msdnet.networks import StagedNetwork

__all__ = ["LOGITS", "StoredWeights", "stage_graphs", "switched", "whole_graph"]

OPSET, IR_VERSION = 17, 8  # old enough for every onnxruntime of the last years, and all that is needed
LOGITS = "logits"
HALF = ".half"
_DIMENSIONS = ("rows", "channels", "height", "width")


def stage_graphs(network: StagedNetwork, side: int, weights: "StoredWeights") -> list[onnx.ModelProto]:
    """A graph for each stage, for images of some height and width, as many as come.

    It takes maps that stages before it made (the first: the images) and gives the logits and the maps that stages
    after it need, under the same names everywhere.
    """
    trace = _Trace(network, side, weights)
    made_in = {node: stage for stage, nodes in enumerate(trace.stages) for node in nodes}
    needed_later = {
        source for node, stage in made_in.items() for source in node.all_input_nodes if made_in.get(source, -1) < stage
    }
    graphs = []
    for stage, nodes in enumerate(trace.stages):
        inputs = _ordered(
            source for node in nodes for source in node.all_input_nodes if made_in.get(source, -1) < stage
        )
        outputs = [node for node in nodes if node in needed_later]
        graphs.append(trace.write(nodes, inputs, {LOGITS: trace.logits[stage]}, outputs))
    return graphs


def switched(stages: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """All stages in one graph that runs one of them: which, a number says. So they share one pool of threads.

    Inputs and outputs go by their places; the names that each stage has for them (inputs by place, outputs in order)
    are in the graph's metadata.
    """
    graphs = [stage.graph for stage in stages]
    top = _choice(graphs, range(len(graphs)), max(len(graph.output) for graph in graphs))
    top.input.append(helper.make_tensor_value_info(STAGE, TensorProto.INT64, []))
    places = [_places(graph) for graph in graphs]
    for place, rank in sorted({(place, rank) for inputs in places for place, rank in inputs.values()}):
        shape = [f"{dimension}_{place}" for dimension in _DIMENSIONS[:rank]]
        top.input.append(helper.make_tensor_value_info(place, TensorProto.FLOAT, shape))
    model = _model(top)
    names = [
        [{place: name for name, (place, _) in inputs.items()}, [value.name for value in graph.output]]
        for inputs, graph in zip(places, graphs, strict=True)
    ]
    helper.set_model_props(model, {STAGE_NAMES: json.dumps(names)})
    return model


def _places(graph: onnx.GraphProto) -> dict[str, tuple[str, int]]:
    """For each input of a stage its place among the inputs of all stages, and its rank, which a place has for good."""
    places: dict[str, tuple[str, int]] = {}
    for value in graph.input:
        rank = len(value.type.tensor_type.shape.dim)
        before = sum(1 for _, other in places.values() if other == rank)
        places[value.name] = (f"in_{rank}d_{before}", rank)
    return places


def _choice(graphs: Sequence[onnx.GraphProto], stages: range, outputs: int) -> onnx.GraphProto:
    """One of some stages. They are halved again and again, so that only few `If` are on the way to each."""
    if len(stages) == 1:
        return _branch(graphs[stages[0]], stages[0], outputs)
    half = len(stages) // 2
    middle = stages[half]
    earlier, number = f"before_{middle}", helper.make_tensor(f"number_{middle}", TensorProto.INT64, [], [middle])
    names = [f"out_{middle}_{place}" for place in range(outputs)]
    first, second = (_choice(graphs, part, outputs) for part in (stages[:half], stages[half:]))
    nodes = [
        helper.make_node("Less", [STAGE, number.name], [earlier]),
        helper.make_node("If", [earlier], names, then_branch=first, else_branch=second),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    return helper.make_graph(nodes, f"stages_{stages[0] + 1}_to_{stages[-1] + 1}", [], values, [number])


def _branch(graph: onnx.GraphProto, stage: int, outputs: int) -> onnx.GraphProto:
    """A stage's graph that takes its inputs from around it, and gives as many outputs as all the others."""
    places = _places(graph)
    nodes, values = [], list(graph.output)
    for node in graph.node:
        nodes.append(onnx.NodeProto())
        nodes[-1].CopyFrom(node)
        nodes[-1].input[:] = [places[name][0] if name in places else name for name in node.input]
    for number in range(len(values), outputs):
        nothing = helper.make_tensor(f"nothing_{stage}_{number}", TensorProto.FLOAT, [0], [])
        nodes.append(helper.make_node("Constant", [], [nothing.name], value=nothing))
        values.append(helper.make_tensor_value_info(nothing.name, TensorProto.FLOAT, [0]))
    return helper.make_graph(nodes, f"stage_{stage + 1}", [], values, list(graph.initializer))


def whole_graph(network: StagedNetwork, side: int, weights: "StoredWeights") -> onnx.ModelProto:
    """All stages in one graph, which gives the logits of every exit."""
    trace = _Trace(network, side, weights)
    answers = {f"{LOGITS}_{exit + 1}": node for exit, node in enumerate(trace.logits)}
    return trace.write([node for stage in trace.stages for node in stage], [trace.images], answers, [])


class StoredWeights:
    """Where each weight lies in a safetensors file; it begins with the length of a header, which says so."""

    def __init__(self, file_name: str, content: bytes) -> None:
        self.file_name = file_name
        start = 8 + int.from_bytes(content[:8], "little")
        self._entries: dict[str, Any] = json.loads(content[8:start])
        self._start = start

    def initializer(self, name: str) -> onnx.TensorProto:
        """The weight as it is stored."""
        entry = self._entries[name]
        first, end = entry["data_offsets"]
        kind, stored = (TensorProto.FLOAT16, name + HALF) if self._is_half(name) else (TensorProto.FLOAT, name)
        proto = onnx.TensorProto(name=stored, data_type=kind, dims=entry["shape"])
        proto.data_location = TensorProto.EXTERNAL
        place = {"location": self.file_name, "offset": str(self._start + first), "length": str(end - first)}
        for key, value in place.items():
            proto.external_data.add(key=key, value=value)
        return proto

    def casts(self, names: Iterable[str]) -> list[onnx.NodeProto]:
        """Half precision is for the disk: weights become full precision when a graph is loaded."""
        return [
            helper.make_node("Cast", [name + HALF], [name], name=name, to=TensorProto.FLOAT)
            for name in names
            if self._is_half(name)
        ]

    def _is_half(self, name: str) -> bool:
        return bool(self._entries[name]["dtype"] == "F16")


class _AllStages(nn.Module):
    def __init__(self, network: StagedNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> list[Tensor]:
        return list(self.network.answers(self.network.start(images, lazy=True)))


class _Tracer(fx.Tracer):
    """Goes into everything but the modules that have an ONNX counterpart; methods become the functions they are."""

    def __init__(self) -> None:
        super().__init__()
        self.overwritten: list[tuple[fx.Node, fx.Node]] = []
        """Maps that something works on in place, each with what is there afterwards."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:  # noqa: ARG002
        return isinstance(m, tuple(MODULES))

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *more: Any, **named: Any
    ) -> Any:
        if kind == "call_method" and target in METHODS:
            kind, target = "call_function", METHODS[target]
        if kind == "call_function" and target in MADE_OF:
            result: Any = MADE_OF[target](*args, **kwargs)
            if inspect.signature(MADE_OF[target]).bind(*args, **kwargs).arguments.get("inplace"):
                self.overwritten.append((args[0].node, result.node))
            return result
        return super().create_proxy(kind, target, args, kwargs, *more, **named)

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        result = super().call_module(m, forward, args, kwargs)
        leaf, idle = isinstance(m, tuple(MODULES)), isinstance(m, nn.Dropout | nn.Dropout2d)
        if leaf and getattr(m, "inplace", False) and not idle and args:
            self.overwritten.append((args[0].node, result.node))
        return result

    def check_in_place(self) -> None:
        """Who reads a map after it was overwritten reads something else than the graph would give them."""
        order = {node: place for place, node in enumerate(self.graph.nodes)}
        for written, result in self.overwritten:
            if any(order[user] > order[result] for user in written.users):
                raise unsupported(result, "it works in place, on a map that is read once more afterwards")


class _Shapes(fx.Interpreter):
    """Runs a trace and notes the shape of everything in it."""

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, Tensor):
            n.meta["shape"] = tuple(result.shape)
        return result


class _Trace:
    """What a network computes, stage by stage."""

    def __init__(self, network: StagedNetwork, side: int, weights: "StoredWeights") -> None:
        self.weights = weights
        root = _AllStages(on_meta(network))
        tracer = _Tracer()
        graph = tracer.trace(root)
        tracer.check_in_place()
        images = torch.empty(1, network.config.input_channels, side, side, device="meta")
        _Shapes(fx.GraphModule(root, graph)).run(images)
        self.modules = dict(root.named_modules())
        self.images = next(node for node in graph.nodes if node.op == "placeholder")
        output = next(node for node in graph.nodes if node.op == "output")
        self.logits: Sequence[fx.Node] = output.args[0]
        self.stages: list[list[fx.Node]] = [[]]
        for node in graph.nodes:
            if node.op not in ("placeholder", "output"):
                self.stages[-1].append(node)
            if node in self.logits[:-1]:
                self.stages.append([])

    def write(
        self, nodes: Sequence[fx.Node], inputs: Sequence[fx.Node], answers: dict[str, fx.Node], maps: Sequence[fx.Node]
    ) -> onnx.ModelProto:
        """A graph of some nodes. Images and answers have names of their own; all else keeps that of the trace."""
        writer = _Writer({self.images: IMAGES}, {}, [])
        writer.names |= {node: name for name, node in answers.items() if node not in maps}
        for node in nodes:
            writer.add(node, self.modules)
        for name, node in answers.items():
            if node in maps:  # which goes on under its own name
                writer.nodes.append(helper.make_node("Identity", [writer.name(node)], [name], name=name))
        graph = helper.make_graph(
            [*self.weights.casts(writer.weights), *writer.nodes],
            "stage",
            [_value(writer.name(node), node) for node in inputs],
            [_value(name, node) for name, node in answers.items()] + [_value(writer.name(node), node) for node in maps],
            [self.weights.initializer(name) for name in writer.weights],
        )
        return _model(graph)


@dataclass
class _Writer:
    names: dict[fx.Node, str]
    weights: dict[str, None]
    """Their names, once each, though a module may be applied several times."""
    nodes: list[onnx.NodeProto]

    def name(self, node: fx.Node) -> str:
        return self.names.get(node, node.name)

    def add(self, node: fx.Node, modules: dict[str, nn.Module]) -> None:
        if node.op == "call_module":
            module = modules[str(node.target)]
            operation, weights, attributes = describe_module(module)
            inputs = self._inputs(node) + self._weights(node, module, weights)
            if isinstance(module, nn.ConstantPad3d):
                inputs += self._padding(node, module)
        elif node.op == "call_function" and node.target in FUNCTIONS:
            operation, attributes = FUNCTIONS[node.target](node)
            inputs = self._inputs(node)
        else:
            raise unsupported(node, "no ONNX counterpart is known")
        self.nodes.append(helper.make_node(operation, inputs, [self.name(node)], name=node.name, **attributes))

    def _weights(self, node: fx.Node, module: nn.Module, names: Sequence[str]) -> list[str]:
        """Those that it has. ONNX always takes a norm's scale and shift: where it has none, they change nothing."""
        inputs = []
        for name in names:
            if getattr(module, name) is not None:
                inputs.append(f"{str(node.target).removeprefix('network.')}.{name}")
                self.weights[inputs[-1]] = None
            elif isinstance(module, nn.BatchNorm2d):
                inputs.append(f"{node.name}_{name}")
                plain = [float(name == "weight")] * module.num_features
                self.nodes.append(helper.make_node("Constant", [], inputs[-1:], name=inputs[-1], value_floats=plain))
        return inputs

    def _padding(self, node: fx.Node, module: nn.ConstantPad3d) -> list[str]:
        """What ONNX takes beside the map: zeros before each dimension, then after each; and what to pad with."""
        pads = [0, *module.padding[-2::-2], 0, *module.padding[::-2]]  # torch has pairs, the last dimension first
        names = [f"{node.name}_pads", f"{node.name}_value"]
        self.nodes.append(helper.make_node("Constant", [], names[:1], name=names[0], value_ints=pads))
        self.nodes.append(helper.make_node("Constant", [], names[1:], name=names[1], value_float=float(module.value)))
        return names

    def _inputs(self, node: fx.Node) -> list[str]:
        """What a node takes, in order: maps, or numbers, which become constants."""
        if node.target is torch.cat:
            return [self.name(source) for source in cast(Sequence[fx.Node], node.args[0])]
        if node.target in FIRST_ALONE:
            return [self.name(cast(fx.Node, node.args[0]))]
        inputs = []
        for place, value in enumerate(node.args):
            if isinstance(value, fx.Node):
                inputs.append(self.name(value))
            elif isinstance(value, int | float):
                inputs.append(f"{node.name}_number_{place}")
                constant = helper.make_node("Constant", [], inputs[-1:], name=inputs[-1], value_float=float(value))
                self.nodes.append(constant)
            else:
                raise unsupported(node, f"no ONNX counterpart is known for {value!r}")
        if node.kwargs:
            raise unsupported(node, f"no ONNX counterpart is known for {', '.join(node.kwargs)}")
        return inputs


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    operations = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=operations, ir_version=IR_VERSION, producer_name="msdnet")


def _value(name: str, node: fx.Node) -> onnx.ValueInfoProto:
    """What a node gives, for as many rows as come."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", *node.meta["shape"][1:]])


def _ordered(nodes: Iterable[fx.Node]) -> list[fx.Node]:
    return list(dict.fromkeys(nodes))
