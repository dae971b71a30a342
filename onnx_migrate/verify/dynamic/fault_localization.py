"""Finds the node that holds a dim fast, or that lets one leak into the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx

from onnx_migrate.isolate import mark
from onnx_migrate.model.graphs import all_nodes, names_read
from onnx_migrate.verify.compare.arrays import compare
from onnx_migrate.verify.dynamic.sized_runs import Bench, BrokenError, Values, carriers
from onnx_migrate.verify.evaluators import EvaluationError, open_model
from onnx_migrate.verify.inputs.value_ranges import constant_text
from onnx_migrate.verify.model_traits import exposing
from onnx_migrate.verify.verdict import Blocker

__all__ = ["find_blocker", "named_blocker"]

_FEW, _MANY = 2, 3
"""Two sizes of a batch: an axis that has both is the batch."""
_MORE = (32, 64)
"""What is added to the frozen size of another dim, twice."""


def named_blocker(model: onnx.ModelProto, name: str) -> Blocker | None:
    """Return the node that a runtime blamed; None if it blamed none."""
    if not name:
        return None
    node = next((node for node in all_nodes(model) if node.name == name), None)
    return _blocker(model, node) if node is not None else Blocker(name, "")


def find_blocker(bench: Bench, broken: BrokenError) -> Blocker | None:
    """Return the first node, upstream of the output at fault, that loses, mixes or leaks what varies."""
    if broken.node or not broken.output:
        return named_blocker(bench.model, broken.node)
    mark("result: looking for the node that blocks")
    upstream = _upstream(bench.model, broken.output)
    try:
        search = _Search(bench, upstream, broken)
    except EvaluationError as error:
        return named_blocker(bench.model, error.node)
    return next((_blocker(bench.model, node) for node in upstream if search.blames(node)), None)


class _Search:
    """What all values upstream of an output are at two sizes (`first`, `second`), and what varies between
    them.

    If that is the batch, `single` holds the values of its second item on its own. If another dim leaks into
    the batch, `leaking` holds the values with that dim larger.
    """

    def __init__(self, bench: Bench, upstream: list[onnx.NodeProto], broken: BrokenError) -> None:
        self._tolerance = bench.tolerance
        self._common = bench.common_batch()
        varied = broken.varied or bench.batch or set(bench.symbols)
        self._batched = bool(bench.batch) and (bool(broken.leaking) or varied <= bench.batch)
        batch = (varied & bench.batch) or bench.batch
        names = [name for node in upstream for name in node.output if name]
        wide = open_model(exposing(bench.runnable, names), "off")

        def run(sizes: Mapping[str, int]) -> Values:
            feed = bench.feed({**bench.symbols, **sizes})
            return feed | wide.run(feed)

        larger = [{symbol: bench.symbols[symbol] + more for symbol in varied} for more in _MORE]
        batches = [dict.fromkeys(batch, size) for size in (_FEW, _MANY)]
        pair = batches if self._batched else larger
        self._first, self._second = run(pair[0]), run(pair[1])
        self._single: Values = {}
        self._leaking: Values = {}
        if broken.leaking:
            usual = batches[0] if self._batched else {}
            self._still = self._first if self._batched else run(usual)
            self._leaking = run({**broken.leaking, **usual})
        elif self._batched:
            alone = bench.item(bench.feed(bench.symbols | batches[0]), 1, batch)
            self._single = alone | wide.run(alone)

    def blames(self, node: onnx.NodeProto) -> bool:
        """Whether a node is the one, if none before it is."""
        if node.op_type in ("Shape", "Size"):
            return False
        outputs = [name for name in node.output if name in self._first]
        if self._leaking:
            return any(self._leaks(name) for name in outputs)
        if not any(self._follows(name) for name in node.input):
            return False
        return not any(map(self._follows, outputs)) or any(map(self._mixes, outputs))

    def _follows(self, name: str) -> bool:
        a, b = self._first.get(name), self._second.get(name)
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            return False
        return bool(carriers(a.shape, b.shape, _FEW, _MANY)) if self._batched else a.shape != b.shape

    def _mixes(self, name: str) -> bool:
        """Whether the second item of a batch is something else on its own."""
        value, alone = self._first[name], self._single.get(name)
        if not isinstance(value, np.ndarray) or not isinstance(alone, np.ndarray) or alone.dtype.kind != "f":
            return False
        axes = carriers(value.shape, np.shape(self._second[name]), _FEW, _MANY)
        loose = replace(self._tolerance, rtol=1e-2, atol=1e-2 * float(np.max(np.abs(alone), initial=0.0)))
        parts = [np.take(value, [1], axis) for axis in axes]
        return bool(parts) and all(compare("", alone, part, loose).problem for part in parts)

    def _leaks(self, name: str) -> bool:
        """Whether a value has its batch where it was, and another size of it."""
        shape, larger = np.shape(self._still[name]), np.shape(self._leaking[name])
        if self._batched:
            axes = carriers(shape, np.shape(self._second[name]), _FEW, _MANY)
        else:
            axes = [0] if shape and shape[0] == self._common else []
        return bool(axes) and all(axis >= len(larger) or larger[axis] != shape[axis] for axis in axes)


def _upstream(model: onnx.ModelProto, output: str) -> list[onnx.NodeProto]:
    wanted, kept = {output}, []
    for node in reversed(model.graph.node):
        if not wanted.isdisjoint(node.output):
            wanted.update(names_read(node))
            kept.append(node)
    return kept[::-1]


def _blocker(model: onnx.ModelProto, node: onnx.NodeProto) -> Blocker:
    # The last one: the shape of a Reshape, the sizes of a Resize; but of a Conv not the bias.
    names = node.input[1:2] if node.op_type in ("Conv", "ConvTranspose", "Gemm") else node.input[::-1]
    texts = ((name, constant_text(model, name)) for name in names)
    constant, holds = next(((name, text) for name, text in texts if text is not None), ("", ""))
    return Blocker(node.name, node.op_type, node.output[0] if node.output else "", constant, holds)
