"""Draws a changed node before and after: boxes with slots, as graph viewers show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import Any

from onnx import defs

from onnx_migrate.report.html.diagram_parts import Attribute, Box, Drawing, Slot, Texts
from onnx_migrate.spec.schema import is_onnx

__all__ = ["draw", "draw_blocked"]

_KINDS = {
    "layer": "Conv ConvTranspose ConvInteger QLinearConv Gemm MatMul LSTM GRU RNN DeformConv Attention Einsum",
    "activation": "Relu LeakyRelu PRelu Elu Selu Celu Sigmoid HardSigmoid HardSwish Tanh Softmax LogSoftmax Hardmax Clip "
    "Softplus Softsign Gelu Mish Swish ThresholdedRelu",
    "pool": "AveragePool MaxPool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool MaxRoiPool RoiAlign",
    "normalization": "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization LRN RMSNormalization "
    "LpNormalization MeanVarianceNormalization Dropout",
    "shape": "Reshape Flatten Squeeze Unsqueeze Transpose Shape Expand Tile",
    "tensor": "Concat Split Slice Gather GatherND GatherElements Pad Resize Upsample ScatterND ScatterElements",
    "quantization": "QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
}
"""Operators by kind, which determines their colour; the colours are those common in graph viewers."""

_KIND_OF = {operator: kind for kind, operators in _KINDS.items() for operator in operators.split()}

_SLOTS = 12
"""Largest number of inputs, constants and outputs drawn of a node; Concat can have hundreds."""


def draw(change: Mapping[str, Any]) -> tuple[Drawing, Texts]:
    """Draw a change of a report's dict. The first three texts are the node's name, its graph or function, and the reason."""
    builder = _DiagramBuilder(change)
    old, new = change["before"], change["after"]
    nodes = _in_order(change["helper_nodes"], new)
    was_read, is_read = set(old["inputs"]), {name for node in nodes for name in node["inputs"]}
    before = builder.box(old, "removed", was_read - is_read) if new else builder.box(old, mark="removed")
    rows: list[list[Box]] = []
    depth: dict[str, int] = {}
    for node in nodes:
        box = (
            builder.box(node, "new", is_read - was_read, inner=is_read)
            if node is new
            else builder.box(node, inner=is_read, helper=True, mark="new")
        )
        row = max((depth.get(name, -1) for name in node["inputs"]), default=-1) + 1
        depth |= dict.fromkeys(node["outputs"], row)
        rows += [[] for _ in range(row + 1 - len(rows))]
        rows[row].append(box)
    return Drawing(before, tuple(map(tuple, rows))), builder.texts


def draw_blocked(change: Mapping[str, Any]) -> tuple[Drawing, Texts]:
    """Draw a node that could not be migrated: a change without a result."""
    builder = _DiagramBuilder(change)
    return Drawing(builder.box(change["before"], mark="blocked"), ()), builder.texts


def _in_order(
    helpers: Sequence[Mapping[str, Any]], node: Mapping[str, Any] | None
) -> list[Mapping[str, Any]]:
    """Put the node before the first helper that reads its outputs, or after all helpers."""
    if node is None:
        return list(helpers)
    produced = set(node["outputs"])
    position = next(
        (index for index, helper in enumerate(helpers) if produced.intersection(helper["inputs"])),
        len(helpers),
    )
    return [*helpers[:position], node, *helpers[position:]]


class _DiagramBuilder:
    """Draws the nodes of one change and collects their texts."""

    def __init__(self, change: Mapping[str, Any]) -> None:
        self.texts = Texts()
        self.texts.index(("node",), change["node"], "node")
        scope = change["scope"]
        self.texts.index(("scope",), "" if scope == "graph" else scope, "in")
        self.texts.index(("reason",), change["reason"], "reason")
        self._kept: Mapping[str, str] = change["kept_attributes"]
        self._constants: Mapping[str, Mapping[str, Any]] = change["constants"]
        self._boxes = 0

    def box(
        self,
        node: Mapping[str, Any],
        sign: str = "",
        only_here: Set[str] = frozenset(),
        *,
        inner: Set[str] = frozenset(),
        helper: bool = False,
        mark: str = "",
    ) -> Box:
        """Draw a node. `sign` marks the inputs in `only_here`, and the attributes that are not kept.

        `inner` are the values that nodes of the drawing read.
        """
        self._boxes += 1
        names_in, names_out = _formal(node["domain"], node["operator"], node["version"])
        inputs, constants = [], []
        for index, name in enumerate(node["inputs"]):
            if not name:
                continue
            label, here = _label(names_in, index), sign if name in only_here else ""
            if name in self._constants:
                constants.append(self._constant(label, name, here))
            else:
                inputs.append(self._value(label, name, here))
        outputs = [
            self._value(_label(names_out, index), name, "inner" if name in inner else "")
            for index, name in enumerate(node["outputs"])
            if name
        ]
        standard = is_onnx(node["domain"])
        return Box(
            node["operator"] if standard else f"{node['domain']}.{node['operator']}",
            node["version"],
            _KIND_OF.get(node["operator"], "other") if standard else "other",
            tuple(inputs[:_SLOTS]),
            tuple(constants[:_SLOTS]),
            self._attributes(node, {} if helper else self._kept, sign),
            tuple(outputs[:_SLOTS]),
            sum(max(0, len(slots) - _SLOTS) for slots in (inputs, constants, outputs)),
            mark,
        )

    def _value(self, label: str, name: str, mark: str = "") -> Slot:
        index = self.texts.index(("value", name), name, label)
        return Slot(label, index, index, mark)

    def _constant(self, label: str, name: str, mark: str) -> Slot:
        constant = self._constants[name]
        shape = "×".join(map(str, constant["shape"]))
        kind = f"{constant['type']}[{shape}]" if constant["shape"] else constant["type"]
        text = f"⟨{shape}⟩" if constant["value"] is None else constant["value"]
        index = self.texts.index(("constant", name), text, label)
        title = self.texts.index(("title", name), f"{name}: {kind}", f"{label} from")
        return Slot(label, index, title, mark)

    def _attributes(
        self, node: Mapping[str, Any], kept: Mapping[str, str], sign: str
    ) -> tuple[Attribute, ...]:
        own: Mapping[str, str] = node["attributes"]
        found = []
        for name, value in sorted({**kept, **own}.items()):
            key = ("attribute", str(self._boxes), name) if name in own else ("kept", name)
            index = self.texts.index(key, value, name)
            found.append(Attribute(name, index, sign if name in own else ""))
        return tuple(found)


@cache
def _formal(domain: str, operator: str, version: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the formal names of an operator's inputs and outputs; none if the installed onnx does not know it."""
    try:
        schema = defs.get_schema(operator, version, "" if is_onnx(domain) else domain)
    except defs.SchemaError:
        return (), ()
    return tuple(item.name for item in schema.inputs), tuple(item.name for item in schema.outputs)


def _label(names: Sequence[str], index: int) -> str:
    """Return the formal name of an input or output; all after the last name belong to a variadic parameter."""
    return names[min(index, len(names) - 1)] if names else ""
