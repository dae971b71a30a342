"""Runs a model at sizes of one's choice, and holds what comes out against what it declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from onnx_migrate.isolate import captured_output, mark
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import Tolerance, compare, noise
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, open_model
from onnx_migrate.verify.inputs.generate import make_feed, size_plans
from onnx_migrate.verify.model_traits import blurred, exposing, nudged, random_outputs, squashed
from onnx_migrate.verify.verdict import Trial

__all__ = ["Bench", "BrokenError", "Values", "carriers"]

Values = dict[str, Any]

_INNER = 512.0
"""How many eps inner values may differ by: no more is asked of these than that no items are mixed."""

_MISMATCH = re.compile(
    r"Expected shape from model of (\{.*?\}) does not match actual shape of (\{.*?\}) for output ([^\s\x1b]+)"
)


class BrokenError(Exception):
    """A demand that a run did not meet.

    `output` is the one at fault, if one is, `node` the one a runtime blamed; `varied` are the symbols that
    had another size than before. `leaking` are the sizes at which one of them changed the batch.
    """

    def __init__(
        self,
        reason: str,
        output: str = "",
        node: str = "",
        varied: Set[str] = frozenset(),
        leaking: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(reason)
        self.output = output
        self.node = node
        self.varied = set(varied)
        self.leaking = dict(leaking or {})


class Bench:
    """A model with symbols (name to frozen size), of which some are the batch; loaded at both levels.

    `torn` are outputs that differ by optimisation in the first run already, which must be one at the frozen
    sizes. Raises EvaluationError if it does not load.
    """

    def __init__(
        self,
        runnable: Runnable,
        model: onnx.ModelProto,
        symbols: Mapping[str, int],
        batch: Set[str],
        tolerance: Tolerance,
        seed: int,
    ) -> None:
        self.runnable, self.model = runnable, model
        self.symbols, self.batch = dict(symbols), frozenset(batch)
        self.tolerance = tolerance
        self.trials: list[Trial] = []
        self.torn: set[str] = set()
        self._excused: set[str] = set()
        self._seed = seed
        self._random = random_outputs(model)
        self.plans = size_plans(self._twin(symbols))
        """Choices for what is open besides the symbols, best first; the first of them is used."""
        self.above = blurred(model)
        """Outputs that hide small differences, and the inner values that show them, which are held too."""
        self._squashed = squashed(model)
        held = exposing(runnable, self.above.values()) if self.above else runnable
        self._plain, self._optimised = open_model(held, "off"), open_model(held, "on")

    def run(self, sizes: Mapping[str, int]) -> tuple[Values, Values]:
        """Run at these sizes and return inputs and outputs. Raises BrokenError, or EvaluationError."""
        where = ", ".join(f"{name}={size}" for name, size in sizes.items())
        mark(f"result: running at {where}")
        feed = self.feed(sizes)
        record = tuple(sizes.items())
        try:
            with captured_output() as printed:
                values = self._plain.run(feed)
                optimised = self._optimised.run(feed)
                text = printed()
            warned = {name: shapes for *shapes, name in _MISMATCH.findall(text)}
            if not self.trials:
                self._excuse(values, optimised, feed, warned)
            self._demand(values, sizes, warned)
            for name in sorted(values.keys() - self.torn):
                what = f"at {where}, with and without optimisation"
                self.same(name, values[name], optimised[name], feed, what)
        except (EvaluationError, BrokenError) as error:
            self.trials.append(Trial(record, str(error)))
            if isinstance(error, BrokenError):
                error.varied = {name for name, size in sizes.items() if size != self.symbols[name]}
            raise
        self.trials.append(Trial(record))
        return feed, values

    def feed(self, sizes: Mapping[str, int]) -> Values:
        """Return inputs of these sizes."""
        feed = make_feed(self.model, self._twin(sizes), self.plans[0], "normal", self._seed)
        if feed is None:
            raise BrokenError("the inputs are too large to be made up")
        return feed

    def _twin(self, sizes: Mapping[str, int]) -> onnx.ModelProto:
        """Return the inputs' declarations with numbers for these symbols."""
        twin = onnx.ModelProto()
        for value in fed_inputs(self.model.graph):
            copy = twin.graph.input.add()
            copy.CopyFrom(value)
            for dim in copy.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
        return twin

    def _excuse(
        self, values: Values, optimised: Values, feed: Values, warned: Mapping[str, list[str]]
    ) -> None:
        """See what is wrong at the model's own sizes already, where the verifier held it against the
        original.

        Those are inner values whose shape ONNX Runtime infers wrongly, and outputs that its optimiser gets
        wrong.
        """
        self._excused.update(warned.keys() - values.keys())
        for name in values:
            if self._difference(name, values[name], optimised[name], feed):
                self.torn.add(name)

    def _demand(self, values: Values, sizes: Mapping[str, int], warned: Mapping[str, list[str]]) -> None:
        """Hold what came out against what is declared."""
        for name in sorted(warned.keys() - self._excused):
            declared, actual = warned[name]
            raise BrokenError(f"output {name!r} is declared {declared} and came out {actual}", name)
        bound = dict(sizes)
        for output in self.model.graph.output:
            declared_shape = output.type.tensor_type
            value = values[output.name]
            if not isinstance(value, np.ndarray) or not declared_shape.HasField("shape"):
                continue
            dims = declared_shape.shape.dim
            if len(dims) != value.ndim:
                raise BrokenError(
                    f"output {output.name!r} has rank {value.ndim}, declared is {len(dims)}", output.name
                )
            for axis, (dim, size) in enumerate(zip(dims, value.shape, strict=True)):
                wanted = (
                    dim.dim_value
                    if dim.HasField("dim_value")
                    else bound.setdefault(dim.dim_param or f"?{axis}", size)
                )
                if wanted != size and (dim.HasField("dim_value") or dim.dim_param):
                    label = dim.dim_param or dim.dim_value
                    raise BrokenError(
                        f"output {output.name!r} axis {axis} is {size}; declared {label} is {wanted}",
                        output.name,
                    )

    def same(self, name: str, a: Any, b: Any, feed: Values, what: str) -> None:
        """Demand that two values of an output are the same within rounding; random ones are not held."""
        problem = self._difference(name, a, b, feed)
        if problem:
            raise BrokenError(f"output {name!r} differs {what}: {problem}", name)

    def _difference(self, name: str, a: Any, b: Any, feed: Values) -> str:
        if not isinstance(a, np.ndarray) or name in self._random:
            return ""
        usual = 1.0 if name in self._squashed else 0.0
        inner = name in self.above.values()
        tolerance = replace(self.tolerance, floor=_INNER) if inner else self.tolerance
        entry = compare(name, a, b, tolerance, usual=usual)
        if entry.problem:  # only now is it worth a run to learn how far rounding goes
            heard = noise(a, self._plain.run(nudged(feed, self._seed))[name])
            entry = compare(name, a, b, tolerance, heard, usual, jumps=heard == float("inf"))
        return entry.problem

    def alone(self, feed: Values) -> Values:
        """Return the outputs of one item. Raises BrokenError."""
        try:
            return self._plain.run(feed)
        except EvaluationError as error:
            raise BrokenError(f"does not run with a batch of 1: {error}", node=error.node) from error

    def item(self, feed: Values, item: int, batch: Set[str]) -> Values:
        """Return the inputs of one item of these symbols' batch."""
        alone = dict(feed)
        for value in fed_inputs(self.model.graph):
            for axis in self.axes(value, batch):
                alone[value.name] = np.take(alone[value.name], [item], axis)
        return alone

    def common_batch(self) -> int | None:
        """Return the number that axis 0 of every input is; None if there is no such."""
        leading = [value.type.tensor_type.shape.dim[:1] for value in fed_inputs(self.model.graph)]
        sizes = {dims[0].dim_value if dims else 0 for dims in leading}
        return sizes.pop() or None if len(sizes) == 1 else None

    def axes(self, value: onnx.ValueInfoProto, symbols: Set[str]) -> list[int]:
        """Return the axes of an input or output that are declared as one of `symbols`."""
        return [axis for axis, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_param in symbols]


def carriers(a: tuple[int, ...], b: tuple[int, ...], few: int, many: int) -> list[int]:
    """Return the axes that are `few` long in one shape and `many` in the other."""
    if len(a) != len(b):
        return []
    return [axis for axis in range(len(a)) if a[axis] == few and b[axis] == many]
