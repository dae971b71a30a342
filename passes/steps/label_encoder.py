"""LabelEncoder of ai.onnx.ml: a list of classes became keys and values (2), and the last of equal keys counts (4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.plugins import LostTypes, LoweringRewriter, Rewriter, adapter, lowering

ML = "ai.onnx.ml"


@adapter("LabelEncoder", to=2, domain=ML)
def label_encoder_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The list of classes becomes keys and values: integers to strings, or strings to integers.

    What changes: the direction follows from the input's type. If that is unknown and only one default value is set, the
    default value decides.

    Why equal: if a class occurs twice in the list, the last index counts (onnxruntime/core/providers/cpu/ml/label_encoder.h).
    """
    classes: list[bytes] = rw.pop("classes_strings", [])
    if not classes:
        rw.refuse("its attribute classes_strings is empty", code="invalid-node")
    if _from_strings(node, rw):
        indices = {label: index for index, label in enumerate(classes)}
        rw.drop("default_string")
        rw.set("keys_strings", list(indices))
        rw.set("values_int64s", list(indices.values()))
    else:
        rw.drop("default_int64")
        rw.set("keys_int64s", list(range(len(classes))))
        rw.set("values_strings", classes)


@adapter("LabelEncoder", to=4, domain=ML)
def label_encoder_4(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Only the first of equal keys is kept, since from version 4 on the last one would count.

    Why equal: ONNX Runtime uses the first one, and the text of version 2 does not say which one counts. Keys of NaN are kept,
    because both texts let them match. ONNX Runtime matches them only from version 4 on.
    """
    names = [attribute.name for attribute in node.attribute]
    keys = next((name for name in names if name.startswith("keys_")), "")
    values = next((name for name in names if name.startswith("values_")), "")
    if not keys or not values:
        rw.refuse("has no keys or no values", code="invalid-node")
    pairs: dict[object, object] = {}
    listed = rw.get(keys)
    for key, value in zip(listed, rw.get(values), strict=True):
        pairs.setdefault(key, value)
    if len(pairs) < len(listed):
        rw.set(keys, list(pairs))
        rw.set(values, list(pairs.values()))


def _from_strings(node: onnx.NodeProto, rw: Rewriter) -> bool:
    """Return true if the node maps strings to integers, and false if it maps integers to strings."""
    to_integers, to_strings = (
        rw.attribute("default_int64") is not None,
        rw.attribute("default_string") is not None,
    )
    if rw.dtype(node.input[0]) is None and to_integers != to_strings:
        return to_integers
    return rw.need_dtype(node.input[0]) == TensorProto.STRING


_SUFFIX: dict[int, str] = {
    TensorProto.STRING: "strings",
    TensorProto.INT64: "int64s",
    TensorProto.FLOAT: "floats",
}
_DEFAULTS: dict[str, Any] = {"strings": b"_Unused", "int64s": -1, "floats": -0.0}
_SINGLE = {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}
_WIDER: dict[int, int] = {TensorProto.INT16: TensorProto.INT64, TensorProto.INT32: TensorProto.INT64}


@lowering("LabelEncoder", leaves=4, domain=ML, types=LostTypes.OWN)
def label_encoder_4_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Keys and values are lists of strings, int64 or float.

    What changes: tensors become lists. int16 and int32 are cast to int64 and back. Double values that float represents
    exactly are cast back after the node.

    Limits: onnx-migrate refuses these nodes:

    - Double keys: they distinguish inputs that are equal in float.
    - Double values that float does not represent exactly.
    - Keys of NaN: the text of version 2 does not define them.
    - Equal keys with different values: the last one counts in the standard, but the first one in ONNX Runtime.
    """
    keys, key_type = _listed(rw, "keys")
    values, value_type = _listed(rw, "values")
    default = _default(rw, value_type)
    if key_type == TensorProto.DOUBLE:
        rw.refuse("its keys are doubles, and version 2 has keys of float at most", code="no-equal")
    if any(isinstance(key, float) and np.isnan(key) for key in keys):
        rw.refuse(
            "one of its keys is NaN, and version 2 does not define its matches",
            code="no-equal",
            hint="map NaN in front of the model",
        )
    if value_type == TensorProto.DOUBLE and any(
        float(np.float32(value)) != value and value == value for value in (*values, default)
    ):
        rw.refuse(
            "some of its values are doubles that float does not hold, and version 2 has values of float at most",
            code="no-equal",
        )
    pairs = dict(zip(keys, values, strict=True))
    if any(pairs[key] != value and value == value for key, value in zip(keys, values, strict=True)):
        rw.refuse(
            "one of its keys is listed twice with different values: by the standard the last one counts, in ONNX Runtime the"
            " first",
            code="no-equal",
            hint="list each key once",
        )
    if key_type in _WIDER:
        rw.set_input(0, rw.before("Cast", [rw.input(0)], hint="keys", to=_WIDER[key_type]))
        key_type = _WIDER[key_type]
    narrow = value_type if value_type not in _SUFFIX else None
    if narrow is not None:
        value_type = TensorProto.FLOAT if narrow == TensorProto.DOUBLE else TensorProto.INT64
        output = rw.output(0)
        rw.after("Cast", [rw.detach_output(0, "wide")], [output], to=narrow)
    del node.attribute[:]
    rw.set(f"keys_{_SUFFIX[key_type]}", list(pairs))
    rw.set(f"values_{_SUFFIX[value_type]}", list(pairs.values()))
    rw.set(_SINGLE[_SUFFIX[value_type]], default)


def _listed(rw: LoweringRewriter, name: str) -> tuple[list[Any], int]:
    """Return the keys or values, and their element type."""
    if not any(rw.attribute(f"{name}_{suffix}") for suffix in ("tensor", *_SUFFIX.values())):
        rw.refuse(f"has no {name}", code="invalid-node")
    tensor = rw.get(f"{name}_tensor")
    if tensor is not None:
        array = rw.scope.weights.array(tensor).reshape(-1)
        if tensor.data_type == TensorProto.STRING:
            return [str(entry).encode() for entry in array], TensorProto.STRING
        return array.tolist(), int(tensor.data_type)
    dtype, suffix = next(entry for entry in _SUFFIX.items() if rw.attribute(f"{name}_{entry[1]}") is not None)
    return rw.get(f"{name}_{suffix}"), dtype


def _default(rw: LoweringRewriter, dtype: int) -> Any:
    """Return the value for inputs that match no key."""
    suffix = _SUFFIX.get(dtype, "floats" if dtype == TensorProto.DOUBLE else "int64s")
    tensor = rw.get("default_tensor")
    if tensor is not None:
        entry = numpy_helper.to_array(tensor).reshape(-1)[0]
        return str(entry).encode() if suffix == "strings" else entry.item()
    single = rw.get(_SINGLE[suffix], _DEFAULTS[suffix])
    return single.encode("utf-8", "surrogateescape") if isinstance(single, str) else single


@lowering("LabelEncoder", leaves=2, domain=ML, types=LostTypes.OWN)
def label_encoder_2_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Keys and values become a list of classes, in the order of their numbers.

    What changes: a map between the numbers 0, 1, 2 … and strings becomes `classes_strings`. Strings with other values are
    numbered in order. A Gather then returns the value of each number, and the default for the last one.

    Why equal: version 1 returns a string's position in the list, or the string at a position.

    Limits: onnx-migrate refuses int64 keys other than the numbers from 0 on, values of such keys that are not strings, and
    float keys.
    """
    keys, key_type = _listed(rw, "keys")
    values, value_type = _listed(rw, "values")
    default = _default(rw, value_type)
    pairs: dict[Any, Any] = {}
    for key, value in zip(keys, values, strict=True):
        pairs.setdefault(key, value)
    del node.attribute[:]
    if key_type == TensorProto.INT64 and value_type == TensorProto.STRING:
        if sorted(pairs) != list(range(len(pairs))):
            rw.refuse(
                "its keys are not the numbers from 0 on, and version 1 knows no others",
                code="no-equal",
            )
        rw.set("classes_strings", [pairs[key] for key in range(len(pairs))])
        rw.set("default_string", default)
        return
    if key_type != TensorProto.STRING:
        rw.refuse(
            f"maps {_SUFFIX[key_type]} to {_SUFFIX[value_type]}, and version 1 maps strings to numbers and back alone",
            code="no-equal",
        )
    if value_type == TensorProto.INT64 and sorted(pairs.values()) == list(range(len(pairs))):
        rw.set("classes_strings", sorted(pairs, key=lambda key: int(pairs[key])))
        rw.set("default_int64", default)
        return
    rw.set("classes_strings", list(pairs))
    rw.set("default_int64", len(pairs))
    listed = [*pairs.values(), default]
    table: np.ndarray[Any, Any] = (
        np.array([text.decode() for text in listed], object)
        if value_type == TensorProto.STRING
        else np.array(listed, np.int64 if value_type == TensorProto.INT64 else np.float32)
    )
    output = rw.output(0)
    rw.after("Gather", [rw.constant(table, "values"), rw.detach_output(0, "number")], [output], axis=0)
