"""Fits the element types of a node to the older version of its operator: Casts around the node, or a refusal."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import step_at
from onnx_migrate.engine.steps.step import Direction, LostTypes, Step
from onnx_migrate.facts.scope import Scope
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.element_types import FIRST_OPSET, type_name, type_text, wider_types
from onnx_migrate.standard.schema import schema_cache, signature_at, versions
from onnx_migrate.standard.type_constraints import Constraints, Formal, constraints

__all__ = ["WideCasts", "casts_to", "fit_types", "has_lost_types", "lost_types"]

_HALVES = frozenset(("tensor(float16)", "tensor(bfloat16)"))


@schema_cache
def lost_types(step: Step) -> frozenset[str]:
    """Return the types, as schemas write them, that the newer version of a step supports and the older one does not."""
    new, old = _forms(step)
    if new is None or old is None or step.types is LostTypes.OWN:
        return frozenset()
    lost: set[str] = set()
    for output, formals in ((False, new.inputs), (True, new.outputs)):
        for index, formal in enumerate(formals):
            older = old.formal(index, output=output)
            lost |= formal.allowed - (older.allowed if older else frozenset())
    return frozenset(lost)


def has_lost_types(step: Step, node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether a value of the node has a type that the older version does not support for it."""
    return bool(lost_types(step)) and any(value.is_lost for value in _values(step, node, scope))


def fit_types(step: Step, rw: LoweringRewriter) -> None:
    """Write Casts around a node for each type that the older version of its operator does not support, or refuse the node.

    The code is `no-such-type` for a type that the target opset does not have. It is `no-equal` if the step does not allow
    Casts, or if the operator supports no wider type.
    """
    _, old = _forms(step)
    if old is None:
        return
    lost = [value for value in _values(step, rw.node, rw.scope) if value.is_lost]
    for kind in (value.container for value in lost if value.container):
        rw.refuse(
            f"{step.operator} does not support {'an optional' if kind.startswith('optional') else 'a sequence'} ({kind})"
            f" below opset {step.version}",
            code="no-equal",
            hint="use tensors only in the model",
        )
    lost_formals = {
        # A value of unknown type may be of a type that the older version supports.
        (value.formal.variable, value.dtype): value.formal
        for value in lost
        if value.dtype is not None
    }
    for (_, dtype), formal in lost_formals.items():
        name = type_name(dtype)
        if FIRST_OPSET.get(dtype, 1) > rw.version:
            rw.refuse(
                f"the element type {name} does not exist below opset {FIRST_OPSET[dtype]}",
                code="no-such-type",
                hint="convert the model to another element type first",
            )
        halves = type_text(dtype) in _HALVES
        wide = next((wide for wide in wider_types(dtype) if type_text(wide) in formal.allowed), None)
        if (
            wide is None
            or step.types is LostTypes.REFUSED
            or (step.types is LostTypes.ROUNDED and not halves)
        ):
            rw.refuse(
                f"{step.operator} does not support {name} below opset {step.version}, and computing in another type would"
                " change the numbers",
                code="no-equal",
                hint=f"convert {formal.name!r} to {' or '.join(sorted(_plain(formal)))} in the model",
            )
        rw.cast_around(
            [index for index in range(len(rw.node.input)) if _same(old, index, formal, output=False)],
            [index for index in range(len(rw.node.output)) if _same(old, index, formal, output=True)],
            wide,
            dtype,
        )
        exact = step.types is LostTypes.EXACT
        rw.note(
            f"{step.operator} does not support {name} below opset {step.version}, "
            f"so it computes in {type_name(wide)} between Casts",
            None if exact else Exactness.EQUIVALENT,
        )


def _plain(formal: Formal) -> Iterator[str]:
    for text in formal.allowed:
        if text.startswith("tensor("):
            yield text[len("tensor(") : -1]


def _same(old: Constraints, index: int, formal: Formal, *, output: bool) -> bool:
    other = old.formal(index, output=output)
    return other is not None and other.variable == formal.variable


def _forms(step: Step) -> tuple[Constraints | None, Constraints | None]:
    return (
        constraints(step.domain, step.operator, step.version),
        constraints(step.domain, step.operator, step.older) if step.older else None,
    )


class _Value(NamedTuple):
    """An input or output of a node: the older formal parameter, the type of a sequence or optional, the element type if known."""

    formal: Formal
    container: str
    dtype: int | None

    @property
    def is_lost(self) -> bool:
        """Whether the older version does not take the type."""
        kind = self.container or (type_text(self.dtype) if self.dtype is not None else "")
        return bool(kind) and kind not in self.formal.allowed


def _values(step: Step, node: onnx.NodeProto, scope: Scope) -> Iterator[_Value]:
    """Yield the values of a node for which the older version has a formal parameter."""
    _, old = _forms(step)
    for output, names in ((False, node.input), (True, node.output)):
        for index, name in enumerate(names):
            formal = old.formal(index, output=output) if old and name else None
            if formal:
                value_type = scope.value_type(name)
                # A constant has a type even if no declaration or inference gives one.
                dtype = scope.constant_type(name) if value_type.dtype is None else value_type.dtype
                yield _Value(formal, value_type.container, dtype)


@dataclass(frozen=True)
class WideCasts:
    """Casts around a node, from `narrow` to `wide` and back: the inputs and outputs that get one, and the exactness."""

    inputs: list[int]
    outputs: list[int]
    narrow: int
    wide: int
    exactness: Exactness


def casts_to(taken: Collection[int], node: onnx.NodeProto, scope: Scope, opset: int) -> WideCasts | None:
    """Return Casts that let a node of ai.onnx compute in one of the types `taken`; None if there are none.

    A step down of the operator must allow Casts: its claim is that they change no bit, or, for half floats, only round.
    """
    form = signature_at("", node.op_type, opset)
    formals = constraints("", node.op_type, form.since_version) if form else None
    first = formals.formal(0, output=False) if formals else None
    dtype = scope.value_type(node.input[0]).dtype if node.input else None
    if formals is None or first is None or dtype is None:
        return None
    steps = (step_at(Direction.DOWN, "", node.op_type, since) for since in versions("", node.op_type))
    # A step down claims how far Casts change the numbers of the operator.
    allowed = {step.types for step in steps if step is not None}
    exact = LostTypes.EXACT in allowed
    half = dtype in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    if not exact and not (half and LostTypes.ROUNDED in allowed):
        return None
    fitting = (
        wide_type
        for wide_type in wider_types(dtype)
        if wide_type in taken and type_text(wide_type) in first.allowed
    )
    wide = next(fitting, None)
    if wide is None:
        return None
    inputs = [index for index in range(len(node.input)) if _same(formals, index, first, output=False)]
    outputs = [index for index in range(len(node.output)) if _same(formals, index, first, output=True)]
    return WideCasts(inputs, outputs, dtype, wide, Exactness.EXACT if exact else Exactness.EQUIVALENT)
