"""Compares bit for bit where identity is claimed: outputs, and inner values that later nodes may hide.

A Relu hides a difference where its output is zero, a MaxPool one in elements that are not the largest. What a lift
writes keeps the names of the values it computes, so the values that such nodes read are compared by name.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.analysis.onnx_inference import without_fragile_ops
from onnx_migrate.isolate import mark
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import is_float
from onnx_migrate.verify.compare.comparison import bit_difference
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.inner_values import values_upstream
from onnx_migrate.verify.evaluators import (
    UNOPTIMIZED,
    EvaluationError,
    Evaluator,
    Runnable,
    open_model,
    with_extra_outputs,
)
from onnx_migrate.verify.model_traits import dependents, is_random
from onnx_migrate.verify.run_count import begin_run, run_each

__all__ = [
    "compare_inner_bits",
    "compare_recorded_bits",
    "recorded_with_outputs",
    "run_exact",
    "run_recorded",
    "value_sizes",
]

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


def recorded_with_outputs(
    before: onnx.ModelProto, exact: onnx.ModelProto, feed: Mapping[str, Any]
) -> list[str]:
    """Return the inner values to record in the runs that compare the outputs, as many as memory allows.

    Those a few nodes upstream of the outputs come first, in case that these do not vary; then those that are compared.
    Of `feed` only the shapes are used.
    """
    computed = {name for node in exact.graph.node for name in node.output}
    computed -= {output.name for output in before.graph.output}
    upstream = [] if is_random(before) else [name for name in values_upstream(before) if name in computed]
    names, sizes = _compared(before, exact), value_sizes(before, feed)
    near = _fitting(upstream, sizes, _MEMORY // 4)
    left = _MEMORY - sum(sizes.get(name, _UNKNOWN) for name in near)
    return near + _fitting([name for name in _spread(names) if name not in near], sizes, left)


def run_exact(exact: Runnable, findings: Findings) -> list[Values]:
    """Run the model for which bit-identity is claimed on every feed, without optimisation. Raises EvaluationError.

    The first run has the inner values that the original's recorded.
    """
    mark("result before its inexact changes: running")
    reference = findings.reference
    names = reference.inner_names(exact.proto())
    return list(run_recorded(exact, names, reference.hidden, reference.inputs(reference.first))[1])


def run_recorded(
    model: Runnable, names: Sequence[str], hidden: Collection[str], feeds: Sequence[Mapping[str, Any]]
) -> tuple[Evaluator, Iterator[Values]]:
    """Load a model without optimisation and run it, with inner values `names` in every run and `hidden` in the first.

    `hidden` is left out where the model fails with it. Raises EvaluationError, also while it is iterated.
    """
    first: list[Values] = []
    try:
        evaluator = open_model(with_extra_outputs(model, [*names, *hidden]), UNOPTIMIZED)
        first = list(run_each(evaluator, feeds, range(len(feeds[:1]))))
    except (EvaluationError, MemoryError):
        if not hidden:
            raise
        hidden = ()
        evaluator = open_model(with_extra_outputs(model, names), UNOPTIMIZED)

    def runs() -> Iterator[Values]:
        yield from first
        for values in run_each(evaluator, feeds, range(len(first), len(feeds))):
            yield {name: value for name, value in values.items() if name not in hidden}

    return evaluator, runs()


def compare_inner_bits(
    original: Runnable, before: onnx.ModelProto, exact: Runnable, findings: Findings, seconds: float
) -> bool:
    """Compare inner values of both models that may be hidden, on the first feed, until `seconds` have passed.

    Returns whether they are the same, as far as compared. Those that were recorded are not compared again. Values are
    taken in several runs, each spread over the whole model, as memory allows.
    """
    start = time.perf_counter()
    all_names = _compared(before, exact.proto())
    names = [name for name in all_names if name not in findings.compared]
    chunks = _chunks(names, value_sizes(before, findings.reference.feeds[0].inputs)) if names else []
    if chunks and findings.reference.dear:
        _note_limit(findings, len(all_names) - len(names), len(all_names))
        chunks = []
    for index, chunk in enumerate(chunks):
        try:
            _compare(original, exact, chunk, findings)
        except (EvaluationError, MemoryError) as error:
            findings.notes.append(
                f"bit-identity of inner values was not checked, because with them as outputs a model fails: {error}"
            )
            break
        spent = time.perf_counter() - start
        if index + 1 < len(chunks) and spent * (index + 2) / (index + 1) > seconds:
            done = len(all_names) - len(names) + sum(map(len, chunks[: index + 1]))
            _note_limit(findings, done, len(all_names))
            break
    return findings.exact is not False


def compare_recorded_bits(
    before: onnx.ModelProto, exact: onnx.ModelProto, values: Values, findings: Findings
) -> bool:
    """Compare the inner values that were recorded in the first run of the original and are in `values`, that of `exact`.

    Returns whether they are the same. They are forgotten, in both, as they may take much memory.
    """
    recorded, names = findings.reference.hidden, _compared(before, exact)
    compared = [name for name in names if name in recorded and name in values]
    _compare_values(compared, recorded, values, findings)
    findings.compared.update(compared)
    for name in recorded.keys() - findings.reference.inner:
        values.pop(name, None)
    recorded.clear()
    return findings.exact is not False


def _note_limit(findings: Findings, done: int, count: int) -> None:
    findings.notes.append(f"bit-identity was checked for {done} of {count} inner values, as time was limited")


def _compared(before: onnx.ModelProto, exact: onnx.ModelProto) -> list[str]:
    """Return the values that are compared: those that may be hidden and that both models compute by the same name."""
    computed = {name for node in exact.graph.node for name in node.output}
    computed -= {output.name for output in before.graph.output}  # which are compared anyway
    return [] if is_random(before) else [name for name in _hidden(before) if name in computed]


def _compare(original: Runnable, exact: Runnable, names: list[str], findings: Findings) -> None:
    feed = findings.reference.feeds[0].inputs
    mark("original: running, inner values")
    begin_run("inner values")
    ours = open_model(with_extra_outputs(original, names), UNOPTIMIZED).run(feed)
    mark("result before its inexact changes: running, inner values")
    begin_run("inner values")
    theirs = open_model(with_extra_outputs(exact, names), UNOPTIMIZED).run(feed)
    _compare_values(names, ours, theirs, findings)


def _compare_values(names: Sequence[str], ours: Values, theirs: Values, findings: Findings) -> None:
    for name in names:
        value = ours[name]
        if isinstance(value, np.ndarray) and is_float(value):
            findings.reject_bit_identity(bit_difference(name, value, theirs[name]))


def _chunks(names: list[str], sizes: Mapping[str, int]) -> list[list[str]]:
    """Divide the names, each part spread over the model, so that each is at most `_MEMORY` bytes or a single value."""
    chunks: list[list[str]] = []
    remaining = 0
    for name in _spread(names):
        size = sizes.get(name, _UNKNOWN)
        if size > remaining:
            chunks.append([])
            remaining = _MEMORY
        chunks[-1].append(name)
        remaining -= size
    return chunks


def _fitting(names: Sequence[str], sizes: Mapping[str, int], memory: int) -> list[str]:
    """Return, in their order, the names that fit into so many bytes together: each one that fits after those before it."""
    fitting = []
    for name in names:
        size = sizes.get(name, _UNKNOWN)
        if size <= memory:
            fitting.append(name)
            memory -= size
    return fitting


def _spread(names: Sequence[str]) -> list[str]:
    """Return the names in an order in which the first ones, however many, are spread over the model."""
    return [names[index] for index in sorted(range(len(names)), key=lambda index: index * _GOLDEN % 1)]


def value_sizes(model: onnx.ModelProto, feed: Mapping[str, Any]) -> dict[str, int]:
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
        inferred = onnx.shape_inference.infer_shapes(without_fragile_ops(sized))
    except Exception:
        # The native code raises many kinds. A model may run all the same, and values count as _UNKNOWN.
        return {}
    return {
        value.name: _bytes_of(value.type.tensor_type.elem_type)
        * prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in inferred.graph.value_info
        if all(dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim)
    }


def _bytes_of(element: int) -> int:
    """Return the size of an element in numpy; eight bytes of a text, and of a type that is not known."""
    if element in (TensorProto.UNDEFINED, TensorProto.STRING):
        return 8
    return int(onnx.helper.tensor_dtype_to_np_dtype(element).itemsize)


def _hidden(model: onnx.ModelProto) -> Iterator[str]:
    """Yield the values, computed from inputs, that some node reads which may hide a difference in them."""
    inputs = {value.name for value in fed_inputs(model.graph)}
    computed = dependents(model, inputs) - inputs
    read = (name for node in model.graph.node if node.op_type not in _TRANSPARENT for name in node.input)
    yield from dict.fromkeys(name for name in read if name in computed)
