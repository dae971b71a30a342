"""Compares bit for bit where identity is claimed: outputs, and inner values that later nodes may hide.

A Relu hides a difference where its output is zero, a MaxPool one in elements that are not the largest. What a lift
writes keeps the names of the values it computes, so the values that such nodes read are compared by name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import onnx

from onnx_migrate.analysis.onnx_inference import without_fragile_ops
from onnx_migrate.isolate import mark
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import is_float
from onnx_migrate.verify.compare.comparison import bit_difference
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.evaluators import (
    UNOPTIMIZED,
    EvaluationError,
    Runnable,
    open_model,
    with_extra_outputs,
)
from onnx_migrate.verify.model_traits import dependents, is_random

__all__ = ["compare_inner_bits", "run_exact", "value_sizes"]

_MEMORY = 1 << 28
"""How many bytes of inner values are made outputs of a model in one run, by the sizes that inference finds."""
_UNKNOWN = 1 << 24
"""Bytes assumed of a value of unknown shape."""

_GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, fill an interval evenly."""

_TRANSPARENT = frozenset({
    "Add", "BatchNormalization", "Concat", "Conv", "ConvTranspose", "DepthToSpace", "Div", "Exp", "Expand",
    "Flatten", "Gemm", "Identity", "LayerNormalization", "MatMul", "Mul", "Neg", "Reshape", "SpaceToDepth",
    "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose output depends on every element of their inputs."""


def run_exact(exact: Runnable, findings: Findings) -> list[Values]:
    """Run the model for which bit-identity is claimed on every feed, without optimisation. Raises EvaluationError."""
    mark("result before its inexact changes: running")
    names = findings.reference.inner_names(exact.proto())
    model = open_model(with_extra_outputs(exact, names) if names else exact, UNOPTIMIZED)
    return [model.run(feed.inputs) for feed in findings.reference.feeds]


def compare_inner_bits(
    original: Runnable, before: onnx.ModelProto, exact: Runnable, findings: Findings, seconds: float
) -> bool:
    """Compare inner values of both models that may be hidden, on the first feed, until `seconds` have passed.

    Returns whether they are the same, as far as compared. Values are taken in several runs, each spread over the whole
    model, as memory allows.
    """
    start = time.perf_counter()
    computed = {name for node in exact.proto().graph.node for name in node.output}
    names = [] if is_random(before) else [name for name in _hidden(before) if name in computed]
    chunks = _chunks(names, value_sizes(before, findings.reference.feeds[0].inputs))
    for index, chunk in enumerate(chunks):
        try:
            _compare(original, exact, chunk, findings)
        except EvaluationError as error:
            findings.notes.append(
                f"bit-identity of inner values was not checked, because with them as outputs a model fails: {error}"
            )
            break
        spent = time.perf_counter() - start
        if index + 1 < len(chunks) and spent * (index + 2) / (index + 1) > seconds:
            done = sum(map(len, chunks[: index + 1]))
            findings.notes.append(
                f"bit-identity was checked for {done} of {len(names)} inner values, as time was limited"
            )
            break
    return findings.exact is not False


def _compare(original: Runnable, exact: Runnable, names: list[str], findings: Findings) -> None:
    feed = findings.reference.feeds[0].inputs
    mark("original: running, inner values")
    ours = open_model(with_extra_outputs(original, names), UNOPTIMIZED).run(feed)
    mark("result before its inexact changes: running, inner values")
    theirs = open_model(with_extra_outputs(exact, names), UNOPTIMIZED).run(feed)
    for name in names:
        value = ours[name]
        if isinstance(value, np.ndarray) and is_float(value):
            findings.reject_bit_identity(bit_difference(name, value, theirs[name]))


def _chunks(names: list[str], sizes: Mapping[str, int]) -> list[list[str]]:
    """Divide the names, each part spread over the model, so that each is at most `_MEMORY` bytes or a single value."""
    chunks: list[list[str]] = []
    remaining = 0
    for index in sorted(range(len(names)), key=lambda index: index * _GOLDEN % 1):
        size = sizes.get(names[index], _UNKNOWN)
        if size > remaining:
            chunks.append([])
            remaining = _MEMORY
        chunks[-1].append(names[index])
        remaining -= size
    return chunks


def value_sizes(model: onnx.ModelProto, feed: Mapping[str, Any]) -> dict[str, int]:
    """Return the bytes, at eight for each element, of the values whose shapes inference finds for these inputs."""
    sized = onnx.ModelProto()
    sized.CopyFrom(model)
    for value in sized.graph.input:
        array = feed.get(value.name)
        if isinstance(array, np.ndarray) and value.type.HasField("tensor_type"):
            shape = value.type.tensor_type.shape
            shape.Clear()
            for size in array.shape:
                shape.dim.add().dim_value = size
    try:
        inferred = onnx.shape_inference.infer_shapes(without_fragile_ops(sized))
    except onnx.shape_inference.InferenceError:  # a model may run all the same; values then count as _UNKNOWN
        return {}
    return {
        value.name: 8 * prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in inferred.graph.value_info
        if all(dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim)
    }


def _hidden(model: onnx.ModelProto) -> Iterator[str]:
    """Yield the values, computed from inputs, that some node reads which may hide a difference in them."""
    inputs = {value.name for value in fed_inputs(model.graph)}
    computed = dependents(model, inputs) - inputs
    read = (name for node in model.graph.node if node.op_type not in _TRANSPARENT for name in node.input)
    yield from dict.fromkeys(name for name in read if name in computed)
