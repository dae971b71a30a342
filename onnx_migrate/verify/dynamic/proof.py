"""Proves that dims which were made symbolic are free: by running the model at other sizes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np
import onnx

from onnx_migrate import isolate
from onnx_migrate.errors import UsageError
from onnx_migrate.isolate import Limits, mark
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import Array, Tolerance
from onnx_migrate.verify.dynamic.fault_localization import find_blocker, named_blocker
from onnx_migrate.verify.dynamic.sized_runs import Bench, BrokenError, Values, carriers
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.model_traits import coarsest_eps, dependents
from onnx_migrate.verify.verdict import Blocker, DynamicProof

__all__ = ["prove", "prove_dynamic"]

_STEPS = (1, 32, 64, 33, 128, 2)
"""What is added to a frozen size, in turn, until two sizes run: networks with strides take only some, and tables of
positions have room for a few."""

_ITEM = Tolerance(floor=256.0, factor=20.0)
"""A batch is computed in other blocks than one item: more rounding than between two runs of one shape, which a Softmax
of large logits shows in full (66 eps measured). Items that are mixed differ by thousands."""


def prove_dynamic(
    result: Runnable,
    symbols: Mapping[str, int],
    batch: Set[str] = frozenset(),
    *,
    tolerance: Tolerance | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    isolated: bool = True,
) -> DynamicProof:
    """Run `result` at the frozen sizes (`symbols`: name to size) and at two others of each symbol.

    Of the symbols in `batch` it is asked as well that every item of a batch equals its own run; of the
    others, that they leave the batch as it is. Raises UsageError for a symbol that no input has, and nothing
    for what the model does: a model that cannot be run does not hold.
    """
    start = time.perf_counter()
    function = "onnx_migrate.verify.dynamic.proof:prove"
    arguments = result, dict(symbols), frozenset(batch), tolerance or _ITEM, seed
    ending = isolate.run(function, *arguments, limits=limits, isolated=isolated)
    seconds = time.perf_counter() - start
    if isinstance(ending, isolate.Returned):
        proof: DynamicProof = ending.value
        return replace(proof, seconds=seconds)
    if isinstance(ending, isolate.Raised) and ending.error is not None:
        raise ending.error
    return DynamicProof(False, f"{ending.stage or 'start'}: {ending}", seconds=seconds)


def prove(
    result: Runnable, symbols: Mapping[str, int], batch: frozenset[str], tolerance: Tolerance, seed: int
) -> DynamicProof:
    """Do the work of `prove_dynamic`, in whatever process this is."""
    model = result.proto()
    known = {
        d.dim_param
        for value in fed_inputs(model.graph)
        for d in value.type.tensor_type.shape.dim
        if d.dim_param
    }
    for symbol in symbols:
        if symbol not in known:
            raise UsageError(f"no input has a dim named {symbol!r}", code="unknown-symbol")
    mark("result: loading")
    try:
        bench = Bench(result, model, symbols, batch, replace(tolerance, eps=coarsest_eps(model)), seed)
    except EvaluationError as error:
        reason, blocker = f"the model does not load: {error}", named_blocker(model, error.node)
        return DynamicProof(False, _with(reason, blocker), blocker)
    proof = _Proof(bench)
    try:
        proof.run()
    except EvaluationError as error:
        reason, blocker = f"the model does not run: {error}", named_blocker(model, error.node)
    except BrokenError as broken:
        reason, blocker = str(broken), find_blocker(bench, broken)
    else:
        return DynamicProof(True, trials=tuple(bench.trials), notes=tuple(proof.notes))
    reason = _with(reason, blocker)
    return DynamicProof(False, reason, blocker, tuple(bench.trials), tuple(proof.notes))


def _with(reason: str, blocker: Blocker | None) -> str:
    return f"{reason}; held fast by {blocker}" if blocker is not None and blocker.operator else reason


class _Proof:
    """The demands, in order; each raises BrokenError."""

    def __init__(self, bench: Bench) -> None:
        self.notes: list[str] = []
        self._bench = bench
        self._model = bench.model
        self._carriers: dict[str, tuple[int, int]] = {}

    def run(self) -> None:
        """Demand all of it."""
        self._frozen()
        if self._bench.batch:
            for batch in self._independent():
                self._batches(batch)
        free = [symbol for symbol in self._bench.symbols if symbol not in self._bench.batch]
        taken = {symbol: self._free(symbol) for symbol in free}
        if len(self._bench.symbols) > 1 and taken:
            self._at_once(taken)

    def _frozen(self) -> None:
        """Run at the sizes the model had, and see which outputs carry the batch."""
        first: EvaluationError | None = None
        while True:
            try:
                _, values = self._bench.run(self._bench.symbols)
                break
            except EvaluationError as error:
                # What else is open may need another size, as a window of sound does.
                first = first or error
                self._bench.plans.pop(0)
                if not self._bench.plans:
                    raise BrokenError(f"does not run at its own sizes: {first}", node=first.node) from error
                self._bench.trials.clear()
        for name in sorted(self._bench.torn):
            self.notes.append(f"optimised, ONNX Runtime gives another {name!r}: held as it is only")
        common = self._bench.common_batch()
        if common is not None:
            for name, value in values.items():
                if np.shape(value)[:1] == (common,):
                    self._carriers[name] = 0, common

    def _independent(self) -> list[frozenset[str]]:
        """Return the symbols that are the batch: each by itself if they can differ, else all together."""
        symbols = sorted(self._bench.batch)
        if len(symbols) == 1:
            return [self._bench.batch]
        try:
            self._bench.run(self._bench.symbols | {symbol: size for size, symbol in enumerate(symbols, 2)})
        except EvaluationError:
            self._bench.trials.pop()  # that they are one is no failure
            self.notes.append(
                f"{' and '.join(symbols)} are one batch: the model runs where they are equal only"
            )
            return [self._bench.batch]
        return [frozenset({symbol}) for symbol in symbols]

    def _batches(self, batch: frozenset[str]) -> None:
        """Run batches of two and three, and every item on its own."""
        bench = self._bench
        carrying = {value.name for value in fed_inputs(self._model.graph) if bench.axes(value, batch)}
        reached = dependents(self._model, carrying)
        frozen = {bench.symbols[symbol] for symbol in batch}
        runs: dict[int, tuple[Values, Values]] = {}
        for size in [n for n in (2, 3, 5) if n not in frozen][:2]:
            runs[size] = self._batch_of(size, batch)
        (few, (_, first)), (many, (_, second)) = runs.items()
        for output in self._model.graph.output:
            name = output.name
            if name not in reached:
                what = "the inputs that carry the batch" if batch == bench.batch else ", ".join(batch)
                self.notes.append(f"output {name!r} does not depend on {what}")
                continue
            axis = self._carrier(output, np.shape(first[name]), np.shape(second[name]), (few, many), batch)
            held = {name: axis}
            if name in bench.above:
                above = bench.above[name]
                axes = carriers(np.shape(first[above]), np.shape(second[above]), few, many)
                held |= {above: axis if axis in axes else axes[0]} if axes else {}
            for size, (feed, values) in runs.items():
                for value, along in held.items():
                    self._items(value, along, size, feed, values[value], batch)
            if len(frozen) == 1:
                self._carriers[name] = axis, next(iter(frozen))

    def _batch_of(self, size: int, batch: frozenset[str]) -> tuple[Values, Values]:
        try:
            return self._bench.run(self._bench.symbols | dict.fromkeys(batch, size))
        except EvaluationError as error:
            reason = f"does not run with a batch of {size}: {error}"
            raise BrokenError(reason, node=error.node) from error

    def _at_once(self, taken: Mapping[str, int]) -> None:
        """Run at other sizes of everything."""
        sizes = {**self._bench.symbols, **taken}
        sizes |= {symbol: 2 if self._bench.symbols[symbol] != 2 else 3 for symbol in self._bench.batch}
        try:
            self._bench.run(sizes)
        except EvaluationError as error:
            where = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            raise BrokenError(f"does not run with {where} at once: {error}", node=error.node) from error

    def _free(self, symbol: str) -> int:
        """Find two sizes of `symbol` at which the model runs, with the batch as it was; return the larger."""
        good: list[int] = []
        refused: list[str] = []
        last: EvaluationError | None = None
        for step in _STEPS:
            sizes = {**self._bench.symbols, symbol: self._bench.symbols[symbol] + step}
            try:
                _, values = self._bench.run(sizes)
            except EvaluationError as error:
                last = error
                refused.append(str(sizes[symbol]))
                continue
            self._undisturbed(symbol, sizes, values)
            good.append(sizes[symbol])
            if len(good) == 2:
                break
        if len(good) < 2:
            node = last.node if last else ""
            raise BrokenError(f"does not run with {symbol} = {' or '.join(refused)}: {last}", node=node)
        self._stuck(symbol, values)
        if refused:
            which = f"{symbol} = {', '.join(refused)}"
            self.notes.append(f"the network does not take {which}; it runs at other sizes")
        return max(good)

    def _stuck(self, symbol: str, values: Values) -> None:
        """Say which outputs have an axis that was as long as `symbol`, and nothing else, and is so still."""
        size = self._bench.symbols[symbol]
        others = [
            dim.dim_value
            for value in fed_inputs(self._model.graph)
            for dim in value.type.tensor_type.shape.dim
        ]
        if size < 2 or size in others or list(self._bench.symbols.values()).count(size) > 1:
            return
        for output in self._model.graph.output:
            for axis, length in enumerate(np.shape(values[output.name])):
                if length == size:
                    self.notes.append(
                        f"axis {axis} of output {output.name!r} is {size}, as {symbol} was, and stays so whatever"
                        f" {symbol} is: if it is to follow, a constant inside the model holds it"
                    )

    def _undisturbed(self, symbol: str, sizes: Mapping[str, int], values: Values) -> None:
        for name, (axis, batch) in self._carriers.items():
            shape = np.shape(values[name])
            if axis >= len(shape) or shape[axis] != batch:
                reason = f"output {name!r} is {list(shape)} at {symbol} = {sizes[symbol]}:"
                reason += f" its axis {axis} is the batch, which was {batch}"
                raise BrokenError(reason, name, varied={symbol}, leaking=sizes)

    def _carrier(
        self,
        output: onnx.ValueInfoProto,
        a: tuple[int, ...],
        b: tuple[int, ...],
        sizes: tuple[int, int],
        batch: frozenset[str],
    ) -> int:
        """Return the axis of an output on which the batch lies; `a` and `b` are its shapes at two sizes of it."""
        axes = carriers(a, b, *sizes)
        declared = [axis for axis in self._bench.axes(output, batch) if axis in axes]
        if len(declared or axes) == 1:
            return (declared or axes)[0]
        if a == b:
            raise BrokenError(
                f"output {output.name!r} keeps its shape {list(a)} whatever the batch", output.name
            )
        shapes = f"{list(a)} for {sizes[0]}, {list(b)} for {sizes[1]}"
        if len(axes) > 1:
            reason = f"every item of a batch meets every other in output {output.name!r}: {shapes}"
            raise BrokenError(f"{reason}; give the batches of inputs that can differ a name each")
        reason = f"no axis of output {output.name!r} is the batch: {shapes}"
        raise BrokenError(reason, output.name)

    def _items(
        self, name: str, axis: int, size: int, feed: Values, value: Array, batch: frozenset[str]
    ) -> None:
        for item in range(size):
            alone = self._bench.item(feed, item, batch)
            part = np.take(value, [item], axis)
            what = f"for item {item} of a batch of {size}, against its own run"
            self._bench.same(name, self._bench.alone(alone)[name], part, alone, what)
