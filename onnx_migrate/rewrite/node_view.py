"""The read-only half of the editing API: a node's attributes, inputs and outputs, and the knowledge about their values."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

import onnx
from onnx import AttributeProto, helper

from onnx_migrate.advice import Hint
from onnx_migrate.errors import CannotMigrate, InvalidModel, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.messages import without_middle

if TYPE_CHECKING:
    import numpy as np

__all__ = ["NodeView"]

_READ: dict[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.INT: attrgetter("i"),
    AttributeProto.FLOAT: attrgetter("f"),
    AttributeProto.STRING: lambda attribute: attribute.s.decode("utf-8", "surrogateescape"),
    AttributeProto.INTS: lambda attribute: attribute.ints[:],
    AttributeProto.FLOATS: lambda attribute: attribute.floats[:],
}
"""How the value of an attribute of each of these types is read; onnx's helper, which knows all, takes three times as long."""

_LONGEST = 2_000
"""Characters of a reason, which may contain the numbers of a tensor."""


class NodeView:
    """One node in its scope, read only. `refuse` and the `need_*` methods raise CannotMigrate for the node."""

    def __init__(self, node: onnx.NodeProto, scope: Scope, where: Where) -> None:
        self.node = node
        self.scope = scope
        self.where = where

    # What is known of values

    def dtype(self, value: str) -> int | None:
        """Return a value's element type as a TensorProto.DataType, None when it is unknown."""
        dtype = self.scope.value_type(value).dtype
        if dtype is None and value and (constant := self.constant_value(value)) is not None:
            return int(helper.np_dtype_to_tensor_dtype(constant.dtype))
        return dtype

    def shape(self, value: str) -> tuple[int | None, ...] | None:
        """Return a value's shape with None for dims that are not fixed; None when even the rank is unknown."""
        shape = self.scope.value_type(value).shape
        if shape is None and value and (constant := self.constant_value(value)) is not None:
            return tuple(constant.shape)
        return shape

    def rank(self, value: str) -> int | None:
        """Return how many axes a value has, None when that is unknown."""
        shape = self.shape(value)
        return None if shape is None else len(shape)

    def need_dtype(self, value: str) -> int:
        """Return a value's element type, or refuse with code `needs-type`."""
        dtype = self.dtype(value)
        if dtype is None:
            self.refuse(
                f"the element type of {value!r} is unknown",
                code="needs-type",
                hint="declare it in the value_info of the model",
            )
        return dtype

    def need_rank(self, value: str) -> int:
        """Return a value's rank, or refuse with code `needs-rank`."""
        rank = self.rank(value)
        if rank is None:
            self.refuse(
                f"the number of axes of {value!r} is unknown",
                code="needs-rank",
                hint="declare the shapes of the model's inputs; symbolic dims are enough",
            )
        return rank

    def constant_value(self, value: str) -> np.ndarray[Any, Any] | None:
        """Return the array of a value that is fixed in the model, else None."""
        return self.scope.constant(value)

    def is_read(self, value: str) -> bool:
        """Return whether anything reads a value: a node of this body or of a sub-graph in it, or its caller."""
        return self.scope.is_read(value)

    # The node's attributes, inputs and outputs

    def attribute(self, name: str) -> AttributeProto | None:
        """Return an attribute of the node unresolved, which may be a reference to a function's attribute."""
        for attribute in self.node.attribute[:]:
            if attribute.name == name:
                return attribute
        return None

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute's value (str for STRING), or `default`.

        Refuses, with code `needs-value`, a reference to an attribute of the function: each call sets it anew.
        """
        attribute = self.attribute(name)
        return default if attribute is None else self.value_of(attribute)

    def value_of(self, attribute: AttributeProto) -> Any:
        """Return the value of an attribute of the node as `get` does."""
        if attribute.ref_attr_name:
            self.refuse(
                f"the value of attribute {attribute.name!r} is set by each caller of the function (its attribute"
                f" {attribute.ref_attr_name!r})",
                code="needs-value",
                hint="inline the function first: onnx.inliner.inline_local_functions",
            )
        read = _READ.get(attribute.type)
        return helper.get_attribute_value(attribute) if read is None else read(attribute)

    def input(self, index: int) -> str:
        """Return the name of an input, "" if it is absent."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def output(self, index: int) -> str:
        """Return the name of an output, "" if it is absent."""
        return self.node.output[index] if index < len(self.node.output) else ""

    def refuse(self, reason: str, *, code: str = "cannot-migrate", hint: Hint = "") -> NoReturn:
        """Refuse the migration because of this node: with InvalidModel for the code `invalid-node`, else CannotMigrate.

        A reason of more than 2,000 characters is cut in the middle.
        """
        error = InvalidModel if code == "invalid-node" else CannotMigrate
        if len(reason) > _LONGEST:
            reason = without_middle(reason, _LONGEST // 2, _LONGEST // 4)
        raise error(reason, code=code, where=self.where, hint=hint)
