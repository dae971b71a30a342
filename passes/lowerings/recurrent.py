"""RNN, GRU and LSTM: below opset 14 the batch is the second axis."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_INPUTS: dict[int, tuple[int, ...]] = {0: (1, 0, 2), 5: (1, 0, 2), 6: (1, 0, 2)}
_OUTPUTS: dict[int, tuple[int, ...]] = {0: (2, 0, 1, 3), 1: (1, 0, 2), 2: (1, 0, 2)}
"""How the axes of each input and output are exchanged, by its place; RNN and GRU lack the cell states."""


@lowering("RNN", "GRU", "LSTM", leaves=14)
def recurrent_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no `layout`, and the batch is the second axis, as with layout 0.

    What changes: with layout 1, Transposes before the node move the batch axis of the sequence and of the initial states
    from the first place to the second, and Transposes after it move it back in the outputs. With layout 0, nothing.

    Why equal: the shapes that the standard gives for both layouts (onnx/defs/rnn/defs.cc) differ in the order of axes alone.
    Values are moved around the same computation.
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
