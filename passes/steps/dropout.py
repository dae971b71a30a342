"""Dropout: training is is_test below opset 7, absent from 7 to 11, and an input from 12 on. The mask is bool from opset 10 on."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.formula import LostTypes, Op, Value, formula
from onnx_migrate.plugins import Exactness, LoweringRewriter, Rewriter, adapter, lowering


@adapter("Dropout", to=7)
def dropout_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`is_test` is removed: with is_test=1 Dropout copies its input, as Dropout-7 does.

    What changes: with is_test=0 the node drops elements. It becomes a Dropout-12 in training mode, which does so too.

    Limits: the output of training mode is random, so only types and shapes can be compared. Opsets 7 to 11 have no training
    mode.
    """
    if rw.pop("is_test", 0):
        return
    if rw.target < 12:
        rw.refuse(
            "is in training mode (is_test=0), which Dropout does not have in opsets 7 to 11",
            code="no-equal",
            hint=(
                Advice("target opset 12 or newer", options={"opset": 12}),
                Advice("set is_test=1 in the model"),
            ),
        )
    rw.version = 12
    rw.attribute_to_input("ratio", 1)
    rw.set_input(2, rw.constant(np.array(True), "training"))
    _mask_of_data_type(rw)
    rw.note("with is_test=0 it drops elements at random, as Dropout-12 does in training mode")


@adapter("Dropout", to=10)
def dropout_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The mask becomes bool. A Cast restores its former type, that of the data, for nodes that read it."""
    _mask_of_data_type(rw)


@adapter("Dropout", to=12)
def dropout_12(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`ratio` moves from an attribute to an input. Without training_mode the data is copied as before.

    Limits: if nothing is dropped, older opsets do not define the mask, and from opset 12 on it is all true. ONNX Runtime
    returned all false before. For a model that uses the mask, onnx-migrate assumes that the results do not depend on that.
    """
    ratio = rw.attribute("ratio")
    if ratio is not None and not ratio.ref_attr_name and not 0 <= ratio.f < 1:
        rw.note(
            f"its ratio, {ratio.f:g}, is removed: opset 12 allows only [0, 1), and the node drops nothing"
        )
        rw.drop("ratio")
    rw.attribute_to_input("ratio", 1)
    if _has_mask(rw):
        rw.note("the mask was unspecified, and is all true from opset 12 on", Exactness.ASSUMED)


def _has_mask(rw: Rewriter) -> bool:
    """Return whether the mask is read; remove it from the outputs if it is not."""
    if rw.output(1) and rw.is_read(rw.output(1)):
        return True
    del rw.node.output[1:]
    return False


def _mask_of_data_type(rw: Rewriter) -> None:
    if _has_mask(rw):
        dtype = rw.need_dtype(rw.node.input[0])
        name = rw.node.output[1]
        rw.after("Cast", [rw.detach_output(1, "mask")], [name], to=dtype)


@lowering("Dropout", leaves=12)
def dropout_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The node copies its input: `training_mode` and `seed` are dropped, and `ratio` becomes an attribute.

    What changes: outside of training mode nothing uses the ratio. So a ratio computed at run time becomes the default of 0.5.
    If a node reads the mask, a ConstantOfShape makes it, all true.

    Why equal: below opset 12 Dropout has no training mode. Its mask is not defined there, and ONNX Runtime returns all false.

    Limits: onnx-migrate refuses training mode, unless the ratio is 0.
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
    """The mask has the data's type. A Cast to bool follows for nodes that read it.

    What changes: a mask that no node reads is removed.

    Why equal: the changelog of version 10 changes the mask's type and nothing else.
    """
    mask = rw.output(1)
    if mask and rw.is_read(mask):
        rw.after("Cast", [rw.detach_output(1, "mask")], [mask], to=TensorProto.BOOL)
    else:
        del node.output[1:]


@formula("Dropout", since=1)
def dropout(op: Op, x: Value, ratio: Value | None, training_mode: Value | None) -> Value:
    """Dropout is removed, because it copies its input in inference.

    Why equal: the text says so for training_mode = false. The results are equal bit for bit.

    Limits: onnx-migrate refuses nodes whose mask is read, and nodes in training mode.
    """
    if op.is_read(1):
        op.refuse(f"its mask {op.rw.output(1)!r} is read", code="no-equal")
    training = np.array(False) if training_mode is None else training_mode.constant
    if training is None or bool(training):
        op.refuse("it trains, or may", code="no-equal")
    return x
