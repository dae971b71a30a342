"""Quantised operators whose kernels round a number between two steps differently from the floats that they stand for.

QLinearAveragePool adds the rows of a window one after the other (qlinear_pool.cc). AveragePool does so from opset 19 on, and with
optimisation. Otherwise it adds columns first if strides are 1 or 2 (MlasPool2DVectorKernel in core/mlas/lib/pooling.cpp). With
equal scales, a mean is often half-way between two steps, and the order decides. So the module writes AveragePool as a pooling of
three axes, whose kernel goes by rows. Every bit is then that of QLinearAveragePool.

QLinearAdd and QLinearMul add the zero point before they round (qladd.cpp and qlmul.cpp in core/mlas/lib).
QLinearGlobalAveragePool multiplies a sum of integers by one scale (qlgavgpool.cpp). So a result between two steps may fall to the
other step than that of the nodes that they stand for. These are DequantizeLinear, then Add, Mul or GlobalAveragePool, then
QuantizeLinear. The optimiser turns such nodes into the quantised operators again. So they run as these nodes without
optimisation, and unchanged with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import onnx
from onnx import AttributeProto

from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import Body, LocatedBody, producers
from onnx_migrate.model.names import Names
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.evaluators.written_nodes import Written, WrittenNodes

__all__ = ["ORDER_NOTE", "STEP_NOTE", "as_floats", "pools_by_rows"]

ORDER_NOTE = (
    "an AveragePool that replaces QLinearAveragePool ran so that it adds the rows of its windows in the same order. Below"
    " opset 19 ONNX Runtime adds columns first without optimisation. A mean between two steps may then round differently"
)
STEP_NOTE = (
    "without optimisation, QLinearAdd, QLinearMul and QLinearGlobalAveragePool ran as float operators between DequantizeLinear"
    " and QuantizeLinear. The optimiser fuses these into the quantised kernels again. The kernels round differently, so a number"
    " between two steps may become the other one there"
)

_FLOATS = {"QLinearAdd": 8, "QLinearMul": 8, "QLinearGlobalAveragePool": 5}
"""The operators that are run as floats, and how many inputs those have that have all their zero points."""


def pools_by_rows(body: Body) -> dict[int, Written]:
    """Return how the nodes are run, by place, that average windows of two axes over dequantised values, which a Div reads."""
    # Few models have such a pool.
    if not any(node.op_type == "AveragePool" for node in body.node):
        return {}
    producer_of = producers(body)

    def source(name: str) -> onnx.NodeProto:
        node = producer_of.get(name, onnx.NodeProto())
        # A Transpose moves the values only.
        return producer_of.get(node.input[0], onnx.NodeProto()) if node.op_type == "Transpose" else node

    read = (source(node.input[0]) for node in body.node if node.op_type == "Div")
    pools = {node.output[0] for node in read if node.op_type == "AveragePool" and is_onnx(node.domain)}
    return {
        index: _by_rows
        for index, node in enumerate(body.node)
        if node.output
        and node.output[0] in pools
        and source(node.input[0]).op_type == "DequantizeLinear"
        and len(_numbers(node, "kernel_shape")) == 2
    }


def as_floats(located: LocatedBody, types: Callable[[], TypeTable]) -> dict[int, Written]:
    """Return how the nodes that round in another way are run, by place; a pool with the channels last needs a known rank."""
    written_by_index: dict[int, Written] = {}
    for index, node in enumerate(located.body.node):
        if node.domain == "com.microsoft" and sum(map(bool, node.input)) == _FLOATS.get(node.op_type):
            if not any(attribute.name == "channels_last" and attribute.i for attribute in node.attribute):
                written_by_index[index] = _by_floats
            elif (shape := types().lookup(None, located.key, node.input[0]).shape) is not None:
                written_by_index[index] = partial(_by_floats, channels_last=len(shape))
    return written_by_index


def _by_floats(node: onnx.NodeProto, names: Names, *, channels_last: int = 0) -> list[onnx.NodeProto]:
    """Return nodes that dequantise the values of a node, compute, and quantise; `channels_last` is the rank of such a pool."""
    write = WrittenNodes(node.output[0], names)
    *triples, scale, zero = node.input
    values = [write.put("DequantizeLinear", *triples[at : at + 3]) for at in range(0, len(triples), 3)]
    if channels_last:
        # The pool of the standard has its channels second.
        values = [write.put("Transpose", *values, perm=[0, channels_last - 1, *range(1, channels_last - 1)])]
    computed = write.put(node.op_type.removeprefix("QLinear"), *values)
    if channels_last:
        computed = write.put("Transpose", computed, perm=[0, *range(2, channels_last), 1])
    return write.end(write.put("QuantizeLinear", computed, scale, zero))


def _numbers(node: onnx.NodeProto, name: str) -> Sequence[int]:
    return next((attribute.ints for attribute in node.attribute if attribute.name == name), ())


def _by_rows(node: onnx.NodeProto, names: Names) -> list[onnx.NodeProto]:
    """Return nodes that pool over a third axis of length 1 as well."""
    write = WrittenNodes(node.output[0], names)
    pool = onnx.NodeProto.FromString(node.SerializeToString())
    for attribute in pool.attribute:
        if attribute.type == AttributeProto.INTS:
            numbers = list(attribute.ints)
            attribute.ints[:] = (
                [*numbers[:2], 0, *numbers[2:], 0] if attribute.name == "pads" else [*numbers, 1]
            )
    # A 0 copies the length of an axis.
    pool.input[0] = write.put("Reshape", node.input[0], write.constant([0, 0, 0, 0, 1]))
    pool.output[0] = names.fresh(f"{node.output[0]}_pooled")
    write.nodes.append(pool)
    return write.end(write.put("Reshape", pool.output[0], write.constant([0, 0, 0, 0])))
