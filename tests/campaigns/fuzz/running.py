"""Runs two models in ONNX Runtime on inputs of its own, and compares the outputs."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from tests.campaigns.fuzz.values import array

__all__ = ["loads", "other_numbers"]

_FED = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.INT8,
        TensorProto.UINT8, TensorProto.FLOAT16, TensorProto.STRING, TensorProto.INT16, TensorProto.UINT16}  # fmt: skip

_RANDOM = {
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
    "Dropout",
}


_HUGE = 1e37
"""What counts as infinite: attention masks with either."""

_DEEPEST = 6
"""Graphs inside graphs that ONNX Runtime is given in this process: nine ended it (1.31)."""


def _depth(model: onnx.ModelProto) -> int:
    """Return how many graphs are inside one another."""
    depth, graphs = 0, [model.graph]
    while graphs:
        depth += 1
        graphs = [
            attribute.g
            for graph in graphs
            for node in graph.node
            for attribute in node.attribute
            if attribute.type == onnx.AttributeProto.GRAPH
        ]
    return depth


def _session(model: onnx.ModelProto, *, optimised: bool = False) -> Any:
    import onnxruntime

    if _depth(model) > _DEEPEST:
        raise ValueError("nested so deeply that ONNX Runtime may run out of stack, and end this process")
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def loads(model: onnx.ModelProto) -> bool:
    """Return whether ONNX Runtime loads a model, without and with optimisation."""
    try:
        return bool(_session(model) and _session(model, optimised=True))
    except Exception:  # the native code raises many kinds
        return False


def other_numbers(
    rng: Random, before: onnx.ModelProto, after: onnx.ModelProto, *, optimised: bool = False
) -> list[str] | None:
    """Return how outputs differ on inputs that the original runs on; [] where they are close, None where it runs on none.

    The original runs without optimisation, and so does the result unless `optimised`.
    """
    if any(node.op_type in _RANDOM for model in (before, after) for node in _nodes(model)):
        return []
    if any(node.op_type == "Loop" and not (node.input and node.input[0]) for node in _nodes(before)):
        return None  # it may never end
    if any(node.op_type == "STFT" for node in _nodes(before)):
        return None  # ONNX Runtime 1.31 divides by a frame_step of 0, which ends this process
    feeds = _feeds(rng, before)
    if feeds is None:
        return None
    try:
        session = _session(before)
        expected = session.run(None, feeds)
        names = [item.name for item in session.get_outputs()]
    except Exception:
        return None
    try:
        session = _session(after, optimised=optimised)
    except Exception:
        return []  # asked elsewhere
    try:
        kept = {item.name for item in session.get_inputs()}
        found = session.run(None, {name: value for name, value in feeds.items() if name in kept})
    except Exception as error:
        return [f"numbers: the original runs, the result does not: {str(error)[:300]}"]
    declared = zip(after.graph.output, found, _declared(before), _declared(after), strict=True)
    wrong = [value.name for value, one, old, new in declared if _fits(one, old) and not _fits(one, new)]
    if wrong:
        return [
            f"numbers: outputs {wrong} have other shapes than the result declares, and the original did not"
        ]
    given = {value.name for value in before.graph.input}  # ONNX Runtime may write over these
    triples = zip(names, expected, found, strict=True)
    differing = [name for name, one, other in triples if name not in given and not _close(one, other)]
    return [f"numbers: outputs {differing} differ on inputs of the oracle's own"] if differing else []


def _nodes(model: onnx.ModelProto) -> Any:
    def inside(nodes: Any) -> Any:
        for node in nodes:
            yield node
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    yield from inside(attribute.g.node)

    yield from inside(model.graph.node)
    for function in model.functions:
        yield from inside(function.node)


def _feeds(rng: Random, model: onnx.ModelProto) -> dict[str, Any] | None:
    stored = {item.name for item in model.graph.initializer} | {
        item.values.name for item in model.graph.sparse_initializer
    }
    feeds: dict[str, Any] = {}
    for value in model.graph.input:
        if value.name in stored:
            continue
        kind = value.type.tensor_type
        if (
            value.type.WhichOneof("value") != "tensor_type"
            or kind.elem_type not in _FED
            or not kind.HasField("shape")
        ):
            return None
        dims = tuple(dim.dim_value if dim.HasField("dim_value") else 2 for dim in kind.shape.dim)
        if any(size < 0 for size in dims) or np.prod([float(size) for size in dims]) > 1e6:
            return None
        feeds[value.name] = array(rng, kind.elem_type, dims)
    return feeds


def _declared(model: onnx.ModelProto) -> list[list[int] | None]:
    """Return the declared dims of each output, -1 for one that is not fixed; None without a shape."""
    found: list[list[int] | None] = []
    for value in model.graph.output:
        kind = value.type.tensor_type
        known = value.type.WhichOneof("value") == "tensor_type" and kind.HasField("shape")
        found.append(
            [dim.dim_value if dim.dim_value > 0 else -1 for dim in kind.shape.dim] if known else None
        )
    return found


def _fits(value: Any, dims: list[int] | None) -> bool:
    if dims is None or not isinstance(value, np.ndarray):
        return True
    return len(dims) == value.ndim and all(
        dim in (-1, size) for dim, size in zip(dims, value.shape, strict=True)
    )


def _close(one: Any, other: Any) -> bool:
    if one is None or other is None or isinstance(one, (list, dict)) or isinstance(other, (list, dict)):
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            return all(_close(a, b) for a, b in zip(one, other, strict=True))
        return type(one) is type(other)
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind not in "fc":
        return bool((one == other).all())
    with np.errstate(all="ignore"):
        a, b = one.astype(np.float64), other.astype(np.float64)
        finite = (np.abs(a) < _HUGE) & (np.abs(b) < _HUGE)
        scale = np.abs(a[finite]).max(initial=0.0)
        relative, absolute = (2e-2, 1e-3) if one.dtype.itemsize == 2 else (1e-3, 1e-6)
        allowed = relative * scale + absolute
        masked = (np.abs(a) >= _HUGE) & (np.abs(b) >= _HUGE) & (np.sign(a) == np.sign(b))
        same = (np.isnan(a) & np.isnan(b)) | (a == b) | masked | (finite & (np.abs(a - b) <= allowed))
    return bool(same.all())
