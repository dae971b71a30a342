"""The editing API for one node, which adapters and repair rules use: change it, and write nodes before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx
from onnx import AttributeProto, TensorProto, helper

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.node_view import NodeView
from onnx_migrate.standard.schema import is_onnx, signature_at

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Rewriter"]

_REAL = (AttributeProto.FLOAT, AttributeProto.FLOATS)
_INT, _STRING = AttributeProto.INT, AttributeProto.STRING

_CONSTANT_FORMS: dict[int, str] = {
    AttributeProto.INT: "value_int",
    AttributeProto.INTS: "value_ints",
    AttributeProto.FLOAT: "value_float",
    AttributeProto.FLOATS: "value_floats",
}
"""The attribute of Constant-12 and later that holds a value of each attribute type."""


class Rewriter(NodeView):
    """Edits one node in place, and holds the nodes written beside it until the driver puts them into the body.

    The whole keeps the node's output names, so nothing else in the body has to change. Nodes that `before` and
    `after` write have the form of opset `version`; a lift or lowering continues with them at that opset.
    """

    def __init__(
        self,
        node: onnx.NodeProto,
        scope: Scope,
        version: int,
        target: int,
        where: Where,
        keep: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(node, scope, where)
        self.version = version
        """The version that the node and the nodes beside it have after the rewrite. An adapter that writes a later
        form in one step raises it."""
        self.target = target
        """The opset that the model has in the end, of the domain that is migrated."""
        self.onnx_opset = target
        """The opset of ai.onnx for new ai.onnx nodes, if another domain is migrated."""
        self.keep = keep
        """Attribute values that the standard removed and the user wants to keep, since some runtimes still accept them."""
        self.preceding: list[onnx.NodeProto] = []
        """Nodes to put before the node, in order."""
        self.following: list[onnx.NodeProto] = []
        """Nodes to put after the node, in order."""
        self.removed = False
        """Whether the node itself is dropped."""
        self.replaced = False
        """Whether a formula turned the node into another operator, which has other further steps."""
        self.superseded: tuple[str, ...] = ()
        """Outputs of other nodes of the body, which are dropped."""
        self.reasons: list[str] = []
        self.default_reason = ""
        """The reason that the report shows if `note` was not called."""
        self.facts: list[object] = []
        """The values that `record_fact` recorded, which the driver puts into the log."""
        self.inputs = node.input[:]
        """The inputs that the node had before this rewriting."""
        self.first_output = next(filter(None, node.output[:]), "")
        """The first output that the node had before any rewriting, which identifies it in the log's facts."""
        self._base = node.name or self.first_output or node.op_type
        self.exactness: Exactness | None = None

    @property
    def edited(self) -> bool:
        """Whether nodes were written, the node or others were dropped, or a reason was noted."""
        return bool(self.preceding or self.following or self.removed or self.superseded or self.reasons)

    # The node itself

    def pop(self, name: str, default: Any = None) -> Any:
        """Return an attribute's value as `get` does, and drop the attribute."""
        value = self.get(name, default)
        self.drop(name)
        return value

    def drop(self, *names: str) -> None:
        """Remove attributes, regardless of their values."""
        attributes = self.node.attribute
        for index in range(len(attributes) - 1, -1, -1):
            if attributes[index].name in names:
                del attributes[index]

    def set(self, name: str, value: Any) -> None:
        """Set an attribute; its type follows from the Python value, as in onnx.helper.make_attribute."""
        self.drop(name)
        _add_attribute(self.node, name, value)

    def rename(self, operator: str, domain: str | None = None) -> None:
        """Make the node an instance of another operator, of the same domain unless one is given ("" is ai.onnx)."""
        self.node.op_type = operator
        if domain is not None:
            self.node.domain = domain

    def set_input(self, index: int, value: str) -> None:
        """Connect an input; missing inputs before it become "", and absent inputs at the end are cut off."""
        inputs = self.node.input
        missing = index - len(inputs)
        if missing < 0:
            inputs[index] = value
        else:
            inputs.extend([*[""] * missing, value])
        while inputs and not inputs[-1]:
            del inputs[-1]

    def attribute_to_input(self, name: str, index: int, *, like: str = "") -> None:
        """Move an attribute (int, ints, float or floats) to an input as a constant; do nothing when it is absent.

        The input is int64 or float32, or is converted to the element type of the value `like`. A reference to a
        function's attribute becomes a Constant node whose value refers to it, which Constant-12 and later allow.
        Refuses with `needs-value` for an older target. Refuses with `needs-type` if the type of `like` is unknown
        and the target has no CastLike (new in opset 15).
        """
        attribute = self.attribute(name)
        if attribute is None:
            return
        import numpy as np

        kind = attribute.type
        plain = TensorProto.FLOAT if kind in _REAL else TensorProto.INT64
        dtype = self.dtype(like) if like else plain
        if dtype is None and self.onnx_opset < 15:
            dtype = self.need_dtype(like)
        # A reference has no value that could be stored.
        if attribute.ref_attr_name and kind in _CONSTANT_FORMS and self.onnx_opset >= 12:
            value = self.before("Constant", [], hint=name)
            form = _CONSTANT_FORMS[kind]
            reference = self.preceding[-1].attribute.add(name=form, type=kind)
            reference.ref_attr_name = attribute.ref_attr_name
            if dtype not in (plain, None):
                value = self.before("Cast", [value], hint=name, to=dtype)
        else:
            array = np.array(self.value_of(attribute), np.float32 if plain == TensorProto.FLOAT else np.int64)
            if dtype not in (plain, None):
                # A value beyond the new type becomes infinite, as a Cast does.
                with np.errstate(over="ignore"):
                    array = array.astype(helper.tensor_dtype_to_np_dtype(dtype))
            value = self.constant(array, name)
        if dtype is None:
            # CastLike exists from opset 15 on.
            self.version = max(self.version, 15) if is_onnx(self.node.domain) else self.version
            value = self.before("CastLike", [value, like], hint=name)
        self.drop(name)
        self.set_input(index, value)

    # New values and nodes

    def constant(self, array: np.ndarray[Any, Any], hint: str) -> str:
        """Add a constant to the body and return its name: the node's name and `hint`."""
        return self.scope.add_constant(array, f"{self._base}_{hint}")

    def fresh(self, hint: str) -> str:
        """Return a value name that no body of the model uses: the node's name and `hint`."""
        return self.scope.names.fresh(f"{self._base}_{hint}")

    def before(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        hint: str = "",
        outputs: int = 1,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Write a node before this one and return the name of its first output. Attributes of None are not written."""
        names = [self.fresh(hint or operator.lower()) for _ in range(outputs)]
        self.preceding.append(self._node(operator, inputs, names, domain, attributes))
        return names[0]

    def after(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        domain: str = "",
        **attributes: Any,
    ) -> None:
        """Write a node, which produces `outputs`, after this one and after those written after it earlier."""
        self.following.append(self._node(operator, inputs, outputs, domain, attributes))

    def detach_output(self, index: int, hint: str = "raw") -> str:
        """Rename an output and return the new name; `after` can then write a node that produces the old one.

        Read the old name, `output(index)`, before the call.
        """
        name = self.fresh(hint)
        self.node.output[index] = name
        return name

    def remove(self) -> None:
        """Drop the node itself; nodes written before and after it must produce its outputs."""
        self.removed = True

    def supersede(self, *outputs: str) -> None:
        """Drop the other nodes of this body that produce `outputs`, which nothing reads after this rewrite."""
        self.superseded = (*self.superseded, *outputs)

    # The report

    def finish(self) -> None:
        """Do the work that had to wait for all edits; a conversion to a newer opset has none."""

    def note(self, reason: str, exactness: Exactness | None = None) -> None:
        """Set the reason of this rewrite that the report shows, and its exactness where that differs from the adapter's."""
        self.reasons.append(reason)
        if exactness is not None:
            self.exactness = exactness

    def record_fact(self, fact: object) -> None:
        """Record a value of its own type, so that later passes can look it up; see `ChangeLog.facts`."""
        self.facts.append(fact)

    def _node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str,
        attributes: dict[str, Any],
    ) -> onnx.NodeProto:
        node_inputs = list(inputs)
        # Omitted inputs at the end need no empty name.
        while node_inputs and not node_inputs[-1]:
            node_inputs.pop()
        name = self.scope.names.fresh(f"{self._base}_{operator}")
        node = onnx.NodeProto(
            op_type=operator, input=node_inputs, output=outputs, name=name, domain=domain or None
        )
        if attributes:
            _add_attributes(node, attributes)
        self.scope.register(node)
        return node

    def become(self, operator: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> None:
        """Make the node an instance of another operator with these inputs and attributes; its outputs stay."""
        node_inputs = list(inputs)
        while node_inputs and not node_inputs[-1]:
            node_inputs.pop()
        node = self.node
        self.replaced = (operator, domain) != (node.op_type, node.domain)
        node.ClearField("attribute")
        _add_attributes(node, attributes)
        node.op_type = operator
        if domain or node.domain:
            node.domain = domain
        read = node.input[:]
        form = signature_at(domain, operator, self.version) if len(read) > len(node_inputs) else None
        # Absent inputs at the end stay if this version supports them.
        too_many = form is not None and len(read) > form.max_inputs
        if (
            self.replaced
            or node_inputs != read[: len(node_inputs)]
            or any(read[len(node_inputs) :])
            or too_many
        ):
            del node.input[:]
            node.input.extend(node_inputs)


def _add_attributes(node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
    """Add attributes to a node, sorted, so that equal rewrites produce equal bytes."""
    for key in sorted(attributes):
        value = attributes[key]
        if isinstance(value, AttributeProto):  # of a node, as it stands there
            node.attribute.append(value)
            node.attribute[-1].name = key
        elif value is not None:
            _add_attribute(node, key, value)


def _add_attribute(node: onnx.NodeProto, name: str, value: Any) -> None:
    """Add an attribute whose type follows from the Python value; of an int or a text without make_attribute, which takes long."""
    kind = type(value)
    if kind is int:
        node.attribute.add(name=name, i=value, type=_INT)
    elif kind is str:
        node.attribute.add(name=name, s=value.encode("utf-8"), type=_STRING)
    else:
        node.attribute.append(helper.make_attribute(name, value))
