"""The models of single operators that a release is measured with: onnx's node tests, and the forms that exporters write.

Each stands at every opset at which its operator has a version of its own, from opset 9 on, and in other element types too. Of the
node tests, the inputs that hold no data are constants, as models have them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnx.defs import get_all_schemas_with_history, get_schema, has
from onnx.reference import ReferenceEvaluator

from benchmarks.operator_forms import forms
from tests.campaigns.runtimes.sample import (
    MORE,
    OPSETS,
    RELEASES,
    brought_to,
    data_of,
    published,
    with_constants,
    write_io,
)

__all__ = ["Case", "build"]

Array = np.ndarray[Any, Any]

_TYPES = ("float16", "float64", "int64", "int32", "int8", "uint8", "bool")
"""The element types that float32 models are brought to, where the operator takes them."""

_GRID = "form_grid_"
"""How the names of the forms by rule begin: many, each at its own opset and in its own type."""

_RETYPED = 3
"""How many models of a version of an operator are brought to each other type; all forms are to float16."""


@dataclass(frozen=True)
class Case:
    """A model of one operator: what it is of it, as a row of a table can say it, and what tells its file apart."""

    name: str
    """The path of the model without its ending."""
    operator: str
    version: int
    type: str
    """The element type of the first input."""
    rank: int
    """The most axes of an input or output."""
    least: int
    """The fewest axes of what is fed or returned."""
    given: tuple[str, ...]
    """The inputs, but the first, that are no constants, by their names in the schema."""
    others: tuple[str, ...]
    """The other operators of the model."""
    attributes: dict[str, Any]
    """Those of the node, and the defaults of the schema."""
    outputs: int
    empty: bool
    """Whether something that is fed or returned has no elements."""
    digest: str


def build(folder: Path) -> list[Case]:
    """Return the cases, which are written to a folder once."""
    index = folder / "index.jsonl"
    if not index.exists():
        (folder / "io").mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(asdict(case)) for case in _written(folder)]
        index.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = map(json.loads, index.read_text(encoding="utf-8").splitlines())
    return [
        Case(**{**line, "given": tuple(line["given"]), "others": tuple(line["others"])}) for line in found
    ]


def _written(folder: Path) -> Iterator[Case]:
    for stem, operator, model, feeds, expected in _typed(_given()):
        write_io(folder, stem, feeds, expected, [value.name for value in model.graph.output])
        data = (folder / "io" / f"{stem}.npz").read_bytes()
        for opset in _opsets(operator, model, stem.endswith(_TYPES), stem.startswith(_GRID)):
            result = brought_to(model, opset)
            node = None if result is None else _only(result, operator)
            if result is None or node is None or not has(operator, opset, ""):
                continue
            (folder / f"opset{opset}").mkdir(exist_ok=True)
            content = result.SerializeToString(deterministic=True)
            (folder / f"opset{opset}" / f"{stem}.onnx").write_bytes(content)
            digest = hashlib.sha256(content + data).hexdigest()[:16]
            empty = any(np.asarray(value).size == 0 for value in [*feeds.values(), *expected])
            yield _facts(f"opset{opset}/{stem}", result, node, opset, empty=empty, digest=digest)


def _facts(
    name: str, model: onnx.ModelProto, node: onnx.NodeProto, opset: int, *, empty: bool, digest: str
) -> Case:
    schema = get_schema(node.op_type, opset, "")
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    constants = weights.keys() | {
        value for other in model.graph.node if other.op_type == "Constant" for value in other.output
    }
    ends = {value.name: value.type.tensor_type for value in [*model.graph.input, *model.graph.output]}
    ranks = {value: len(kind.shape.dim) for value, kind in ends.items()}
    axes = [*ranks.values(), *(len(weights[value].dims) for value in node.input if value in weights)]
    first = node.input[0] if node.input else ""
    number = weights[first].data_type if first in weights else ends[first].elem_type if first in ends else 0
    formal = [schema.inputs[min(at, len(schema.inputs) - 1)].name for at in range(len(node.input))]
    given = [own for value, own in zip(node.input, formal, strict=True) if value and value not in constants]
    attributes = {
        own: helper.get_attribute_value(attribute.default_value)
        for own, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    attributes |= {own.name: helper.get_attribute_value(own) for own in node.attribute}
    plain = {own: _plain(value) for own, value in attributes.items()}
    return Case(
        name,
        node.op_type,
        schema.since_version,
        _type_name(number) if number else "int64",
        max(axes, default=0),
        min(ranks.values(), default=0),
        tuple(dict.fromkeys(own for own in given if own != formal[0])),
        tuple(sorted({other.op_type for other in model.graph.node} - {node.op_type})),
        {own: value for own, value in sorted(plain.items()) if value is not None},
        sum(bool(value) for value in node.output),
        empty,
        digest,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (int, float, str)):
        return value
    if isinstance(value, (list, tuple)) or hasattr(value, "__iter__"):
        return [_plain(item) for item in value]
    return None


def _type_name(number: int) -> str:
    return str(np.dtype(helper.tensor_dtype_to_np_dtype(number)).name)


def _only(model: onnx.ModelProto, operator: str) -> onnx.NodeProto | None:
    """Return the node of an operator, None where the model has none or several of it, as an older opset has it."""
    found = [node for node in model.graph.node if node.op_type == operator]
    return found[0] if len(found) == 1 else None


@cache
def _versions() -> Mapping[str, frozenset[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for schema in get_all_schemas_with_history():
        if not schema.domain:
            found[schema.name].add(schema.since_version)
    return {name: frozenset(versions) for name, versions in found.items()}


def _opsets(operator: str, model: onnx.ModelProto, retyped: bool, alone: bool) -> list[int]:
    """Return the opsets of a model, only its own if it stands alone; of one in another type that of the version of opset 13."""
    own = _opset(model)
    if alone:
        return [max(9, own)]
    wanted = {max(9, version) for version in _versions()[operator]} | {max(9, own)}
    opsets = sorted(opset for opset in wanted if opset < OPSETS.stop)
    return [max((opset for opset in opsets if opset <= 13), default=opsets[0])] if retyped else opsets


def _opset(model: onnx.ModelProto) -> int:
    return next((one.version for one in model.opset_import if not one.domain), 1)


Given = tuple[str, str, onnx.ModelProto, dict[str, Array], list[Array]]


def _given() -> Iterator[Given]:
    for name, operator, model, feeds, expected in published(RELEASES + MORE):
        plain = all(value.dtype.isbuiltin == 1 for value in [*feeds.values(), *expected])
        if not plain or operator not in _versions() or not has(operator, _opset(model), ""):
            continue
        stem = name.removeprefix("test_")
        data = data_of(operator, feeds)
        if len(data) < len(feeds) and data:
            model, feeds = with_constants(model, feeds, data), dict(data)
        yield stem, operator, model, feeds, expected
    for name, model, feeds in forms():
        found = _computed(model, feeds)
        if found is not None:
            del model.graph.output[len(found) :]
            for value, array in zip(model.graph.output, found, strict=True):
                value.CopyFrom(_info(value.name, array))
            yield f"form_{name}", name.removeprefix("grid_").rpartition("_")[0], model, feeds, found


def _typed(given: Iterator[Given]) -> Iterator[Given]:
    """Return what is given, and some of it in other types."""
    made = Counter[tuple[str, str, bool]]()
    for stem, operator, model, feeds, expected in given:
        yield stem, operator, model, feeds, expected
        nodes = [node for node in model.graph.node if node.op_type != "Constant"]
        if len(nodes) > 1 or stem.startswith(_GRID):
            continue
        for name in _TYPES:
            key = (operator, name, stem.startswith("form_"))
            if made[key] >= _RETYPED and not (key[2] and name == "float16"):
                continue
            retyped = _retyped(model, nodes[0], feeds, np.dtype(name))
            found = retyped and _computed(*retyped)
            if retyped and found:
                made[key] += 1
                own, fed = retyped
                for value, array in zip(own.graph.output, found, strict=True):
                    value.CopyFrom(_info(value.name, array))
                yield f"{stem}-{name}", operator, own, fed, found


def _retyped(
    model: onnx.ModelProto, node: onnx.NodeProto, feeds: Mapping[str, Array], wanted: np.dtype[Any]
) -> tuple[onnx.ModelProto, dict[str, Array]] | None:
    """Return a float32 model in another type, that of what has the type of the first input; None where there is none."""
    schema = get_schema(node.op_type, _opset(model), "")
    shared = schema.inputs[0].type_str if schema.inputs else ""
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == shared), ())
    spelled = {"float64": "double"}.get(wanted.name, wanted.name)
    if f"tensor({spelled})" not in allowed:
        return None
    formal = [schema.inputs[min(at, len(schema.inputs) - 1)].type_str for at in range(len(node.input))]
    names = {name for name, own in zip(node.input, formal, strict=True) if own == shared}
    if not names & set(feeds) or any(feeds[name].dtype != np.float32 for name in names & set(feeds)):
        return None
    result = onnx.ModelProto()
    result.CopyFrom(model)
    fed = {name: _cast(value, wanted) if name in names else value for name, value in feeds.items()}
    for value in result.graph.input:
        if value.name in names:
            value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(wanted)
    for tensor in result.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.name in names and array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(_cast(array, wanted), tensor.name))
    del result.graph.value_info[:]
    for value in result.graph.output:
        value.CopyFrom(helper.make_empty_tensor_value_info(value.name))
    return result, fed


def _cast(value: Array, wanted: np.dtype[Any]) -> Array:
    if wanted.kind == "f":
        return value.astype(wanted)
    if wanted.kind == "b":
        return np.asarray(value > 0)
    whole = np.round(value * 3)
    whole = np.where(whole == 0, 1, whole)  # no integer is divided by 0
    return (np.abs(whole) if wanted.kind == "u" else whole).astype(wanted)


def _computed(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array] | None:
    """Return what ONNX Runtime computes, or the reference where it has no kernel; None where neither does."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found = session.run(None, dict(feeds))
    except Exception:  # ONNX Runtime raises classes of its own
        try:
            found = ReferenceEvaluator(model).run(None, dict(feeds))
        except Exception as error:  # the reference raises what NumPy raises
            print(f"{model.graph.node[0].op_type} is computed by neither: {str(error)[:100]}")
            return None
    return [np.asarray(value) for value in found]


def _info(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
