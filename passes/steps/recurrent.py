"""RNN, GRU and LSTM: names of outputs and activations since opset 7 and 14; below opset 14 the batch is the second axis."""

from __future__ import annotations

import onnx

from onnx_migrate.plugins import LoweringRewriter, Rewriter, adapter, compatible, lowering

compatible("GRU", 3, reason="linear_before_reset was added, with default 0; a misspelt default was corrected")

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
    activations = [name.decode() for name in rw.get("activations")]
    spelled = [ACTIVATIONS.get(name.lower(), name) for name in activations]
    if spelled != activations:
        rw.set("activations", spelled)


_INPUTS: dict[int, tuple[int, ...]] = {0: (1, 0, 2), 5: (1, 0, 2), 6: (1, 0, 2)}

_OUTPUTS: dict[int, tuple[int, ...]] = {0: (2, 0, 1, 3), 1: (1, 0, 2), 2: (1, 0, 2)}

"""How the axes of each input and output are exchanged, by its place; RNN and GRU lack the cell states."""


@lowering("RNN", "GRU", "LSTM", leaves=14)
def recurrent_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no `layout`, and the batch is the second axis, as with layout 0.

    What changes: with layout 1, Transposes before the node make the batch axis of the sequence and the initial states the
    second axis. Transposes after it move the axis back in the outputs. A node with layout 0 only loses the attribute.

    Why equal: the shapes that the standard gives for both layouts (onnx/defs/rnn/defs.cc) differ only in the order of axes. The
    Transposes only move values around the same computation.
    """
    if rw.pop("layout", 0) == 0:
        return
    moved: dict[tuple[str, tuple[int, ...]], str] = {}
    for index, perm in _INPUTS.items():
        name = rw.input(index)
        if not name:
            continue
        if (name, perm) not in moved:
            moved[name, perm] = rw.before("Transpose", [name], hint="batch_second", perm=perm)
        node.input[index] = moved[name, perm]
    for index, perm in _OUTPUTS.items():
        name = rw.output(index)
        if name:
            rw.after("Transpose", [rw.detach_output(index, "batch_second")], [name], perm=perm)
    rw.note("layout 1 became layout 0 between Transposes of its inputs and outputs")
