"""What an importer would say of a model, by the text of its table alone: none of the product's code for targets is used."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from typing import Any

import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.standard.schema import newest_but_for_types
from tests.support.paths import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLES = ROOT / "onnx_migrate" / "standard" / "targets" / "tables"

Table = dict[str, Any]

AXES = {
    "ArgMax": 13, "ArgMin": 13, "Concat": 1, "Flatten": 1, "Gather": 1, "Softmax": 1, "LogSoftmax": 1, "Split": 1, "TopK": 1,
    "LayerNormalization": 17, "GatherElements": 11, "ScatterElements": 11, "Squeeze": 1, "Unsqueeze": 1, "ReduceMean": 1,
    "ReduceSum": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceL2": 1, "Slice": 1,
}  # fmt: skip


def tables() -> dict[str, Table]:
    found: dict[str, Table] = {}
    for path in sorted(TABLES.glob("*.toml"), key=lambda path: path.name.count(".")):
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        if path.stem.endswith(".operators"):  # rows that a program measured
            found[path.stem.removesuffix(".operators")].setdefault("operator", []).extend(
                read.get("operator", [])
            )
        else:
            found[path.stem] = read
    return dict(sorted(found.items()))


def number(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)))


def holds(row: Table, release: str) -> bool:
    low, high = row.get("from", ""), row.get("until", "")
    return (not low or number(low) <= number(release)) and (not high or number(release) < number(high))


def rows_of(table: Table, release: str, domain: str, operator: str) -> list[Table]:
    found = [
        row
        for row in table.get("operator", [])
        if operator in row["names"] and row.get("domain", "") == domain and holds(row, release)
    ]
    return [row for row in found if row.get("measured")] or found


def complaints(table: Table, row: Table, proto: onnx.ModelProto) -> Iterator[str]:
    """Yield what of a model a release does not take, by its row and by the rows of operators."""
    release = row.get("from", "")
    opset = next(item.version for item in proto.opset_import if item.domain in ("", "ai.onnx"))
    if opset > row.get("opset", opset):
        yield f"opset {opset}"
    if opset < row.get("oldest", opset):
        yield f"opset {opset} is too old"
    if proto.ir_version > row.get("ir", proto.ir_version):
        yield f"IR version {proto.ir_version}"
    for value in proto.graph.input if row.get("static") else ():
        if any(not dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim):
            yield f"{value.name} has open dims"
    if proto.functions and not row.get("functions", True):
        yield "functions"
    inferred = onnx.shape_inference.infer_shapes(proto)
    own = {(function.domain, function.name) for function in proto.functions}
    graphs = [inferred.graph, *proto.functions]
    while graphs:
        graph = graphs.pop()
        known = _values(graph)
        for node in graph.node:
            graphs += [item.g for item in node.attribute if item.type == onnx.AttributeProto.GRAPH]
            if (node.domain, node.op_type) not in own:
                yield from _of_operator(table, release, node, known, opset)
                yield from _of_form(row, node, known, opset)
    if "initializers_as_inputs" in row.get("write", []):
        listed = {value.name for value in proto.graph.input}
        yield from (f"unlisted {item.name}" for item in proto.graph.initializer if item.name not in listed)


def _in(value: Any, values: Any) -> bool:
    """Return whether a value of an attribute is one of a row, or in its range."""
    if isinstance(values, list):
        return value in values
    low, high = values.get("min", -math.inf), values.get("max", math.inf)
    return all(low <= item <= high for item in (value if isinstance(value, list) else [value]))


def taken(table: Table, release: str, operator: str) -> bool:
    """Return whether a release has an operator at all."""
    rows = rows_of(table, release, "", operator)
    if any(row.get("lacking") for row in rows):
        return False
    return bool(rows) or table.get("operators", "unknown") != "listed"


def _of_operator(
    table: Table, release: str, node: onnx.NodeProto, known: dict[str, onnx.TypeProto], opset: int
) -> Iterator[str]:
    domain = "" if node.domain == "ai.onnx" else node.domain
    rows = rows_of(table, release, domain, node.op_type)
    if any(row.get("lacking") for row in rows) or (not rows and table.get("operators") == "listed"):
        yield f"operator {node.op_type}"
        return
    for row in rows:
        if "newest" in row and not domain:
            version = onnx.defs.get_schema(node.op_type, opset).since_version
            newest = row["newest"]
            if table.get("later_types"):
                newest = newest_but_for_types("", node.op_type, newest)
            if version > newest and min(_versions(node.op_type)) <= newest:
                yield f"{node.op_type}-{version}"
            if (
                "oldest" in row
                and not domain
                and onnx.defs.get_schema(node.op_type, opset).since_version < row["oldest"]
            ):
                yield f"{node.op_type} is too old"
        for name, values in row.get("attributes", {}).items():
            value = _attribute(node, name, opset)
            if name == "nearest_mode" and _attribute(node, "mode", opset) != "nearest":
                continue  # it means nothing there
            if value is not None and not _in(value, values):
                yield f"{node.op_type} with {name} {value}"
        if "types" in row and node.input and node.input[0] in known:
            kind = known[node.input[0]].tensor_type.elem_type
            if kind and TensorProto.DataType.Name(kind).lower() not in [
                {"float32": "float", "float64": "double"}.get(name, name) for name in row["types"]
            ]:
                yield f"{node.op_type} of {TensorProto.DataType.Name(kind)}"


def _versions(operator: str) -> list[int]:
    return [
        item.since_version
        for item in onnx.defs.get_all_schemas_with_history()
        if item.name == operator and not item.domain
    ]


def _of_form(row: Table, node: onnx.NodeProto, known: dict[str, Any], opset: int) -> Iterator[str]:
    wanted = row.get("write", [])
    given = {item.name: helper.get_attribute_value(item) for item in node.attribute if not item.ref_attr_name}
    if "kernel_shape" in wanted and node.op_type in ("Conv", "ConvTranspose") and "kernel_shape" not in given:
        yield f"{node.op_type} without kernel_shape"
    if "non_negative_axes" in wanted and node.op_type in AXES:
        axes = given.get("axis", given.get("axes", 0))
        if any(axis < 0 for axis in (axes if isinstance(axes, list) else [axes])):
            yield f"{node.op_type} with axes {axes}"
        for index in (1, 3):
            array = known.get(f"={node.input[index]}") if index < len(node.input) else None
            of_axes = (
                index == 3
                if node.op_type == "Slice"
                else index == 1 and node.op_type in ("Squeeze", "Unsqueeze")
            )
            if array is not None and of_axes and (array < 0).any():
                yield f"{node.op_type} with axes {array}"
    if "constant_scales" in wanted and node.op_type in ("Resize", "Upsample"):
        for name in node.input[2 if node.op_type == "Resize" and opset >= 11 else 1 :]:
            if name and f"={name}" not in known:
                yield f"{node.op_type} with computed {name}"
    if not row.get("resize_axes", True) and node.op_type == "Resize" and "axes" in given:
        yield "Resize with axes"


def _attribute(node: onnx.NodeProto, name: str, opset: int) -> Any:
    for item in node.attribute:
        if item.name == name:
            value = helper.get_attribute_value(item)
            return value.decode() if isinstance(value, bytes) else value
    default = onnx.defs.get_schema(node.op_type, opset).attributes.get(name)
    if default is None or not default.default_value.name:
        return None
    value = helper.get_attribute_value(default.default_value)
    return value.decode() if isinstance(value, bytes) else value


def _values(graph: Any) -> dict[str, Any]:
    """Return the types of the values of a graph by name, and the arrays of its constants by "=" and name."""
    found: dict[str, Any] = {}
    if isinstance(graph, onnx.GraphProto):
        for value in (*graph.input, *graph.value_info, *graph.output):
            found[value.name] = value.type
        for tensor in graph.initializer:
            found[f"={tensor.name}"] = numpy_helper.to_array(tensor)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            found[f"={node.output[0]}"] = numpy_helper.to_array(node.attribute[0].t)
    return found
