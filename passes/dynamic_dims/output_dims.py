"""The dims of the outputs: which input symbol each equals or depends on, what to declare, and notes on each symbol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING

import onnx

from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.shapes import (
    Dims,
    dims_of,
    dims_text,
    inferred_graph,
    inferred_outputs,
    set_dims,
)
from onnx_migrate.model.dims.expressions import is_expression
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .length_formulas import Lengths, formula

if TYPE_CHECKING:
    from .repair import RepairResult

__all__ = ["OutputDims", "declare_outputs", "note_symbols", "symbolic_outputs"]

_INCREMENTS = (1, 2, 31, 32, 33, 63, 64)
"""These numbers are added to a frozen size: odd and even, with and without a factor of 32, since strides and pads round."""


@dataclass(frozen=True)
class OutputDims:
    """The dims of each output: a number, the symbol or the expression of symbols that the dim always equals, or None."""

    dims: dict[str, Dims | None]
    computed: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """The axes (output, axis) that change with a symbol and do not equal it."""
    unknown: list[tuple[str, int]] = field(default_factory=list)
    """The axes for which shape inference does not show which symbols they change with."""


def symbolic_outputs(proto: onnx.ModelProto, frozen: Mapping[str, int], batch: Set[str]) -> OutputDims:
    """Return the dims of the outputs of a model whose inputs have symbols.

    onnx's symbolic inference does not see through most of Resize and Reshape. So this function infers the shapes with
    numbers too. `frozen` maps a symbol to its size in the source model. Each symbol gets several other sizes in turn,
    while the other symbols keep theirs. A dim that always has the length of one symbol, and changes with no other
    symbol, is that symbol. A dim that changes with no symbol is its number if all symbols are in `batch`. Otherwise it
    stays open, since its length might change at sizes that were not tried. A dim that changes with several symbols is
    their expression, if exactly one expression gives all the lengths that inference returned.
    """
    dims_by_output = inferred_outputs(proto)
    if not frozen or all(dims is not None and None not in dims for dims in dims_by_output.values()):
        return OutputDims(dims_by_output)
    (_, base), *samples = _samples(proto, frozen)
    result = OutputDims({})
    for name, dims in dims_by_output.items():
        numbers = base.get(name)
        if numbers is None:
            result.dims[name] = dims
            result.unknown.extend((name, axis) for axis in range(len(dims or ())))
            continue
        output_dims: list[int | str | None] = [None] * len(numbers)
        if dims is not None and len(dims) == len(numbers):
            output_dims = [*dims]
        for axis in (axis for axis, dim in enumerate(output_dims) if dim is None):
            number = numbers[axis]
            runs = []
            for sizes, shapes in samples:
                (length,) = (shapes.get(name) or ())[axis : axis + 1] or (None,)
                if isinstance(length, int):
                    runs.append((sizes, length))
            lengths = Lengths(frozen, number if isinstance(number, int) else 0, runs)
            if not isinstance(number, int) or any(len(lengths.of(symbol)) < 2 for symbol in frozen):
                result.unknown.append((name, axis))
                continue
            output_dims[axis] = _dim(lengths, only_batch=batch >= frozen.keys())
            for symbol in sorted({*lengths.changes} - {output_dims[axis]}):
                result.computed.setdefault(symbol, []).append((name, axis))
            if output_dims[axis] is None:
                output_dims[axis] = formula(lengths)
        result.dims[name] = tuple(output_dims)
    return result


def _samples(
    proto: onnx.ModelProto, frozen: Mapping[str, int]
) -> list[tuple[Mapping[str, int], dict[str, Dims | None]]]:
    """Return the shapes of the outputs at several sizes: the frozen ones, one symbol changed, and all symbols changed.

    Raises CannotMigrate if onnx cannot infer the shapes at the frozen sizes. Other sizes that fail are skipped.
    """
    tried: list[Mapping[str, int]] = [frozen]
    tried += [{**frozen, symbol: size + step} for symbol, size in frozen.items() for step in _INCREMENTS]
    # A sum and a product of symbols can agree at one combination of sizes, and hardly at two.
    for start in range(2 if len(frozen) > 1 else 0):
        steps = (*_INCREMENTS[start:], *_INCREMENTS[:start])
        tried.append(
            {name: size + step for (name, size), step in zip(frozen.items(), cycle(steps), strict=False)}
        )
    samples: list[tuple[Mapping[str, int], dict[str, Dims | None]]] = []
    for sizes in tried:
        with suppress(CannotMigrate) if samples else nullcontext():
            samples.append((sizes, inferred_outputs(proto, sizes)))
    return samples


def _dim(lengths: Lengths, *, only_batch: bool) -> int | str | None:
    """Return the symbol that an axis equals at all sizes tried, its number if it never changes, else None."""
    changes = lengths.changes
    if not changes:
        return lengths.length if only_batch else None
    equal = len(changes) == 1 and all(length == size for size, length in lengths.of(changes[0]))
    return changes[0] if equal else None


def note_symbols(result: RepairResult, outputs: OutputDims, log: ChangeLog, pass_name: str) -> None:
    """Write a note on each symbol and its axes. `outputs` is from shape inference; `result` fills in the open axes."""
    graph = result.model.proto.graph
    computed = {symbol: list(axes) for symbol, axes in outputs.computed.items()}
    open_axes = False
    for name, axis in outputs.unknown:
        axes = result.output_symbols.get(name, [])
        symbols = axes[axis] if axis < len(axes) else None
        open_axes |= symbols is None
        for symbol in symbols or ():
            computed.setdefault(symbol, []).append((name, axis))
    nowhere = "no output axis, as far as shape inference shows" if open_axes else "no output axis"
    for symbol in result.symbols:
        equal = _axes_of(symbol, graph.output)
        others = [
            text
            for text in (f"{name}[{axis}]" for name, axis in computed.get(symbol, ()))
            if text not in equal
        ]
        if others:
            others[-1] += f" (computed from {symbol})"
        log.note(
            pass_name,
            "flow",
            f"{symbol}: {', '.join(_axes_of(symbol, graph.input))} → {', '.join([*equal, *others]) or nowhere}",
            subject=symbol,
        )


def _axes_of(symbol: str, values: Iterable[onnx.ValueInfoProto]) -> list[str]:
    return [
        f"{value.name}[{axis}]"
        for value in values
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param == symbol
    ]


def declare_outputs(
    model: Model, plan: DimPlan, batch_axes: Mapping[str, Mapping[int, str]], log: ChangeLog, pass_name: str
) -> OutputDims:
    """Declare each dim of each output: its constant number, its symbol, or an expression of symbols.

    The user's name replaces an expression. An unknown dim gets the user's name, or a name of its own.

    `batch_axes` holds the axes of outputs that are a batch, which the repair of the nodes found. Raises CannotMigrate,
    code `frozen-output`, for an axis the user named that is one number at all sizes. Raises UsageError, code `two-names`,
    for an axis the user named that always equals another symbol. An output without a type gets the inferred type, since
    a shape without an element type is not valid. Without an inferred type, the output stays unchanged. Returns the result
    of shape inference for the outputs.
    """
    inferred = symbolic_outputs(model.proto, plan.frozen_sizes, plan.batch)
    untyped = {value.name for value in model.proto.graph.output if not value.type.WhichOneof("value")}
    typed = inferred_graph(model.proto).output if untyped else ()
    types = {value.name: value.type.tensor_type.elem_type for value in typed}
    for value in model.proto.graph.output:
        if value.name in untyped:
            if not types.get(value.name):
                continue
            value.type.tensor_type.elem_type = types[value.name]
        output_dims = _with_batch(inferred.dims.get(value.name), batch_axes.get(value.name, {}))
        dims = _dims_to_declare(value, output_dims, plan)
        if dims is not None and dims != dims_of(value):
            message = f"output {value.name}: {dims_text(dims_of(value))} → {dims_text(dims)}"
            set_dims(value, dims)
            log.note(pass_name, "output-dims", message, subject=value.name)
    return inferred


def _with_batch(dims: Dims | None, batch: Mapping[int, str]) -> Dims | None:
    """Fill in the batch if inference of the single nodes knows an axis that onnx's inference of the whole model does not."""
    if dims is None:
        return None
    return tuple(batch.get(axis) if dim is None else dim for axis, dim in enumerate(dims))


def _dims_to_declare(value: onnx.ValueInfoProto, inferred: Dims | None, plan: DimPlan) -> Dims | None:
    """Return the dims to declare of one output, None for one whose rank is neither inferred nor declared."""
    names = plan.output_names.get(value.name, {})
    declared = dims_of(value)
    if inferred is None:
        # Of the declared dims only the rank is kept, which does not depend on a size.
        if declared is None:
            return None
        inferred = (None,) * len(declared)
    result: list[int | str | None] = []
    for axis, size in enumerate(inferred):
        name = names.get(axis)
        if name and isinstance(size, int):
            raise CannotMigrate(
                f"axis {axis} of output {value.name!r} cannot be dynamic as {name!r}: it has the length {size} for inputs of"
                " all sizes",
                code="frozen-output",
                hint="leave this axis out: the axes of outputs follow from those of the inputs"
                if plan.dims
                else "name axes of inputs instead; the axes of the outputs follow from them",
            )
        own = f"{value.name}_dim_{axis}"
        if name and isinstance(size, str) and is_expression(size):
            size = None
        if name and isinstance(size, str) and name not in (size, own):
            raise UsageError(
                f"axis {axis} of output {value.name!r} was given the name {name!r}, but always has the length {size!r}",
                code="two-names",
                hint=f"call it {size!r} too, or leave this axis out: the axes of outputs follow from those of the inputs",
            )
        result.append((name or own) if size is None else size)
    return tuple(result)
