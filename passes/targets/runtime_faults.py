"""The nodes that a runtime computes wrongly, and the opset that a model can have in runtimes because of its operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

import onnx

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import all_nodes, called, function_key, node_label, subgraphs
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.resize import exact_length, picks_alike, samples_alike
from onnx_migrate.standard.schema import is_onnx, newest_opset, signature_at, versions
from onnx_migrate.standard.targets import FaultRow, Target, Targets

from .channel_blocks import narrow_inputs
from .misfits import value_of, values_of
from .pool_windows import begins_in_padding, is_cut_off
from .reductions import (
    all_of,
    divides_among_threads,
    keeps_many_axes,
    reaches,
    reduces_many_axes,
    reduces_many_axes_before_others,
)

__all__ = ["OpsetBound", "bound_opset", "fault_bound", "faulty_nodes", "needed_opset"]


class FaultyNode(NamedTuple):
    """A node that a target computes wrongly; without `is_certain`, it does for some sizes of its open dims."""

    node: onnx.NodeProto
    fault: FaultRow
    is_certain: bool

    @property
    def text(self) -> str:
        """What is wrong; it follows the name of the target."""
        return self.fault.text if self.is_certain else f"{self.fault.text}: its open dims decide"


def faulty_nodes(target: Target, model: Model, opset: int) -> Iterator[FaultyNode]:
    """Yield the nodes of all bodies that a target computes wrongly in a model of an ai.onnx opset, or may by their open dims."""
    rows: dict[str, list[FaultRow]] = {}
    for fault in target.faults:
        if fault.opset is None or opset >= fault.opset:
            for name in fault.names:
                rows.setdefault(name, []).append(fault)
    if not rows:
        return
    sized = {name for name, own in rows.items() if any(row.elements or row.when in _SIZES for row in own)}
    for node, place, scope in _located(model, sized):
        domain = "" if is_onnx(node.domain) else node.domain
        for fault in rows.get(node.op_type, ()):
            if fault.domain == domain and (answer := _applies(fault, node, place, scope)) is not False:
                yield FaultyNode(node, fault, bool(answer))


def _located(model: Model, sized: AbstractSet[str]) -> Iterator[tuple[onnx.NodeProto, int, Scope | None]]:
    """Yield the nodes of all bodies, with their places and scopes where the model has one of these operators."""
    if sized.isdisjoint(node.op_type for node in all_nodes(model.proto)):
        yield from ((node, 0, None) for node in all_nodes(model.proto))
        return
    for top in scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version):
        for scope in top.nested():
            yield from ((node, place, scope) for place, node in enumerate(scope.body.node))


def _applies(fault: FaultRow, node: onnx.NodeProto, place: int, scope: Scope | None) -> bool | None:
    """Return whether a fault is one of this node; None if its open dims decide."""
    given = values_of(node)
    if not all(value_of(node, given, name) in wrong for name, wrong in fault.attributes.items()):
        return False
    if fault.when in _CONDITIONS and not _CONDITIONS[fault.when](given):
        return False
    if scope is None:
        return True
    answers = []
    if fault.elements:
        shape = scope.value_type(node.input[0]).shape
        answers.append(None if shape is None else reaches(shape, fault.elements))
    if fault.when in _SIZES:
        answers.append(_SIZES[fault.when](node, place, scope))
    return all_of(*answers)


def _pads_only_at_end(given: Mapping[str, Any]) -> bool:
    pads = list(given.get("pads", ()))
    half = len(pads) // 2
    return any(pads[half:]) and not any(pads[:half])


def _enlarges(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    scales = scope.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if scales is not None and scales.size:
        return bool((scales > 1).any())
    return _is_longer(scope.value_type(node.output[0]).shape, scope.value_type(node.input[0]).shape)


def _rounds_lengths(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether a length times its scale is no whole number."""
    return _of_scales(node, scope, lambda length, scale: exact_length(length, scale) is not None)


def _samples_by_lengths(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether the quotient of the lengths samples elsewhere than the scale that it is computed of."""
    given = values_of(node)
    transformation, rounding = (
        str(value_of(node, given, name)) for name in ("coordinate_transformation_mode", "nearest_mode")
    )
    if value_of(node, given, "mode") == "nearest":
        return _of_scales(node, scope, lambda n, scale: picks_alike(n, scale, transformation, rounding))
    return _of_scales(node, scope, lambda n, scale: samples_alike(n, scale, transformation))


def _of_scales(node: onnx.NodeProto, scope: Scope, is_alike: Callable[[int, float], bool]) -> bool | None:
    """Return whether an axis of a Resize with scales is not alike; None where open dims or scales decide."""
    if len(node.input) > 3 and node.input[3]:
        return False
    scales = scope.constant(node.input[2 if len(node.input) > 2 else 1])
    shape = scope.value_type(node.input[0]).shape
    if scales is None:
        return None
    axes = list(zip(shape or [None] * scales.size, scales.tolist(), strict=True))
    if any(dim is not None and not is_alike(dim, scale) for dim, scale in axes):
        return True
    return None if any(dim is None and not scale.is_integer() for dim, scale in axes) else False


def _has_more_indices_than_data(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    indices, data = scope.value_type(node.input[1]).shape, scope.value_type(node.input[0]).shape
    pairs = zip(indices or (), data or (), strict=False)
    return any(a is not None and b is not None and a > b for a, b in pairs)


def _has_more_than_four_axes(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    return (scope.value_type(node.input[0]).rank or 0) > 4


def _has_zero_points_by_column(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    shape = scope.value_type(node.input[3]).shape if len(node.input) > 3 and node.input[3] else ()
    return shape not in ((), (1,), None)


def _is_of_float16(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    return scope.value_type(node.input[0]).dtype == onnx.TensorProto.FLOAT16


def _loses_leading_axes(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    """Return whether a matrix is multiplied with matrices that lie along axes of 1 alone."""
    left, right = (scope.value_type(name).shape for name in node.input)
    return (
        left is not None
        and right is not None
        and len(left) == 2 < len(right)
        and set(right[:-2]) <= {1, None}
    )


def _branches_of_unknown_rank(node: onnx.NodeProto, place: int, scope: Scope) -> bool:
    return any(
        scope.inner(node, place, name, at, graph).value_type(value.name).rank is None
        for name, at, graph in subgraphs(node)
        for value in graph.output
    )


def _spreads_channels(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    return bool(narrow_inputs(node, lambda name: scope.value_type(name).shape, scope.makers.get))


def _is_longer(one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None) -> bool | None:
    """Return whether a shape is longer than another along an axis; None if open dims decide."""
    if one is None or other is None or len(one) != len(other):
        return None
    pairs = [(a, b) for a, b in zip(one, other, strict=True)]
    if any(a is not None and b is not None and a > b for a, b in pairs):
        return True
    return None if any(a is None or b is None for a, b in pairs) else False


_CONDITIONS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {"pads_only_at_end": _pads_only_at_end}
"""The conditions of `onnx_migrate.standard.targets.PREDICATES` on the attributes of a node."""

_SIZES: Mapping[str, Callable[[onnx.NodeProto, int, Scope], bool | None]] = {
    "enlarges": _enlarges,
    "rounds_lengths": _rounds_lengths,
    "samples_by_lengths": _samples_by_lengths,
    "has_more_indices_than_data": _has_more_indices_than_data,
    "has_more_than_four_axes": _has_more_than_four_axes,
    "has_zero_points_by_column": _has_zero_points_by_column,
    "is_of_float16": _is_of_float16,
    "loses_leading_axes": _loses_leading_axes,
    "branches_of_unknown_rank": _branches_of_unknown_rank,
    "spreads_channels": _spreads_channels,
    "is_cut_off": is_cut_off,
    "begins_in_padding": begins_in_padding,
    "divides_among_threads": divides_among_threads,
    "keeps_many_axes": keeps_many_axes,
    "reduces_many_axes": reduces_many_axes,
    "reduces_many_axes_before_others": reduces_many_axes_before_others,
}
"""Those on its shapes; a node comes with its place in the body. They return None if open dims decide; of indices and zero
points open shapes say nothing."""


@dataclass(frozen=True)
class OpsetBound:
    """The fact that the newest opset of a model is bound by an operator that it uses."""

    opset: int


def bound_opset(proto: onnx.ModelProto, targets: Targets, opset: int, log: ChangeLog, pass_name: str) -> int:
    """Return the newest opset up to `opset` at which the targets take every ai.onnx operator of a model.

    A note says which operator keeps it below `opset`, once. An operator that has no version that a target takes does not count.
    """
    bound, why = opset, None
    for operator in _operators(proto):
        found = targets.newest_version("", operator)
        if found is None:
            continue
        version, target = found
        newer = [since for since in versions("", operator) if since > version]
        if newer and newer[0] <= bound and version >= versions("", operator)[0]:
            bound, why = newer[0] - 1, (operator, version, target)
    if why is not None and _is_news(bound, log):
        operator, version, target = why
        log.note(
            pass_name,
            "operator-bound",
            f"opset {bound} is the newest for {targets} here, because {target} takes {operator} up to version {version}",
            subject=operator,
        )
    return bound


def needed_opset(proto: onnx.ModelProto, targets: Targets, opset: int) -> int:
    """Return the opset from `opset` on at which no ai.onnx operator of a model is of an older version than the targets take.

    It is at most the newest that they take, and that the installed onnx knows.
    """
    newest = min(targets.opset or newest_opset(), newest_opset())
    for operator in _operators(proto):
        found, form = targets.oldest_version("", operator), signature_at("", operator, opset)
        if found is not None and form is not None and form.since_version < found[0] <= newest:
            opset = max(opset, found[0])
    return opset


def fault_bound(model: Model, targets: Targets, opset: int, log: ChangeLog, pass_name: str) -> int:
    """Return the newest opset up to `opset` at which no target computes a node wrongly; `opset` if there is none.

    A note says which node keeps it below `opset`, once.
    """
    bound, oldest, why = opset, max(targets.oldest or OLDEST, OLDEST), None
    for target in targets:
        for node, fault, _ in faulty_nodes(target, model, bound):
            if fault.opset is not None and oldest < fault.opset <= bound:
                bound, why = fault.opset - 1, (node, fault, target)
    if why is not None and _is_news(bound, log):
        node, fault, target = why
        log.note(
            pass_name,
            "operator-bound",
            f"opset {bound} is the newest for {targets} here: {node_label(node)}: from opset {fault.opset} on, {target}"
            f" {fault.text}",
            subject=node.name,
        )
    return bound


def _is_news(bound: int, log: ChangeLog) -> bool:
    """Record a bound; return whether it is the first, or below the one that was reported."""
    known = log.fact(OpsetBound, "", "")
    if known is not None and bound >= known.opset:
        return False
    log.record_fact("", "", OpsetBound(bound))
    return True


def _operators(proto: onnx.ModelProto) -> list[str]:
    """Return the ai.onnx operators that a model uses, sorted, so that a note names the same one every time."""
    functions = {function_key(function) for function in proto.functions}
    return sorted(
        {node.op_type for node in all_nodes(proto) if is_onnx(node.domain) and called(node) not in functions}
    )
