"""The hand an adapter works with: edit this node, write nodes before or after it, ask what it needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import onnx
from onnx import AttributeProto, TensorProto, helper

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.rewrite.change_log import Exactness

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Rewriter"]

_REAL = (AttributeProto.FLOAT, AttributeProto.FLOATS)

_CONSTANT_FORMS: dict[int, str] = {
    AttributeProto.INT: "value_int",
    AttributeProto.INTS: "value_ints",
    AttributeProto.FLOAT: "value_float",
    AttributeProto.FLOATS: "value_floats",
}
"""How a Constant node (from version 12 on) holds what an attribute of each type holds."""


class Rewriter:
    """Rewrites one node from one version of its operator to the next.

    The node is edited in place and keeps its outputs' names, so nothing outside it has to change. Nodes written
    with `before` and `after` are of version `version` and are lifted on from there like any other.
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
        self.node = node
        self.scope = scope
        self.version = version
        """The since_version the step leads to; an adapter that writes a later form in one go raises it."""
        self.target = target
        """The opset the model is brought to in the end."""
        self.where = where
        self.keep = keep
        """Words that the standard has dropped and the user wants kept, because a runtime still knows them."""
        self.preceding: list[onnx.NodeProto] = []
        self.following: list[onnx.NodeProto] = []
        self.superseded: tuple[str, ...] = ()
        self.reasons: list[str] = []
        self.default_reason = ""
        """What the report gives as the reason where `note` gave none."""
        self.facts: list[object] = []
        """What `record_fact` recorded, for the log."""
        self.first_output = next((name for name in node.output if name), "")
        """The first output that the node had before any rewriting, which identifies it in the log's facts."""
        self._base = node.name or next((name for name in node.output if name), node.op_type)
        self.exactness: Exactness | None = None
        self.removed = False

    # What is known

    def dtype(self, value: str) -> int | None:
        """Return a value's element type as a TensorProto.DataType, None when unknown."""
        array = self.scope.value_type(value).dtype
        if array is None and value and (constant := self.constant_value(value)) is not None:
            return int(helper.np_dtype_to_tensor_dtype(constant.dtype))
        return array

    def shape(self, value: str) -> tuple[int | None, ...] | None:
        """Return a value's shape with None for dims that are not fixed; None when even the rank is unknown."""
        shape = self.scope.value_type(value).shape
        if shape is None and value and (constant := self.constant_value(value)) is not None:
            return tuple(constant.shape)
        return shape

    def rank(self, value: str) -> int | None:
        """Return how many axes a value has, None when unknown."""
        shape = self.shape(value)
        return None if shape is None else len(shape)

    def need_dtype(self, value: str) -> int:
        """Return a value's element type, or refuse with code `needs-type`."""
        dtype = self.dtype(value)
        if dtype is None:
            self.refuse(
                f"the element type of {value!r} is not known",
                code="needs-type",
                hint="declare it in the model's value_info",
            )
        return dtype

    def need_rank(self, value: str) -> int:
        """Return a value's rank, or refuse with code `needs-rank`."""
        rank = self.rank(value)
        if rank is None:
            self.refuse(
                f"the number of axes of {value!r} is not known",
                code="needs-rank",
                hint="declare the shape of the model's inputs, symbolic dims will do",
            )
        return rank

    def constant_value(self, value: str) -> np.ndarray[Any, Any] | None:
        """Return what a value holds if that is fixed in the model, else None."""
        return self.scope.constant(value)

    # The node's attributes

    def attribute(self, name: str) -> AttributeProto | None:
        """Return an attribute as it stands, a reference to a function's attribute included."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                return attribute
        return None

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute's value (str for STRING), or `default`.

        Refuses when the value is a reference to an attribute of the function, which each call sets anew.
        """
        attribute = self.attribute(name)
        if attribute is None:
            return default
        if attribute.ref_attr_name:
            self.refuse(
                f"attribute {name!r} is set by each call of the function (as {attribute.ref_attr_name!r})",
                code="needs-value",
                hint="inline the function first: onnx.inliner.inline_local_functions",
            )
        value = helper.get_attribute_value(attribute)
        if attribute.type == AttributeProto.STRING:
            return value.decode("utf-8", "surrogateescape")
        if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
            return list(value)
        return value

    def pop(self, name: str, default: Any = None) -> Any:
        """Return an attribute's value like `get` and drop the attribute."""
        value = self.get(name, default)
        self.drop(name)
        return value

    def drop(self, *names: str) -> None:
        """Remove attributes, whatever they hold."""
        attributes = self.node.attribute
        for index in [place for place, item in enumerate(attributes) if item.name in names][::-1]:
            del attributes[index]

    def set(self, name: str, value: Any) -> None:
        """Set an attribute; its type follows from the Python value, as in onnx.helper.make_attribute."""
        self.drop(name)
        self.node.attribute.append(helper.make_attribute(name, value))

    def rename(self, operator: str) -> None:
        """Make the node one of another operator of the same domain."""
        self.node.op_type = operator

    # Inputs and outputs

    def input(self, index: int) -> str:
        """Return the name of an input, "" when it is left out."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def output(self, index: int) -> str:
        """Return the name of an output, "" when it is not given."""
        return self.node.output[index] if index < len(self.node.output) else ""

    def set_input(self, index: int, value: str) -> None:
        """Connect an input, leaving out those between; an input set to "" at the end is cut off."""
        while len(self.node.input) <= index:
            self.node.input.append("")
        self.node.input[index] = value
        while self.node.input and not self.node.input[-1]:
            del self.node.input[-1]

    def is_read(self, value: str) -> bool:
        """Tell whether anything reads a value: a node of this body or of a sub-graph in it, or its caller."""
        return self.scope.is_read(value)

    def attribute_to_input(self, name: str, index: int, *, like: str = "") -> None:
        """Move an attribute (int, ints, float or floats) to an input as a constant; nothing when it is absent.

        The input is int64 or float32, or of the element type of the value `like`, rounded to it. A reference
        to a function's attribute becomes a Constant node that refers to it, which opset 12 and later can say.
        Refuses with `needs-value` before that, and with `needs-type` when the type of `like` is unknown and
        the target has no CastLike (opset 15).
        """
        import numpy as np

        attribute = self.attribute(name)
        if attribute is None:
            return
        plain = TensorProto.FLOAT if attribute.type in _REAL else TensorProto.INT64
        dtype = self.dtype(like) if like else plain
        if dtype is None and self.target < 15:
            dtype = self.need_dtype(like)
        if attribute.ref_attr_name and attribute.type in _CONSTANT_FORMS and self.target >= 12:
            value = self.before("Constant", [], hint=name)
            form = _CONSTANT_FORMS[attribute.type]
            reference = self.preceding[-1].attribute.add(name=form, type=attribute.type)
            reference.ref_attr_name = attribute.ref_attr_name
            if dtype not in (plain, None):
                value = self.before("Cast", [value], hint=name, to=dtype)
        else:
            array = np.array(self.get(name), np.float32 if plain == TensorProto.FLOAT else np.int64)
            if dtype not in (plain, None):
                with np.errstate(over="ignore"):
                    array = array.astype(helper.tensor_dtype_to_np_dtype(dtype))
            value = self.constant(array, name)
        if dtype is None:
            self.version = max(self.version, 15)
            value = self.before("CastLike", [value, like], hint=name)
        self.drop(name)
        self.set_input(index, value)

    # New values and nodes

    def constant(self, array: np.ndarray[Any, Any], hint: str) -> str:
        """Return the name of a constant with this value, of a name like the node's with `hint` behind it."""
        return self.scope.add_constant(array, f"{self._base}_{hint}")

    def fresh(self, hint: str) -> str:
        """Return a value name that is free in every scope."""
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
        """Write a node in front of this one and return its (first) output's name. Attributes of None are left out."""
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
        """Write a node behind this one (and behind those written so before) that gives `outputs`."""
        self.following.append(self._node(operator, inputs, outputs, domain, attributes))

    def detach_output(self, index: int, hint: str = "raw") -> str:
        """Give an output a new name, which is returned; the old name is then free for a node written with `after`."""
        name = self.fresh(hint)
        self.node.output[index] = name
        return name

    def remove(self) -> None:
        """Drop the node itself; nodes written before and after it must give its outputs."""
        self.removed = True

    def supersede(self, *outputs: str) -> None:
        """Drop the other nodes of this body that produce `outputs`, which nothing reads after this rewrite."""
        self.superseded = (*self.superseded, *outputs)

    # Words

    def note(self, reason: str, exactness: Exactness | None = None) -> None:
        """Say in the report why this node became what it is, and how near it is where the adapter's word is not enough."""
        self.reasons.append(reason)
        if exactness is not None:
            self.exactness = exactness

    def record_fact(self, fact: object) -> None:
        """Record a value for later passes, of a type of its own; see `ChangeLog.facts`."""
        self.facts.append(fact)

    def refuse(self, reason: str, *, code: str = "cannot-migrate", hint: str = "") -> NoReturn:
        """Refuse the migration for this node."""
        raise CannotMigrate(reason, code=code, where=self.where, hint=hint)

    def _node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str,
        attributes: dict[str, Any],
    ) -> onnx.NodeProto:
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        name = self.scope.names.fresh(f"{self._base}_{operator}")
        node = onnx.NodeProto(op_type=operator, input=given, output=outputs, name=name, domain=domain or None)
        # Names in order, so that equal rewrites are equal bytes.
        for key in sorted(attributes):
            if attributes[key] is not None:
                node.attribute.append(helper.make_attribute(key, attributes[key]))
        self.scope.register(node)
        return node
