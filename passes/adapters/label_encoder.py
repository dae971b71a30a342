"""LabelEncoder of ai.onnx.ml: a list of classes became keys and values (2); the last of equal keys counts (4)."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter
from onnx_migrate.rewrite.rewriter import Rewriter

ML = "ai.onnx.ml"


@adapter("LabelEncoder", to=2, domain=ML)
def label_encoder_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The list of classes becomes keys and values: integers to strings, or strings to integers.

    What changes: the direction follows from the input's type, or from the default value if only one is set.

    Why equal: of a class that is listed twice the last index counts (onnxruntime/core/providers/cpu/ml/label_encoder.h).
    """
    classes: list[bytes] = rw.pop("classes_strings", [])
    if not classes:
        rw.refuse("its attribute classes_strings is empty", code="invalid-node")
    if _from_strings(node, rw):
        places = {label: place for place, label in enumerate(classes)}
        rw.drop("default_string")
        rw.set("keys_strings", list(places))
        rw.set("values_int64s", list(places.values()))
    else:
        rw.drop("default_int64")
        rw.set("keys_int64s", list(range(len(classes))))
        rw.set("values_strings", classes)


@adapter("LabelEncoder", to=4, domain=ML)
def label_encoder_4(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Of equal keys only the first is kept, since from version 4 on the last one would count.

    Why equal: ONNX Runtime uses the first one; the text of version 2 leaves it open. Keys of NaN are kept: both texts let
    them match, though ONNX Runtime does so from version 4 on only.
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
    """Return whether the node maps strings to integers, not integers to strings."""
    to_integers, to_strings = (
        rw.attribute("default_int64") is not None,
        rw.attribute("default_string") is not None,
    )
    if rw.dtype(node.input[0]) is None and to_integers != to_strings:
        return to_integers
    return rw.need_dtype(node.input[0]) == TensorProto.STRING
