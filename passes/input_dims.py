"""The passes that name dims of unknown length, and that replace symbolic dims by numbers; and the plan of dynamic ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.engine.obligations import Behind, Obligation, PassResult
from onnx_migrate.engine.pass_infra import ObligedPass, Pass, register_pass
from onnx_migrate.errors import CannotMigrate, UsageError, VerificationFailed
from onnx_migrate.facts.shapes import dims_of, dims_text, drop_value_info, inferred_outputs, set_dims
from onnx_migrate.model.dims.expressions import is_expression, value_of
from onnx_migrate.model.dims.fixed_sizes import FixedDims, fixed_axes
from onnx_migrate.model.dims.open_names import OpenNames
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.graphs import all_nodes, fed_inputs
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify import InputData
from onnx_migrate.verify.prover import Prover

__all__ = [
    "FewerSizes",
    "FixDims",
    "OpenDims",
    "RequestedDims",
    "loaded_like",
    "open_axes",
    "requested_dims",
]

_MOST_AXES = 64
"""Axes that a tensor may have in ONNX Runtime and NumPy."""

_EMPTY = frozenset({"?", "None", "none", "-1", "0", "unk", "dynamic"})


@dataclass(frozen=True)
class RequestedDims:
    """The fact that a request was resolved to a plan, against the interface of the model at that time."""

    request: DynamicAxes
    plan: DimPlan


def requested_dims(request: DynamicAxes | None, model: Model, log: ChangeLog) -> DimPlan:
    """Return the plan of a request: the one in the log, else a new one, which the log then keeps.

    The plan holds the axes that the request names. If the user asks only for the batch, the pass dynamic_dims finds
    which axis it is. Raises UsageError for a request that does not fit the model.
    """
    if request is None:
        return DimPlan()
    known = log.fact(RequestedDims, "", "")
    if known is None or known.request != request:
        known = RequestedDims(request, DimPlan.of(request, Interface.of(model.proto)))
        log.record_fact("", "", known)
    return known.plan


@register_pass
@dataclass(frozen=True)
class OpenDims(Pass):
    """Give each dim of unknown length a name of its own, VALUE_dim_AXIS.

    Exporters declare such dims as -1 or 0, or call all of them `?` or `None`, which by the standard says that they are
    equal. Runtimes accept any length for -1 and 0 in an input, so a name of its own says the same. A dim that has a name gets it
    back after the last pass.
    """

    name: ClassVar[str] = "open_dims"
    title: ClassVar[str] = "naming open dims"

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Name the dims of `model` in place."""
        graph = model.proto.graph
        own: dict[str, str] = {}
        for value in fed_inputs(graph):
            own |= self._name(value, "input", 0, log)
        for value in graph.output:
            own |= self._name(value, "output", -1, log)  # an output may be empty
        if own:
            log.record_fact("", "", OpenNames(own))
        return model

    def _name(self, value: onnx.ValueInfoProto, what: str, highest: int, log: ChangeLog) -> dict[str, str]:
        """Name the dims of one value; return the names that some had before, by their new ones."""
        before, own = dims_of(value), {}
        numbered = False
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            name = f"{value.name}_dim_{axis}"
            if dim.dim_param in _EMPTY:
                own[name] = dim.dim_param
                dim.dim_param = name
            elif dim.HasField("dim_value") and dim.dim_value <= highest:
                dim.dim_param, numbered = name, True
        after = dims_of(value)
        if numbered and before is not None:
            log.note(
                self.name,
                "open-dims",
                f"{what} {value.name}: {dims_text(before)} → {dims_text(after)}, because these lengths are unknown",
                subject=value.name,
            )
        return own


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
        if self.all_dims and open_axes(graph):
            symbols |= self._fix_inputs(graph, self._sizes_of_data(model), model, log)
            _require_sizes(open_axes(graph))
        if Interface.of(model.proto).inputs != before:
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
            declared, found = dims_of(value), inferred.get(value.name)
            if declared is None:
                continue
            known = found if found is not None and len(found) == len(declared) else (None,) * len(declared)
            # An inferred number is certain. That an output's symbol, or expression, is of the inputs' symbols, exporters declare.
            dims = tuple(
                new if isinstance(new, int) else _declared(old, symbols)
                for old, new in zip(declared, known, strict=True)
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


def open_axes(graph: onnx.GraphProto) -> dict[str, dict[int, str]]:
    """Return the axes of inputs without a size, with their symbols. For an input of unknown rank, return all possible axes."""
    found = {}
    for value in fed_inputs(graph):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        dims = dims_of(value)
        axes = (
            dict.fromkeys(range(_MOST_AXES), "")
            if dims is None
            else {
                axis: dim if isinstance(dim, str) else ""
                for axis, dim in enumerate(dims)
                if not isinstance(dim, int) or dim < 1
            }
        )
        if axes:
            found[value.name] = axes
    return found


def _require_sizes(axes: Mapping[str, Mapping[int, str]]) -> None:
    """Raise UsageError, code `no-size`, that names all axes without a size, and what to give for them."""
    if not axes:
        return
    texts, fixes = [], []
    for name, found in axes.items():
        if len(found) == _MOST_AXES:
            texts.append(f"the rank of {name!r}")
            fixes.append(f"{name}:SIZES")
        for axis, symbol in found.items() if len(found) < _MOST_AXES else ():
            named = symbol if symbol not in _EMPTY else ""
            texts.append(f"axis {axis} of {name!r}" + (f", called {named}" if named else ""))
            fixes.append(f"{named}=SIZE" if named else f"{name}:{axis}=SIZE")
    asked = " ".join(f"--fix-shape {fix}" for fix in dict.fromkeys(fixes))
    raise UsageError(
        f"a static model needs a size for {'; '.join(texts)}",
        code="no-size",
        hint=f"give {asked}, of at least 1 as 0 stands for an open dim, or --input-data with inputs of these sizes",
    )


def _declared(dim: int | str | None, symbols: Mapping[str, int]) -> int | str | None:
    value = value_of(dim, symbols) if isinstance(dim, str) and is_expression(dim) else None
    return value if value is not None else symbols.get(dim, dim) if isinstance(dim, str) else dim
