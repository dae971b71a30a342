"""One Resize, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from onnx_migrate.analysis.known_values import KnownValues, Producers
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.resize import resized_axes

from .origin import ResizeOrigin

__all__ = ["ResizeNode", "axes_of"]


@dataclass
class ResizeNode:
    """A Resize, or the Gather behind one (see `split_in_two` of ResizeOrigin), and what is known in its body."""

    rw: Rewriter
    known: KnownValues
    producers: Producers
    origin: ResizeOrigin | None
    """What an adapter rewrote it from; None for a node that no adapter rewrote."""

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The shape of the input that is resized; None for a dim that is not known, or if the rank is not."""
        return self.rw.scope.value_type(self.rw.input(0)).shape


def axes_of(node: onnx.NodeProto, rank: int) -> list[int]:
    """Return the axes that the scales and sizes of a Resize are of."""
    named = next((attribute.ints for attribute in node.attribute if attribute.name == "axes"), ())
    return resized_axes(named, rank)
