"""Proves that dims which were made symbolic are free: by running the model at other sizes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import onnx

from onnx_migrate import isolate
from onnx_migrate.errors import UsageError
from onnx_migrate.isolate import Limits, captured_output, mark
from onnx_migrate.verify.comparison import Tolerance, compare, noise
from onnx_migrate.verify.evaluators import EvaluationError, Evaluator, Runnable, open_model
from onnx_migrate.verify.feeds import Sizes, inputs_of, make_feed
from onnx_migrate.verify.ranges import constant_text
from onnx_migrate.verify.traits import all_nodes, coarsest_eps, dependents, exposing, nudged, random_outputs

__all__ = ["Blocker", "DynamicProof", "Trial", "prove", "prove_dynamic"]

Array = np.ndarray[Any, Any]
Values = dict[str, Any]

_MISMATCH = re.compile(
    r"Expected shape from model of (\{.*?\}) does not match actual shape of (\{.*?\}) for output ([^\s\x1b]+)"
)
_STEPS = (1, 32, 64, 33, 128)
"""What is added to a frozen size, in turn, until two sizes run: networks with strides take only some."""

_ITEM = Tolerance(floor=64.0, factor=20.0)
"""A batch is computed in other blocks than one item: more rounding than between two runs of one shape."""


@dataclass(frozen=True)
class Trial:
    """One run: the size of each symbol, and what was wrong ("" if nothing)."""

    sizes: tuple[tuple[str, int], ...]
    problem: str = ""


@dataclass(frozen=True)
class Blocker:
    """The node that holds a size fast, and the constant it does it with, as far as that is known."""

    node: str
    operator: str
    output: str = ""
    constant: str = ""
    holds: str = ""

    def __str__(self) -> str:
        name = f"{self.operator} {self.node or self.output!r}" if self.operator else repr(self.node)
        return name + (f" with {self.constant!r} = {self.holds}" if self.constant else "")


@dataclass(frozen=True)
class DynamicProof:
    """Whether the symbols are free; if not, `reason` and, where it could be found, the `blocker`."""

    holds: bool
    reason: str = ""
    blocker: Blocker | None = None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


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

    Of the symbols in `batch` it is asked as well that every item of a batch equals its own run. Raises
    nothing for
    what the model does: a model that cannot be run does not hold.
    """
    start = time.perf_counter()
    function = "onnx_migrate.verify.dynamic:prove"
    arguments = result, dict(symbols), frozenset(batch), tolerance or _ITEM, seed
    ending = isolate.run(function, *arguments, limits=limits, isolated=isolated)
    seconds = time.perf_counter() - start
    if isinstance(ending, isolate.Returned):
        proof: DynamicProof = ending.value
        return replace(proof, seconds=seconds)
    if isinstance(ending, isolate.Raised) and ending.error is not None:
        raise ending.error
    return DynamicProof(False, f"{ending.stage or 'start'}: {ending}", seconds=seconds)


class _BrokenError(Exception):
    """A demand that a run did not meet; `output` is the one at fault, if one is."""

    def __init__(self, reason: str, output: str = "", node: str = "") -> None:
        super().__init__(reason)
        self.output = output
        self.node = node


def prove(
    result: Runnable, symbols: Mapping[str, int], batch: frozenset[str], tolerance: Tolerance, seed: int
) -> DynamicProof:
    """Do the work of `prove_dynamic`, in whatever process this is."""
    model = result.proto()
    known = {
        d.dim_param for value in inputs_of(model) for d in value.type.tensor_type.shape.dim if d.dim_param
    }
    for symbol in symbols:
        if symbol not in known:
            raise UsageError(f"no input has a dim named {symbol!r}", code="unknown-symbol")
    proof = _Proof(result, model, dict(symbols), batch, replace(tolerance, eps=coarsest_eps(model)), seed)
    try:
        mark("result: loading")
        proof.evaluators = [open_model(result, "off"), open_model(result, "on")]
        proof.frozen()
        if batch:
            proof.batches()
        for symbol in symbols:
            if symbol not in batch:
                proof.free(symbol)
    except EvaluationError as error:
        what = "load" if error.loading else "run"
        return proof.failed(f"the model does not {what}: {error}", _named(model, error.node))
    except _BrokenError as broken:
        blocker = _named(model, broken.node) if broken.node else proof.blocker(broken)
        return proof.failed(str(broken), blocker)
    return DynamicProof(True, trials=tuple(proof.trials), notes=tuple(proof.notes))


@dataclass
class _Proof:
    runnable: Runnable
    model: onnx.ModelProto
    symbols: dict[str, int]
    batch: frozenset[str]
    tolerance: Tolerance
    seed: int
    evaluators: list[Evaluator] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def frozen(self) -> None:
        """Run at the sizes the model had."""
        try:
            self._trial(self.symbols)
        except EvaluationError as error:
            raise _BrokenError(f"does not run at its own sizes: {error}", node=error.node) from error

    def batches(self) -> None:
        """Run batches of two and three, and every item on its own."""
        reached = dependents(self.model, {v.name for v in inputs_of(self.model) if self._axes(v, self.batch)})
        runs: dict[int, tuple[Values, Values]] = {}
        for size in [n for n in (2, 3, 5) if n not in {self.symbols[s] for s in self.batch}][:2]:
            sizes = self.symbols | dict.fromkeys(self.batch, size)
            try:
                runs[size] = self._trial(sizes)
            except EvaluationError as error:
                raise _BrokenError(
                    f"does not run with a batch of {size}: {error}", node=error.node
                ) from error
        (few, (_, first)), (many, (_, second)) = runs.items()
        for output in self.model.graph.output:
            if output.name not in reached:
                self.notes.append(
                    f"output {output.name!r} does not depend on the inputs that carry the batch"
                )
                continue
            a, b = np.shape(first[output.name]), np.shape(second[output.name])
            axis = self._carrier(output, a, b, few, many)
            for size, (feed, values) in runs.items():
                self._items(output.name, axis, size, feed, values[output.name])

    def free(self, symbol: str) -> None:
        """Find two sizes of `symbol` at which the model runs."""
        good, refused = 0, []
        last: EvaluationError | None = None
        for step in _STEPS:
            size = self.symbols[symbol] + step
            try:
                self._trial(self.symbols | {symbol: size})
            except EvaluationError as error:
                last = error
                refused.append(str(size))
                continue
            good += 1
            if good == 2:
                break
        if good < 2:
            raise _BrokenError(
                f"does not run with {symbol} = {' or '.join(refused)}: {last}", node=last.node if last else ""
            )
        if refused:
            self.notes.append(
                f"the network does not take {symbol} = {', '.join(refused)}; it runs at other sizes"
            )

    def _trial(self, sizes: Mapping[str, int]) -> tuple[Values, Values]:
        where = ", ".join(f"{name}={size}" for name, size in sizes.items())
        mark(f"result: running at {where}")
        feed = self._feed(sizes)
        record = tuple(sizes.items())
        try:
            with captured_output() as printed:
                values = self.evaluators[0].run(feed)
                optimised = self.evaluators[1].run(feed)
                warnings = printed()
            self._demand(values, sizes, warnings)
            skipped = random_outputs(self.model)
            for name in values.keys() - skipped.keys():
                self._same(
                    name, values[name], optimised[name], feed, f"at {where}, with and without optimisation"
                )
        except (EvaluationError, _BrokenError) as error:
            self.trials.append(Trial(record, str(error)))
            raise
        self.trials.append(Trial(record))
        return feed, values

    def _feed(self, sizes: Mapping[str, int]) -> Values:
        twin = onnx.ModelProto()
        for value in inputs_of(self.model):
            copy = twin.graph.input.add()
            copy.CopyFrom(value)
            for dim in copy.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
        feed = make_feed(self.model, twin, Sizes(2, (64, 96), 7, 2), "normal", self.seed)
        if feed is None:
            raise _BrokenError("the inputs are too large to be made up")
        return feed

    def _demand(self, values: Values, sizes: Mapping[str, int], printed: str) -> None:
        """Hold what came out against what is declared."""
        found = _MISMATCH.search(printed)
        if found:
            declared, actual, name = found.groups()
            raise _BrokenError(f"output {name!r} is declared {declared} and came out {actual}", name)
        bound = dict(sizes)
        for output in self.model.graph.output:
            declared_shape = output.type.tensor_type
            value = values[output.name]
            if not isinstance(value, np.ndarray) or not declared_shape.HasField("shape"):
                continue
            dims = declared_shape.shape.dim
            if len(dims) != value.ndim:
                raise _BrokenError(
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
                    raise _BrokenError(
                        f"output {output.name!r} axis {axis} is {size}; declared {label} is {wanted}",
                        output.name,
                    )

    def _carrier(
        self, output: onnx.ValueInfoProto, a: tuple[int, ...], b: tuple[int, ...], few: int, many: int
    ) -> int:
        """Return the axis of an output on which the batch lies; `a` and `b` are its shapes at two batches."""
        axes = _carriers(a, b, few, many)
        declared = [axis for axis in self._axes(output, self.batch) if axis in axes]
        if len(declared or axes) == 1:
            return (declared or axes)[0]
        if a == b:
            raise _BrokenError(
                f"output {output.name!r} keeps its shape {list(a)} whatever the batch", output.name
            )
        reason = f"no axis of output {output.name!r} is the batch: {list(a)} for {few}, {list(b)} for {many}"
        raise _BrokenError(reason, output.name)

    def _items(self, name: str, axis: int, size: int, feed: Values, value: Array) -> None:
        for item in range(size):
            alone = self._item(feed, item)
            try:
                single = self.evaluators[0].run(alone)[name]
            except EvaluationError as error:
                raise _BrokenError(f"does not run with a batch of 1: {error}", node=error.node) from error
            part = np.take(value, [item], axis)
            if name not in random_outputs(self.model):
                self._same(
                    name, single, part, alone, f"for item {item} of a batch of {size}, against its own run"
                )

    def _same(self, name: str, a: Any, b: Any, feed: Values, what: str) -> None:
        if not isinstance(a, np.ndarray):
            return
        entry = compare(name, a, b, self.tolerance)
        if entry.problem:  # only now is it worth a run to learn how far rounding goes
            heard = noise(a, self.evaluators[0].run(nudged(feed, self.seed))[name])
            entry = compare(name, a, b, self.tolerance, heard, jumps=heard == float("inf"))
        if entry.problem:
            raise _BrokenError(f"output {name!r} differs {what}: {entry.problem}", name)

    def _item(self, feed: Values, item: int) -> Values:
        alone = dict(feed)
        for value in inputs_of(self.model):
            for axis in self._axes(value, self.batch):
                alone[value.name] = np.take(alone[value.name], [item], axis)
        return alone

    def _axes(self, value: onnx.ValueInfoProto, symbols: Set[str]) -> list[int]:
        return [axis for axis, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_param in symbols]

    def failed(self, reason: str, blocker: Blocker | None) -> DynamicProof:
        if blocker is not None and blocker.operator:
            reason += f"; held fast by {blocker}"
        return DynamicProof(False, reason, blocker, tuple(self.trials), tuple(self.notes))

    def blocker(self, broken: _BrokenError) -> Blocker | None:
        """Find the first node, upstream of the output at fault, whose output loses or mixes what varies."""
        if not broken.output:
            return None
        mark("result: looking for the node that blocks")
        upstream = _upstream(self.model, broken.output)
        names = [name for node in upstream for name in node.output if name]
        varied = self.batch or frozenset(self.symbols)
        pair = (2, 3) if self.batch else (33, 65)
        try:
            wide = open_model(exposing(self.runnable, names), "off")
            feeds = []
            for step in pair:
                new = {s: step if self.batch else self.symbols[s] + step - 1 for s in varied}
                feeds.append(self._feed(self.symbols | new))
            first, second = (feed | wide.run(feed) for feed in feeds)
            alone = self._item(feeds[0], 1)
            single = (alone | wide.run(alone)) if self.batch else {}
        except EvaluationError as error:
            return _named(self.model, error.node)
        return next(
            (_blocker(self.model, node) for node in upstream if self._loses(node, first, second, single)),
            None,
        )

    def _loses(self, node: onnx.NodeProto, first: Values, second: Values, single: Values) -> bool:
        if node.op_type in ("Shape", "Size"):
            return False

        def follows(name: str) -> bool:
            a, b = first.get(name), second.get(name)
            if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
                return False
            return bool(_carriers(a.shape, b.shape, 2, 3)) if self.batch else a.shape != b.shape

        if not any(follows(name) for name in node.input):
            return False
        outputs = [name for name in node.output if name in first]
        if not any(follows(name) for name in outputs):
            return True
        return any(self._mixes(first[name], second[name], single.get(name)) for name in outputs if self.batch)

    def _mixes(self, value: Any, more: Any, alone: Any) -> bool:
        if not isinstance(value, np.ndarray) or not isinstance(alone, np.ndarray):
            return False
        axes = _carriers(value.shape, np.shape(more), 2, 3)
        loose = replace(self.tolerance, rtol=1e-2, atol=1e-2 * float(np.max(np.abs(alone), initial=0.0)))
        parts = [np.take(value, [1], axis) for axis in axes] if alone.dtype.kind == "f" else []
        return bool(parts) and all(compare("", alone, part, loose).problem for part in parts)


def _carriers(a: tuple[int, ...], b: tuple[int, ...], few: int, many: int) -> list[int]:
    if len(a) != len(b):
        return []
    return [axis for axis in range(len(a)) if a[axis] == few and b[axis] == many]


def _upstream(model: onnx.ModelProto, output: str) -> list[onnx.NodeProto]:
    wanted, kept = {output}, []
    for node in reversed(model.graph.node):
        if not wanted.isdisjoint(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]


def _named(model: onnx.ModelProto, name: str) -> Blocker | None:
    if not name:
        return None
    node = next((node for node in all_nodes(model) if node.name == name), None)
    return _blocker(model, node) if node is not None else Blocker(name, "")


def _blocker(model: onnx.ModelProto, node: onnx.NodeProto) -> Blocker:
    text: Callable[[str], str | None] = lambda name: constant_text(model, name)  # noqa: E731
    found = ((name, holds) for name in reversed(node.input) if (holds := text(name)) is not None)
    constant, holds = next(found, ("", ""))
    return Blocker(node.name, node.op_type, node.output[0] if node.output else "", constant, holds)
