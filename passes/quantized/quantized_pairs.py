"""Writes a QuantizeLinear and DequantizeLinear behind nodes that move dequantized int8 values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.engine.helping_passes import CuringPass
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.engine.steps.node_steps import where_of
from onnx_migrate.errors import VerificationFailed
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import names_read, output_names
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Driver, Visitor
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx

__all__ = ["QuantizedPairs"]

_MOVING = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""ONNX Runtime inserts such a pair behind these operators (CanNodePropagate in
onnxruntime/core/optimizer/qdq_transformer/qdq_propagation.cc)."""


@register_pass
@dataclass(frozen=True)
class QuantizedPairs(CuringPass):
    """Write the pairs of QuantizeLinear and DequantizeLinear that ONNX Runtime's optimiser would insert.

    Since opset 21, ONNX Runtime's optimiser (1.31) breaks the QuantizeLinear that it inserts behind such a node. It gives
    the node an `output_dtype` of INT8, turns the zero point into UINT8, and then refuses its own node. It inserts no pair behind
    an existing one. Values that were quantized with the same scale and zero point become the same integers again. Therefore every
    output stays the same. This pass only runs for a model that does not load without it.
    """

    name: ClassVar[str] = "quantized_pairs"
    title: ClassVar[str] = "adding pairs of QuantizeLinear and DequantizeLinear"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})

    @classmethod
    def cures(cls, error: VerificationFailed) -> bool:
        """Return whether ONNX Runtime loads the result if it optimises nothing."""
        load = error.verification.load if error.verification else None
        return load is not None and load.unoptimised

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` and return it."""
        proto = model.proto
        driver = Driver(_Pairs(self.name, log))
        bodies = scopes(proto, model.weights, result_ir_version=proto.ir_version)
        for scope, (_, opset) in zip(bodies, body_opsets(proto), strict=True):
            if opset is not None and opset >= 21:
                driver.body(scope, opset)
        return model


class _Pairs(Visitor):
    """Visits the nodes that read a dequantized value; keeps scale and zero point of those values, by body."""

    def __init__(self, pass_name: str, log: ChangeLog) -> None:
        self.pass_name, self.log = pass_name, log
        self._dequantized: list[dict[str, tuple[str, str]]] = []
        self._only_quantized: list[set[str]] = []
        """Values that only QuantizeLinear reads, so a pair already follows them."""

    def enter(self, scope: Scope) -> None:
        """Find the values in the body that are dequantized with one int8 zero point for all elements."""
        dequantized = {}
        # A value that the body returns has a reader outside of it.
        readers: dict[str, set[str]] = {name: {"output"} for name in output_names(scope.body)}
        for node in scope.body.node:
            for name in names_read(node):
                readers.setdefault(name, set()).add(node.op_type)
            if node.op_type == "DequantizeLinear" and is_onnx(node.domain) and len(node.input) > 2:
                zero = scope.constant(node.input[2])
                if zero is not None and zero.dtype == "int8" and zero.size == 1:
                    dequantized[node.output[0]] = node.input[1], node.input[2]
        self._dequantized.append(dequantized)
        self._only_quantized.append({name for name, kinds in readers.items() if kinds == {"QuantizeLinear"}})

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return `opset` for a node that needs a pair behind it, else None."""
        if node.op_type not in _MOVING or not is_onnx(node.domain):
            return None
        dequantized, paired = self._dequantized[-1], self._only_quantized[-1]
        return opset if node.input[0] in dequantized and node.output[0] not in paired else None

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter:
        """Write the pair, which keeps the name of the node's output."""
        output = node.output[0]
        scale, zero = self._dequantized[-1][node.input[0]]
        rw = Rewriter(node, scope, version, version, where_of(node, scope, version))
        moved, integers = rw.detach_output(0, "moved"), rw.fresh("quantized")
        rw.after("QuantizeLinear", [moved, scale, zero], [integers])
        rw.after("DequantizeLinear", [integers, scale, zero], [output])
        rw.note(
            "its values are quantized and dequantized again, to the same values: ONNX Runtime does not load it else"
        )
        # The next node may follow this one, and then finds its scale here.
        self._dequantized[-1][output] = scale, zero
        return rw

    def leave(self, scope: Scope) -> None:
        """Forget the body."""
        self._dequantized.pop()
        self._only_quantized.pop()
