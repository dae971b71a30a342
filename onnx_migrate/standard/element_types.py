"""Element types: the opset that introduced each, the wider types that hold its values, and how schemas write it."""

from __future__ import annotations

from functools import cache

from onnx import TensorProto

__all__ = ["CONSTANT_TYPES", "FIRST_OPSET", "TYPE_ATTRIBUTES", "type_name", "type_text", "wider_types"]

_T = TensorProto

TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
"""Attributes of ai.onnx that are the element type of output 0, whose types the schema constrains."""

CONSTANT_TYPES = {
    "value_float": _T.FLOAT,
    "value_floats": _T.FLOAT,
    "value_int": _T.INT64,
    "value_ints": _T.INT64,
    "value_string": _T.STRING,
    "value_strings": _T.STRING,
}
"""The element type of each attribute of Constant-12 that is no tensor."""

_INTRODUCED = {
    13: ("BFLOAT16",),
    19: ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"),
    21: ("INT4", "UINT4"),
    23: ("FLOAT4E2M1",),
    24: ("FLOAT8E8M0",),
    25: ("INT2", "UINT2"),
    28: ("FLOAT6E2M3", "FLOAT6E3M2"),
}
"""The first opset whose Cast supports the type."""

FIRST_OPSET: dict[int, int] = {
    _T.DataType.Value(name): opset
    for opset, names in _INTRODUCED.items()
    for name in names
    if name in _T.DataType.keys()  # noqa: SIM118 - a protobuf enum wrapper is not iterable
}
"""The opset that introduced an element type; those that are missing exist in all opsets."""

_WIDER: dict[int, tuple[int, ...]] = {
    _T.BFLOAT16: (_T.FLOAT,),
    _T.FLOAT16: (_T.FLOAT,),
    _T.BOOL: (_T.UINT8, _T.INT32, _T.FLOAT),
    _T.INT8: (_T.INT32, _T.FLOAT, _T.DOUBLE),
    _T.INT16: (_T.INT32, _T.FLOAT, _T.DOUBLE),
    # ONNX Runtime has few kernels for uint32.
    _T.UINT8: (_T.INT32, _T.UINT32, _T.FLOAT, _T.DOUBLE),
    _T.UINT16: (_T.INT32, _T.UINT32, _T.FLOAT, _T.DOUBLE),
    _T.INT32: (_T.DOUBLE,),
    _T.UINT32: (_T.DOUBLE,),
    **{
        _T.DataType.Value(name): (_T.FLOAT16, _T.FLOAT)
        for name in _INTRODUCED[19]
        if name in _T.DataType.keys()  # noqa: SIM118
    },
}


def wider_types(dtype: int) -> tuple[int, ...]:
    """Return the element types that hold every value of `dtype`, the preferred first; empty if there is none.

    A value that a Cast converts to one of them and back keeps its bits. double is never rounded to float32.
    """
    return _WIDER.get(dtype, ())


@cache
def type_text(dtype: int) -> str:
    """Return a tensor type of an element type as schemas write it, such as "tensor(float)"."""
    return f"tensor({type_name(dtype)})"


@cache
def type_name(dtype: int) -> str:
    """Return the name of an element type in lower case, such as "float16"."""
    return str(TensorProto.DataType.Name(dtype)).lower()
