"""Random models: a graph of nodes whose inputs fit their schemas, then bodies, functions and the odd parts of the format."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from tests.campaigns.fuzz.operators import attributes, constant_for, operators
from tests.campaigns.fuzz.values import NAMES, ODD_NAMES, TYPE_NAMES, Value, array, shape, tensor, type_name

__all__ = ["NEWEST", "random_model"]

NEWEST = onnx.defs.onnx_opset_version()

_COMMON = (1, 1, 1, 1, 7, 6, 9, 11, 10, 16, 2, 3, 8)
"""Element types of inputs, as often as they are tried."""

_FAVOURITES = ("Conv", "Relu", "Add", "MatMul", "Reshape", "Transpose", "Softmax", "Resize", "Upsample", "Slice", "Pad", "Clip",
               "BatchNormalization", "MaxPool", "Concat", "Split", "Squeeze", "Unsqueeze", "Gather", "ReduceMean", "ReduceSum",
               "Cast", "Dropout", "Gemm", "Shape", "Flatten", "QuantizeLinear", "Constant", "Identity")  # fmt: skip


class Graph:
    """A graph in the making: the values that its next node can read."""

    def __init__(self, rng: Random, opset: int, wrong: float) -> None:
        self.rng, self.opset, self.wrong = rng, opset, wrong
        self.values: list[Value] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.initializers: list[TensorProto] = []
        self.nodes: list[onnx.NodeProto] = []
        self._count = 0

    def name(self) -> str:
        """Return a new name; rarely one that is odd, or taken."""
        self._count += 1
        if self.rng.random() < 0.01:
            return self.rng.choice(ODD_NAMES + NAMES)
        return f"v{self._count}"

    def add_input(self, kind: int | None = None, dims: tuple[int, ...] | None = None) -> Value:
        """Add an input of the graph; some of its dims are symbols."""
        rng = self.rng
        kind = rng.choice(_COMMON) if kind is None else kind
        dims = shape(rng) if dims is None else dims
        written: list[Any] = [
            rng.choice(("N", "batch size", "unk__1", None)) if rng.random() < 0.1 else size for size in dims
        ]
        info = helper.make_tensor_value_info(self.name(), kind, None if rng.random() < 0.03 else written)
        self.inputs.append(info)
        return self._known(Value(info.name, info.type, dims))

    def constant(self, value: Any, number: int | None = None) -> Value:
        """Add a constant: an initializer, one that is an input too, or a node."""
        rng, name = self.rng, self.name()
        number = helper.np_dtype_to_tensor_dtype(value.dtype) if number is None else number
        made = tensor(rng, name, value, number)
        if rng.random() < 0.2 and self.opset >= 7:
            made.name = ""
            self.nodes.append(helper.make_node("Constant", [], [name], value=made))
        else:
            self.initializers.append(made)
            if rng.random() < 0.15:
                self.inputs.append(helper.make_tensor_value_info(name, number, list(value.shape)))
        return self._known(
            Value(name, helper.make_tensor_type_proto(number, value.shape), value.shape, value)
        )

    def _known(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def pick(self, allowed: set[str], like: Value | None) -> Value | None:
        """Return a value of one of the types; a new one if there is none, None if it cannot be made."""
        rng = self.rng
        fitting = [value for value in self.values if value.kind in allowed]
        if like is not None and like.shape is not None and rng.random() < 0.8:
            fitting = [value for value in fitting if value.shape in (like.shape, (), like.shape[-1:])]
        if fitting and rng.random() < 0.85:
            return fitting[-1] if rng.random() < 0.5 else rng.choice(fitting)
        numbers = sorted(TYPE_NAMES[kind] for kind in allowed if kind in TYPE_NAMES)
        if not numbers:
            return rng.choice(fitting) if fitting else None
        number = 1 if 1 in numbers and rng.random() < 0.7 else rng.choice(numbers)
        dims = (
            like.shape if like is not None and like.shape is not None and rng.random() < 0.8 else shape(rng)
        )
        return (
            self.add_input(number, dims)
            if rng.random() < 0.5
            else self.constant(array(rng, number, [abs(dim) for dim in dims]), number)
        )

    def add_node(self, schema: Any) -> bool:
        """Add a node of an operator, if values for it can be found and onnx infers its outputs; return whether it was."""
        rng = self.rng
        bound: dict[str, str] = {}
        chosen: list[Value | None] = []
        given: dict[str, Any] = {}
        for index, formal in enumerate(schema.inputs):
            option = formal.option.name
            repeats = rng.randint(1, 3) if option == "Variadic" else 1
            if option == "Optional" and rng.random() < 0.5:
                chosen.append(None)
                continue
            for _ in range(repeats):
                kind = bound.get(formal.type_str)
                allowed = {kind} if kind else set(formal.types)
                like = next((value for value in chosen if value is not None), None)
                numbers = (
                    constant_for(rng, schema.name, index, chosen, given) if rng.random() < 0.95 else None
                )
                value: Value | None = None
                if numbers is not None:
                    number = TYPE_NAMES.get(kind or "", 0) or helper.np_dtype_to_tensor_dtype(numbers.dtype)
                    if number != TensorProto.STRING and f"tensor({_lower(number)})" in allowed:
                        value = self.constant(numbers.astype(helper.tensor_dtype_to_np_dtype(number)), number)
                value = value or self.pick(allowed, like)
                if value is None:
                    return False
                if option != "Variadic" or formal.is_homogeneous:
                    bound[formal.type_str] = value.kind
                chosen.append(value)
            if index == 0:
                first = chosen[0].shape if chosen[0] else ()
                given = attributes(rng, schema, first, self.wrong)
        if not schema.inputs:
            given = attributes(rng, schema, (2, 3), self.wrong)
        return self._finish(schema, chosen, given)

    def _finish(self, schema: Any, chosen: list[Value | None], given: dict[str, Any]) -> bool:
        rng = self.rng
        while chosen and chosen[-1] is None:
            chosen.pop()
        wanted = rng.choice((1, 1, 1, 2, 3))
        named = given.get("num_outputs", wanted)  # may be odd on purpose
        count = max(schema.min_output, min(schema.max_output, named if isinstance(named, int) else wanted))
        if schema.name == "Split":
            count = _parts(chosen, given)
        outputs = [self.name() for _ in range(count)]
        try:
            node = helper.make_node(
                schema.name, [value.name if value else "" for value in chosen], outputs, **given
            )
        except (TypeError, ValueError):
            return False
        node.domain = schema.domain
        if rng.random() < 0.5:
            node.name = rng.choice(ODD_NAMES) if rng.random() < 0.03 else f"{schema.name}_{len(self.nodes)}"
        types = {value.name: value.type for value in chosen if value}
        data = {value.name: numpy_helper.from_array(value.constant, value.name) for value in chosen
                if value and value.constant is not None}  # fmt: skip
        try:
            imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", 3)]
            found = shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=imports)
        except Exception:  # the native code raises many kinds
            if rng.random() > self.wrong:
                return False
            found = {}
        self.nodes.append(node)
        for name in outputs:
            kind = found.get(name)
            if name and kind is not None and type_name(kind):
                self.values.append(Value(name, kind, _shape_of(kind)))
        return True

    def outputs(self) -> list[onnx.ValueInfoProto]:
        """Return outputs: what no node reads, and now and then another value."""
        read = {name for node in self.nodes for name in node.input}
        written = {name for node in self.nodes for name in node.output}
        made = [value for value in self.values if value.name in written]
        kept = [value for value in made if value.name not in read or self.rng.random() < 0.1] or made[-1:]
        infos = []
        for value in {value.name: value for value in kept}.values():
            info = onnx.ValueInfoProto(name=value.name)
            info.type.CopyFrom(value.type)
            if self.rng.random() < 0.03 and info.type.WhichOneof("value") == "tensor_type":
                info.type.tensor_type.ClearField("shape")
            infos.append(info)
        return infos


def _lower(number: int) -> str:
    return str(TensorProto.DataType.Name(number)).lower()


def _parts(chosen: list[Value | None], given: dict[str, Any]) -> int:
    """Return the number of outputs of a Split; another than num_outputs ends onnx's inference with SIGABRT."""
    if "num_outputs" in given:
        return min(max(given["num_outputs"], 1), 4) if isinstance(given["num_outputs"], int) else 2
    if isinstance(given.get("split"), list):
        return len(given["split"])
    sizes = chosen[1].constant if len(chosen) > 1 and chosen[1] else None
    return 2 if sizes is None else max(min(sizes.size, 4), 1)


def _shape_of(kind: onnx.TypeProto) -> tuple[int, ...] | None:
    if kind.WhichOneof("value") != "tensor_type" or not kind.tensor_type.HasField("shape"):
        return None
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.tensor_type.shape.dim]
    return None if None in dims or any(size > 64 for size in dims) else tuple(dims)


def random_model(rng: Random, wrong: float = 0.02) -> onnx.ModelProto:
    """Return a model; its attributes are not valid with probability `wrong`, each."""
    opset = rng.choice((*range(7, NEWEST + 1), *range(7, NEWEST + 1), 1, 5, 6))
    graph = Graph(rng, opset, wrong)
    for _ in range(rng.randint(1, 2)):
        graph.add_input(1 if rng.random() < 0.6 else None)
    schemas = operators("", opset)
    favourites = tuple(schema for schema in schemas if schema.name in _FAVOURITES)
    ml = operators("ai.onnx.ml", 3)
    wanted, tries = rng.randint(1, 9), 0
    while len(graph.nodes) < wanted and tries < 40:
        tries += 1
        pool = favourites if rng.random() < 0.5 else ml if rng.random() < 0.04 else schemas
        graph.add_node(rng.choice(pool))
    made = helper.make_graph(
        graph.nodes, rng.choice(NAMES), graph.inputs, graph.outputs(), graph.initializers
    )
    made.value_info.extend(onnx.ValueInfoProto(name=value.name, type=value.type) for value in graph.values)
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid(rng.choice(("", "", "", "ai.onnx")), opset)]
    )
    model.ir_version = rng.choice((3, 4, 6, 7, 8, 9, 10, 11, 12, 13)) if rng.random() < 0.5 else 8
    if any(node.domain == "ai.onnx.ml" for node in graph.nodes) or rng.random() < 0.05:
        model.opset_import.append(helper.make_opsetid("ai.onnx.ml", rng.choice((1, 2, 3, 4, 5))))
    for part, chance in ((_in_function, 0.15), (_in_branches, 0.15), (_in_loop, 0.08), (_sparse, 0.05),
                         (_symbols, 0.2), (_large, 0.1), (_shadowing, 0.03), (_unused, 0.05), (_described, 0.2)):  # fmt: skip
        if rng.random() < chance:
            part(rng, model)
    if rng.random() < 0.85:
        del model.graph.value_info[:]
    return model


def _reads(nodes: list[onnx.NodeProto]) -> list[str]:
    written = {name for node in nodes for name in node.output}
    return list(dict.fromkeys(name for node in nodes for name in node.input if name and name not in written))


def _cut(rng: Random, model: onnx.ModelProto) -> tuple[int, int, list[onnx.NodeProto], list[str]]:
    """Return a run of nodes: its start, end, copies, and what is read of it elsewhere."""
    nodes = list(model.graph.node)
    start = rng.randrange(len(nodes))
    end = rng.randint(start + 1, len(nodes))
    inner, rest = nodes[start:end], nodes[:start] + nodes[end:]
    read = {name for node in rest for name in node.input} | {value.name for value in model.graph.output}
    return (
        start,
        end,
        [_copy(node) for node in inner],
        [name for node in inner for name in node.output if name in read],
    )


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    made = onnx.NodeProto()
    made.CopyFrom(node)
    return made


def _replace(model: onnx.ModelProto, start: int, end: int, node: onnx.NodeProto) -> None:
    nodes = [_copy(item) for item in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend([*nodes[:start], node, *nodes[end:]])


def _in_function(rng: Random, model: onnx.ModelProto) -> None:
    """Move nodes into a local function, with one of their attributes as its own; at times into one inside another."""
    if not model.graph.node:
        return
    start, end, inner, outputs = _cut(rng, model)
    inputs = _reads(inner)
    if not outputs:
        return
    imports = list(model.opset_import)
    call = helper.make_node("Block", inputs, outputs, "call", domain="local")
    own: list[onnx.AttributeProto] = []
    defaults: list[onnx.AttributeProto] = []
    for node in inner:
        for attribute in node.attribute:
            if attribute.type != onnx.AttributeProto.GRAPH and rng.random() < 0.3 and not own:
                own.append(onnx.AttributeProto())
                own[0].CopyFrom(attribute)
                attribute.CopyFrom(
                    onnx.AttributeProto(
                        name=attribute.name, type=attribute.type, ref_attr_name=attribute.name
                    )
                )
    names = [attribute.name for attribute in own]
    if own and rng.random() < 0.5:
        defaults, names = own, []
    if rng.random() < 0.7:
        call.attribute.extend(own)
    function = helper.make_function("local", "Block", inputs, outputs, inner, imports, names, defaults)
    model.functions.append(function)
    if rng.random() < 0.3:
        forward = helper.make_node("Block", inputs, outputs, domain="local")
        for attribute in own:
            forward.attribute.append(attribute if defaults else onnx.AttributeProto(
                name=attribute.name, type=attribute.type, ref_attr_name=attribute.name))  # fmt: skip
        outer = helper.make_function("local", "Outer", inputs, outputs, [forward],
                                     [*imports, helper.make_opsetid("local", 1)], names, defaults)  # fmt: skip
        call.op_type = "Outer"
        model.functions.append(outer)
    if rng.random() < 0.97:
        model.opset_import.append(helper.make_opsetid("local", 1))
    if rng.random() < 0.9:
        model.ir_version = max(model.ir_version, 8)
    _replace(model, start, end, call)


def _in_branches(rng: Random, model: onnx.ModelProto) -> None:
    """Move nodes into the branches of an If; the other branch computes the same, or is the same."""
    if not model.graph.node:
        return
    start, end, inner, outputs = _cut(rng, model)
    if not outputs:
        return
    infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
    known = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
    infos = [known.get(name, info) for name, info in zip(outputs, infos, strict=True)]
    branches = {}
    for name in ("then_branch", "else_branch"):
        branches[name] = helper.make_graph([_copy(node) for node in inner], name, [], infos)
    if rng.random() < 0.5:
        renamed = helper.make_graph([*inner], "other", [], infos)
        _rename(renamed, {name: f"{name}_else" for node in inner for name in node.output if name})
        branches["else_branch"] = renamed
    condition = helper.make_tensor("condition", TensorProto.BOOL, [], [rng.random() < 0.5])
    if rng.random() < 0.3:
        model.graph.input.append(helper.make_tensor_value_info("condition", TensorProto.BOOL, []))
    else:
        model.graph.initializer.append(condition)
    _replace(model, start, end, helper.make_node("If", ["condition"], outputs, "choose", **branches))


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in graph.output:
        value.name = names.get(value.name, value.name)


def _in_loop(rng: Random, model: onnx.ModelProto) -> None:
    """Move the nodes that the outputs come from into a Loop, whose scan outputs are the outputs."""
    graph = model.graph
    produced = {name for node in graph.node for name in node.output}
    outputs = [value for value in graph.output if value.name in produced]
    if not outputs or len(outputs) != len(graph.output):
        return
    body_outputs = [helper.make_tensor_value_info("going_on", TensorProto.BOOL, [])]
    renames = {value.name: f"{value.name}_turn" for value in outputs}
    for value in outputs:
        info = onnx.ValueInfoProto(name=value.name)
        info.type.CopyFrom(value.type)
        body_outputs.append(info)
    body = helper.make_graph(
        [_copy(node) for node in graph.node], "body",
        [helper.make_tensor_value_info("turn", 7, []), helper.make_tensor_value_info("going", TensorProto.BOOL, [])], [],
    )  # fmt: skip
    body.output.extend(body_outputs)
    _rename(body, renames)
    body.node.append(helper.make_node("Identity", ["going"], ["going_on"]))
    graph.initializer.append(numpy_helper.from_array(np.array(rng.choice((0, 1, 2, 3)), np.int64), "turns"))
    del graph.node[:]
    graph.node.append(
        helper.make_node("Loop", ["turns", ""], [value.name for value in outputs], "loop", body=body)
    )
    for value in outputs:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")


def _sparse(rng: Random, model: onnx.ModelProto) -> None:
    """Write one initializer as a sparse one."""
    for place, item in enumerate(model.graph.initializer):
        if item.data_type != TensorProto.FLOAT or len(item.dims) != 2:
            continue
        value = numpy_helper.to_array(item)
        at = np.flatnonzero(value)
        values = numpy_helper.from_array(value.ravel()[at], item.name)
        if rng.random() < 0.5:
            at = np.stack(np.unravel_index(at, value.shape), axis=1)
        sparse = helper.make_sparse_tensor(
            values, numpy_helper.from_array(at.astype(np.int64), ""), list(value.shape)
        )
        del model.graph.initializer[place]
        model.graph.sparse_initializer.append(sparse)
        model.ir_version = max(model.ir_version, 7)
        return


def _symbols(rng: Random, model: onnx.ModelProto) -> None:
    """Make the first axis of inputs symbolic, and drop what outputs say of theirs."""
    symbol = rng.choice(("N", "batch", "n-1", "N*2", "", "名", "dim 0", "None", "?"))
    initialized = {item.name for item in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in initialized and value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_param = symbol
    for value in model.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def _large(rng: Random, model: onnx.ModelProto) -> None:
    """Add a weight that is larger than what is read into memory, unused or added to a float value."""
    number = rng.choice((1, 1, 10, 11, 7, 6))
    size = rng.choice((1024, 1025, 2000, 5000))
    weight = tensor(rng, "large", array(Random(size), number, (size,)), number)
    model.graph.initializer.append(weight)
    if rng.random() < 0.7:
        number = weight.data_type
        model.graph.node.add(op_type="Identity", input=["large"], output=["large_out"])
        model.graph.output.append(helper.make_tensor_value_info("large_out", number, [size]))
    if rng.random() < 0.2:
        model.graph.input.append(helper.make_tensor_value_info("large", number, [size]))


def _shadowing(rng: Random, model: onnx.ModelProto) -> None:
    """Let the names of a sub-graph's values be those of the graph around it."""
    names = [name for node in model.graph.node for name in node.output if name]
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH and names and attribute.g.node:
                _rename(attribute.g, {attribute.g.node[0].output[0]: rng.choice(names)})


def _unused(rng: Random, model: onnx.ModelProto) -> None:
    """Add imports, functions and inputs that nothing uses."""
    model.opset_import.append(
        helper.make_opsetid(rng.choice(("com.microsoft", "nobody", "ai.onnx.training")), 1)
    )
    model.graph.input.append(helper.make_tensor_value_info("unused", rng.choice((1, 7, 8)), [2]))
    if rng.random() < 0.5:
        model.functions.append(helper.make_function("spare", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])],
                                                    [helper.make_opsetid("", rng.randint(7, NEWEST))]))  # fmt: skip


def _described(rng: Random, model: onnx.ModelProto) -> None:
    """Add what runtimes do not read: metadata, doc strings, training information, quantization annotations."""
    odd = rng.choice(ODD_NAMES)
    model.metadata_props.add(key=f"k{odd}", value=odd)
    model.doc_string = model.graph.doc_string = odd
    model.producer_name, model.domain = odd, rng.choice(("", "d"))
    if rng.random() < 0.3:
        model.graph.quantization_annotation.add(
            tensor_name=rng.choice(NAMES)
        ).quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    if rng.random() < 0.2:
        info = model.training_info.add()
        info.algorithm.CopyFrom(helper.make_graph([], "step", [], []))
        info.update_binding.add(key="a", value="b")
        model.ir_version = max(model.ir_version, 7)
