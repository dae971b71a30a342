"""Folds scales and shifts into the weight and bias of the convolution or product before them, like simplifiers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from onnx_migrate.verify.kernel.arrays import Array

from .node_settings import NodeSettings, kind_of, settings_of
from .records import Recorded

__all__ = ["Linear", "linear_of"]

_PASSED = ("Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Dropout", "Cast", "Transpose")
"""Operators that hand on the numbers."""


@dataclass(frozen=True)
class Linear:
    """A weight whose first axis is that of the output's channels, and a bias, of one node and those folded into it."""

    weight: Array
    bias: Array
    nodes: tuple[onnx.NodeProto, ...]
    name: str
    """The name of the weight in its model."""


def linear_of(nodes: Sequence[onnx.NodeProto], side: Recorded) -> Linear | None:
    """Return the first product of some nodes with a constant weight, with the nodes after it folded in; None if there is none."""
    for index, node in enumerate(nodes):
        first = _product(node, settings_of(node, side))
        if first is None:
            continue
        folded, behind = first, {*node.output}
        for following in nodes[index + 1 :]:
            # Only nodes behind the product can be folded into it.
            if behind.isdisjoint(following.input):
                continue
            more = _folded(folded, following, side)
            if more is None:
                break
            folded, behind = more, behind | {*following.output}
        return folded
    return None


def _product(node: onnx.NodeProto, settings: NodeSettings) -> Linear | None:
    """Return the weight and bias of a product; None for other operators, and for a weight that is not constant."""
    kind, constants, attributes = kind_of(node), settings.constants, settings.attributes
    name, weight = constants.get("W") or constants.get("B") or constants.get("input 1") or ("", None)
    if kind not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or weight is None or weight.dtype.kind != "f":
        return None
    # Products of folded factors must not round.
    weight = weight.astype(np.float64)
    if kind == "Gemm":
        # The output channels come first, as in a convolution.
        weight = (weight if attributes.get("transB") else weight.T) * attributes.get("alpha", 1.0)
        bias = constants.get("C", ("", np.zeros(1)))[1] * attributes.get("beta", 1.0)
    elif kind == "MatMul":
        if weight.ndim != 2:
            return None
        weight, bias = weight.T * attributes.get("alpha", 1.0), np.zeros(1)
    elif kind == "ConvTranspose":
        if attributes.get("group", 1) != 1:
            return None
        weight, bias = weight.swapaxes(0, 1), constants.get("B", ("", np.zeros(1)))[1]
    else:
        bias = constants.get("B", constants.get("input 2", ("", np.zeros(1))))[1]
    return Linear(weight, _channels(bias, len(weight)), (node,), name)


def _channels(array: Array, count: int) -> Array:
    flat = array.astype(np.float64).reshape(-1)
    return np.broadcast_to(flat, count).copy() if flat.size in (1, count) else np.full(count, np.nan)


def _folded(linear: Linear, node: onnx.NodeProto, side: Recorded) -> Linear | None:
    """Return a product with the next node folded in; None if that does more than scale and shift channels."""
    settings, kind, count = settings_of(node, side), kind_of(node), len(linear.weight)
    nodes = (*linear.nodes, node)
    if kind in _PASSED:
        return Linear(linear.weight, linear.bias, nodes, linear.name)
    if kind == "BatchNormalization":
        parts = [value for _, value in list(settings.constants.values())[:4]]
        # A BatchNormalization with computed parts cannot be folded.
        if len(parts) != 4:
            return None
        scale, shift, mean, variance = (_channels(part, count) for part in parts)
        factor = scale / np.sqrt(variance + settings.attributes.get("epsilon", 1e-5))
        return Linear(
            _scaled(linear.weight, factor), (linear.bias - mean) * factor + shift, nodes, linear.name
        )
    constant = next((value for _, value in settings.constants.values() if value.dtype.kind == "f"), None)
    if kind not in ("Add", "Sub", "Mul", "Div") or constant is None or constant.size not in (1, count):
        return None
    # A quotient or difference of the constant by the value is not linear in it.
    is_first = node.input[0] in side.constants
    by = _channels(constant, count)
    if kind == "Mul":
        return Linear(_scaled(linear.weight, by), linear.bias * by, nodes, linear.name)
    if kind == "Div" and not is_first:
        return Linear(_scaled(linear.weight, 1 / by), linear.bias / by, nodes, linear.name)
    if kind == "Add":
        return Linear(linear.weight, linear.bias + by, nodes, linear.name)
    if kind == "Sub" and not is_first:
        return Linear(linear.weight, linear.bias - by, nodes, linear.name)
    return None


def _scaled(weight: Array, factor: Array) -> Array:
    scaled: Array = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    return scaled
