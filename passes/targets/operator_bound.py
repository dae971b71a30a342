"""The opset that a model can have in runtimes that take operators up to a version, or compute them wrongly from an opset on."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.model.graphs import all_nodes, called, function_key, node_label
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.spec.schema import is_onnx, versions
from onnx_migrate.spec.targets import Targets

from .faults import faulty_nodes

__all__ = ["OpsetBound", "bound_opset", "fault_bound"]


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


def fault_bound(proto: onnx.ModelProto, targets: Targets, opset: int, log: ChangeLog, pass_name: str) -> int:
    """Return the newest opset up to `opset` at which no target computes a node wrongly; `opset` if there is none.

    A note says which node keeps it below `opset`, once.
    """
    bound, oldest, why = opset, max(targets.oldest or OLDEST, OLDEST), None
    for target in targets:
        for node, fault in faulty_nodes(target, proto, bound):
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
    """Record a bound; return whether it is the first, or below the one that a note told of."""
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
