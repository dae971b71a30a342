"""Judges a model in another precision: node by node in float32, each value rounded to its type. Written apart from the product.

The types of values are those that the arrays have when they are computed; no type is inferred and no model rewritten. Where
ONNX Runtime has kernels, that runs the model with and without optimisation too, and the worst of the three counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.inliner
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

__all__ = ["ALLOWED", "Strict", "Verdict", "judge", "run_in_onnxruntime"]

HALF, BFLOAT, FLOAT = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
NARROW = {TensorProto.FLOAT16: HALF, TensorProto.BFLOAT16: BFLOAT}
ALLOWED = {"fp16": 5e-3, "bf16": 2e-2, "fp32": 5e-3}
"""By how much of an output's largest magnitude a right result may be off; or twice as far as the floor is."""

_TYPE_ATTRIBUTES = {"to", "dtype", "output_dtype", "output_datatype"}


def session(model: onnx.ModelProto | str, level: str = "ORT_DISABLE_ALL") -> ort.InferenceSession:
    """Load a model, or the file of one, on one thread."""
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    given = model if isinstance(model, str) else model.SerializeToString()
    return ort.InferenceSession(given, options, providers=["CPUExecutionProvider"])


class Strict:
    """A model whose nodes run one by one."""

    def __init__(self, model: onnx.ModelProto) -> None:
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        self._model = model
        self._opsets = {item.domain or "": item.version for item in model.opset_import}
        self._sessions: dict[bytes, ort.InferenceSession] = {}

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name."""
        graph = self._model.graph
        return dict(zip((item.name for item in graph.output), self._graph(graph, {}, feeds), strict=True))

    def _graph(self, graph: onnx.GraphProto, outer: Mapping[str, Any], feeds: Mapping[str, Any]) -> list[Any]:
        values = dict(outer) | {item.name: numpy_helper.to_array(item) for item in graph.initializer}
        values |= {item.values.name: _dense(item) for item in graph.sparse_initializer} | dict(feeds)
        for node in graph.node:
            given = [values[name] if name else None for name in node.input]
            for name, value in zip(node.output, self._node(node, given, values), strict=False):
                values[name] = value
        return [values[item.name] for item in graph.output]

    def _node(self, node: onnx.NodeProto, given: list[Any], values: Mapping[str, Any]) -> Sequence[Any]:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        if node.domain in ("", "ai.onnx"):
            if node.op_type == "If":
                branch = attributes["then_branch" if given[0].item() else "else_branch"]
                return self._graph(branch, values, {})
            if node.op_type == "Loop":
                return self._loop(attributes["body"], given, values)
            if node.op_type == "Scan":
                return self._scan(attributes, given, values)
        kinds = self._rounding(node, given, attributes)
        return [_rounded(value, kind) for value, kind in zip(self._compute(node, given), kinds, strict=False)]

    def _loop(self, body: onnx.GraphProto, given: list[Any], values: Mapping[str, Any]) -> list[Any]:
        turns = given[0].item() if given[0] is not None else np.inf
        goes = given[1] is None or bool(given[1].item())
        carried, stacked, turn = given[2:], [[] for _ in body.output[len(given) - 1 :]], 0
        names = [item.name for item in body.input]
        while goes and turn < turns:
            fed = dict(zip(names, [np.array(turn, np.int64), np.array(goes), *carried], strict=True))
            out = self._graph(body, values, fed)
            goes, carried, turn = bool(out[0].item()), out[1 : len(given) - 1], turn + 1
            for rows, row in zip(stacked, out[len(given) - 1 :], strict=True):
                rows.append(row)
        if not turn and stacked:
            raise NotImplementedError("a Loop without a turn")
        return [*carried, *map(np.stack, stacked)]

    def _scan(self, attributes: Mapping[str, Any], given: list[Any], values: Mapping[str, Any]) -> list[Any]:
        body, count = attributes["body"], attributes["num_scan_inputs"]
        if self._opsets[""] < 9 or any("axes" in name or "directions" in name for name in attributes):
            raise NotImplementedError("this form of Scan")
        carried, read = given[:-count], given[-count:]
        stacked: list[list[Any]] = [[] for _ in body.output[len(carried) :]]
        for turn in range(len(read[0])):
            fed = zip(
                (item.name for item in body.input), [*carried, *(item[turn] for item in read)], strict=True
            )
            out = self._graph(body, values, dict(fed))
            carried = out[: len(carried)]
            for rows, row in zip(stacked, out[len(carried) :], strict=True):
                rows.append(row)
        return [*carried, *map(np.stack, stacked)]

    def _rounding(
        self, node: onnx.NodeProto, given: list[Any], attributes: Mapping[str, Any]
    ) -> list[np.dtype[Any] | None]:
        """Return the narrow type that each output has, None for others."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        narrow = [_kind(value) for value in given]
        first = next(filter(None, narrow), None)
        stated = [attributes[name] for name in _TYPE_ATTRIBUTES & set(attributes) if attributes[name]]
        if node.op_type in ("ConstantOfShape", "Constant") and "value" in attributes:
            stated = [attributes["value"].data_type]
        if stated:
            return [NARROW.get(stated[0])] * len(node.output)
        try:
            schema = onnx.defs.get_schema(node.op_type, self._opsets.get(domain, 1), domain)
        except onnx.defs.SchemaError:
            return [first] * len(node.output)
        bound: dict[str, Any] = {}
        for place, kind in enumerate(narrow):
            formal = schema.inputs[min(place, len(schema.inputs) - 1)]
            if kind is not None:
                bound.setdefault(formal.type_str, kind)
        return [
            bound.get(schema.outputs[min(place, len(schema.outputs) - 1)].type_str)
            for place in range(len(node.output))
        ]

    def _compute(self, node: onnx.NodeProto, given: list[Any]) -> list[Any]:
        """Run a node alone, on wide inputs, and with its constants in float32."""
        wide = [_widened(value) for value in given]
        alone = onnx.NodeProto.FromString(node.SerializeToString())
        del alone.input[:], alone.output[:]
        alone.name = ""
        alone.input.extend("" if value is None else f"i{place}" for place, value in enumerate(wide))
        alone.output.extend(f"o{place}" if name else "" for place, name in enumerate(node.output))
        for attribute in alone.attribute:
            if attribute.name in _TYPE_ATTRIBUTES and attribute.i in NARROW:
                attribute.i = TensorProto.FLOAT
            if attribute.HasField("t") and attribute.t.data_type in NARROW:
                attribute.t.CopyFrom(numpy_helper.from_array(_widened(numpy_helper.to_array(attribute.t))))
        graph = helper.make_graph(
            [alone], "one", [], [onnx.ValueInfoProto(name=name) for name in alone.output if name]
        )
        fed = {}
        for name, value in zip(alone.input, wide, strict=True):
            if (
                isinstance(value, np.ndarray) and value.dtype.kind == "V"
            ):  # what NumPy has no type of is a constant
                graph.initializer.append(numpy_helper.from_array(value, name))
            elif name:
                fed[name] = value
                graph.input.append(helper.make_value_info(name, _type(value)))
        key = graph.SerializeToString()
        if key not in self._sessions:
            opsets = [helper.make_opsetid(*item) for item in self._opsets.items()]
            model = helper.make_model(graph, opset_imports=opsets, ir_version=min(self._model.ir_version, 11))
            self._sessions[key] = session(model)
        found = iter(self._sessions[key].run(None, fed))
        return [next(found) if name else None for name in node.output]


def _dense(item: onnx.SparseTensorProto) -> Any:
    values, indices = numpy_helper.to_array(item.values), numpy_helper.to_array(item.indices)
    dense = np.zeros(int(np.prod(item.dims)), values.dtype)
    dense[indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), tuple(item.dims))] = values
    return dense.reshape(tuple(item.dims))


def _kind(value: Any) -> np.dtype[Any] | None:
    value = value[0] if isinstance(value, list) and value else value
    return value.dtype if isinstance(value, np.ndarray) and value.dtype in (HALF, BFLOAT) else None


def _widened(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_widened, value))
    return value.astype(np.float32) if _kind(value) is not None else value


def _rounded(value: Any, kind: np.dtype[Any] | None) -> Any:
    if isinstance(value, list):
        return [_rounded(item, kind) for item in value]
    with np.errstate(over="ignore"):
        return (
            value.astype(kind) if kind is not None and value is not None and value.dtype == FLOAT else value
        )


def _type(value: Any) -> onnx.TypeProto:
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type(value[0] if value else np.zeros(0, np.float32)))
    kind = TensorProto.STRING if value.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(kind, None)


@dataclass(frozen=True)
class Verdict:
    """One of right, within, off, NaN, or does not load; and how far off as a multiple of what is allowed."""

    state: str
    excess: float = 0.0
    why: str = ""


def run_in_onnxruntime(
    model: onnx.ModelProto | str, feeds: Sequence[Mapping[str, Any]], level: str = "ORT_DISABLE_ALL"
) -> list[dict[str, Any]]:
    """Return the outputs on each of the feeds."""
    loaded = session(model, level)
    names = [item.name for item in loaded.get_outputs()]
    return [dict(zip(names, loaded.run(names, dict(feed)), strict=True)) for feed in feeds]


def judge(
    original: onnx.ModelProto,
    result: Path,
    kind: str,
    feeds: Sequence[Mapping[str, Any]],
    expected: Sequence[Mapping[str, Any]],
) -> Verdict:
    """Return what became of the numbers; `expected` is what the original computes."""
    model = onnx.load(result)
    fed = [_fed(feed, model) for feed in feeds]
    ways = {"strictly": lambda: [Strict(model).run(feed) for feed in fed]}
    if kind != "bf16":
        for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
            ways[level] = lambda level=level: run_in_onnxruntime(str(result), fed, level)
    runs, way = {}, ""
    try:
        for way, run in ways.items():
            runs[way] = run()
    except NotImplementedError:
        raise
    except Exception as error:  # what a runtime says is the verdict
        return Verdict("does not load", why=f"{way}: {' '.join(str(error).split())[:200]}")
    allowed: dict[str, float] = {}
    worst = Verdict("right")
    for way, outputs in runs.items():
        for name, error in _errors(expected, outputs).items():
            if error > ALLOWED[kind] and not allowed:
                allowed = _floors(original, kind, feeds, expected)
            limit = max(ALLOWED[kind], 2 * allowed.get(name, 0.0))
            if error > limit * max(worst.excess, 1):
                state = "within" if error <= 2 * limit else "off" if error < np.inf else "NaN"
                worst = Verdict(
                    state, error / limit, f"{way}: {name!r} is off by {error:.3g}, {limit:.3g} is allowed"
                )
    return worst


def _fed(feed: Mapping[str, Any], model: onnx.ModelProto) -> dict[str, Any]:
    kinds = {item.name: NARROW.get(item.type.tensor_type.elem_type) for item in model.graph.input}
    return {name: _rounded(value, kinds.get(name)) for name, value in feed.items()}


def _floors(
    original: onnx.ModelProto,
    kind: str,
    feeds: Sequence[Mapping[str, Any]],
    expected: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """Return how far off the original is with its weights and inputs rounded, and float32 arithmetic."""
    narrow = BFLOAT if kind == "bf16" else HALF
    rounded = onnx.ModelProto()
    rounded.CopyFrom(original)
    tensors = [*rounded.graph.initializer]
    tensors += [node.attribute[0].t for node in rounded.graph.node if node.op_type == "Constant"]
    for tensor in tensors:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor)
            back = _rounded(values, narrow).astype(np.float32)
            if np.all(np.isfinite(back) & ((back != 0) | (values == 0))):
                tensor.CopyFrom(numpy_helper.from_array(back, tensor.name))
    fed = [{name: _widened(_rounded(value, narrow)) for name, value in feed.items()} for feed in feeds]
    return _errors(expected, run_in_onnxruntime(rounded, fed))


def _errors(expected: Sequence[Mapping[str, Any]], given: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one, other in zip(expected, given, strict=True):
        for name, value in one.items():
            found[name] = max(found.get(name, 0.0), _error(value, other[name]))
    return found


def _error(one: Any, other: Any) -> float:
    """Return how far off floats are, as a share of the largest; of other types the share that differs, from 0.5 % on."""
    if isinstance(one, list):
        return max(map(_error, one, other), default=0.0) if len(one) == len(other) else np.inf
    one, other = _widened(one), _widened(other)
    if one.shape != other.shape:
        return np.inf
    if not one.size:
        return 0.0
    if one.dtype.kind != "f":
        share = float(np.mean(one != other))
        return share if share > 5e-3 else 0.0
    finite = np.isfinite(one)
    if (
        not np.array_equal(one[~finite], other[~finite], equal_nan=True)
        or not np.isfinite(other[finite]).all()
    ):
        return np.inf
    top = float(np.abs(one[finite]).max(initial=0))
    off = float(np.abs(one[finite].astype(np.float64) - other[finite]).max(initial=0))
    return off / top if top else off
