"""Sums of products of 8-bit integers, which ONNX Runtime computes wrongly on x86 processors without VNNI.

On these, it multiplies uint8 by int8 with VPMADDUBSW, which adds two neighbouring products in int16 and saturates. See
GemmU8S8Dispatch in onnxruntime/core/mlas/lib/platform.cpp, for AVX2 and AVX-512 without VNNI. The session option
"session.x64quantprecision" mentions this too. Products of uint8 by uint8 are added in int32, and those of int8 by anything in
portable C++: both are right. So this module writes an int8 operand beside a uint8 one as uint8, with 128 added to it and to its
zero point. The differences that are multiplied stay the same, and every sum is that of the standard.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import FunctionKey, LocatedBody, all_nodes, bodies, function_key
from onnx_migrate.model.names import Names
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.evaluators.interface import EvaluationError, Runnable
from onnx_migrate.verify.evaluators.quirks import Quirk, Rewritten

__all__ = ["NOTE", "QUIRK", "exact_sums", "saturates", "with_exact_sums"]

NOTE = (
    "this processor has no VNNI, so ONNX Runtime adds products of uint8 and int8 in int16, which saturates. onnx-migrate"
    ' compared the numbers of the standard instead. Set "session.x64quantprecision" to "1" on such a processor'
)


class _Product(NamedTuple):
    """The places of a product's operands, in the order in which the kernel multiplies them, and of their zero points.

    A first operand of None is a float tensor that the kernel itself quantises to uint8.
    """

    first: int | None
    first_zero: int
    second: int
    second_zero: int


_BOTH_QUANTIZED = (_Product(0, 2, 3, 5),)

_STANDARD = {
    "MatMulInteger": (_Product(0, 2, 1, 3),),
    "ConvInteger": (_Product(1, 3, 0, 2),),  # the kernel multiplies W by the columns of X
    "QLinearMatMul": _BOTH_QUANTIZED,
    "QLinearConv": _BOTH_QUANTIZED,
}

_CONTRIB = {
    "QLinearConv": _BOTH_QUANTIZED,
    "QGemm": _BOTH_QUANTIZED,
    "MatMulIntegerToFloat": (_Product(0, 4, 1, 5),),
    "QAttention": (_Product(0, 6, 1, 7),),
    "DynamicQuantizeMatMul": (_Product(None, 0, 1, 3),),
    "DynamicQuantizeLSTM": (_Product(None, 0, 1, 9), _Product(None, 0, 2, 11)),
}

_WORDS = (b"Integer", b"QLinear", b"uantize", b"QGemm", b"QAttention")
"""One of them is in the bytes of every model that multiplies integers, or whose products the optimiser makes integer ones."""


def _products(node: onnx.NodeProto) -> tuple[_Product, ...]:
    if is_onnx(node.domain):
        return _STANDARD.get(node.op_type, ())
    return _CONTRIB.get(node.op_type, ()) if node.domain == "com.microsoft" else ()


@cache
def saturates() -> bool:
    """Whether ONNX Runtime adds two products of 255 by 127 wrongly on this processor. The test runs once in a process."""
    import numpy as np
    import onnxruntime

    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    inputs = [
        helper.make_tensor_value_info("a", TensorProto.UINT8, [1, 64]),
        helper.make_tensor_value_info("b", TensorProto.INT8, [64, 16]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 16])
    imports = [helper.make_opsetid("", 10)]
    model = helper.make_model(
        helper.make_graph([node], "probe", inputs, [output]), ir_version=5, opset_imports=imports
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = {"a": np.full((1, 64), 255, np.uint8), "b": np.full((64, 16), 127, np.int8)}
    return bool((session.run(None, feed)[0] != 64 * 255 * 127).any())


_EXACT = {"session.x64quantprecision": "1"}
"""The entry with which the optimiser takes constant weights as uint8.

It makes integer products of DequantizeLinear, MatMul or Conv, and QuantizeLinear.
"""


def exact_sums(runnable: Runnable, optimize: bool) -> Rewritten:
    """Return the model to load, the given one if its sums are exact.

    Raises EvaluationError if an element type that decides is unknown.
    """
    structure = runnable.structure
    if structure is not None and not any(word in structure for word in _WORDS):
        return Rewritten(runnable)
    if not saturates():
        return Rewritten(runnable)
    model = runnable.proto()
    entries = _EXACT if optimize else {}
    if not with_exact_sums(model):
        return Rewritten(runnable, entries=entries)
    return Rewritten(runnable.with_structure(model), (NOTE,), entries)


def with_exact_sums(model: onnx.ModelProto) -> int:
    """Write int8 operands that a node multiplies by uint8 as uint8, in place; return the number of nodes that read one.

    Raises EvaluationError if the function cannot tell whether an operand is int8.
    """
    if not any(_products(node) for node in all_nodes(model)):
        return 0
    types, names, changed = TypeTable(model), Names(model), 0
    for located in reversed(list(bodies(model))):  # sub-graphs first: the nodes around them are copied
        changed += _write_unsigned(located, types, names)
    return changed


def _write_unsigned(located: LocatedBody, types: TypeTable, names: Names) -> int:
    owner = located.owner
    function = function_key(owner) if isinstance(owner, onnx.FunctionProto) else None
    nodes: list[onnx.NodeProto] = []
    written: dict[str, str] = {}
    changed = 0
    for node in located.body.node:
        affected = [
            product for product in _products(node) if _is_affected(node, product, located, function, types)
        ]
        for product in affected:
            for index in (product.second, product.second_zero):
                # Omitted inputs at the end get a place.
                node.input.extend([""] * (index + 1 - len(node.input)))
                name = node.input[index]
                # One conversion serves all nodes.
                if name not in written:
                    written[name] = names.fresh(f"{name or 'zero'}_as_uint8")
                    nodes.extend(_raised(name, written[name], names))
                node.input[index] = written[name]
        changed += bool(affected)
        nodes.append(node)
    if written:
        del located.body.node[:]
        located.body.node.extend(nodes)
        # The written nodes are of ai.onnx, which a function of another domain need not import.
        if not any(is_onnx(entry.domain) for entry in owner.opset_import):
            owner.opset_import.append(helper.make_opsetid("", 13))
    return changed


def _is_affected(
    node: onnx.NodeProto,
    product: _Product,
    located: LocatedBody,
    function: FunctionKey | None,
    types: TypeTable,
) -> bool:
    """Whether a node multiplies uint8 by int8, in this order; a first operand of unknown type counts as uint8."""

    def dtype(*indices: int) -> int | None:
        operand_names = (
            node.input[index] for index in indices if index < len(node.input) and node.input[index]
        )
        return next(
            # Type 0 is UNDEFINED, which is as good as unknown.
            filter(None, (types.lookup(function, located.key, name).dtype for name in operand_names)),
            None,
        )

    first = TensorProto.UINT8 if product.first is None else dtype(product.first, product.first_zero)
    if first == TensorProto.INT8:
        return False
    # A zero point has the type of its operand, and its type may be known where the operand's is not.
    second = dtype(product.second, product.second_zero)
    if second is None:
        raise EvaluationError(
            f"the element type of {node.input[product.second]!r} is not known, and ONNX Runtime adds products of uint8 and int8"
            " wrongly on this processor",
            node.name,
            loading=True,
            limit=True,
        )
    return second == TensorProto.INT8


def _raised(name: str, result: str, names: Names) -> list[onnx.NodeProto]:
    """Return the nodes that write an int8 value as uint8, 128 higher; without a name, those of the zero point 0."""
    if not name:
        zero = helper.make_tensor(result, TensorProto.UINT8, [], [128])
        return [helper.make_node("Constant", [], [result], value=zero)]
    wide, offset, sum_ = (names.fresh(f"{result}_{part}") for part in ("wide", "offset", "sum"))
    return [
        helper.make_node(
            "Constant", [], [offset], value=helper.make_tensor(offset, TensorProto.INT32, [], [128])
        ),
        helper.make_node("Cast", [name], [wide], to=TensorProto.INT32),
        helper.make_node("Add", [wide, offset], [sum_]),
        helper.make_node("Cast", [sum_], [result], to=TensorProto.UINT8),
    ]


QUIRK = Quirk(exact_sums, {NOTE: "exact sums of integers stood in for kernels that saturate"})
