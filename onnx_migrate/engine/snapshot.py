"""A node as it was before its lift, to tell the report what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import AttributeProto, TensorProto, helper

from onnx_migrate.engine.registry import Step
from onnx_migrate.errors import Where
from onnx_migrate.model.change import Change, Exactness
from onnx_migrate.model.rewriter import Rewriter
from onnx_migrate.model.schema import signature_at

__all__ = ["Snapshot"]

_ORDER = (Exactness.EXACT, Exactness.EQUIVALENT, Exactness.ASSUMED)


@dataclass(frozen=True)
class Snapshot:
    """Operator, version, inputs and attributes of a node at one moment."""

    name: str
    operator: str
    version: int
    inputs: tuple[str, ...]
    attributes: dict[str, str]

    @classmethod
    def of(cls, node: onnx.NodeProto, opset: int) -> Snapshot:
        """Take down a node that has the form of `opset`."""
        form = signature_at(node.domain, node.op_type, opset)
        name = node.name or next((output for output in node.output if output), "")
        attributes = {attribute.name: attribute_text(attribute) for attribute in node.attribute}
        return cls(name, node.op_type, form.since_version if form else opset, tuple(node.input), attributes)

    def change(
        self, node: onnx.NodeProto, target: int, path: str, steps: Sequence[tuple[Step, Rewriter]]
    ) -> Change:
        """Return what became of the node after these steps, its own and those of the nodes written for it."""
        after = Snapshot.of(node, target)
        removed = any(rewriter.removed and rewriter.node is node for _, rewriter in steps)
        emitted = [
            helper.op_type for _, rewriter in steps for helper in (*rewriter.preceding, *rewriter.following)
        ]
        own = [(step, rewriter) for step, rewriter in steps if rewriter.node is node]
        reasons = [reason for step, rewriter in own for reason in (rewriter.reasons or [step.reason])]
        exactness = [rewriter.exactness or step.exactness for step, rewriter in steps]
        both = self.attributes.items() & after.attributes.items()
        return Change(
            step="migrate_opset",
            where=Where(path, self.name, self.operator, self.version, target),
            operator_before=self.operator,
            version_before=self.version,
            inputs_before=self.inputs,
            attributes_before=tuple(sorted(self.attributes.items() - both)),
            operator_after="" if removed else after.operator,
            version_after=after.version,
            inputs_after=() if removed else after.inputs,
            attributes_after=() if removed else tuple(sorted(after.attributes.items() - both)),
            emitted=tuple(emitted),
            reason="; ".join(dict.fromkeys(reasons)),
            exactness=max(exactness, key=_ORDER.index),
        )


def attribute_text(attribute: AttributeProto) -> str:
    """Return an attribute's value as short text; a sub-graph or a tensor by its kind and shape."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    kind = attribute.type
    if kind == AttributeProto.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == AttributeProto.TENSOR:
        return f"{TensorProto.DataType.Name(attribute.t.data_type)}{list(attribute.t.dims)}"
    if kind in (AttributeProto.INT, AttributeProto.FLOAT):
        return f"{helper.get_attribute_value(attribute):g}" if kind == AttributeProto.FLOAT else str(attribute.i)
    if kind in (AttributeProto.INTS, AttributeProto.FLOATS):
        values = helper.get_attribute_value(attribute)
        shown = ", ".join(f"{value:g}" for value in values[:16])
        return f"[{shown}{', …' if len(values) > 16 else ''}]"
    return f"<{AttributeProto.AttributeType.Name(kind).lower()}>"
