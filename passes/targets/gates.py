"""The factors that an importer fuses with a product as if both had one source."""

from __future__ import annotations

import onnx

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .gelu import source_of_erf

__all__ = ["write_gates_apart"]

_SIXTH, _NEAR = 1 / 6, 1e-4
"""The slope of the HardSigmoid in a HardSwish, and how far one that is fused may be from it."""


def write_gates_apart(rw: LoweringRewriter) -> str | None:
    """Write an Identity after a gate if the other factor is not the value that the gate is computed from; return None.

    OpenCV 4.5 to 5.0 fuse these products and a quotient, and do not check whether x is s:

    - x * HardSigmoid(s) as HardSwish of s (the gate of MobileNetV3)
    - x * Tanh(Softplus(s)) as Mish
    - x * (1 + Erf(s / d)) as GELU
    - x / ReduceL2(s) as s of length 1

    Measured with their wheels, which compute all of them right with an Identity between.
    """
    quotient = rw.node.op_type == "Div"
    # A quotient is not commutative: only its divisor can be the gate.
    for index in (1,) if quotient else (0, 1):
        gate = rw.producer(rw.input(index))
        source = "" if gate is None else _reduced(gate) if quotient else _gated(rw, gate)
        if source and source != rw.input(1 - index):
            rw.set_input(index, rw.before("Identity", [rw.input(index)], hint="gate"))
            rw.note(
                "an Identity stands behind the gate, which is not fused then with a product of another value"
            )
    return None


def _reduced(node: onnx.NodeProto) -> str:
    return node.input[0] if node.op_type == "ReduceL2" else ""


def _gated(rw: LoweringRewriter, node: onnx.NodeProto) -> str:
    """Return the value that a gate is computed from, "" if the node is no gate."""
    if node.op_type == "HardSigmoid":
        slope = next((attribute.f for attribute in node.attribute if attribute.name == "alpha"), 0.2)
        return node.input[0] if abs(slope - _SIXTH) < _NEAR else ""
    if node.op_type == "Tanh":
        return _softened(rw, node.input[0])
    return source_of_erf(rw, node)


def _softened(rw: LoweringRewriter, value: str) -> str:
    """Return the value x if a value is the softplus of x, which may also be written as Log(Exp(x) + 1)."""
    node = rw.producer(value)
    if node is not None and node.op_type == "Log":
        added = rw.producer(node.input[0])
        terms = map(rw.producer, added.input) if added is not None and added.op_type == "Add" else ()
        node = next((term for term in terms if term is not None and term.op_type == "Exp"), None)
    return node.input[0] if node is not None and node.op_type in ("Softplus", "Exp") else ""
