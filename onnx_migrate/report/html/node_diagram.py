"""A changed node as a picture, before and after: boxes with slots, as graph viewers draw them."""

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
"""Operators by the kind that gives their colour, as readers of graph viewers know them."""

_KIND_OF = {operator: kind for kind, operators in _KINDS.items() for operator in operators.split()}

_SLOTS = 12
"""Values drawn that go into a node, or come out; Concat and the like can have hundreds."""


def draw(change: Mapping[str, Any]) -> tuple[Drawing, Texts]:
    """Draw a change of a report's dict. The first three texts are the node's name, the body it stands in and the reason."""
    pen = _DiagramBuilder(change)
    old, new = change["before"], change["after"]
    nodes = _in_order(change["helper_nodes"], new)
    was_read, is_read = set(old["inputs"]), {name for node in nodes for name in node["inputs"]}
    before = pen.box(old, "gone", was_read - is_read) if new else pen.box(old, mark="gone")
    rows: list[list[Box]] = []
    depth: dict[str, int] = {}
    for node in nodes:
        box = (
            pen.box(node, "new", is_read - was_read, inner=is_read)
            if node is new
            else pen.box(node, inner=is_read, helper=True, mark="new")
        )
        row = max((depth.get(name, -1) for name in node["inputs"]), default=-1) + 1
        depth |= dict.fromkeys(node["outputs"], row)
        rows += [[] for _ in range(row + 1 - len(rows))]
        rows[row].append(box)
    return Drawing(before, tuple(map(tuple, rows))), pen.texts


def draw_blocked(change: Mapping[str, Any]) -> tuple[Drawing, Texts]:
    """Draw the node that stood in the way of a migration: a change that was never made."""
    pen = _DiagramBuilder(change)
    return Drawing(pen.box(change["before"], mark="blocked"), ()), pen.texts


def _in_order(
    helpers: Sequence[Mapping[str, Any]], node: Mapping[str, Any] | None
) -> list[Mapping[str, Any]]:
    """Put the node before the first helper that reads what it gives, and else behind them all."""
    if node is None:
        return list(helpers)
    given = set(node["outputs"])
    place = next(
        (index for index, helper in enumerate(helpers) if given.intersection(helper["inputs"])), len(helpers)
    )
    return [*helpers[:place], node, *helpers[place:]]


class _DiagramBuilder:
    """Draws the nodes of one change."""

    def __init__(self, change: Mapping[str, Any]) -> None:
        self.texts = Texts()
        self.texts.place(("node",), change["node"], "node")
        scope = change["scope"]
        self.texts.place(("scope",), "" if scope == "graph" else scope, "in")
        self.texts.place(("reason",), change["reason"], "reason")
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
        """Draw a node. `sign` marks its attributes but for those that stay, and inputs that are `only_here`.

        `inner` are values that nodes of the drawing read.
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
        place = self.texts.place(("value", name), name, label)
        return Slot(label, place, place, mark)

    def _constant(self, label: str, name: str, mark: str) -> Slot:
        held = self._constants[name]
        shape = "×".join(map(str, held["shape"]))
        kind = f"{held['type']}[{shape}]" if held["shape"] else held["type"]
        text = f"⟨{shape}⟩" if held["value"] is None else held["value"]
        place = self.texts.place(("constant", name), text, label)
        title = self.texts.place(("title", name), f"{name}: {kind}", f"{label} from")
        return Slot(label, place, title, mark)

    def _attributes(
        self, node: Mapping[str, Any], kept: Mapping[str, str], sign: str
    ) -> tuple[Attribute, ...]:
        own: Mapping[str, str] = node["attributes"]
        found = []
        for name, value in sorted({**kept, **own}.items()):
            thing = ("attribute", str(self._boxes), name) if name in own else ("kept", name)
            place = self.texts.place(thing, value, name)
            found.append(Attribute(name, place, sign if name in own else ""))
        return tuple(found)


@cache
def _formal(domain: str, operator: str, version: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that an operator has for its inputs and outputs; none where the installed onnx does not know it."""
    try:
        schema = defs.get_schema(operator, version, "" if is_onnx(domain) else domain)
    except defs.SchemaError:
        return (), ()
    return tuple(item.name for item in schema.inputs), tuple(item.name for item in schema.outputs)


def _label(names: Sequence[str], index: int) -> str:
    """Return the name of an operator's input or output; those behind the last are of one that takes any number."""
    return names[min(index, len(names) - 1)] if names else ""
