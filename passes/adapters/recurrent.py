"""RNN, GRU and LSTM: from opset 7 on the names of the outputs say which of them are computed."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("GRU", 3, reason="linear_before_reset was added, with default 0; a misspelt default was corrected")
for _name in ("RNN", "GRU", "LSTM"):
    compatible(_name, 22, reason="more types are allowed")

ACTIVATIONS = {
    name.lower(): name
    for name in (
        "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
        "Softsign", "Softplus",
    )
}  # fmt: skip
"""The standard's names of activation functions, the same for RNN, GRU and LSTM, by their lower case."""


@adapter("RNN", "GRU", "LSTM", to=7)
def recurrent_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`output_sequence` was removed: an output that is not computed has no name.

    Why equal: with output_sequence=0, the default, the standard left open whether Y is computed; a Y without a name is
    not. A Y with a name is used, or is an output of the graph, so it is kept.
    """
    rw.drop("output_sequence")
    _spell(rw)


@adapter("RNN", "GRU", "LSTM", to=14)
def recurrent_14(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`layout` was added, with the old behaviour, 0, as its default; names of activations get the standard's case.

    What changes: activations in another case ("tanh", as early exporters wrote it) get the standard's spelling, which
    runtimes require.
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
