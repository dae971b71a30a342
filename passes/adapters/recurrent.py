"""RNN, GRU and LSTM: which outputs are given is seen from the outputs alone."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible(
    "GRU", 3, reason="linear_before_reset was added, 0 by default; a typing error in a default was mended"
)
for _name in ("RNN", "GRU", "LSTM"):
    compatible(_name, 22, reason="more types are allowed")

ACTIVATIONS = {
    name.lower(): name
    for name in (
        "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
        "Softsign", "Softplus",
    )
}  # fmt: skip
"""The activation functions that the standard names (RNN, GRU and LSTM are of one mind)."""


@adapter("RNN", "GRU", "LSTM", to=7)
def recurrent_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`output_sequence` is gone: an output that is not wanted has no name.

    Why equal: at 0, the default, output_sequence left it open whether Y is given, and a Y without a name is
    not. A Y with a name has readers or is an output of the graph, so it stays.
    """
    rw.drop("output_sequence")
    _spell(rw)


@adapter("RNN", "GRU", "LSTM", to=14)
def recurrent_14(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`layout` was added; 0, the default, is how it was.

    What changes: activations in another spelling ("tanh", as early exporters wrote it) get the standard's, the one
    that runtimes know.
    """
    _spell(rw)


def _spell(rw: Rewriter) -> None:
    attribute = rw.attribute("activations")
    if attribute is None or attribute.ref_attr_name:
        return
    given = [name.decode() for name in rw.get("activations")]
    spelled = [ACTIVATIONS.get(name.lower(), name) for name in given]
    if spelled != given:
        rw.set("activations", spelled)
