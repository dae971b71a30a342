"""Holds a claim of bit-identity: of the outputs, and of the inner values before what would hide a difference.

A Relu lets no difference through where it gives zero, nor a MaxPool where another element wins. What a lift
writes keeps the names of the values it computes, so the values before such nodes can be compared by name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import onnx

from onnx_migrate.analysis.onnx_inference import sheltered
from onnx_migrate.isolate import mark
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import is_float, unequal
from onnx_migrate.verify.equivalence.findings import Judge
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError, Runnable, open_model
from onnx_migrate.verify.model_traits import dependents, exposing, is_random

__all__ = ["hold_inner_exactness", "hold_outer_exactness"]

_MEMORY = 1 << 28
"""How many bytes of inner values are taken out of a model in one run, as far as inference tells their sizes."""
_UNKNOWN = 1 << 24
"""What a value of unknown shape counts for."""

_GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, fill an interval evenly."""

_TELLING = frozenset({
    "Add", "BatchNormalization", "Concat", "Conv", "ConvTranspose", "DepthToSpace", "Div", "Exp", "Expand",
    "Flatten", "Gemm", "Identity", "LayerNormalization", "MatMul", "Mul", "Neg", "Reshape", "SpaceToDepth",
    "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators of whose every input element something is seen in the output."""


def hold_outer_exactness(exact: Runnable, judge: Judge) -> None:
    """Run a model that claims bit-identity as the original was run first. Raises EvaluationError."""
    mark("result before its inexact changes: running")
    names = judge.base.inner_names(exact.proto())
    model = open_model(exposing(exact, names) if names else exact, LEVELS[0])
    judge.hold_exact([model.run(feed.inputs) for feed in judge.base.feeds])


def hold_inner_exactness(
    original: Runnable, before: onnx.ModelProto, exact: Runnable, judge: Judge, seconds: float
) -> None:
    """Hold inner values on the first feed, spread over the model; as many runs as end within `seconds`."""
    start = time.perf_counter()
    made = {name for node in exact.proto().graph.node for name in node.output}
    names = [] if is_random(before) else [name for name in _hidden(before) if name in made]
    chunks = _chunks(names, _sizes(before, judge.base.feeds[0].inputs))
    for index, chunk in enumerate(chunks):
        try:
            _hold(original, exact, chunk, judge)
        except EvaluationError as error:
            judge.notes.append(f"inner values could not be exposed: {error}")
            return
        spent = time.perf_counter() - start
        if index + 1 < len(chunks) and spent * (index + 2) / (index + 1) > seconds:
            done = sum(map(len, chunks[: index + 1]))
            judge.notes.append(
                f"bit-identity was held for {done} of {len(names)} inner values, for want of time"
            )
            return


def _hold(original: Runnable, exact: Runnable, names: list[str], judge: Judge) -> None:
    feed = judge.base.feeds[0].inputs
    mark("original: running, inner values")
    ours = open_model(exposing(original, names), LEVELS[0]).run(feed)
    mark("result before its inexact changes: running, inner values")
    theirs = open_model(exposing(exact, names), LEVELS[0]).run(feed)
    for name in names:
        value = ours[name]
        if isinstance(value, np.ndarray) and is_float(value):
            judge.claim_fails(unequal(name, value, theirs[name]))


def _chunks(names: list[str], sizes: Mapping[str, int]) -> list[list[str]]:
    """Divide the names, each part spread over the model, so that no part is larger than `_MEMORY` or one value."""
    chunks: list[list[str]] = []
    room = 0
    for index in sorted(range(len(names)), key=lambda index: index * _GOLDEN % 1):
        size = sizes.get(names[index], _UNKNOWN)
        if size > room:
            chunks.append([])
            room = _MEMORY
        chunks[-1].append(names[index])
        room -= size
    return chunks


def _sizes(model: onnx.ModelProto, feed: Mapping[str, Any]) -> dict[str, int]:
    """Return the bytes of the values whose shapes inference finds for these inputs."""
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
        inferred = onnx.shape_inference.infer_shapes(sheltered(sized))
    except onnx.shape_inference.InferenceError:  # odd models that run; what is unknown counts for _UNKNOWN
        return {}
    return {
        value.name: 8 * prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in inferred.graph.value_info
        if all(dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim)
    }


def _hidden(model: onnx.ModelProto) -> Iterator[str]:
    """Yield the computed values that nodes read which may hide a difference."""
    inputs = {value.name for value in fed_inputs(model.graph)}
    fed = dependents(model, inputs) - inputs
    read = (name for node in model.graph.node if node.op_type not in _TELLING for name in node.input)
    yield from dict.fromkeys(name for name in read if name in fed)
