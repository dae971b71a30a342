"""Moves Casts in front of nodes that only move elements, so that numbers beyond int32 have their readers' type earlier."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import onnx
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.model.names import Names
from onnx_migrate.standard.element_types import type_name

from .ranges import Ranges

__all__ = ["hoist_casts"]

_MOVERS = (
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "Reshape",
    "Slice",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
)
"""Operators whose output has unchanged elements of input 0: a Cast before them gives the same as a Cast after them."""


def hoist_casts(frames: list[Frame], ranges: Ranges, names: Names) -> int:
    """Move Casts of values that may exceed int32 in front of nodes that move them; return how many nodes then move less data.

    For example, a mask goes through Unsqueeze, Expand and a Cast to float: now the Cast comes first. The bits stay the same.
    """
    return sum(_Hoist(frame, ranges, names).run() for frame in frames)


@dataclass
class _Hoist:
    frame: Frame
    ranges: Ranges
    names: Names
    casts: dict[tuple[Value, int], str] = field(default_factory=dict)
    behind: dict[Step | None, list[Step]] = field(default_factory=lambda: defaultdict(list))
    """The Casts to write after each node; Casts of inputs have the key None."""
    gone: set[Step] = field(default_factory=set)

    def run(self) -> int:
        """Move the Casts of a body, from its end, so that one passes all that moves; return past how many nodes."""
        count = sum(self._pass(step) for step in reversed(self.frame.steps))
        if count:
            steps = list(self.behind[None])
            for step in self.frame.steps:
                steps += [step, *self.behind.get(step, ())]
            remaining_nodes = [step.node for step in steps if step not in self.gone]
            del self.frame.body.node[:]
            self.frame.body.node.extend(remaining_nodes)
        return count

    def _pass(self, step: Step) -> bool:
        if not step.is_a(*_MOVERS) or not step.inputs or not step.outputs:
            return False
        source, moved = step.inputs[0], step.outputs[0]
        if source is None or moved is None or moved.is_output or source.dtype != TensorProto.INT64:
            return False
        readers = [reader for reader, _ in moved.readers]
        kinds = {_kind(reader) if reader.frame is self.frame else 0 for reader in readers}
        # All readers must be Casts to one type.
        if len(kinds) != 1 or not (kind := kinds.pop()) or self.ranges.fit(moved):
            return False
        if source.frame is not self.frame:
            return False
        # All readers are the same Cast, so one Cast in front of the node replaces them.
        cast_name = readers[0].node.output[0]
        for reader in readers[1:]:
            reader.node.op_type = "Identity"
            del reader.node.attribute[:]
            reader.node.input[0] = cast_name
        self.gone.add(readers[0])
        step.node.output[0] = cast_name
        step.node.input[0] = self._cast(step, source, kind)
        return True

    def _cast(self, step: Step, source: Value, kind: int) -> str:
        """Return the name of a value with a Cast right after its node; the Cast replaces `step` as a reader of the value."""
        name = self.casts.get((source, kind))
        # The new Cast reads the value in place of the node.
        source.readers.remove((step, 0))
        if name is None:
            name = self.casts[source, kind] = self.names.fresh(f"{source.name}_{type_name(kind)}")
            node = onnx.helper.make_node(
                "Cast", [source.name], [name], self.names.fresh(f"{name}_cast"), to=kind
            )
            cast_step = Step(node, self.frame, step.index, step.version, [source], [None])
            self.behind[source.maker].append(cast_step)
            source.readers.append((cast_step, 0))
        return name


def _kind(reader: Step) -> int:
    """Return the type that a Cast gives, 0 for any other node."""
    if not reader.is_a("Cast"):
        return 0
    return next((int(attribute.i) for attribute in reader.node.attribute if attribute.name == "to"), 0)
