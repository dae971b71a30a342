"""The pass that replaces dynamic dims by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.engine.obligations import Behind, Obligation, PassResult
from onnx_migrate.engine.pass_infra import ObligedPass, register_pass
from onnx_migrate.errors import CannotMigrate, UsageError, VerificationFailed
from onnx_migrate.facts.shapes import dims_of, dims_text, drop_value_info, inferred_outputs, set_dims
from onnx_migrate.model.dims.expressions import is_expression, value_of
from onnx_migrate.model.dims.fixed_sizes import FixedDims, fixed_axes
from onnx_migrate.model.graphs import all_nodes, fed_inputs
from onnx_migrate.model.interface import UNNAMED, Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify import InputData
from onnx_migrate.verify.prover import Prover

from ..input_dims import MOST_AXES, open_axes

__all__ = ["FewerSizes", "FixDims", "loaded_like"]


@dataclass(frozen=True)
class FewerSizes(Obligation):
    """The model after the pass has the same nodes and takes fewer sizes of inputs.

    The verifier therefore compares the result with it, and not with the model before, which it would run at other sizes.
    """

    def prove(self, prover: Prover, before: Model, after: Model, behind: Behind) -> Verdict:
        """Return the verdict, after a check that the result loads where the model before the pass does."""
        return loaded_like(prover, before, behind)


def loaded_like(prover: Prover, before: Model, behind: Behind) -> Verdict:
    """Return the verdict on a result that loads if the model before a pass does. Raises VerificationFailed.

    The model after the pass may not load itself: onnx's inference may find a fault in a branch that never runs. If the
    result has other numbers, this function loads nothing.
    """
    if behind.verdict.statements:
        return behind.verdict
    try:
        return prover.require_loadable(before, behind.result, behind.verdict)
    except VerificationFailed as error:
        if any(node.op_type == "If" for node in all_nodes(behind.result.proto)):
            error.advise("--no-control-flow leaves out branches that do not fit these sizes")
        raise


@register_pass
@dataclass(frozen=True)
class FixDims(ObligedPass):
    """Set dynamic dims of inputs to numbers, and dims of outputs to the numbers that follow from them.

    The nodes are not changed. The model then accepts these sizes only, so that a runtime can plan memory for them.
    """

    name: ClassVar[str] = "fix_dims"
    title: ClassVar[str] = "fixing dims"
    fix: FixedDims = field(default_factory=dict)
    all_dims: bool = False
    """Whether every dim of the inputs must have a size then."""
    input_data: InputData | None = None
    """Inputs of the user's, whose sizes the dims have that `all_dims` is about."""

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Fix the dims of `model` in place. Raises UsageError for a name that does not exist and for another size."""
        graph, before = model.proto.graph, Interface.of(model.proto).inputs
        symbols = self._fix_inputs(graph, self.fix, model, log)
        # Sizes of the user's data fill in the remaining dims.
        if self.all_dims and open_axes(graph):
            symbols |= self._fix_inputs(graph, self._sizes_of_data(model), model, log)
            _require_sizes(open_axes(graph))
        if Interface.of(model.proto).inputs != before:
            # Declared inner shapes belong to the open dims.
            drop_value_info(model.proto)
        try:
            inferred = inferred_outputs(model.proto)
        except CannotMigrate as error:
            inferred = {}
            log.note(
                self.name,
                error.code,
                f"dims of outputs could not be inferred, and keep their names: {error.reason}",
                severity="warning",
            )
        for value in graph.output:
            declared, inferred_dims = dims_of(value), inferred.get(value.name)
            if declared is None:
                continue
            new_dims = (
                inferred_dims
                if inferred_dims is not None and len(inferred_dims) == len(declared)
                else (None,) * len(declared)
            )
            # An inferred number is certain. That an output's symbol, or expression, is of the inputs' symbols, exporters declare.
            dims = tuple(
                new if isinstance(new, int) else _declared(old, symbols)
                for old, new in zip(declared, new_dims, strict=True)
            )
            if dims != declared:
                set_dims(value, dims)
                text = f"output {value.name}: {dims_text(declared)} → {dims_text(dims)}"
                log.note(self.name, "fixed-dims", text, subject=value.name)
        return PassResult(model, FewerSizes())

    def _fix_inputs(
        self, graph: onnx.GraphProto, fix: FixedDims, model: Model, log: ChangeLog
    ) -> dict[str, int]:
        """Set the dims of inputs that a request names; return the sizes of symbols."""
        sizes, symbols = fixed_axes(fix, Interface.of(model.proto))
        for value in graph.input:
            before = dims_of(value)
            # An input without a shape gets a whole one.
            if before is None:
                wanted = sizes.get(value.name)
                if wanted:
                    set_dims(value, tuple(wanted[axis] for axis in sorted(wanted)))
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                size = sizes.get(value.name, {}).get(axis, symbols.get(dim.dim_param))
                if size is not None:
                    dim.dim_value = size
            if dims_of(value) != before:
                text = f"input {value.name}: {dims_text(before)} → {dims_text(dims_of(value))}"
                log.note(self.name, "fixed-dims", text, subject=value.name)
        return symbols

    def _sizes_of_data(self, model: Model) -> dict[str, dict[int, int]]:
        """Return the sizes that the user's first set of inputs gives open axes."""
        if self.input_data is None:
            return {}
        from onnx_migrate.verify.inputs.given import GivenInputs

        feeds = GivenInputs.of(self.input_data).bound_first(model.proto)
        shapes = feeds.shapes([value.name for value in fed_inputs(model.proto.graph)])
        return {
            name: {axis: shapes[name][axis] for axis in axes if axis < len(shapes[name])}
            for name, axes in open_axes(model.proto.graph).items()
            if name in shapes
        }


def _require_sizes(axes: Mapping[str, Mapping[int, str]]) -> None:
    """Raise UsageError, code `no-size`, that names all axes without a size, and what to give for them."""
    if not axes:
        return
    texts, fixes = [], []
    for name, open_symbols in axes.items():
        # All possible axes stand for an unknown rank.
        if len(open_symbols) == MOST_AXES:
            texts.append(f"the rank of {name!r}")
            fixes.append(f"{name}:SIZES")
        for axis, symbol in open_symbols.items() if len(open_symbols) < MOST_AXES else ():
            # A generated name is of no use on the command line.
            named = symbol if symbol not in UNNAMED else ""
            texts.append(f"axis {axis} of {name!r}" + (f", called {named}" if named else ""))
            fixes.append(f"{named}=SIZE" if named else f"{name}:{axis}=SIZE")
    options_text = " ".join(f"--fix-shape {fix}" for fix in dict.fromkeys(fixes))
    raise UsageError(
        f"a static model needs a size for {'; '.join(texts)}",
        code="no-size",
        hint=f"give {options_text}, of at least 1 as 0 stands for an open dim, or --input-data with inputs of these sizes",
    )


def _declared(dim: int | str | None, symbols: Mapping[str, int]) -> int | str | None:
    value = value_of(dim, symbols) if isinstance(dim, str) and is_expression(dim) else None
    return value if value is not None else symbols.get(dim, dim) if isinstance(dim, str) else dim
