"""Nodes of ONNX Runtime's own that its kernels do not compute by their text, written so that they do.

MatMulNBits with an `accuracy_level` of 4 quantises its first input to int8 (onnxruntime/contrib_ops/cpu/quantization/
matmul_nbits.cc), and so differs from the product with its weights by up to 1 %. MultiHeadAttention with a cache, and without the
outputs for keys and values, reads behind the end of the new ones (ONNX Runtime 1.32), so that its numbers differ from run to run.
"""

from __future__ import annotations

import onnx

from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.names import Names
from onnx_migrate.verify.evaluators.interface import Runnable

__all__ = ["ACCURACY_NOTE", "as_meant", "write_as_meant"]

ACCURACY_NOTE = (
    "MatMulNBits was run with accuracy_level 0, so that the numbers that were compared are those of its weights; with the level"
    " that the model has, ONNX Runtime quantises its input too"
)

_DOMAIN = "com.microsoft"
_WORDS = (b"MatMulNBits", b"MultiHeadAttention")


def as_meant(runnable: Runnable) -> tuple[Runnable, bool]:
    """Return a model as it is to be loaded, itself if it has no such node, and whether an `accuracy_level` was dropped."""
    structure = runnable.structure
    if structure is not None and not any(word in structure for word in _WORDS):
        return runnable, False
    model = runnable.proto()
    changed, dropped = write_as_meant(model)
    return (runnable.with_structure(model) if changed else runnable), dropped


def write_as_meant(model: onnx.ModelProto) -> tuple[int, bool]:
    """Write such nodes in place; return how many were written, and whether an `accuracy_level` was dropped."""
    changed, dropped, names = 0, False, None
    for located in bodies(model):
        for node in located.body.node:
            if node.domain != _DOMAIN:
                continue
            if node.op_type == "MatMulNBits":
                levels = [item for item in node.attribute if item.name == "accuracy_level" and item.i]
                for item in levels:
                    item.i = 0
                changed, dropped = changed + len(levels), dropped or bool(levels)
            elif node.op_type == "MultiHeadAttention" and len(node.input) > 6 and node.input[6]:
                names = names or Names(model)
                changed += _with_outputs(node, names)
    return changed, dropped


def _with_outputs(node: onnx.NodeProto, names: Names) -> int:
    """Give a node its second and third output where these are left out; return whether that was so."""
    node.output.extend([""] * (3 - len(node.output)))
    missing = [place for place in (1, 2) if not node.output[place]]
    for place in missing:
        node.output[place] = names.fresh(f"{node.output[0]}_present")
    return int(bool(missing))
