"""How often `verify A B` names the node that was changed: python -m benchmarks.changed_nodes MODEL... [--pairs 30]

Each pair is a model and a copy in which one node has other weights, another attribute, or another operator. A third of the
copies have the same names, a third other names of all values and weights, a third are of another opset.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from random import Random

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx_migrate import convert_version, files
from onnx_migrate.comparison import compare
from onnx_migrate.errors import MigrateError
from onnx_migrate.model.graphs import fed_inputs, output_names
from onnx_migrate.verify.equivalence.counterparts import rename_values
from onnx_migrate.verify.model_traits import dependents

OPERATORS = {
    "Add": "Sub", "Sub": "Add", "Mul": "Add", "Relu": "Softplus", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Erf": "Tanh",
    "Sqrt": "Exp", "HardSwish": "Relu", "HardSigmoid": "Sigmoid",
}  # fmt: skip
ATTRIBUTES = {
    "LeakyRelu": ("alpha", 0.3), "Elu": ("alpha", 0.4), "LayerNormalization": ("epsilon", 0.5), "Gemm": ("alpha", 1.5),
    "BatchNormalization": ("epsilon", 0.5), "HardSigmoid": ("alpha", 0.3), "InstanceNormalization": ("epsilon", 0.5),
    "Softmax": ("axis", 1), "ReduceMean": ("keepdims", 1), "AveragePool": ("count_include_pad", 1),
    "Gelu": ("approximate", "tanh"),
}  # fmt: skip
KINDS, SHAPES = ("weights", "attribute", "operator"), ("names", "renamed", "opset")


def changed(model: onnx.ModelProto, kind: str, random: Random) -> str:
    """Change one node in place, and return its name; "" where none can be changed in this way."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    floats = {name for name, tensor in weights.items() if tensor.data_type == onnx.TensorProto.FLOAT}
    reached = dependents(model, {value.name for value in fed_inputs(model.graph)})
    read = [name for node in model.graph.node for name in node.input]
    nodes = [node for node in model.graph.node if not reached.isdisjoint(node.output)]
    random.shuffle(nodes)
    for node in nodes:
        own = [name for name in node.input if name in floats and read.count(name) == 1]
        if kind == "weights" and own:
            tensor = weights[own[0]]
            array = numpy_helper.to_array(tensor)
            spread = np.random.default_rng(0).normal(size=array.shape) * (np.abs(array).max() or 1) * 0.3
            tensor.CopyFrom(numpy_helper.from_array((array + spread).astype(array.dtype), tensor.name))
            return str(node.name)
        if kind == "operator" and node.op_type in OPERATORS and not node.domain:
            if any(name in reached and name not in floats for name in node.input[1:] if "Shape" in name):
                continue
            node.op_type = OPERATORS[node.op_type]
            del node.attribute[:]
            return str(node.name)
        if kind == "attribute" and node.op_type in ATTRIBUTES and not node.domain:
            name, value = ATTRIBUTES[node.op_type]
            kept = [attribute for attribute in node.attribute if attribute.name != name]
            if any(
                attribute.name == name and helper.get_attribute_value(attribute) == value
                for attribute in node.attribute
            ):
                continue
            del node.attribute[:]
            node.attribute.extend([*kept, helper.make_attribute(name, value)])
            return str(node.name)
    return ""


def renamed(model: onnx.ModelProto) -> None:
    """Give all values, nodes and weights other names, in place."""
    kept = {value.name for value in model.graph.input} | set(output_names(model.graph))
    made = [name for node in model.graph.node for name in node.output if name and name not in kept]
    made += [tensor.name for tensor in model.graph.initializer if tensor.name not in kept]
    rename_values(model, {name: f"v{place}" for place, name in enumerate(dict.fromkeys(made))})
    del model.graph.value_info[:]


def pairs(paths: list[str], count: int) -> Iterator[tuple[str, str, onnx.ModelProto, onnx.ModelProto, str]]:
    """Yield models, how a copy was changed, the model, that copy, and the name of the node, for three times as many turns."""
    for turn in range(3 * count):
        path = paths[turn % len(paths)]
        kind, shape = KINDS[(turn + turn // len(paths)) % 3], SHAPES[(turn // 3 + turn // len(paths)) % 3]
        model = files.inline(files.load(path))
        for place, node in enumerate(model.graph.node):
            node.name = f"node{place}_{node.op_type}"
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        name = changed(copy, kind, Random(turn))
        if not name:
            continue
        if shape == "renamed":
            renamed(copy)
        if shape == "opset":
            own = next(item.version for item in copy.opset_import if item.domain in ("", "ai.onnx"))
            copy = convert_version(copy, own + 2)
        yield path, f"{kind}, {shape}", model, copy, name


def main() -> None:
    """Print a line for each pair, and how many were named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--pairs", type=int, default=30)
    given = parser.parse_args()
    right = seen = 0
    for path, how, model, copy, name in pairs(given.models, given.pairs):
        if seen == given.pairs:
            break
        try:
            verdict = compare(model, copy, isolated=False)
        except MigrateError as error:
            print(f"{path}  {how}  not compared: {error}")
            continue
        first = verdict.first_difference
        if verdict.verified or (first is None and not verdict.comparisons):
            print(f"{path}  {how}  no pair: {name} {verdict.summary}", flush=True)
            continue
        seen, named = seen + 1, first.original_node if first else "nothing"
        right += named == name
        print(f"{path}  {how}  {'right' if named == name else 'WRONG'}: {name}, found {named}", flush=True)
    print(f"{right} of {seen}")


if __name__ == "__main__":
    main()
