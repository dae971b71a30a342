"""The calls of a local function, whose body is the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..domain import Array
from ..node_context import NodeContext
from ..tracked import Tracked

__all__ = ["FunctionCalls"]


@dataclass
class FunctionCalls:
    """The calls of a function so far: the inputs of the first one, and whether all calls are alike.

    They are alike if they have the same coordinates, the same indices of cells, and the same small constants.
    """

    tracked: Mapping[str, Tracked]
    constants: Mapping[str, Array | None]
    same_tracked: bool = True
    same_constants: bool = True
    sizes: bool = False
    """Whether the function has a size that was replaced beside coordinates or indices of cells."""
    tables: bool = False
    """Whether the function has a table that was replaced."""

    def add(
        self, context: NodeContext, tracked: Mapping[str, Tracked], constants: Mapping[str, Array | None]
    ) -> None:
        """Compare the inputs of a call, after `sizes` and `tables` are set. Raises UnrepairableNode if the calls differ there."""
        self.same_tracked &= all(known.equals(self.tracked[name]) for name, known in tracked.items())
        self.same_constants &= constants.keys() == self.constants.keys() and all(
            _same(array, self.constants[name]) for name, array in constants.items()
        )
        if (self.sizes and not self.same_tracked) or (
            (self.sizes or self.tables) and not self.same_constants
        ):
            context.refuse(
                f"function {context.node.op_type!r} has a constant that follows the size of the image in one call. Another"
                " call needs another number there. Inline the functions first, for example with"
                " onnx.inliner.inline_local_functions"
            )


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)
