"""RNN, GRU and LSTM: which outputs are given is seen from the outputs alone."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.model.rewriter import Rewriter

compatible(
    "GRU", 3, reason="linear_before_reset was added, 0 by default; a typing error in a default was mended"
)
for _name in ("RNN", "GRU", "LSTM"):
    compatible(_name, 14, reason="layout was added; 0, the default, is how it was")
    compatible(_name, 22, reason="more types are allowed")


@adapter("RNN", "GRU", "LSTM", to=7)
def recurrent_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`output_sequence` is gone: an output that is not wanted has no name.

    Why equal: at 0, the default, output_sequence left it open whether Y is given, and a Y without a name is
    not. A Y with a name has readers or is an output of the graph, so it stays.
    """
    rw.drop("output_sequence")
