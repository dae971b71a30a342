"""ReverseSequence: below opset 10 a Gather of the reversed places."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import integers
from .flat_index import Dims, along
from .selecting import select


@lowering("ReverseSequence", leaves=10)
def reverse_sequence_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no ReverseSequence: Gather takes the steps of all sequences in their new order.

    What changes: step t of a sequence of length n comes from step n - 1 - t where t is below n, else from step t. The axes
    of time and batch are flattened, and a Gather takes the rows by their number.

    Why equal: the standard's definition; values are moved, never computed with.

    Limits: the rank of the input must be known.
    """
    data, lengths = rw.input(0), rw.input(1)
    time = int(rw.pop("time_axis", 0))
    batch = int(rw.pop("batch_axis", 1))
    sizes = Dims(rw, data)
    steps = along(rw, sizes.places(time), time, 2)
    lengths = along(rw, lengths, batch, 2)
    last = rw.before("Sub", [lengths, integers(rw, 1)], hint="last")
    reversed_steps = rw.before("Sub", [last, steps], hint="reversed")
    inside = rw.before("Less", [steps, lengths], hint="inside")
    source = select(rw, inside, reversed_steps, steps)
    row = along(rw, sizes.places(batch), batch, 2)
    if time == 0:
        source = rw.before("Mul", [source, sizes.product([batch])], hint="rows")
    else:
        row = rw.before("Mul", [row, sizes.product([time])], hint="rows")
    number = rw.before("Add", [source, row], hint="rows")
    rest = range(2, sizes.rank)
    shape = integers(rw, -1)
    if rest:
        shape = rw.before("Concat", [shape, sizes.some(rest)], hint="shape", axis=0)
    rw.rename("Gather")
    rw.set("axis", 0)
    rw.set_input(0, rw.before("Reshape", [data, shape], hint="rows"))
    rw.set_input(1, number)
