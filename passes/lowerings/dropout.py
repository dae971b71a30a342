"""Dropout: training mode began with opset 12, and the mask is bool since opset 10."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Dropout", leaves=12)
def dropout_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The node copies its input: `training_mode` and `seed` go away, and `ratio` becomes an attribute.

    What changes: outside of training mode the ratio is not read, so one that is computed at run time becomes the default
    of 0.5. A mask that is read is written as what it is, all true.

    Why equal: below opset 12 Dropout has no training mode. Its mask is not specified there, and ONNX Runtime gives all
    false.

    Limits: training mode is refused, unless the ratio is 0.
    """
    ratio = rw.known(rw.input(1)) if rw.input(1) else None
    if rw.input(2):
        training = rw.need_constant(2, "training_mode")
        if training.any() and rw.input(1):
            ratio = rw.need_constant(1, "ratio")
        nothing = ratio is not None and ratio.size == 1 and ratio.item() == 0
        if training.any() and not nothing:
            rw.refuse(
                "is in training mode (training_mode is true), which Dropout does not have below opset 12",
                code="no-equal",
                hint="export the model for inference",
            )
    del node.input[1:]
    rw.drop("seed")
    if ratio is not None and ratio.size == 1:
        rw.set("ratio", float(ratio.item()))
    mask = rw.output(1)
    del node.output[1:]
    if mask and rw.is_read(mask):
        shape = rw.before("Shape", [rw.input(0)], hint="shape")
        true = onnx.helper.make_tensor("", TensorProto.BOOL, [1], [True])
        rw.after("ConstantOfShape", [shape], [mask], value=true)


@lowering("Dropout", leaves=10, types=LostTypes.OWN)
def dropout_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The mask has the data's type, and is cast to bool where it is read.

    What changes: a mask that is not read is removed.

    Why equal: the changelog of version 10 changes the mask's type and nothing else.
    """
    mask = rw.output(1)
    if mask and rw.is_read(mask):
        rw.after("Cast", [rw.detach_output(1, "mask")], [mask], to=TensorProto.BOOL)
    else:
        del node.output[1:]
