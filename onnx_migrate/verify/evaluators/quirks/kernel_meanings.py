"""Rewrites nodes whose ONNX Runtime kernels deviate from the operator's text, or add in an unusual order.

MatMulNBits with an `accuracy_level` of 4 quantises its first input to int8 (onnxruntime/contrib_ops/cpu/quantization/
matmul_nbits.cc). Its results differ from the product with its weights by up to 1 %. MultiHeadAttention with a cache, and without
the outputs for keys and values, reads behind the end of the new ones (ONNX Runtime 1.32). Its numbers differ from run to run.

SkipLayerNormalization sums up a row one number after the other (skip_layer_norm.cc). If the mean is large, this rounds: by 3e-4
for a mean 3,000 times the deviation. For float32, the sum and the LayerNormalization that it stands for replace it.

GatherBlockQuantized reads beyond its table if an index is too large (gather_block_quantized.cc of ONNX Runtime 1.32). Its indices
go through a Gather, which refuses such indices, so that other inputs are tried.

Quantised operators round numbers between two steps differently from floats (quantized_meanings.py). DFT and STFT lose digits over
lengths that are no power of two (transforms.py).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.model.graphs import Body, bodies
from onnx_migrate.model.names import Names
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.verify.evaluators.interface import Runnable
from onnx_migrate.verify.evaluators.quirks import Quirk, Rewritten
from onnx_migrate.verify.evaluators.quirks.quantized_meanings import (
    ORDER_NOTE,
    STEP_NOTE,
    as_floats,
    pools_by_rows,
)
from onnx_migrate.verify.evaluators.quirks.transforms import TRANSFORM_NOTE, Transforms
from onnx_migrate.verify.evaluators.written_nodes import Written, WrittenNodes

__all__ = ["ACCURACY_NOTE", "QUIRK", "SKIP_NOTE", "as_meant", "write_as_meant"]

ACCURACY_NOTE = (
    "MatMulNBits ran with accuracy_level 0, which computes with float inputs. With the level in the model, ONNX Runtime also"
    " quantises its input"
)
SKIP_NOTE = (
    "SkipLayerNormalization ran as Add and LayerNormalization. ONNX Runtime's kernel adds the numbers of a row one by one, which"
    " rounds more if the mean is much larger than the deviation"
)

_DOMAIN = "com.microsoft"
_WORDS = (
    b"MatMulNBits",
    b"MultiHeadAttention",
    b"SkipLayerNormalization",
    b"GatherBlockQuantized",
    b"QLinear",
    b"DFT",
    b"STFT",
)
_POOLS = (b"AveragePool", b"DequantizeLinear")
"""Both are in a model whose pools of dequantised values are written."""


def as_meant(runnable: Runnable, optimize: bool) -> Rewritten:
    """Return the model to load, the given one if it has no such node, and notes on the changes."""
    structure = runnable.structure
    if structure is not None and not (
        any(word in structure for word in _WORDS) or all(word in structure for word in _POOLS)
    ):
        return Rewritten(runnable)
    model = runnable.proto()
    changed, notes = write_as_meant(model, optimize=optimize)
    return Rewritten(runnable.with_structure(model) if changed else runnable, notes)


def write_as_meant(model: onnx.ModelProto, *, optimize: bool = False) -> tuple[int, tuple[str, ...]]:
    """Write such nodes in place; return how many were written, and notes on them."""
    notes: set[str] = set()
    changed, names, transforms = 0, Names(model), Transforms(model)
    for located in bodies(model):
        body = located.body
        opset = onnx_opset(located.owner.opset_import, ir_version=model.ir_version)
        pools = pools_by_rows(body) if (opset or 19) < 19 else {}
        for node in body.node:
            if node.domain == _DOMAIN and node.op_type == "MatMulNBits":
                levels = [
                    attribute
                    for attribute in node.attribute
                    if attribute.name == "accuracy_level" and attribute.i
                ]
                for attribute in levels:
                    attribute.i = 0
                changed += len(levels)
                notes.update([ACCURACY_NOTE] if levels else ())
            elif node.domain == _DOMAIN and node.op_type == "MultiHeadAttention":
                changed += _with_outputs(node, names) if len(node.input) > 6 and node.input[6] else 0
        skips = _skips(body) if opset else {}
        steps = as_floats(located, lambda: transforms.types) if (opset or 0) >= 10 and not optimize else {}
        products = transforms.products(located)
        written = {**_checked(body), **pools, **skips, **steps, **products}
        # From the end, so that the indices of earlier nodes stay valid.
        for index in sorted(written, reverse=True):
            nodes = written[index](body.node[index], names)
            del body.node[index]
            for node in reversed(nodes):
                body.node.insert(index, node)
        changed += len(written)
        notes.update([ORDER_NOTE] if pools else ())
        notes.update([SKIP_NOTE] if skips else ())
        notes.update([STEP_NOTE] if steps else ())
        notes.update([TRANSFORM_NOTE] if products else ())
    return changed, tuple(sorted(notes))


def _checked(body: Body) -> dict[int, Written]:
    """Return for the places of the nodes that gather from a quantised table how they refuse indices beyond its end."""
    written_by_index: dict[int, Written] = {}
    dims = {entry.name: entry.dims for entry in getattr(body, "initializer", ())}
    for index, node in enumerate(body.node):
        # Only a table whose size is known can be checked.
        if node.op_type == "GatherBlockQuantized" and node.domain == _DOMAIN and node.input[2] in dims:
            axis = next((entry.i for entry in node.attribute if entry.name == "gather_axis"), 0)
            written_by_index[index] = partial(_with_checked_indices, length=dims[node.input[2]][axis])
    return written_by_index


def _with_checked_indices(node: onnx.NodeProto, names: Names, *, length: int) -> list[onnx.NodeProto]:
    """Return nodes that gather the indices from all indices that there are, and the node that takes them."""
    write = WrittenNodes(node.output[0], names)
    taking = onnx.NodeProto.FromString(node.SerializeToString())
    taking.input[1] = write.put("Gather", write.constant(np.arange(length, dtype=np.int64)), node.input[1])
    return [*write.nodes, taking]


def _skips(body: Body) -> dict[int, Written]:
    """Return how the nodes are run, by place, that add and normalise float32, whose scales are constants that say so."""
    names = {
        tensor.name for tensor in getattr(body, "initializer", ()) if tensor.data_type == TensorProto.FLOAT
    }
    return {
        index: _as_sum
        for index, node in enumerate(body.node)
        if node.op_type == "SkipLayerNormalization" and node.domain == _DOMAIN and node.input[2] in names
    }


def _as_sum(node: onnx.NodeProto, names: Names) -> list[onnx.NodeProto]:
    """Return nodes that add the inputs, and the LayerNormalization of the sum."""
    # Omitted inputs at the end count as empty.
    x, skip, gamma, beta, bias = [*node.input, "", ""][:5]
    summands = [entry for entry in (x, skip, bias) if entry]
    total = (node.output[3] if len(node.output) > 3 else "") or names.fresh(f"{node.output[0]}_sum")
    sums = [*(names.fresh(f"{node.output[0]}_part") for _ in summands[2:]), total]
    nodes, running_sum = [], summands[0]
    for right, name in zip(summands[1:], sums, strict=True):
        nodes.append(helper.make_node("Add", [running_sum, right], [name]))
        running_sum = name
    epsilon = next((entry.f for entry in node.attribute if entry.name == "epsilon"), 1e-12)
    return [
        *nodes,
        helper.make_node(
            "LayerNormalization",
            [total, gamma, *filter(None, [beta])],
            node.output[:1],
            axis=-1,
            epsilon=epsilon,
        ),
    ]


def _with_outputs(node: onnx.NodeProto, names: Names) -> int:
    """Give a node its second and third output if it lacks them; return whether it did."""
    node.output.extend([""] * (3 - len(node.output)))
    missing = [index for index in (1, 2) if not node.output[index]]
    for index in missing:
        node.output[index] = names.fresh(f"{node.output[0]}_present")
    return int(bool(missing))


QUIRK = Quirk(
    as_meant,
    {
        ACCURACY_NOTE: "MatMulNBits without quantised inputs stood in for MatMulNBits",
        ORDER_NOTE: "AveragePool that adds by rows stood in for AveragePool",
        SKIP_NOTE: "Add and LayerNormalization stood in for SkipLayerNormalization",
        STEP_NOTE: "DequantizeLinear, floats and QuantizeLinear stood in for QLinearAdd, QLinearMul and"
        " QLinearGlobalAveragePool without optimisation",
        TRANSFORM_NOTE: "products of matrices stood in for DFT and STFT",
    },
)
