"""Scales and sizes of Resize and Upsample, which some importers read from initializers only."""

from __future__ import annotations

import onnx

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["OPERATORS_WITH_SCALES", "read_scales_from_constants"]

OPERATORS_WITH_SCALES = frozenset(("Resize", "Upsample"))


def read_scales_from_constants(rw: LoweringRewriter) -> str | None:
    """Let the node read its scales and sizes from initializers; return what prevents it, None where it does now.

    An importer that wants this fails where they are computed, so what is not known must be refused. In a function, which
    has no initializers, they are Constant nodes.
    """
    first = 2 if rw.node.op_type == "Resize" and rw.version >= 11 else 1
    for index, what in ((first, "scales"), (first + 1, "sizes")):
        value = rw.input(index)
        if not value or (first == 1 and index > first):
            continue
        if isinstance(rw.scope.constant_source(value), onnx.TensorProto) and not _is_computed(rw, value):
            continue
        known = rw.known(value)
        if known is None:
            return f"its {what} ({value!r}) are computed at run time"
        constant = rw.constant(known, what)
        if constant != value:
            rw.set_input(index, constant)
            rw.note(f"its {what} are a constant of the model")
    return None


def _is_computed(rw: LoweringRewriter, value: str) -> bool:
    """Return whether a node produces a value: an Identity, through which an initializer is found too."""
    return rw.producer(value) is not None
