"""Dropout: told by an attribute, by the runtime, and then by an input whether it drops anything."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Dropout", 13, 22, reason="more types are allowed")


@adapter("Dropout", to=6)
def dropout_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`consumed_inputs`, a hint that memory may be used again, is gone."""
    rw.drop("consumed_inputs")


@adapter("Dropout", to=7)
def dropout_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`is_test` is gone: a Dropout in test mode copies its input, as version 7 does at inference.

    What changes: without is_test the node dropped elements, and is written as Dropout-12 in training mode,
    which does so still.

    Limits: random, so only its kind can be compared; and no version between 7 and 11 can say it.
    """
    if rw.pop("is_test", 0):
        return
    if rw.target < 12:
        rw.refuse(
            "is in training mode (is_test=0)",
            code="no-equal",
            hint="opset 12 and above can say so, or set is_test=1",
        )
    rw.version = 12
    rw.attribute_to_input("ratio", 1)
    rw.set_input(2, rw.constant(np.array(True), "training"))
    _mask_of_data_type(rw)
    rw.note("is_test is 0, so it drops elements at random, and goes on doing so")


@adapter("Dropout", to=10)
def dropout_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The mask, which was of the data's type, is bool, and is cast back where something reads it."""
    _mask_of_data_type(rw)


@adapter("Dropout", to=12)
def dropout_12(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`ratio` moves from an attribute to an input, and without training_mode the input is copied as before.

    Limits: what the mask holds when nothing is dropped was left open and is all true now. ONNX Runtime had
    given all false, so a model that reads the mask is migrated under the assumption that it does not mind.
    """
    rw.attribute_to_input("ratio", 1)
    if _has_mask(rw):
        rw.note("the mask, which the standard left open, is all true now", Exactness.ASSUMED)


def _has_mask(rw: Rewriter) -> bool:
    """Tell whether the mask is read, and leave it out if it is not."""
    if rw.output(1) and rw.is_read(rw.output(1)):
        return True
    del rw.node.output[1:]
    return False


def _mask_of_data_type(rw: Rewriter) -> None:
    if _has_mask(rw):
        dtype = rw.need_dtype(rw.node.input[0])
        name = rw.node.output[1]
        rw.after("Cast", [rw.detach_output(1, "mask")], [name], to=dtype)
