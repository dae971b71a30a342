"""Random nodes from the schemas of operators: inputs that fit, attributes that mostly do, constants where those are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, defs, helper

from tests.campaigns.fuzz.values import TYPE_NAMES, Value, array, shape

__all__ = ["attributes", "constant_for", "operators"]

_WORDS: dict[str, tuple[str, ...]] = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "mode": ("constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "bilinear", "DCR", "CRD", "TF", "IDF",
             "TFIDF", "fmod"),
    "coordinate_transformation_mode": ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                       "tf_crop_and_resize", "half_pixel_symmetric", "output_half_pixel"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "direction": ("forward", "reverse", "bidirectional", "LEFT", "RIGHT"),
    "reduction": ("none", "add", "mul", "min", "max", "mean", "sum"),
    "equation": ("ij,jk->ik", "ij->ji", "ii->i", "...ij->...ji", "bij,bjk->bik", "ij,->ij", "i j -> j i", "ij"),
    "padding_mode": ("zeros", "border", "reflection"),
    "approximate": ("none", "tanh"),
    "output_dtype": ("1",),
    "post_transform": ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"),
    "norm": ("MAX", "L1", "L2"),
    "case_change_action": ("NONE", "LOWER", "UPPER"),
    "round_mode": ("up", "down", "nearest"),
    "cast_to": ("TO_FLOAT", "TO_STRING", "TO_INT64"),
    "map_form": ("DENSE", "SPARSE"),
    "onnx_node": ("x",),
    "pixel_format": ("RGB", "BGR", "Grayscale"),
}  # fmt: skip

_INT_LISTS = ("axes", "perm", "kernel_shape", "strides", "dilations", "pads", "output_padding", "output_shape", "split",
              "starts", "ends", "shape", "repeats", "scales", "border", "scale")  # fmt: skip


@cache
def operators(domain: str, opset: int) -> tuple[Any, ...]:
    """Return the schemas of a domain's operators at an opset, by name."""
    found: dict[str, Any] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == domain and schema.since_version <= opset:
            known = found.get(schema.name)
            if known is None or known.since_version < schema.since_version:
                found[schema.name] = schema
    kept = (schema for name, schema in sorted(found.items()) if not schema.deprecated)
    return tuple(schema for schema in kept if schema.name not in ("If", "Loop", "Scan", "SequenceMap"))


def attributes(rng: Random, schema: Any, dims: tuple[int, ...] | None, wrong: float) -> dict[str, Any]:
    """Return attributes of a node whose first input has `dims`; each is odd with probability `wrong`."""
    rank = 2 if dims is None else len(dims)
    found = {}
    for name, declared in sorted(schema.attributes.items()):
        if not declared.required and rng.random() < 0.6:
            continue
        value = _odd(rng) if rng.random() < wrong else _attribute(rng, name, declared, rank, dims or ())
        if value is not None:
            found[name] = value
    if rng.random() < wrong:
        found[rng.choice(("alpha", "axis", "unknown", "to", "mode"))] = _odd(rng)
    return found


def _odd(rng: Random) -> Any:
    return rng.choice((0, -1, 99, 2**31, -(2**63), 2**63 - 1, 1.5, float("nan"), float("inf"), "", "abc", "a\nb", [0], [-1, -1],
                       [1.0], ["x", "y"], [2**62] * 3))  # fmt: skip


def _attribute(rng: Random, name: str, declared: Any, rank: int, dims: tuple[int, ...]) -> Any:
    kind = declared.type.value
    spatial = max(rank - 2, 0)
    if name in ("to", "dtype", "saturate") and kind == AttributeProto.INT:
        return rng.choice(sorted(TYPE_NAMES.values())) if name != "saturate" else rng.randint(0, 1)
    if name == "stash_type":
        return 1
    if kind == AttributeProto.INT:
        if "axis" in name and rank:
            return rng.randrange(-rank, rank)
        low, high = {"group": (1, 2), "num_outputs": (1, 3), "blocksize": (1, 2), "hidden_size": (2, 3), "p": (1, 2),
                     "allowzero": (0, 1), "keepdims": (0, 1), "ceil_mode": (0, 1), "size": (1, 5)}.get(name, (0, 2))  # fmt: skip
        return rng.randint(low, high)
    if kind == AttributeProto.FLOAT:
        return rng.choice((0.0, 0.5, 1.0, -1.0, 1e-5, 2.0))
    if kind == AttributeProto.STRING:
        return rng.choice(_WORDS.get(name, ("", "x", "NONE")))
    if kind == AttributeProto.INTS:
        return _ints(rng, name, rank, spatial, dims)
    if kind == AttributeProto.FLOATS:
        count = rank if name in ("scales", "scale") else rng.randint(1, 4)
        return [rng.choice((0.5, 1.0, 2.0)) for _ in range(count)]
    if kind == AttributeProto.STRINGS:
        return [
            rng.choice(("a", "b", "Relu", "Tanh", "Sigmoid", "BRANCH_LEQ", "LEAF"))
            for _ in range(rng.randint(1, 3))
        ]
    if kind == AttributeProto.TENSOR:
        number = rng.choice((1, 1, 7, 6, 9, 10, 11, 16))
        size = shape(rng, rng.choice((0, 1, 1, 2)))
        return onnx.numpy_helper.from_array(array(rng, number, size), rng.choice(("", "t")))
    if kind == AttributeProto.SPARSE_TENSOR:
        values = helper.make_tensor("v", 1, [1], [3.0])
        return helper.make_sparse_tensor(values, helper.make_tensor("i", 7, [1], [1]), [4])
    return None


def _ints(rng: Random, name: str, rank: int, spatial: int, dims: tuple[int, ...]) -> list[int]:
    if name == "perm":
        return rng.sample(range(rank), rank)
    if name == "axes":
        return sorted(rng.sample(range(max(rank, 1)), rng.randint(1, max(rank, 1))))
    if name == "pads":
        return [rng.randint(0, 1) for _ in range(2 * (spatial or rank))]
    if name == "kernel_shape":
        return [rng.randint(1, max(1, min(3, size))) for size in dims[2:]]
    if name in ("strides", "dilations"):
        return [rng.randint(1, 2) for _ in range(spatial)]
    if name == "split" and dims:
        return [1] * dims[0]
    if name in ("starts", "ends"):
        return [rng.randint(0, 2)]
    if name in ("shape", "output_shape"):
        return list(dims) or [1]
    return [rng.randint(0, 3) for _ in range(rng.randint(1, max(rank, 1)))]


Numbers = Callable[[Random, tuple[int, ...], dict[str, Any]], Any]


def _spatial_weight(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    group = attrs.get("group", 1)
    kernel = attrs.get("kernel_shape") or [rng.randint(1, max(1, min(3, size))) for size in dims[2:]]
    channels = dims[1] if len(dims) > 1 else 1
    return array(rng, 1, (2 * group, max(channels // max(group, 1), 1), *kernel))


def _channels(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    return np.abs(array(rng, 1, (dims[1] if len(dims) > 1 else 1,)))


def _target_shape(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    count = int(np.prod(dims, dtype=np.int64))
    return np.array(rng.choice(([-1], [count], [1, -1], [0, -1] if dims else [-1], list(dims))), np.int64)


def _matrix(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    return array(rng, 1, (dims[-1] if dims else 1, rng.randint(1, 4)))


def _axes(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    ones = [axis for axis, size in enumerate(dims) if size == 1] or [0]
    return np.array([rng.choice(ones)], np.int64)


def _some_axes(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    rank = max(len(dims), 1)
    return np.array(sorted(rng.sample(range(-rank, 0), rng.randint(1, rank))), np.int64)


def _indices(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    size = max(min(dims, default=1), 1)
    return np.array([rng.randrange(-size, size) for _ in range(rng.randint(1, 3))], np.int64)


def _one_each(low: float, high: float, dtype: type) -> Numbers:
    return lambda rng, dims, attrs: np.array([rng.choice((low, high)) for _ in dims], dtype)


def _pads(rng: Random, dims: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    return np.array([rng.choice((0, 0, 1, 2, -1)) for _ in range(2 * len(dims))], np.int64)


def _scalar(*choices: Any, dtype: type = np.float32) -> Numbers:
    return lambda rng, dims, attrs: np.array(rng.choice(choices), dtype)


def _list(*choices: Any) -> Numbers:
    return lambda rng, dims, attrs: np.array([rng.choice(choices)], np.int64)


_CONSTANTS: dict[tuple[str, int], Numbers] = {
    ("Conv", 1): _spatial_weight,
    ("BatchNormalization", 1): _channels,
    ("BatchNormalization", 2): _channels,
    ("BatchNormalization", 3): _channels,
    ("BatchNormalization", 4): _channels,
    ("InstanceNormalization", 1): _channels,
    ("InstanceNormalization", 2): _channels,
    ("PRelu", 1): lambda rng, dims, attrs: array(rng, 1, dims[-1:]),
    ("Reshape", 1): _target_shape,
    ("MatMul", 1): _matrix,
    ("Gemm", 1): _matrix,
    ("Squeeze", 1): _axes,
    ("Unsqueeze", 1): _list(0, 1, -1),
    ("Gather", 1): _indices,
    ("Slice", 1): _list(0, 1, -2),
    ("Slice", 2): _list(1, 2, -1, 2**62),
    ("Slice", 3): _list(0, -1, 1),
    ("Slice", 4): _list(1, 2, -1),
    ("Pad", 1): _pads,
    ("Pad", 2): _scalar(0, 1.5),
    ("Resize", 1): _one_each(1, 1, np.float32),
    ("Resize", 2): _one_each(1, 2, np.float32),
    ("Resize", 3): _one_each(2, 4, np.int64),
    ("Upsample", 1): _one_each(1, 2, np.float32),
    ("Tile", 1): _one_each(1, 2, np.int64),
    ("Expand", 1): _one_each(1, 1, np.int64),
    ("Clip", 1): _scalar(-1, 0),
    ("Clip", 2): _scalar(0.5, 3),
    ("Dropout", 1): _scalar(0.0, 0.5),
    ("Dropout", 2): _scalar(False, dtype=np.bool_),
    ("TopK", 1): _list(1),
    ("OneHot", 1): _scalar(3, dtype=np.int64),
    ("CumSum", 1): _scalar(0, -1, dtype=np.int64),
    ("ConstantOfShape", 0): _one_each(1, 2, np.int64),
    ("Range", 0): _scalar(0, dtype=np.int64),
    ("Range", 1): _scalar(3, dtype=np.int64),
    ("Range", 2): _scalar(1, dtype=np.int64),
    ("Trilu", 1): _scalar(0, 1, dtype=np.int64),
    ("SplitToSequence", 1): _list(1),
    ("Split", 1): lambda rng, dims, attrs: np.ones(dims[0] if dims else 1, np.int64),
    ("QuantizeLinear", 1): _scalar(0.1, 1),
    ("DequantizeLinear", 1): _scalar(0.1, 1),
    ("LayerNormalization", 1): lambda rng, dims, attrs: array(rng, 1, dims[-1:]),
    ("GroupNormalization", 1): _channels,
    ("GroupNormalization", 2): _channels,
}
_CONSTANTS.update({(f"Reduce{name}", 1): _some_axes for name in
                   ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")})  # fmt: skip


def constant_for(rng: Random, operator: str, index: int, before: list[Value], attrs: dict[str, Any]) -> Any:
    """Return the array of numbers that an input of an operator needs; None where any value will do."""
    numbers = _CONSTANTS.get((operator, index))
    first = next((value for value in before if value is not None), None)
    dims = () if first is None or first.shape is None else first.shape
    try:
        return None if numbers is None else numbers(rng, dims, attrs)
    except (TypeError, ValueError, IndexError, OverflowError):  # an attribute is odd on purpose
        return None
