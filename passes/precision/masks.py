"""Masks: which of the nodes that handle huge constants are narrow, with the constant as the type's largest number.

A mask of -3.4e38 would become -inf, and Softmax computes NaN for a row with only -inf. The mask becomes the type's lowest
number if all nodes behind it only move it, or give the same result for it. Otherwise these nodes keep their type:

    Where(c, x, -3.4e38) → Softmax                 narrow, with -65504
    Where(c, 0, -3.4e38) → Add(scores) → Softmax   float32, as -65504 and a score of -20 are -inf
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from math import prod

from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.schema import RECURRENT
from onnx_migrate.verify.precision.closeness import MATRIX

from .carried import ARITHMETIC, CARRIED, flows, has_huge_attribute
from .huge_constants import HugeNumbers
from .numbers import largest
from .plan import Plan
from .stored import StoredNumbers

__all__ = ["Masks", "mask_places"]

_ALIKE = frozenset(
    {
        "ArgMax", "ArgMin", "Erf", "Exp", "HardSigmoid", "Hardmax", "IsInf", "IsNaN", "Relu", "Shape", "Sigmoid", "Sign", "Size",
        "Softmax", "Softplus", "Tanh",
    }
)  # fmt: skip
"""Operators that come to the same result for the type's largest number as for a larger one."""

_ABSORBING = frozenset({"Add", "Sub", "Sum"})
"""Operators whose result is the huge number again if the other addends are far smaller."""

_FAR = 1e30
"""A type with a largest number above this absorbs all numbers added to that number: bfloat16 does, float16 does not."""

_STORED_TWICE = 1024
"""Bytes up to which a constant is stored in both types (write.py); a larger one would be cast, and overflow."""


@dataclass(eq=False)
class _Group:
    """Values between which a mask is moved, with the nodes that make or read it."""

    values: dict[Value, None] = field(default_factory=dict)
    constants: set[Value] = field(default_factory=set)
    steps: dict[Step, None] = field(default_factory=dict)
    exact: bool = False
    """Whether its numbers must stay unchanged."""


class Masks:
    """The groups of nodes that handle huge constants, found once for a model."""

    def __init__(self, frames: Sequence[Frame], plan: Plan, stored: StoredNumbers) -> None:
        self._plan, self._huge = plan, HugeNumbers(plan.target, stored)
        self._huge.find(frames)
        self._groups: dict[Value, _Group] = {}
        self._constants: set[Value] = set()
        steps = [step for frame in frames for step in frame.steps if not step.is_a("Constant")]
        self._with_attributes = [step for step in steps if has_huge_attribute(step, plan.target)]
        for step in steps if self._huge.of else ():
            self._add(step)
        self._constants.update(value for value in self._huge.of if value.tensor is not None)

    def keep(self) -> None:
        """Keep the nodes whose masks would overflow, or give another result with the type's lowest number."""
        reason = f"a mask or another huge number would lose its meaning in {type_name(self._plan.target)}"
        for step in self._with_attributes:
            self._plan.keep(step, f"its attribute overflows in {type_name(self._plan.target)}")
        groups = list(dict.fromkeys(self._groups.values()))
        while True:
            # Nodes kept in one round may let a constant be read in both types, which then needs a Cast.
            cast = {value for value in self._constants if self._is_cast(value)}
            needed = [group for group in groups if group.exact or self._crosses(group, cast)]
            if not needed:
                return
            groups = [group for group in groups if group not in needed]
            for group in needed:
                for step in group.steps:
                    self._plan.keep(step, reason)

    def _add(self, step: Step) -> None:
        """Add a node to the group of its huge inputs and outputs, and mark the group if the node needs exact numbers."""
        carried = dict(self._huge.read(step))
        huge_inputs = [value for value in step.read if value in self._huge.of]
        huge_outputs = [
            value for value in step.made if value in self._huge.of and (carried or not huge_inputs)
        ]
        moved = [value for pair in flows(step) for value in pair if value in self._huge.of]
        if not (huge_inputs or huge_outputs or moved):
            return
        linked = [value for value in (*huge_inputs, *huge_outputs, *moved) if value.tensor is None]
        if not linked:
            return
        group = self._joined(
            linked if huge_outputs or moved else [value for value in huge_inputs if value.tensor is None]
        )
        if step.is_a(*MATRIX, *RECURRENT) and not huge_outputs:
            return
        group.steps[step] = None
        group.constants.update(value for value in huge_inputs if value.tensor is not None)
        group.exact |= self._may_overflow(step, huge_inputs)
        if any(self._huge.overflows(value) for value in (*huge_inputs, *linked)):
            floats = any(map(self._plan.changes_type, moved))
            outside = any(value.is_output or not self._huge.of[value].fixed for value in linked)
            group.exact |= floats or outside or self._tells_apart(step)

    def _joined(self, values: Iterable[Value]) -> _Group:
        values = dict.fromkeys(values)  # in their order, as reports name nodes in it
        groups = dict.fromkeys(self._groups[value] for value in values if value in self._groups)
        # The smaller groups join the largest one, so that few values change their group.
        joined = max(groups, key=lambda group: len(group.values), default=_Group())
        for old in [group for group in groups if group is not joined]:
            values |= old.values
            joined.constants |= old.constants
            joined.steps |= old.steps
            joined.exact |= old.exact
        joined.values |= values
        self._groups.update(dict.fromkeys(values, joined))
        return joined

    def _may_overflow(self, step: Step, given: list[Value]) -> bool:
        """Return whether a sum or product of huge numbers may be infinite."""
        if step.is_a(*_ABSORBING) and largest(self._plan.target) > _FAR:
            return len(given) > 1
        return step.is_a(*ARITHMETIC)

    def _tells_apart(self, step: Step) -> bool:
        """Return whether the type's largest number may give a node another result than a larger one."""
        if step.is_a("Cast"):
            output = step.outputs[0]
            return output is None or not self._plan.changes_type(output)
        carries = step.is_a(*CARRIED, *_ABSORBING, "ConstantOfShape")
        return not (carries or step.is_a(*_ALIKE))

    def _crosses(self, group: _Group, cast: Set[Value]) -> bool:
        """Return whether a number of a group would become infinite between its nodes, or two numbers one."""
        top = largest(self._plan.target)
        numbers = {number for value in group.values for number in self._huge.of[value].numbers}
        numbers |= {number for value in group.constants for number in self._huge.of[value].numbers}
        for sign in (1, -1):
            clamped = [number for number in numbers if number * sign >= top]
            if len(clamped) > 1:
                return True
        if not any(abs(number) > top for number in numbers):
            return False
        return any(map(self._is_cast_down, group.values)) or not cast.isdisjoint(group.constants)

    def _is_cast_down(self, value: Value) -> bool:
        """Return whether a computed value is cast to the type, in which its huge numbers would be infinite."""
        maker = value.maker
        if not self._huge.overflows(value) or not any(self._is_narrow(*reader) for reader in value.readers):
            return False
        if maker is None or maker not in self._plan.changes:
            return True
        source = maker.inputs[0] if maker.is_a("Cast") else None
        return source is not None and not self._plan.changes_type(source)

    def _is_narrow(self, step: Step, place: int) -> bool:
        change = self._plan.changes.get(step)
        return change is not None and change.inputs[place]

    def _is_cast(self, value: Value) -> bool:
        """Return whether a constant is read in both types, and too large to be stored in both."""
        tensor = value.tensor
        if tensor is None or not self._huge.overflows(value):
            return False
        small = tensor.data_location != TensorProto.EXTERNAL and prod(tensor.dims) * 4 <= _STORED_TWICE
        if small:
            return False
        return len({self._plan.wanted(reader, index) for reader, index in value.readers} - {None}) > 1


def mask_places(step: Step) -> tuple[int, ...]:
    """Return the inputs of a node at which a constant that overflows is a mask, or a bound. `Masks` decides on these."""
    if step.domain:
        return ()
    if step.is_a("ConstantOfShape", *_ABSORBING):
        return tuple(range(len(step.inputs))) or (0,)
    return CARRIED.get(step.node.op_type, ())
