"""Draws a changed node before and after: boxes with slots, as graph viewers show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache

from onnx import defs

from onnx_migrate.report.changed_nodes import (
    ShownNode,
    node_after,
    node_before,
    shown_constants,
    shown_helpers,
)
from onnx_migrate.rewrite.change_log import Change
from onnx_migrate.standard.schema import is_onnx

__all__ = ["Attribute", "Box", "Drawing", "Slot", "Texts", "draw", "draw_blocked", "kind_of"]

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


@dataclass(frozen=True)
class Slot:
    """An input or output: its formal name (`label`), its text, and the tooltip (`title`).

    `text` and `title` are indices into the drawing's `Texts`. `mark` is "removed", "new", "inner" if a node of the same
    drawing reads the value, or "".
    """

    label: str
    text: int
    title: int
    mark: str = ""


@dataclass(frozen=True)
class Attribute:
    """An attribute; `value` is an index into the drawing's `Texts`, `mark` is "removed", "new" or ""."""

    name: str
    value: int
    mark: str = ""


@dataclass(frozen=True)
class Box:
    """A node. `constants` are inputs that are constants of the model, `more` counts inputs and outputs not drawn.

    `version` is 0 if unknown, as for operators of other domains. `mark` is "removed", "new", "blocked" or "".
    """

    operator: str
    version: int
    kind: str
    inputs: tuple[Slot, ...]
    constants: tuple[Slot, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Slot, ...]
    more: int
    mark: str


@dataclass(frozen=True)
class Drawing:
    """A node before and after; `after` has rows from top to bottom, whose boxes read values of the rows above.

    Drawings compare equal if they differ only in texts: names, and values of constants and attributes.
    """

    before: Box
    after: tuple[tuple[Box, ...], ...]


def kind_of(operator: str) -> str:
    """Return the kind of an operator, which determines its colour; "other" for those of no kind."""
    return operator if operator in ("input", "output") else _KIND_OF.get(operator, "other")


class Texts:
    """The texts of a drawing. A value, or an attribute that is kept, has one text, however often it is drawn."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.labels: list[str] = []
        """The label of each text: the formal name of a slot, or the name of an attribute."""
        self._indices: dict[tuple[str, ...], int] = {}

    def index(self, key: tuple[str, ...], text: str, label: str) -> int:
        """Return the index of the text with this key; it is added if it is new."""
        if key not in self._indices:
            self._indices[key] = len(self.texts)
            self.texts.append(text)
            self.labels.append(label)
        return self._indices[key]


def draw(change: Change) -> tuple[Drawing, Texts]:
    """Draw a change. The first three texts are the node's name, its graph or function, and the reason."""
    builder = _DiagramBuilder(change)
    old, new = node_before(change), node_after(change)
    nodes = _in_order(shown_helpers(change), new)
    was_read, is_read = set(old.inputs), {name for node in nodes for name in node.inputs}
    before = builder.box(old, "removed", was_read - is_read) if new else builder.box(old, mark="removed")
    rows: list[list[Box]] = []
    depth: dict[str, int] = {}
    for node in nodes:
        box = (
            builder.box(node, "new", is_read - was_read, inner=is_read)
            if node is new
            else builder.box(node, inner=is_read, helper=True, mark="new")
        )
        row = max((depth.get(name, -1) for name in node.inputs), default=-1) + 1
        depth |= dict.fromkeys(node.outputs, row)
        rows += [[] for _ in range(row + 1 - len(rows))]
        rows[row].append(box)
    return Drawing(before, tuple(map(tuple, rows))), builder.texts


def draw_blocked(change: Change) -> tuple[Drawing, Texts]:
    """Draw a node that could not be migrated: a change without a result."""
    builder = _DiagramBuilder(change)
    return Drawing(builder.box(node_before(change), mark="blocked"), ()), builder.texts


def _in_order(helpers: Sequence[ShownNode], node: ShownNode | None) -> list[ShownNode]:
    """Put the node before the first helper that reads its outputs, or after all helpers."""
    if node is None:
        return list(helpers)
    produced = set(node.outputs)
    position = next(
        (index for index, helper in enumerate(helpers) if produced.intersection(helper.inputs)),
        len(helpers),
    )
    return [*helpers[:position], node, *helpers[position:]]


class _DiagramBuilder:
    """Draws the nodes of one change and collects their texts."""

    def __init__(self, change: Change) -> None:
        self.texts = Texts()
        self.texts.index(("node",), change.where.node, "node")
        scope = change.where.scope
        self.texts.index(("scope",), "" if scope == "graph" else scope, "in")
        self.texts.index(("reason",), change.reason, "reason")
        self._kept = change.kept_attributes
        self._constants = shown_constants(change)
        self._boxes = 0

    def box(
        self,
        node: ShownNode,
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
        names_in, names_out = _formal(node.domain, node.operator, node.version or 0)
        inputs, constants = [], []
        for index, name in enumerate(node.inputs):
            if not name:
                continue
            label, here = _label(names_in, index), sign if name in only_here else ""
            if name in self._constants:
                constants.append(self._constant(label, name, here))
            else:
                inputs.append(self._value(label, name, here))
        outputs = [
            self._value(_label(names_out, index), name, "inner" if name in inner else "")
            for index, name in enumerate(node.outputs)
            if name
        ]
        standard = is_onnx(node.domain)
        return Box(
            node.operator if standard else f"{node.domain}.{node.operator}",
            node.version or 0,
            kind_of(node.operator) if standard else "other",
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
        shape = "×".join(map(str, constant.shape))
        kind = f"{constant.type}[{shape}]" if constant.shape else constant.type
        text = f"⟨{shape}⟩" if constant.value is None else constant.value
        index = self.texts.index(("constant", name), text, label)
        title = self.texts.index(("title", name), f"{name}: {kind}", f"{label} from")
        return Slot(label, index, title, mark)

    def _attributes(self, node: ShownNode, kept: Mapping[str, str], sign: str) -> tuple[Attribute, ...]:
        own = node.attributes
        attributes = []
        for name, value in sorted({**kept, **own}.items()):
            key = ("attribute", str(self._boxes), name) if name in own else ("kept", name)
            index = self.texts.index(key, value, name)
            attributes.append(Attribute(name, index, sign if name in own else ""))
        return tuple(attributes)


@cache
def _formal(domain: str, operator: str, version: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the formal names of an operator's inputs and outputs; none if the installed onnx does not know it."""
    try:
        schema = defs.get_schema(operator, version, "" if is_onnx(domain) else domain)
    except defs.SchemaError:
        return (), ()
    return tuple(formal.name for formal in schema.inputs), tuple(formal.name for formal in schema.outputs)


def _label(names: Sequence[str], index: int) -> str:
    """Return the formal name of an input or output; all after the last name belong to a variadic parameter."""
    return names[min(index, len(names) - 1)] if names else ""
