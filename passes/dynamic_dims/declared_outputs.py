"""The dims that a model with dynamic inputs declares of its outputs."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.shapes import Dims, dims_of, dims_text, inferred_element_types, set_dims
from onnx_migrate.model.dims.expressions import is_expression
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .output_dims import OutputDims, symbolic_outputs

__all__ = ["declare_outputs"]


def declare_outputs(
    model: Model, plan: DimPlan, batch_axes: Mapping[str, Mapping[int, str]], log: ChangeLog, pass_name: str
) -> OutputDims:
    """Declare of each output what a dim always is: the number, the symbol, or the user's name or the expression.

    Where that is not known, the user's name or one of its own.

    `batch_axes` holds the axes of outputs that are a batch, which the repair of the nodes found. Raises CannotMigrate,
    code `frozen-output`, for an axis the user named that is a number at all sizes, and UsageError, code `two-names`,
    for one that always equals another symbol. An output without a type gets the inferred one, since a shape without an
    element type is not valid; where none is inferred it stays as it is. Returns what shape inference found of the outputs.
    """
    inferred = symbolic_outputs(model.proto, plan.frozen_sizes, plan.batch)
    untyped = {value.name for value in model.proto.graph.output if not value.type.WhichOneof("value")}
    types = inferred_element_types(model.proto) if untyped else {}
    for value in model.proto.graph.output:
        if value.name in untyped:
            if not types.get(value.name):
                continue
            value.type.tensor_type.elem_type = types[value.name]
        found = _with_batch(inferred.dims.get(value.name), batch_axes.get(value.name, {}))
        dims = _dims_to_declare(value, found, plan)
        if dims is not None and dims != dims_of(value):
            message = f"output {value.name}: {dims_text(dims_of(value))} → {dims_text(dims)}"
            set_dims(value, dims)
            log.note(pass_name, "output-dims", message, subject=value.name)
    return inferred


def _with_batch(dims: Dims | None, batch: Mapping[int, str]) -> Dims | None:
    """Fill in the batch where onnx's inference of the whole model does not know an axis and that of the nodes does."""
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
                else "ask for axes of inputs, from which those of the outputs follow",
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
