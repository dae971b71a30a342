"""Compares value by value: every value of one model with that of another, computed from the same inputs.

Differences of earlier nodes do not reach a value that is compared this way, so that rounding cannot add up, and a
fault shows at its own node. Both models are cut at the values that they have by the same name: each such value is
computed from what the original computes for those before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.analysis.onnx_inference import without_fragile_ops
from onnx_migrate.isolate import mark
from onnx_migrate.model.graphs import node_label, producers
from onnx_migrate.spec.schema import is_onnx
from onnx_migrate.verify.compare.comparison import bit_difference
from onnx_migrate.verify.compare.rounding import beyond_rounding
from onnx_migrate.verify.equivalence.bit_identity import value_sizes
from onnx_migrate.verify.equivalence.cut_model import CutModel, Reads, varying
from onnx_migrate.verify.evaluators import (
    UNOPTIMIZED,
    Runnable,
    open_model,
    with_extra_outputs,
)
from onnx_migrate.verify.model_traits import is_random

__all__ = ["first_difference", "keeps_all_names"]

_MEMORY = 1 << 29
"""How many bytes of values are compared in one run, by the sizes that inference finds."""
_UNKNOWN = 1 << 24
"""Bytes assumed of a value of unknown shape."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


def keeps_all_names(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """Whether each value that depends on an input is in `after` by the same name, as after a change of single nodes."""
    return set(varying(before)) <= set(varying(after))


def first_difference(
    original: Runnable,
    other: Runnable,
    feeds: Sequence[Mapping[str, Any]],
    ulps: float,
    *,
    same_constants: bool,
) -> str:
    """Describe the first value of `other` that differs by more than rounding from the original's; "" if none does.

    Rounding is `ulps` units of the value's type at its largest magnitude (compare/rounding.py); with `same_constants`,
    only where the constants are the same. The models run without optimisation. Raises EvaluationError.
    """
    before, after = original.proto(), other.proto()
    if is_random(before) or is_random(after):
        return "the model contains random operators"
    present, discrete = set(varying(after)), _discrete(before)
    names = [name for name in varying(before) if name in present and name not in discrete]
    read = Reads(before, names), Reads(after, names)
    constants = _Constants(before, after, read[1])
    for chunk in _chunks(names, value_sizes(before, feeds[0])):
        boundary = [
            name for name in dict.fromkeys([*read[0].by(chunk), *read[1].by(chunk)]) if name not in chunk
        ]
        exposed = open_model(with_extra_outputs(original, [*boundary, *chunk]), UNOPTIMIZED)
        models: list[CutModel] = []
        for feed in feeds:
            mark("original: running, value by value")
            run = exposed.run(feed)
            values = {name: run[name] for name in (*boundary, *chunk) if _is_cut(run[name])}
            wanted = [name for name in chunk if name in values]
            models = models or [CutModel(model, values, wanted) for model in (original, other)]
            given = {**feed, **values}
            mine = models[0].run(given)
            mark("result: running, value by value")
            theirs = models[1].run(given)
            for name in wanted:
                problem = beyond_rounding(mine[name], theirs[name], ulps)
                if same_constants and not problem and bit_difference(name, mine[name], theirs[name]):
                    problem = constants.difference(name)
                if problem:
                    return f"from the same inputs {_maker(after, name)} computes another {name!r}: {problem}"
    return ""


class _Constants:
    """The float constants of two models that have the same name, as far as their data are in the models themselves."""

    def __init__(self, before: onnx.ModelProto, after: onnx.ModelProto, reads: Reads) -> None:
        self._before, self._after = _tensors(before), _tensors(after)
        self._reads = reads

    def difference(self, name: str) -> str:
        """Describe the first constant that this value is computed from and that is not the same; "" if all are."""
        for read in self._reads.all_by([name]):
            one, other = self._before.get(read), self._after.get(read)
            if one is None or other is None:
                continue
            if difference := bit_difference(read, numpy_helper.to_array(one), numpy_helper.to_array(other)):
                return f"the constant {difference}"
        return ""


def _tensors(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    """Return the float tensors with data of their own, by the names of initializers and of Constant's outputs."""
    found = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and is_onnx(node.domain):
            found.update(zip(node.output, (a.t for a in node.attribute if a.name == "value"), strict=False))
    return {
        name: tensor
        for name, tensor in found.items()
        if tensor.data_type in _FLOATS and tensor.data_location != TensorProto.EXTERNAL
    }


def _is_cut(value: object) -> bool:
    """Whether a model is cut at a value: floats, and bytes, which a quantised model computes with."""
    if not isinstance(value, np.ndarray):
        return False
    return value.dtype.kind == "f" or value.dtype in (np.int8, np.uint8)


def _discrete(model: onnx.ModelProto) -> set[str]:
    """Return the values at which no model is cut, as far as inference finds their types."""
    try:
        inferred = onnx.shape_inference.infer_shapes(without_fragile_ops(model))
    except (
        onnx.shape_inference.InferenceError
    ):  # then more is computed in both models; nothing is compared wrongly
        return set()
    kept = (*_FLOATS, TensorProto.INT8, TensorProto.UINT8)
    return {
        value.name
        for value in inferred.graph.value_info
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type not in kept
    }


def _maker(model: onnx.ModelProto, name: str) -> str:
    node = producers(model.graph)[name]
    return f"{node.op_type} {node_label(node)!r}"


def _chunks(names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Divide the names, in their order, into parts of at most `_MEMORY` bytes or a single value."""
    chunk: list[str] = []
    total = 0
    for name in names:
        size = sizes.get(name, _UNKNOWN)
        if chunk and total + size > _MEMORY:
            yield chunk
            chunk, total = [], 0
        chunk.append(name)
        total += size
    if chunk:
        yield chunk
