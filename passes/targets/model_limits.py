"""Limits of a target on a model as a whole: element types, open dims, ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx

from onnx_migrate.advice import Advice, Chosen
from onnx_migrate.engine.incompatibility import Incompatibility, counted
from onnx_migrate.engine.steps.decompose_model import body_scopes
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.value_types import value_type_of
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import all_nodes, called, fed_inputs, function_key, node_label, operators_of
from onnx_migrate.model.model import Model
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx, signature_at
from onnx_migrate.standard.targets import Target, Targets

__all__ = ["check_model_limits", "check_versions", "model_misfits", "nodes_in_scopes"]


def check_model_limits(model: Model, targets: Targets) -> CannotMigrate | None:
    """Return the error for a model that the targets do not support as a whole, code `target-lacks`; None if they do."""
    misfits = counted(model_misfits(model, targets))
    if not misfits:
        return None
    first, *others = misfits
    more = f"; {count_of(first.nodes - 1, 'more node')}" if first.nodes > 1 else ""
    more += "".join(f"; {misfit.reason}" for misfit in others[:3])
    # Open dims are the only limit that an option removes.
    fixed = any(target.row.static for target in targets) and _open_inputs(model.proto)
    return CannotMigrate(
        f"{first.reason}{more}",
        code="target-lacks",
        where=first.where,
        hint=Advice(
            f"fix the dims of {listed(sorted(fixed))} with --fix-shape", options={"fix_shape": Chosen.DIMS}
        )
        if fixed
        else "",
    )


def check_versions(model: Model, targets: Targets) -> CannotMigrate | None:
    """Return the error for a node of an older version than the targets support, if their opset has no newer one."""
    proto = model.proto
    used = operators_of(all_nodes(proto))
    # Few runtimes have such a limit.
    first = {key: oldest for key in used if (oldest := targets.oldest_version(*key))}
    if not first:
        return None
    functions = {function_key(function) for function in proto.functions}
    for node, scope, opset in nodes_in_scopes(model):
        form = signature_at(node.domain, node.op_type, opset)
        bound = first.get((node.domain, node.op_type))
        if bound is None or form is None or called(node) in functions:
            continue
        if form.since_version < bound[0]:
            return CannotMigrate(
                f"{bound[1]} takes {node.op_type} from version {bound[0]} on, not {form.since_version}",
                code="target-lacks",
                where=Where(scope.path, node_label(node), node.op_type, form.since_version),
            )
    return None


def nodes_in_scopes(model: Model) -> Iterator[tuple[onnx.NodeProto, Scope, int]]:
    """Yield the nodes of all bodies with their scopes and the opset of ai.onnx that these import, 0 for none."""
    for top, (_, opset) in zip(body_scopes(model), body_opsets(model.proto), strict=True):
        for scope in top.nested():
            for node in scope.body.node:
                yield node, scope, opset or 0


def model_misfits(model: Model, targets: Targets) -> Iterator[Incompatibility]:
    """Yield the reasons why the targets do not support inputs, outputs and values, in time linear in the nodes."""
    for target in targets:
        yield from _of_interface(model.proto, target)
    limited = [target for target in targets if target.row.types or target.row.rank is not None]
    if limited:
        for node, scope, _ in nodes_in_scopes(model):
            yield from _of_node(node, scope, limited)


def _of_interface(proto: onnx.ModelProto, target: Target) -> Iterator[Incompatibility]:
    row = target.row
    if row.static:
        for name, dims in _open_inputs(proto).items():
            yield Incompatibility(f"input {name!r} is {dims}, and {target} takes fixed dims only")
    if row.inputs_first and (first := _initializer_before(proto.graph)):
        yield Incompatibility(
            f"initializer {first!r} is listed before the inputs, and {target} takes it for one"
        )
    # Inputs and outputs may have limits of their own.
    ports = (
        ("input", fed_inputs(proto.graph), row.input_types),
        ("output", proto.graph.output, row.output_types),
    )
    for kind, values, types in ports:
        for value in values if types else ():
            dtype = value_type_of(value.type).dtype
            if dtype is not None and type_name(dtype) not in types:
                allowed_types = " or ".join(types)
                yield Incompatibility(
                    f"{kind} {value.name!r} is of {type_name(dtype)}, and {target} takes {kind}s of {allowed_types}"
                )


def _initializer_before(graph: onnx.GraphProto) -> str:
    """Return the initializer that is listed as an input before one that is fed, "" if there is none."""
    fed = {value.name for value in fed_inputs(graph)}
    first = graph.input[0].name if graph.input else ""
    return "" if not fed or first in fed else first


def _open_inputs(proto: onnx.ModelProto) -> Mapping[str, str]:
    """Return the inputs with dims that are no numbers, and their shapes as text."""
    open_inputs = {}
    for value in fed_inputs(proto.graph):
        tensor = value.type.tensor_type
        dims = [
            str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
            for dim in tensor.shape.dim
        ]
        if not tensor.HasField("shape"):
            open_inputs[value.name] = "of unknown rank"
        elif not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            open_inputs[value.name] = f"[{', '.join(dims)}]"
    return open_inputs


def _of_node(node: onnx.NodeProto, scope: Scope, targets: Iterable[Target]) -> Iterator[Incompatibility]:
    # A constant is checked at its readers.
    if node.op_type == "Constant" and is_onnx(node.domain):
        return
    names = [name for name in (*node.input, *node.output) if name]
    types = [_checked_type(name, scope) for name in names]
    # The value with the most axes decides.
    rank = max((scope.value_type(name).rank or 0 for name in names), default=0)
    for target in targets:
        row = target.row
        reasons = [
            f"{target} takes values of {' or '.join(row.types)}, not of {dtype}"
            for dtype in types
            if row.types and dtype and dtype not in row.types
        ]
        if row.rank is not None and rank > row.rank:
            reasons.append(f"{target} takes values of up to {count_of(row.rank, 'axis')}, not of {rank}")
        where = Where(scope.path, node_label(node), node.op_type)
        yield from (Incompatibility(reason, where, 1) for reason in dict.fromkeys(reasons))


def _checked_type(name: str, scope: Scope) -> str:
    """Return the element type of a value, "" if it is not known, and for a constant that is no float."""
    dtype = scope.value_type(name).dtype
    text = "" if dtype is None else type_name(dtype)
    is_float = "float" in text or text == "double"
    return text if is_float or scope.constant_source(name) is None else ""
