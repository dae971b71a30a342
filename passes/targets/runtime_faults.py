"""The nodes that a runtime computes wrongly, and the opset that a model can have in runtimes because of its operators."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import onnx

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import all_nodes, called, function_key, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import is_onnx, newest_opset, signature_at, versions
from onnx_migrate.standard.targets import FaultRow, Target, Targets

from .answers import all_of, reaches
from .fault_conditions import ATTRIBUTES, SIZES
from .misfits import value_of, values_of

__all__ = ["OpsetBound", "bound_opset", "fault_bound", "faulty_nodes", "needed_opset"]


class FaultyNode(NamedTuple):
    """A node that a target computes wrongly; without `is_certain`, it does for some values or sizes of its open dims."""

    node: onnx.NodeProto
    fault: FaultRow
    is_certain: bool

    @property
    def text(self) -> str:
        """The description of the fault; it follows the name of the target."""
        decided = self.is_certain or self.fault.by_values
        return self.fault.text if decided else f"{self.fault.text}: its open dims decide"


def faulty_nodes(target: Target, model: Model, opset: int) -> Iterator[FaultyNode]:
    """Yield the nodes of all bodies that a target computes wrongly in a model of an ai.onnx opset, or may by their open dims."""
    rows: dict[str, list[FaultRow]] = {}
    for fault in target.faults:
        if fault.opset is None or opset >= fault.opset:
            for name in fault.names:
                rows.setdefault(name, []).append(fault)
    if not rows:
        return
    sized = {name for name, own in rows.items() if any(row.elements or row.when in SIZES for row in own)}
    # Only faults of sizes need the types of values.
    for node, node_index, scope in _located(model, sized):
        domain = "" if is_onnx(node.domain) else node.domain
        for fault in rows.get(node.op_type, ()):
            if fault.domain == domain and (answer := _applies(fault, node, node_index, scope)) is not False:
                yield FaultyNode(node, fault, bool(answer) and not fault.by_values)


def _located(model: Model, sized: AbstractSet[str]) -> Iterator[tuple[onnx.NodeProto, int, Scope | None]]:
    """Yield the nodes of all bodies, with their places and scopes where the model has one of these operators."""
    # The scopes need the types of all values, which only faults of sizes ask for.
    if sized.isdisjoint(node.op_type for node in all_nodes(model.proto)):
        yield from ((node, 0, None) for node in all_nodes(model.proto))
        return
    for top in scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version):
        for scope in top.nested():
            yield from ((node, node_index, scope) for node_index, node in enumerate(scope.body.node))


def _applies(fault: FaultRow, node: onnx.NodeProto, place: int, scope: Scope | None) -> bool | None:
    """Return whether a fault is one of this node; None if its open dims decide."""
    settings = values_of(node)
    if not all(value_of(node, settings, name) in wrong for name, wrong in fault.attributes.items()):
        return False
    if fault.when in ATTRIBUTES and not ATTRIBUTES[fault.when](settings):
        return False
    # No fault of this operator asks for sizes.
    if scope is None:
        return True
    answers = []
    if fault.elements:
        shape = scope.value_type(node.input[0]).shape
        answers.append(None if shape is None else reaches(shape, fault.elements))
    if fault.when in SIZES:
        answers.append(SIZES[fault.when](node, place, scope))
    return all_of(*answers)


@dataclass(frozen=True)
class OpsetBound:
    """The fact that the newest opset of a model is bound by an operator that it uses."""

    opset: int


def bound_opset(proto: onnx.ModelProto, targets: Targets, opset: int, log: ChangeLog, pass_name: str) -> int:
    """Return the newest opset up to `opset` at which the targets support every ai.onnx operator of a model.

    If an operator keeps it below `opset`, a note says so, once. An operator without any version that a target supports does not
    count.
    """
    bound, why = opset, None
    for operator in _operators(proto):
        limit = targets.newest_version("", operator)
        if limit is None:
            continue
        version, target = limit
        # The operator changed at this opset, and the target does not have the new version.
        newer = [since for since in versions("", operator) if since > version]
        # An operator without any supported version is no bound.
        if newer and newer[0] <= bound and version >= versions("", operator)[0]:
            bound, why = newer[0] - 1, (operator, version, target)
    # The same bound may be found by several passes.
    if why is not None and _is_news(bound, log):
        operator, version, target = why
        log.note(
            pass_name,
            "operator-bound",
            f"opset {bound} is the newest for {targets} here, because {target} supports {operator} up to version {version}",
            subject=operator,
        )
    return bound


def needed_opset(proto: onnx.ModelProto, targets: Targets, opset: int) -> int:
    """Return the lowest opset from `opset` on at which no ai.onnx operator of a model has a version too old for the targets.

    It is at most the newest opset that the targets support and the installed onnx knows.
    """
    newest = min(targets.opset or newest_opset(), newest_opset())
    for operator in _operators(proto):
        oldest, form = targets.oldest_version("", operator), signature_at("", operator, opset)
        if oldest is not None and form is not None and form.since_version < oldest[0] <= newest:
            opset = max(opset, oldest[0])
    return opset


def fault_bound(model: Model, targets: Targets, opset: int, log: ChangeLog, pass_name: str) -> int:
    """Return the newest opset up to `opset` at which no target computes a node wrongly; `opset` if there is none.

    If a node keeps it below `opset`, a note says so, once.
    """
    bound, oldest, why = opset, max(targets.oldest or OLDEST, OLDEST), None
    for target in targets:
        for node, fault, _ in faulty_nodes(target, model, bound):
            # An opset below the oldest one is no way out.
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
    reported = log.fact(OpsetBound, "", "")
    if reported is not None and bound >= reported.opset:
        return False
    log.record_fact("", "", OpsetBound(bound))
    return True


def _operators(proto: onnx.ModelProto) -> list[str]:
    """Return the ai.onnx operators that a model uses, sorted, so that a note names the same one every time."""
    functions = {function_key(function) for function in proto.functions}
    return sorted(
        {node.op_type for node in all_nodes(proto) if is_onnx(node.domain) and called(node) not in functions}
    )
