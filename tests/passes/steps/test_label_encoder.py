"""LabelEncoder of ai.onnx.ml up and down."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import Exactness
from tests.passes.steps.forests import check_ml, check_ml_down, lift_ml, lower_ml, one_node
from tests.steps import refuses

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
        refuses("no-equal", lower_ml, source, 3)


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
    assert "opset 2 of ai.onnx.ml can be reached" in caught.value.with_hint


UP_KINDS = {"strings": TensorProto.STRING, "int64s": TensorProto.INT64, "floats": TensorProto.FLOAT}
CLASSES = ["cat", "dog", "", "dog", "bird"]
NUMBERS = np.array([[0, 1, 2], [3, 4, 5], [-1, 99, 1]])
WORDS = np.array([["cat", "dog", ""], ["bird", "horse", "Dog"]], object)


def encoder_up(source: str, target: str, *, version: int, **attributes: Any) -> onnx.ModelProto:
    return one_node(
        "LabelEncoder",
        attributes,
        {"y": (UP_KINDS[target], ["N", "M"])},
        version=version,
        dtype=UP_KINDS[source],
        shape=("N", "M"),
    )


@pytest.mark.parametrize("to", [2, 4])
@pytest.mark.parametrize(
    "default",
    [{}, {"default_int64": 3}, {"default_string": "none"}, {"default_string": "none", "default_int64": 3}],
)
def test_integers_to_classes(default: dict[str, Any], to: int) -> None:
    check_ml(encoder_up("int64s", "strings", version=1, classes_strings=CLASSES, **default), to, NUMBERS)


@pytest.mark.parametrize("to", [2, 4])
@pytest.mark.parametrize(
    "default",
    [{}, {"default_int64": 7}, {"default_string": "none"}, {"default_string": "none", "default_int64": 7}],
)
def test_classes_to_integers_where_the_last_of_equal_classes_counts(default: dict[str, Any], to: int) -> None:
    source = encoder_up("strings", "int64s", version=1, classes_strings=CLASSES, **default)
    result = check_ml(source, to, WORDS)
    assert {attribute.name for attribute in result.graph.node[0].attribute} >= {
        "keys_strings",
        "values_int64s",
    }


@pytest.mark.parametrize(
    ("source", "target", "keys", "values", "x"),
    [
        ("strings", "int64s", ["a", "b", "a"], [1, 2, 3], np.array([["a", "b", "c"]], object)),
        ("int64s", "strings", [1, 2, 1], ["x", "y", "z"], np.array([[1, 2, 3]])),
        ("floats", "strings", [1.5, 2.5, 1.5], ["x", "y", "z"], np.array([[1.5, 2.5, 3.5]], np.float32)),
        ("strings", "floats", ["a", "b", "a"], [1.5, 2.5, 3.5], np.array([["a", "b", "c"]], object)),
    ],
)
def test_of_equal_keys_the_first_is_kept(source: str, target: str, keys: Any, values: Any, x: Any) -> None:
    attributes = {f"keys_{source}": keys, f"values_{target}": values}
    result = check_ml(encoder_up(source, target, version=2, **attributes), 4, x)
    rows = {attribute.name: attribute for attribute in result.graph.node[0].attribute}[f"keys_{source}"]
    assert len(rows.strings or rows.ints or rows.floats) == 2


@pytest.mark.parametrize("version", [2, 3])
def test_without_equal_keys_the_node_is_unchanged(version: int) -> None:
    source = encoder_up(
        "strings", "int64s", version=version, keys_strings=["a", "b"], values_int64s=[5, 6], default_int64=9
    )
    result = check_ml(source, 4, np.array([["a", "b", "c"]], object), exactness=None)
    assert list(result.graph.node) == list(source.graph.node)


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({}, "invalid-node"),
        ({"classes_strings": ["a"], "default_string": "b", "default_int64": 1}, "needs-type"),
    ],
)
def test_refused(attributes: dict[str, Any], code: str) -> None:
    source = encoder_up("strings", "int64s", version=1, **attributes)
    source.graph.node[0].input[0] = "unknown"
    source.graph.node.insert(0, onnx.helper.make_node("Custom", ["x"], ["unknown"], domain="org.example"))
    refuses(code, lift_ml, source, 2)


@pytest.mark.parametrize(
    ("default", "values"), [("default_string", "values_strings"), ("default_int64", "values_int64s")]
)
def test_for_an_unknown_type_the_direction_follows_from_the_default(default: str, values: str) -> None:
    """As the text of version 1 says."""
    given: Any = {default: "b" if default == "default_string" else 1}
    source = encoder_up("strings", "int64s", version=1, classes_strings=["a"], **given)
    source.graph.node[0].input[0] = "unknown"
    source.graph.node.insert(0, onnx.helper.make_node("Custom", ["x"], ["unknown"], domain="org.example"))
    source.opset_import.append(onnx.helper.make_opsetid("org.example", 1))
    del source.graph.output[:]
    result, log = lift_ml(source, 2, typed=False)
    assert values in [attribute.name for attribute in result.graph.node[1].attribute]
    assert log.changes[0].exactness is Exactness.EXACT


def test_keys_without_values_are_refused() -> None:
    source = encoder_up("strings", "int64s", version=2, keys_strings=["a"])
    with pytest.raises(CannotMigrate, match="no values"):
        lift_ml(source, 4)
