"""The nodes of a model that a runtime loads and computes wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import onnx

from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.spec.schema import is_onnx
from onnx_migrate.spec.targets import FaultRow, Target

__all__ = ["faulty_nodes"]


def faulty_nodes(
    target: Target, proto: onnx.ModelProto, opset: int
) -> Iterator[tuple[onnx.NodeProto, FaultRow]]:
    """Yield the nodes of all bodies that a target computes wrongly in a model of an ai.onnx opset, each with the reason."""
    rows: dict[str, list[FaultRow]] = {}
    for fault in target.faults:
        if fault.opset is None or opset >= fault.opset:
            rows.setdefault(fault.operator, []).append(fault)
    if not rows:
        return
    for node in all_nodes(proto):
        domain = "" if is_onnx(node.domain) else node.domain
        for fault in rows.get(node.op_type, ()):
            if fault.domain == domain and _applies(fault, node):
                yield node, fault


def _applies(fault: FaultRow, node: onnx.NodeProto) -> bool:
    given = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    values = all(_plain(given.get(name)) in wrong for name, wrong in fault.attributes.items())
    return values and (not fault.when or _CONDITIONS[fault.when](given))


def _plain(value: Any) -> Any:
    """Return an attribute's value as tables write it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _pads_only_at_end(given: Mapping[str, Any]) -> bool:
    pads = list(given.get("pads", ()))
    half = len(pads) // 2
    return any(pads[half:]) and not any(pads[:half])


_CONDITIONS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {"pads_only_at_end": _pads_only_at_end}
"""The conditions of `onnx_migrate.spec.targets.PREDICATES`, on the attributes of a node."""
