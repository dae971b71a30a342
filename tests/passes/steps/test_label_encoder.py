"""LabelEncoder of ai.onnx.ml below 4 and 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.errors import CannotMigrate
from tests.passes.steps.forests import one_node
from tests.passes.steps.ml import check_ml_down, lower_ml

KINDS = {
    "strings": (TensorProto.STRING, np.array(["a", "b", "", "c", "zz"], object)),
    "int64s": (TensorProto.INT64, np.array([3, -1, 0, 2**40, 9])),
    "floats": (TensorProto.FLOAT, np.array([0.5, -1, 0, 3e30, 9], np.float32)),
}
DEFAULTS = {"strings": "none", "int64s": 77, "floats": 7.5}
SINGLE = {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}


def encoder(source: int, target: int, version: int, **attributes: Any) -> onnx.ModelProto:
    return one_node(
        "LabelEncoder", attributes, {"y": (target, ["N"])}, version=version, dtype=source, shape=("N",)
    )


def words(values: np.ndarray[Any, Any]) -> list[Any]:
    return values.tolist()


@pytest.mark.parametrize("keys", KINDS)
@pytest.mark.parametrize("values", KINDS)
@pytest.mark.parametrize("default", [False, True])
def test_lists(keys: str, values: str, default: bool) -> None:
    if keys == values == "floats":
        return  # no kernel
    given = {f"keys_{keys}": words(KINDS[keys][1][:4]), f"values_{values}": words(KINDS[values][1][1:])}
    if default:
        given[SINGLE[values]] = DEFAULTS[values]
    source = encoder(KINDS[keys][0], KINDS[values][0], 4, **given)
    check_ml_down(source, KINDS[keys][1], 3, 2)


@pytest.mark.parametrize("last", [3, 1])
def test_tensors(last: int) -> None:
    """Of equal keys with different values the last one counts by the standard, and the first one in ONNX Runtime."""
    for kind, values in (("strings", ["x", "y", "z"]), ("int64s", [5, 6, 7])):
        array = np.array(values, object if kind == "strings" else np.int64)
        source = encoder(
            TensorProto.INT64,
            KINDS[kind][0],
            4,
            keys_tensor=numpy_helper.from_array(np.array([1, 2, last])),
            values_tensor=numpy_helper.from_array(array),
            default_tensor=numpy_helper.from_array(array[-1:]),
        )
        if last == 3:
            check_ml_down(source, np.array([1, 2, 3, 4]), 3, 2)
            continue
        with pytest.raises(CannotMigrate) as caught:
            lower_ml(source, 3)
        assert caught.value.code == "no-equal"


@pytest.mark.parametrize("narrow", [np.int16, np.int32])
def test_narrow_integers(narrow: Any) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(narrow))
    values = numpy_helper.from_array(np.array([-3, 4], narrow))
    keys = numpy_helper.from_array(np.array([2, -2], narrow))
    default = numpy_helper.from_array(np.array([11], narrow))
    source = encoder(code, code, 4, keys_tensor=keys, values_tensor=values, default_tensor=default)
    x = np.array([2, -2, 0], narrow)
    check_ml_down(source, x, 3, 2, expected=[np.array([-3, 4, 11], narrow)])


def test_doubles() -> None:
    keys = numpy_helper.from_array(np.array([1, 2], np.int64))
    values = numpy_helper.from_array(np.array([0.5, -2.25]))
    default = numpy_helper.from_array(np.array([-1.0]))
    source = encoder(
        TensorProto.INT64,
        TensorProto.DOUBLE,
        4,
        keys_tensor=keys,
        values_tensor=values,
        default_tensor=default,
    )
    check_ml_down(source, np.array([2, 1, 3]), 3, expected=[np.array([-2.25, 0.5, -1.0])])


@pytest.mark.parametrize(
    ("source", "target", "attributes"),
    [
        (TensorProto.DOUBLE, TensorProto.STRING, {"keys_tensor": np.array([1.0]), "values_strings": ["a"]}),
        (TensorProto.INT64, TensorProto.DOUBLE, {"keys_int64s": [1], "values_tensor": np.array([0.1]),
                                                 "default_tensor": np.array([0.0])}),
        (TensorProto.FLOAT, TensorProto.STRING, {"keys_floats": [1.0, float("nan")], "values_strings": ["a", "b"]}),
    ],
)  # fmt: skip
def test_refusals_below_4(source: int, target: int, attributes: dict[str, Any]) -> None:
    given = {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in attributes.items()
    }
    with pytest.raises(CannotMigrate) as caught:
        check_ml_down(encoder(source, target, 4, **given), np.zeros(1), 3, expected=[])
    assert caught.value.code == "no-equal"


@pytest.mark.parametrize("default", [{}, {"default_string": "none"}])
@pytest.mark.parametrize("keys", [[0, 1, 2], [2, 0, 1]])
def test_numbers_to_classes(keys: list[int], default: dict[str, Any]) -> None:
    source = encoder(
        TensorProto.INT64, TensorProto.STRING, 2, keys_int64s=keys, values_strings=["p", "q", ""], **default
    )
    check_ml_down(source, np.array([0, 1, 2, 3, -1]), 1)


@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize(
    ("kind", "values"),
    [("int64s", [0, 1, 2]), ("int64s", [1, 2, 0]), ("int64s", [5, -7, 5]), ("floats", [0.5, 2, -1]),
     ("strings", ["x", "", "y"])],
)  # fmt: skip
def test_classes_to_values(kind: str, values: list[Any], default: bool) -> None:
    given = {SINGLE[kind]: DEFAULTS[kind]} if default else {}
    source = encoder(
        TensorProto.STRING,
        KINDS[kind][0],
        2,
        keys_strings=["p", "q", ""],
        **{f"values_{kind}": values},
        **given,
    )
    check_ml_down(source, np.array(["q", "p", "", "other"], object), 1)


@pytest.mark.parametrize(
    ("source", "target", "attributes"),
    [
        (TensorProto.INT64, TensorProto.STRING, {"keys_int64s": [1, 2], "values_strings": ["a", "b"]}),
        (TensorProto.INT64, TensorProto.INT64, {"keys_int64s": [0, 1], "values_int64s": [5, 6]}),
        (TensorProto.FLOAT, TensorProto.STRING, {"keys_floats": [0.0, 1.0], "values_strings": ["a", "b"]}),
    ],
)
def test_refusals_below_2(source: int, target: int, attributes: dict[str, Any]) -> None:
    with pytest.raises(CannotMigrate) as caught:
        check_ml_down(encoder(source, target, 2, **attributes), np.zeros(1), 1, expected=[])
    assert caught.value.code == "no-equal"
    assert "opset 2 of ai.onnx.ml can be reached" in str(caught.value)
