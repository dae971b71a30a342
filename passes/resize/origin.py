"""What a Resize was before the lift, as its adapter records it for the passes that come after."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ResizeOrigin"]


@dataclass(frozen=True)
class ResizeOrigin:
    """A fact of a node that an adapter rewrote, in the log under the node's first output.

    Passes that undo part of what it says record the fact anew.
    """

    version: int
    """The version of the operator (Upsample-9, Resize-10 or 11) that the adapter started from."""
    name: str
    """The node's name, "" if it has none."""
    split_in_two: bool = False
    """Whether it became one nearest Resize that shrinks and one that grows; a Gather may come after them."""
    written_by_converter: bool = False
    """Whether onnx's version converter had made it of an older Resize, and lost its coordinates."""
    unchecked: bool = False
    """Whether the adapter could not compare the number of its scales with the rank of its input."""

    @property
    def is_before_11(self) -> bool:
        """Whether it had no coordinate_transformation_mode, so that its coordinates were asymmetric."""
        return self.version < 11
