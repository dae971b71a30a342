"""The calls of a local function, whose body is the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..node_context import NodeContext
from ..tracked import Tracked

__all__ = ["FunctionCalls"]


@dataclass
class FunctionCalls:
    """The calls of a function so far: the first one's inputs, and whether all calls have the same coordinates and indices."""

    tracked: Mapping[str, Tracked]
    alike: bool = True
    replaces: bool = False
    """Whether the function has a constant that was replaced because of its inputs."""

    def require_same_numbers(
        self, context: NodeContext, tracked: Mapping[str, Tracked], *, replaces: bool
    ) -> None:
        """Raise UnrepairableNode if a size in the function was replaced, and this call or another has no such numbers."""
        self.replaces |= replaces
        self.alike &= all(known.equals(self.tracked[name]) for name, known in tracked.items())
        if self.replaces and not self.alike:
            context.refuse(
                f"function {context.node.op_type!r} has a constant that is the size of the image. One call of the function"
                " needs the new size there, and another call the old one. Inline the functions first, for example with"
                " onnx.inliner.inline_local_functions"
            )
