"""Expressions of formulas: values with the operators of Python, and the writer that writes them as nodes.

The writer computes expressions of a formula's constants at once. The last nodes take over the outputs of the node that the
formula replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import onnx
from onnx import AttributeProto, TensorProto, helper

from onnx_migrate.advice import FIX_DIMS, Hint
from onnx_migrate.facts.node_inference import is_unknown
from onnx_migrate.rewrite.bounded_arrays import bounded_dims
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.schema import signature_at
from onnx_migrate.standard.type_constraints import Formal, constraints

__all__ = ["FLOATS", "HALVES", "INTEGERS", "Array", "Operand", "Result", "Value", "Writer"]

_T = TensorProto

Array = npt.NDArray[Any]

HALVES = frozenset((_T.FLOAT16, _T.BFLOAT16))
FLOATS = frozenset((_T.FLOAT16, _T.BFLOAT16, _T.FLOAT, _T.DOUBLE))
INTEGERS = frozenset((_T.INT8, _T.INT16, _T.INT32, _T.INT64, _T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64))


def _quotient(left: Array, right: Array) -> Array:
    """Divide as ONNX's Div does: integers are rounded towards 0."""
    if left.dtype.kind not in "iu":
        return np.asarray(np.divide(left, right))
    whole = np.floor_divide(left, right)
    return np.asarray(whole + ((whole < 0) & (whole * right != left)), left.dtype)


_FOLDED: dict[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _quotient,
    "Min": np.minimum,
    "Max": np.maximum,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Abs": np.abs,
    "Less": np.less,
    "Greater": np.greater,
    "Or": np.logical_or,
    "Where": np.where,
}
"""Element-wise operators whose function here computes as ONNX Runtime's kernel does, bit for bit."""

_INDICES = frozenset(("tensor(int32)", "tensor(int64)"))

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


class Value:
    """A value of a formula: one of the body, by its name, or a constant that becomes one when a node reads it.

    `+ - * / @ ** < <= > >= == & | ^ ~ -x abs(x)` write nodes; a number takes the element type of its partner.
    """

    __slots__ = ("_name", "array", "op")

    def __init__(self, op: Writer, name: str = "", array: Array | None = None) -> None:
        self.op = op
        self._name = name
        self.array = array
        """The array of a constant that the formula created and computes with at once; None for any other value."""

    @property
    def name(self) -> str:
        """The name of the value in its body; the first question adds a constant to the body, or writes the node."""
        if not self._name:
            if self.array is not None:
                self._name = self.op.rw.constant(np.asarray(self.array, order="C"), "constant")
            else:
                self._name = self.op.settle()
        return self._name

    # What is known

    @property
    def dtype(self) -> int | None:
        """The element type as a TensorProto.DataType, None when it is unknown."""
        if self.array is not None:
            return int(helper.np_dtype_to_tensor_dtype(self.array.dtype))
        return self.op.dtype(self._name)

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The shape with None for dims that are not fixed; None when even the rank is unknown."""
        return self.array.shape if self.array is not None else self.op.rw.shape(self.name)

    @property
    def rank(self) -> int | None:
        """How many axes the value has, None when that is unknown."""
        shape = self.shape
        return None if shape is None else len(shape)

    @property
    def static(self) -> tuple[int, ...] | None:
        """The shape if all its dims are fixed, else None."""
        shape = self.shape
        fixed = () if shape is None else tuple(size for size in shape if size is not None)
        return None if shape is None or len(fixed) < len(shape) else fixed

    @property
    def constant(self) -> Array | None:
        """The array of a value that is a constant of the model or follows from its constants and fixed dims, else None."""
        return self.array if self.array is not None else self.op.rw.known(self.name)

    @property
    def is_constant(self) -> bool:
        """Whether the value is a constant of the formula or of the model, whose array is not read for the answer."""
        return self.array is not None or self.op.rw.scope.constant_source(self.name) is not None

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats; refused with `needs-type` when that is unknown."""
        return self.need_dtype() in FLOATS

    def need_dtype(self) -> int:
        """Return the element type, or refuse with code `needs-type`."""
        dtype = self.dtype
        if dtype is None:
            origin = self.op.origin(self.name)
            return self.op.rw.need_dtype(origin if self.op.rw.dtype(origin) is None else self.name)
        return dtype

    @property
    def numpy_type(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements; refused with `needs-type` when it is unknown."""
        return (
            self.array.dtype if self.array is not None else helper.tensor_dtype_to_np_dtype(self.need_dtype())
        )

    def need_rank(self) -> int:
        """Return the number of axes, or refuse with code `needs-rank`."""
        rank = self.rank
        if rank is None:
            origin = self.op.origin(self.name)
            return self.op.rw.need_rank(origin if self.op.rw.rank(origin) is None else self.name)
        return rank

    def need_static(self) -> tuple[int, ...]:
        """Return the shape if all its dims are fixed, or refuse with code `needs-shape`."""
        static = self.static
        return self.op.rw.need_static(self.name) if static is None else static

    def need_size(self, axis: int) -> int:
        """Return the size of an axis, or refuse with code `needs-shape`."""
        size = None if self.shape is None else self.shape[axis]
        if size is None:
            self.op.refuse(
                f"the size of axis {axis} of {self.name!r} must be fixed, and is not known",
                code="needs-shape",
                hint=FIX_DIMS,
            )
        return size

    def need_constant(self, what: str) -> Array:
        """Return the array, or refuse with code `needs-constant`; `what` names the input, as "axes"."""
        return self.array if self.array is not None else self.op.rw.need_constant(self.name, what)

    # Other forms of the value

    def cast(self, dtype: int) -> Value:
        """Return the value in an element type: itself if it has that type already."""
        if self.array is not None:
            return Value(self.op, array=self.array.astype(helper.tensor_dtype_to_np_dtype(dtype)))
        return self if self.dtype == dtype else self.op.write("Cast", self, to=dtype)

    def wide(self) -> Value:
        """Return the value in float32 if it has half floats, else itself; refuse if the type is unknown."""
        return self.cast(_T.FLOAT) if self.need_dtype() in HALVES else self

    def reshape(self, *shape: int) -> Value:
        """Return the value in another shape: 0 keeps a length, -1 takes all remaining elements."""
        if self.array is not None:
            # A 0 keeps the length of the axis.
            sizes = [size or self.array.shape[axis] for axis, size in enumerate(shape)]
            return Value(self.op, array=self.array.reshape(sizes))
        return self.op.write("Reshape", self, list(shape))

    def as_written(self) -> Value:
        """Return the value as one that nodes compute at run time, even if it is a constant."""
        return Value(self.op, self.name)

    # Operators

    def __add__(self, other: Operand) -> Value:
        return self.op.binary("Add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return self.op.binary("Add", self, other, swapped=True)

    def __sub__(self, other: Operand) -> Value:
        return self.op.binary("Sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.op.binary("Sub", self, other, swapped=True)

    def __mul__(self, other: Operand) -> Value:
        return self.op.binary("Mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self.op.binary("Mul", self, other, swapped=True)

    def __truediv__(self, other: Operand) -> Value:
        return self.op.binary("Div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.op.binary("Div", self, other, swapped=True)

    def __matmul__(self, other: Operand) -> Value:
        return self.op.write("MatMul", self, other)

    def __pow__(self, other: Operand) -> Value:
        return self.op.binary("Pow", self, other)

    def __neg__(self) -> Value:
        return self.op.write("Neg", self)

    def __abs__(self) -> Value:
        return self.op.write("Abs", self)

    def __lt__(self, other: Operand) -> Value:
        return self.op.binary("Less", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.op.binary("LessOrEqual", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.op.binary("Greater", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.op.binary("GreaterOrEqual", self, other)

    def __eq__(self, other: Operand) -> Value:  # type: ignore[override]
        return self.op.binary("Equal", self, other)

    def __and__(self, other: Operand) -> Value:
        return self.op.write("And", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.op.write("Or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self.op.write("Xor", self, other)

    def __invert__(self) -> Value:
        return self.op.write("Not", self)

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None
    """Lets an operator of a NumPy number and a value be the value's."""

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "whether a value holds is known at run time alone; compare .constant, .name or use `is None`"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError("a value has no elements before run time; see .constant and .shape")

    def __repr__(self) -> str:
        return f"Value({self._name or '?'})" if self.array is None else f"Value({self.array!r})"


Operand = Value | float | np.generic | Array | Sequence[int]
"""The operands of an operator: a value, a number, an array, or a list of int64 numbers."""

Result = Value | float | Array | Sequence["Value | float | Array | None"]
"""The result of a formula: the value of the one output, or of each output, with None for one that nobody reads."""


class Writer:
    """Writes nodes in the form of opset `version` to replace one node: `op.Exp(x)` writes an Exp, and likewise for others."""

    def __init__(self, rw: LoweringRewriter) -> None:
        self.rw = rw
        self.operator: str = rw.node.op_type
        """The operator that the formula replaces, if it replaces several."""
        self._written: dict[str, onnx.NodeProto] = {}
        self._waiting: tuple[Value, str, Sequence[Value | None], str, dict[str, Any]] | None = None
        """The last node, which is not written yet: if it ends the formula, the node of the model becomes that."""
        self._itself: Value | None = None

    def __getattr__(self, operator: str) -> Callable[..., Value]:
        if not operator[:1].isupper():
            raise AttributeError(operator)
        return partial(self.write, operator)

    # What is known

    @property
    def version(self) -> int:
        """The opset in whose form nodes are written."""
        return self.rw.version

    @property
    def target(self) -> int:
        """The opset that the model has in the end."""
        return self.rw.target

    def input(self, index: int) -> Value | None:
        """Return an input of the node, None if it is absent."""
        name = self.rw.input(index)
        return Value(self, name) if name else None

    def output_shape(self, index: int = 0) -> tuple[int | None, ...] | None:
        """Return the known shape of an output of the node."""
        return self.rw.shape(self.rw.output(index))

    def is_read(self, index: int) -> bool:
        """Return whether the node has an output and something reads it."""
        name = self.rw.output(index)
        return bool(name) and self.rw.is_read(name)

    def attribute(self, name: str) -> AttributeProto | None:
        """Return an attribute as it stands in the node, also if a function's caller sets it, to write it unchanged."""
        return self.attributes.get(name)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that the node has, as they stand there, to write them unchanged: `op.ArgMax(x, **op.attributes)`."""
        copy = onnx.NodeProto(attribute=self.rw.node.attribute)
        return {attribute.name: attribute for attribute in copy.attribute}

    def dtype(self, name: str) -> int | None:
        """Return the element type of a value, "" for that of the node that waits.

        If the type was not inferred, it is that of the first operand, provided that the operator keeps it.
        """
        inferred_type = self.rw.dtype(name) if name else None
        if inferred_type is not None:
            return inferred_type
        # A value from outside the formula has no operator here that could tell its type.
        if name and name not in self._written:
            return None
        if not name:
            # The node that waits has no name yet, so its operands stand in the record.
            assert self._waiting is not None
            _, operator, values, _, _ = self._waiting
            first = values[0].dtype if values and values[0] is not None else None
        else:
            node = self._written[name]
            operator, first = node.op_type, self.dtype(node.input[0]) if node.input else None
        first_operand, result = self._formal(operator, 0), self._formal(operator, 0, output=True)
        # Only an operator whose first output has the type of its first input tells the type.
        alike = first_operand is not None and result is not None and first_operand.variable == result.variable
        if alike:
            return first
        return None if name else self.dtype(self.settle())

    def origin(self, name: str) -> str:
        """Return the node's input that a written value comes from, so that errors can name it; return other values unchanged."""
        while (node := self._written.get(name)) is not None and node.input:
            name = node.input[0]
        return name

    # The report

    def refuse(self, reason: str, *, code: str, hint: Hint = "") -> NoReturn:
        """Refuse the node; see `Rewriter.refuse`."""
        self.rw.refuse(reason, code=code, hint=hint)

    def note(self, reason: str, exactness: Exactness | None = None) -> None:
        """Give the reason that the report shows in place of the docstring's, and the exactness where that differs."""
        self.rw.note(reason, exactness)

    # Constants

    def constant(self, array: Any, like: Value | None = None) -> Value:
        """Return a constant: an array, or numbers in the element type of `like` (without it int64, bool or float32)."""
        if like is not None:
            # A number takes the type of its partner, because ONNX operators do not mix types.
            return Value(self, array=np.asarray(array).astype(like.numpy_type))
        values = np.asarray(array)
        if not isinstance(array, (np.ndarray, np.generic)):
            values = values.astype({"i": np.int64, "b": np.bool_, "f": np.float32}[values.dtype.kind])
        return Value(self, array=values)

    def known(self, value: Value) -> Value:
        """Return a value as a constant to compute with at once, if it follows from constants and fixed dims; else itself."""
        array = value.constant
        return value if array is None else Value(self, array=array)

    # Nodes

    def write(self, operator: str, *operands: Operand | None, domain: str = "", **attributes: Any) -> Value:
        """Write a node and return its first output; None leaves an input or an attribute out.

        A number takes the element type of the operands that the schema gives the same type. If all operands of an element-wise
        operator are constants of the formula, this method computes the result and writes no node.
        """
        values = [
            operand if isinstance(operand, Value) else self._operand(operator, index, operand, operands)
            for index, operand in enumerate(operands)
        ]
        folded = _FOLDED.get(operator)
        if folded is not None and all(value is not None and value.array is not None for value in values):
            return self._folded(folded, *[value.array for value in values if value is not None])
        return self._wait(operator, values, domain, attributes)

    def binary(self, operator: str, value: Value, other: Operand, *, swapped: bool = False) -> Value:
        """Write an element-wise operator of two operands of one type; `swapped` exchanges them."""
        if not isinstance(other, Value):
            array = other if isinstance(other, np.ndarray) else np.full((), other, value.numpy_type)
            other = Value(self, array=array)
        first, second = (other, value) if swapped else (value, other)
        if first.array is not None and second.array is not None and operator in _FOLDED:
            return self._folded(_FOLDED[operator], first.array, second.array)
        return self._wait(operator, (first, second), "", {})

    def _folded(self, function: Callable[..., Any], *arrays: np.ndarray[Any, Any] | None) -> Value:
        """Return the constant that an element-wise operator computes, whose size follows from broadcasting."""
        bounded_dims(np.broadcast_shapes(*[array.shape for array in arrays if array is not None]))
        return Value(self, array=np.asarray(function(*arrays)))

    def _wait(
        self, operator: str, values: Sequence[Value | None], domain: str, attributes: dict[str, Any]
    ) -> Value:
        self.settle()
        value = Value(self)
        self._waiting = (value, operator, values, domain, attributes)
        return value

    def several(
        self, operator: str, count: int, *operands: Operand | None, domain: str = "", **attributes: Any
    ) -> list[Value]:
        """Write a node with several outputs and return these."""
        # The node that waits must come before this one.
        self.settle()
        values = [
            operand if isinstance(operand, Value) else self._operand(operator, index, operand, operands)
            for index, operand in enumerate(operands)
        ]
        return [Value(self, name) for name in self._write(operator, values, count, domain, attributes)]

    def itself(self, *operands: Operand | None, **changed: Any) -> Value:
        """Write the node of the model with these inputs and its own attributes; `changed` sets some attributes (None drops one).

        The node keeps its operator and name even if other nodes follow it.
        """
        node = self.rw.node
        self._itself = self.write(
            node.op_type, *operands, domain=node.domain, **{**self.attributes, **changed}
        )
        return self._itself

    def settle(self) -> str:
        """Write the node that waits, if there is one, and return the name of its output."""
        if self._waiting is None:
            return ""
        (value, operator, values, domain, attributes), self._waiting = self._waiting, None
        value._name = self._write(operator, values, 1, domain, attributes)[0]
        return value._name

    def _write(
        self,
        operator: str,
        values: Sequence[Value | None],
        count: int,
        domain: str,
        attributes: dict[str, Any],
    ) -> list[str]:
        rw = self.rw
        names = ["" if value is None else value.name for value in values]
        rw.before(operator, names, outputs=count, domain=domain, **attributes)
        node = rw.preceding[-1]
        outputs = list(node.output)
        self._written.update(dict.fromkeys(outputs, node))
        return outputs

    def _operand(
        self, operator: str, index: int, item: Any, operands: Sequence[Operand | None]
    ) -> Value | None:
        """Return an operand as a value: a number in the type of its partner, an array, a list of int64 numbers."""
        if item is None:
            return None
        if isinstance(item, np.ndarray):
            return Value(self, array=item)
        if isinstance(item, (list, tuple)):
            return Value(self, array=np.array(item, np.int64))
        partner = self._partner(operator, index, operands)
        # Without a partner no tensor says which type the number has.
        if partner is None:
            return self.constant(item)
        return Value(self, array=np.full((), item, partner.numpy_type))

    def _partner(self, operator: str, index: int, operands: Sequence[Operand | None]) -> Value | None:
        """Return the operand whose element type a number takes; None for an index, which is int64."""
        own = self._formal(operator, index)
        first = None
        for operand_index, operand in enumerate(operands):
            # Only values have a type; plain numbers take it over.
            if isinstance(operand, Value):
                formal = self._formal(operator, operand_index)
                if own is not None and formal is not None and formal.variable == own.variable:
                    return operand
                first = operand if first is None else first
        # An input that accepts only integers is an index, so its type is independent.
        return None if own is not None and own.allowed <= _INDICES else first

    def _formal(self, operator: str, index: int, *, output: bool = False) -> Formal | None:
        form = signature_at("", operator, self.rw.version)
        operator_types = constraints("", operator, form.since_version) if form is not None else None
        return None if operator_types is None else operator_types.formal(index, output=output)

    # The end

    def end(self, result: Result) -> None:
        """Let the node's outputs be the results of the formula.

        The node that computes the first output, or `itself`, replaces the formula's node, and keeps its name and doc string.
        Other nodes that compute outputs take over the names of these outputs. An output that is an input or a constant becomes an
        Identity of it. An output that nobody reads may be None.
        """
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        waiting = self._waiting
        ends = (
            waiting is not None
            and waiting[0] is results[0]
            and (self._itself is None or self._itself is waiting[0])
        )
        # The last node of the formula can become the model's node itself, without an Identity.
        if waiting is not None and ends and len(self.rw.node.output) == 1:
            _, operator, values, domain, attributes = waiting
            names = ["" if value is None else value.name for value in values]
            self.rw.become(operator, names, domain=domain, **attributes)
            return
        renamed: dict[str, str] = {}
        main: onnx.NodeProto | None = None
        for index, output in enumerate(list(self.rw.node.output)):
            formula_result = results[index] if index < len(results) else None
            # An output that nobody reads needs no node.
            if not output or (formula_result is None and not self.rw.is_read(output)):
                continue
            if formula_result is None:
                raise ValueError(f"the formula gives no output {index}, which is read")
            value = formula_result if isinstance(formula_result, Value) else self.constant(formula_result)
            # A value from outside, or one that is another output already, needs a node of its own.
            if value.name not in self._written or value.name in renamed:
                value = self.write("Identity", value)
            renamed[value.name] = output
            main = main or self._written[value.name]
        if main is None:
            self.rw.remove()
            return
        if self._itself is not None:
            main = self._written[self._itself.name]
        # Nodes of the formula may read values that now have the names of outputs.
        for node in self.rw.preceding:
            _rename(node, renamed)
        for own, name in renamed.items():
            # The declared type of the output counts more than the one of the formula.
            if is_unknown(self.rw.scope.value_type(name)):
                self.rw.scope.record_type(name, self.rw.scope.value_type(own))
        self._take_place(main)

    def _take_place(self, main: onnx.NodeProto) -> None:
        """Turn the node of the formula into `main`; nodes that were written after `main` follow it."""
        rw = self.rw
        main_index = next(
            index for index in range(len(rw.preceding) - 1, -1, -1) if rw.preceding[index] is main
        )
        # Nodes after the main one may read its outputs, so they have to stand behind the node.
        rw.following[:0] = rw.preceding[main_index + 1 :]
        del rw.preceding[main_index:]
        attributes = {attribute.name: attribute for attribute in main.attribute}
        rw.become(main.op_type, main.input, domain=main.domain, **attributes)
        del rw.node.output[:]
        rw.node.output.extend(main.output)


def _rename(node: onnx.NodeProto, renamed: dict[str, str]) -> None:
    """Give values that were written other names, in sub-graphs too, in which no name stands for another value."""
    for field in (node.output, node.input):
        for index, name in enumerate(field):
            if name in renamed:
                field[index] = renamed[name]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
            for inner in graph.node:
                _rename(inner, renamed)
