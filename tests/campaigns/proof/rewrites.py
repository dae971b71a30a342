"""Changes of a model that leave what it computes as it is, but for rounding: the second model of an equal pair.

Each takes a model and edits the copy that it gets in place; Unfit is raised where it finds nothing to change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.campaigns.proof.surroundings import Unfit, in_function, rename

__all__ = ["REWRITES"]


def _first(model: onnx.ModelProto, *operators: str) -> tuple[int, onnx.NodeProto]:
    for index, node in enumerate(model.graph.node):
        if node.op_type in operators and node.domain in ("", "ai.onnx"):
            return index, node
    raise Unfit(f"no {' or '.join(operators)}")


def _replace(model: onnx.ModelProto, index: int, nodes: list[onnx.NodeProto]) -> None:
    kept = [*model.graph.node[:index], *nodes, *model.graph.node[index + 1 :]]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


def _constant(model: onnx.ModelProto, name: str) -> Any:
    for tensor in model.graph.initializer:
        if tensor.name == name:
            return numpy_helper.to_array(tensor)
    raise Unfit(f"{name} is no constant")


def _version(model: onnx.ModelProto) -> int:
    return next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)


def nodes_renamed(model: onnx.ModelProto) -> None:
    for index, node in enumerate(model.graph.node):
        node.name = f"renamed_{index}"


def values_renamed(model: onnx.ModelProto) -> None:
    outputs = {value.name for value in model.graph.output}
    names = {
        name: f"other_{index}_{place}"
        for index, node in enumerate(model.graph.node)
        for place, name in enumerate(node.output)
        if name and name not in outputs
    }
    if not names:
        raise Unfit("no inner values")
    rename(model.graph.node, names, outputs=True)
    del model.graph.value_info[:]


def reordered(model: onnx.ModelProto) -> None:
    """Put the nodes in the last order that is topological in place of theirs."""
    left, order, ready = list(model.graph.node), [], set[str]()
    made = {name for node in left for name in node.output}
    while left:
        fitting = [node for node in left if all(name in ready or name not in made for name in _reads(node))]
        if not fitting:
            raise Unfit("the order cannot be found")
        left.remove(fitting[-1])
        order.append(fitting[-1])
        ready.update(fitting[-1].output)
    if [node.output[0] for node in order] == [node.output[0] for node in model.graph.node]:
        raise Unfit("one order only")
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in order]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def _reads(node: onnx.NodeProto) -> set[str]:
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                names |= _reads(inner)
            names |= {value.name for value in attribute.g.output}
    return names


def constants_as_nodes(model: onnx.ModelProto) -> None:
    inputs = {value.name for value in model.graph.input}
    tensors = [tensor for tensor in model.graph.initializer if tensor.name not in inputs]
    if not tensors:
        raise Unfit("no initializers")
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in tensors]
    kept = [tensor for tensor in model.graph.initializer if tensor.name in inputs]
    kept_copies = [TensorProto.FromString(tensor.SerializeToString()) for tensor in kept]
    _replace(model, 0, [*nodes, model.graph.node[0]])
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept_copies)


def constants_as_initializers(model: onnx.ModelProto) -> None:
    found = False
    for index in reversed(range(len(model.graph.node))):
        node = model.graph.node[index]
        if node.op_type == "Constant" and node.attribute[0].name == "value" and model.ir_version >= 4:
            tensor = TensorProto.FromString(node.attribute[0].t.SerializeToString())
            tensor.name = node.output[0]
            del model.graph.node[index]
            model.graph.initializer.append(tensor)
            found = True
    if not found:
        raise Unfit("no Constant nodes")


def into_function(model: onnx.ModelProto) -> None:
    if model.functions:
        raise Unfit("it has functions")
    wrapped, _ = in_function(model, model, {})
    model.CopyFrom(wrapped)


def inlined(model: onnx.ModelProto) -> None:
    from onnx import inliner

    if not model.functions:
        raise Unfit("no functions")
    model.CopyFrom(inliner.inline_local_functions(model))


def identity_inserted(model: onnx.ModelProto) -> None:
    index, node = next(((i, n) for i, n in enumerate(model.graph.node) if n.input and n.input[0]), (-1, None))
    if node is None:
        raise Unfit("no node reads a value")
    extra = helper.make_node("Identity", [node.input[0]], ["same_value"])
    changed = onnx.NodeProto.FromString(node.SerializeToString())
    changed.input[0] = "same_value"
    _replace(model, index, [extra, changed])


def transposed_twice(model: onnx.ModelProto) -> None:
    for value in model.graph.input:
        rank = len(value.type.tensor_type.shape.dim)
        if (
            value.type.HasField("tensor_type")
            and rank >= 2
            and value.type.tensor_type.elem_type == TensorProto.FLOAT
        ):
            break
    else:
        raise Unfit("no matrix of floats")
    perm = [*range(rank - 2), rank - 1, rank - 2]
    rename(model.graph.node, {value.name: "twice"}, outputs=False)
    first = helper.make_node("Transpose", [value.name], ["once"], perm=perm)
    second = helper.make_node("Transpose", ["once"], ["twice"], perm=perm)
    _replace(model, 0, [first, second, model.graph.node[0]])


def operands_swapped(model: onnx.ModelProto) -> None:
    _, node = _first(model, "Add", "Mul", "And", "Or", "Xor", "Max", "Min", "Equal")
    if len(node.input) != 2:
        raise Unfit("not two operands")
    node.input[0], node.input[1] = node.input[1], node.input[0]


def double_as_sum(model: onnx.ModelProto) -> None:
    index, node = _first(model, "Mul")
    constant = _constant(model, node.input[1])
    if constant.size != 1 or float(constant) != 2.0:
        raise Unfit("no product by 2")
    _replace(model, index, [helper.make_node("Add", [node.input[0]] * 2, node.output)])


def gemm_as_matmul(model: onnx.ModelProto) -> None:
    index, node = _first(model, "Gemm")
    given = _attributes(node)
    if given.get("alpha", 1.0) != 1.0 or given.get("beta", 1.0) != 1.0 or given.get("transA", 0):
        raise Unfit("alpha, beta or transA")
    nodes, second = [], node.input[1]
    if given.get("transB", 0):
        nodes.append(helper.make_node("Transpose", [second], ["turned"], perm=[1, 0]))
        second = "turned"
    if len(node.input) == 2:
        nodes.append(helper.make_node("MatMul", [node.input[0], second], node.output))
    else:
        nodes.append(helper.make_node("MatMul", [node.input[0], second], ["product"]))
        nodes.append(helper.make_node("Add", ["product", node.input[2]], node.output))
    _replace(model, index, nodes)


def constant_as_sum(model: onnx.ModelProto) -> None:
    """Write a constant of floats as the sum of its halves, which is exact but for the smallest numbers."""
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in inputs:
            break
    else:
        raise Unfit("no constant of floats")
    half = numpy_helper.from_array(numpy_helper.to_array(tensor) / np.float32(2), "half_of_it")
    name = tensor.name
    model.graph.initializer.remove(tensor)
    model.graph.initializer.append(half)
    _replace(model, 0, [helper.make_node("Add", ["half_of_it"] * 2, [name]), model.graph.node[0]])


def batchnorm_folded(model: onnx.ModelProto) -> None:
    index, node = _first(model, "BatchNormalization")
    maker = next((one for one in model.graph.node if node.input[0] in one.output), None)
    if maker is None or maker.op_type != "Conv" or _attributes(node).get("training_mode"):
        raise Unfit("no Conv before it")
    if sum(node.input[0] in one.input for one in model.graph.node) != 1:
        raise Unfit("the Conv has other readers")
    weight = _constant(model, maker.input[1])
    scale, shift, mean, variance = (_constant(model, name).astype(np.float64) for name in node.input[1:5])
    factor = scale / np.sqrt(variance + _attributes(node).get("epsilon", 1e-5))
    bias = _constant(model, maker.input[2]) if len(maker.input) > 2 else np.zeros(len(weight))
    folded = (weight * factor.reshape([-1] + [1] * (weight.ndim - 1))).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(folded, "folded_weight"))
    moved = ((bias - mean) * factor + shift).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(moved, "folded_bias"))
    maker.output[0] = node.output[0]
    del maker.input[1:]
    maker.input.extend(["folded_weight", "folded_bias"])
    del model.graph.node[index]


def relu_as_max(model: onnx.ModelProto) -> None:
    index, node = _first(model, "Relu")
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "a_zero"))
    _replace(model, index, [helper.make_node("Max", [node.input[0], "a_zero"], node.output)])


def clip_as_bounds(model: onnx.ModelProto) -> None:
    index, node = _first(model, "Clip")
    if len(node.input) != 3 or not all(node.input):
        raise Unfit("not both bounds")
    _replace(
        model,
        index,
        [
            helper.make_node("Max", [node.input[0], node.input[1]], ["above"]),
            helper.make_node("Min", ["above", node.input[2]], node.output),
        ],
    )


def comparison_negated(model: onnx.ModelProto) -> None:
    index, node = _first(model, "GreaterOrEqual", "LessOrEqual")
    other = {"GreaterOrEqual": "Less", "LessOrEqual": "Greater"}[node.op_type]
    # NaN is neither less nor greater: those feeds decide that a pair of these is not equal.
    _replace(
        model,
        index,
        [helper.make_node(other, node.input, ["no"]), helper.make_node("Not", ["no"], node.output)],
    )


def turned_comparison(model: onnx.ModelProto) -> None:
    _, node = _first(model, "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    pairs = {"Greater": "Less", "GreaterOrEqual": "LessOrEqual"}
    node.op_type = {**pairs, **{other: one for one, other in pairs.items()}}[node.op_type]
    node.input[0], node.input[1] = node.input[1], node.input[0]


def padded_apart(model: onnx.ModelProto) -> None:
    index, node = _first(model, "Conv")
    given = _attributes(node)
    pads = given.get("pads", [])
    if not any(pads) or given.get("auto_pad", b"NOTSET") != b"NOTSET" or _version(model) < 11:
        raise Unfit("no padding")
    half = len(pads) // 2
    whole = np.array([0, 0, *pads[:half], 0, 0, *pads[half:]], np.int64)
    model.graph.initializer.append(numpy_helper.from_array(whole, "padding"))
    inner = onnx.NodeProto.FromString(node.SerializeToString())
    inner.input[0] = "padded"
    for attribute in inner.attribute:
        if attribute.name == "pads":
            attribute.CopyFrom(helper.make_attribute("pads", [0] * len(pads)))
    _replace(model, index, [helper.make_node("Pad", [node.input[0], "padding"], ["padded"]), inner])


def split_and_joined(model: onnx.ModelProto) -> None:
    """Put a Concat of one output with nothing behind: flattened and reshaped back."""
    value = model.graph.output[0]
    name = value.name
    if not value.type.HasField("tensor_type") or _version(model) < 13:
        raise Unfit("no tensor")
    rename(model.graph.node, {name: "before_end"}, outputs=True)
    model.graph.node.extend(
        [
            helper.make_node("Shape", ["before_end"], ["its_shape"]),
            helper.make_node("Flatten", ["before_end"], ["a_row"], axis=0),
            helper.make_node("Reshape", ["a_row", "its_shape"], [name]),
        ]
    )


def later_opset(model: onnx.ModelProto) -> None:
    from onnx import version_converter

    version = _version(model)
    if not 8 <= version < 21 or model.functions:
        raise Unfit("no later opset")
    model.CopyFrom(version_converter.convert_version(model, 21))


def by_onnxsim(model: onnx.ModelProto) -> None:
    import onnxsim

    simplified, _ = onnxsim.simplify(model, check_n=0)
    model.CopyFrom(simplified)


def by_onnxslim(model: onnx.ModelProto) -> None:
    try:
        import onnxslim
    except ImportError as error:
        raise Unfit("onnxslim is not installed") from error
    model.CopyFrom(onnxslim.slim(model))


def _by_runtime(level: str) -> Callable[[onnx.ModelProto], None]:
    def optimised(model: onnx.ModelProto) -> None:
        import tempfile
        from pathlib import Path

        import onnxruntime

        with tempfile.TemporaryDirectory() as folder:
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            options.optimized_model_filepath = str(Path(folder, "m.onnx"))
            options.log_severity_level = 4
            onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            model.CopyFrom(onnx.load(Path(folder, "m.onnx")))

    return optimised


REWRITES: dict[str, Callable[[onnx.ModelProto], None]] = {
    "nodes renamed": nodes_renamed,
    "values renamed": values_renamed,
    "nodes reordered": reordered,
    "initializers as Constant nodes": constants_as_nodes,
    "Constant nodes as initializers": constants_as_initializers,
    "wrapped into a function": into_function,
    "functions inlined": inlined,
    "Identity inserted": identity_inserted,
    "transposed twice": transposed_twice,
    "operands swapped": operands_swapped,
    "x*2 as x+x": double_as_sum,
    "Gemm as MatMul and Add": gemm_as_matmul,
    "constant as a sum": constant_as_sum,
    "BatchNormalization folded": batchnorm_folded,
    "Relu as Max": relu_as_max,
    "Clip as Max and Min": clip_as_bounds,
    "comparison negated": comparison_negated,
    "comparison turned": turned_comparison,
    "padding apart": padded_apart,
    "flattened and reshaped": split_and_joined,
    "opset by onnx": later_opset,
    "onnxsim": by_onnxsim,
    "onnxslim": by_onnxslim,
    "ONNX Runtime, basic": _by_runtime("ORT_ENABLE_BASIC"),
    "ONNX Runtime, extended": _by_runtime("ORT_ENABLE_EXTENDED"),
}
