"""Finds the node that keeps a dim at its frozen size, mixes the items of a batch, or merges another dim into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, numpy_helper

from onnx_migrate.model.graphs import all_nodes, initializer_types, nested_nodes
from onnx_migrate.process import mark
from onnx_migrate.verdicts import Blocker
from onnx_migrate.verify.compare.noise import share_of_noise
from onnx_migrate.verify.dynamic.declared_shapes import batch_axes_of, common_first_axis, item_of
from onnx_migrate.verify.dynamic.sized_runs import RequirementViolated, SizedRunner, Values
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, open_model
from onnx_migrate.verify.kernel import Observation, judge
from onnx_migrate.verify.kernel.arrays import Array
from onnx_migrate.verify.model_traits import needed_nodes

__all__ = ["constant_text", "find_blocker", "named_blocker"]

_FEW, _MANY = 2, 3
"""Two sizes of a batch: an axis that has both is the batch."""
_INCREMENTS = (32, 64)
"""Numbers to add to the frozen size of another dim, in the first and the second run."""


def named_blocker(model: onnx.ModelProto, name: str) -> Blocker | None:
    """Return the node of this name, that a runtime's error names; None for ""."""
    if not name:
        return None
    node = next((node for node in all_nodes(model) if node.name == name), None)
    return _blocker(model, node) if node is not None else Blocker(name, "")


def find_blocker(runner: SizedRunner, violation: RequirementViolated) -> Blocker | None:
    """Return the first node, upstream of the output at fault, whose outputs show the violation and inputs do not.

    None if no such node is found. Runs the model with all values upstream of the output as further outputs.
    """
    if violation.node or not violation.output:
        return named_blocker(runner.model, violation.node)
    mark("result: looking for the node that blocks")
    upstream = needed_nodes(runner.model.graph.node, {violation.output})
    try:
        search = _Search(runner, upstream, violation)
    except EvaluationError as error:
        return named_blocker(runner.model, error.node)
    return next((_blocker(runner.model, node) for node in upstream if search.is_cause(node)), None)


class _Search:
    """All values upstream of an output, at the two sizes (`_first`, `_second`) of the symbol that varied when the run failed.

    If that symbol is a batch, `_alone` holds the values of each item of the first batch, run alone. It needs all items: one of
    two may agree with the batch although the other does not. For example, if a scale is computed over all items, the item with
    the largest number keeps its scale. If another dim merges into the batch, `_merged` holds the values with that dim larger, and
    `_unmerged` with that dim frozen.
    """

    def __init__(
        self, runner: SizedRunner, upstream: list[onnx.NodeProto], violation: RequirementViolated
    ) -> None:
        self._tolerance = runner.tolerance
        self._common = common_first_axis(runner.model)
        varied = violation.varied or runner.batch or set(runner.symbols)
        self._batched = bool(runner.batch) and (bool(violation.merged_at) or varied <= runner.batch)
        batch = (varied & runner.batch) or runner.batch
        names = [name for node in upstream for name in node.output if name]
        # Optimisation fuses nodes, and the values between fused nodes do not exist.
        exposed = open_model(runner.runnable, UNOPTIMIZED, names)

        def run(sizes: Mapping[str, int]) -> Values:
            feed = runner.feed(sizes)
            return feed | exposed.run(feed)

        larger = [{symbol: runner.symbols[symbol] + more for symbol in varied} for more in _INCREMENTS]
        batches = [dict.fromkeys(batch, size) for size in (_FEW, _MANY)]
        pair = batches if self._batched else larger
        self._first, self._second = run(pair[0]), run(pair[1])
        self._alone: list[Values] = []
        self._merged: Values = {}
        if violation.merged_at:
            usual = batches[0] if self._batched else {}
            self._unmerged = self._first if self._batched else run(usual)
            self._merged = run({**violation.merged_at, **usual})
        elif self._batched:
            feed = runner.feed(batches[0])
            single_items = [item_of(runner.model, feed, single_item, batch) for single_item in range(_FEW)]
            self._alone = [single_item | exposed.run(single_item) for single_item in single_items]

    def is_cause(self, node: onnx.NodeProto) -> bool:
        """Whether a node is the cause, provided that no node upstream of it is."""
        # The result of Shape never has a batch axis, so it would look like the cause.
        if node.op_type in ("Shape", "Size"):
            return False
        outputs = [name for name in node.output if name in self._first]
        if self._merged:
            return any(self._merges(name) for name in outputs)
        if not any(self._follows(name) for name in node.input):
            return False
        return not any(map(self._follows, outputs)) or any(map(self._mixes, outputs))

    def _follows(self, name: str) -> bool:
        """Whether the shape of a value changes with the sizes."""
        a, b = self._first.get(name), self._second.get(name)
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            return False
        return bool(batch_axes_of(a.shape, b.shape, _FEW, _MANY)) if self._batched else a.shape != b.shape

    def _mixes(self, name: str) -> bool:
        """Whether an item of a batch differs from a run of that item alone, along every axis that can be the batch."""
        value = self._first[name]
        if not isinstance(value, np.ndarray) or not self._alone:
            return False
        axes = batch_axes_of(value.shape, np.shape(self._second[name]), _FEW, _MANY)
        return bool(axes) and all(
            any(
                self._differs(alone.get(name), np.take(value, [index], axis))
                for index, alone in enumerate(self._alone)
            )
            for axis in axes
        )

    def _differs(self, alone: Any, part: Array) -> bool:
        if not isinstance(alone, np.ndarray):
            return False
        if alone.dtype in (np.int8, np.uint8):
            return alone.shape != part.shape or share_of_noise(alone, part) > 0
        if alone.dtype.kind != "f":
            return False
        # Rounding adds up from node to node, and items that are mixed differ by far more.
        loose = replace(self._tolerance, rtol=1e-2, atol=1e-2 * float(np.max(np.abs(alone), initial=0.0)))
        return bool(judge(Observation("", alone, part, loose)).problem)

    def _merges(self, name: str) -> bool:
        """Whether the batch axis of a value has another length when the other dim is larger."""
        shape, larger = np.shape(self._unmerged[name]), np.shape(self._merged[name])
        if self._batched:
            axes = batch_axes_of(shape, np.shape(self._second[name]), _FEW, _MANY)
        else:
            axes = [0] if shape and shape[0] == self._common else []
        return bool(axes) and all(axis >= len(larger) or larger[axis] != shape[axis] for axis in axes)


def _blocker(model: onnx.ModelProto, node: onnx.NodeProto) -> Blocker:
    # The last constant input: the shape of a Reshape, the sizes of a Resize; but of a Conv the weight, not the bias.
    names = node.input[1:2] if node.op_type in ("Conv", "ConvTranspose", "Gemm") else node.input[::-1]
    texts = ((name, constant_text(model, name)) for name in names)
    constant, holds = next(((name, text) for name, text in texts if text is not None), ("", ""))
    return Blocker(node.name, node.op_type, node.output[0] if node.output else "", constant, holds)


def constant_text(model: onnx.ModelProto, name: str) -> str | None:
    """Return the elements of a constant as a list, or type and shape of one with more than 16; None if it is none."""
    tensor = next((t for t in model.graph.initializer if t.name == name), None)
    for node in nested_nodes(model.graph.node):
        if tensor is None and node.op_type == "Constant" and node.output[0] == name:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.TENSOR:
                    tensor = attribute.t
                elif attribute.type == AttributeProto.INTS:
                    return str(list(attribute.ints))
    if tensor is None:
        sparse = (entry[1:] for entry in initializer_types(model.graph) if entry[0] == name)
        return next((_type_text(dtype, dims) for dtype, dims in sparse), None)
    if prod(tensor.dims) > 16 or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _type_text(tensor.data_type, tensor.dims)
    return str(numpy_helper.to_array(tensor).ravel().tolist())


def _type_text(dtype: int, dims: Sequence[int]) -> str:
    return f"{onnx.TensorProto.DataType.Name(dtype).lower()}[{', '.join(map(str, dims))}]"
