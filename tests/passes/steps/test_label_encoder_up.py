"""LabelEncoder of ai.onnx.ml 1, 2 and 4."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import Exactness
from tests.passes.steps.forests import check_ml, lift_ml, one_node

KINDS = {"strings": TensorProto.STRING, "int64s": TensorProto.INT64, "floats": TensorProto.FLOAT}
CLASSES = ["cat", "dog", "", "dog", "bird"]
NUMBERS = np.array([[0, 1, 2], [3, 4, 5], [-1, 99, 1]])
WORDS = np.array([["cat", "dog", ""], ["bird", "horse", "Dog"]], object)


def encoder(source: str, target: str, *, version: int, **attributes: Any) -> onnx.ModelProto:
    return one_node(
        "LabelEncoder",
        attributes,
        {"y": (KINDS[target], ["N", "M"])},
        version=version,
        dtype=KINDS[source],
        shape=("N", "M"),
    )


@pytest.mark.parametrize("to", [2, 4])
@pytest.mark.parametrize(
    "default",
    [{}, {"default_int64": 3}, {"default_string": "none"}, {"default_string": "none", "default_int64": 3}],
)
def test_integers_to_classes(default: dict[str, Any], to: int) -> None:
    check_ml(encoder("int64s", "strings", version=1, classes_strings=CLASSES, **default), to, NUMBERS)


@pytest.mark.parametrize("to", [2, 4])
@pytest.mark.parametrize(
    "default",
    [{}, {"default_int64": 7}, {"default_string": "none"}, {"default_string": "none", "default_int64": 7}],
)
def test_classes_to_integers_where_the_last_of_equal_classes_counts(default: dict[str, Any], to: int) -> None:
    source = encoder("strings", "int64s", version=1, classes_strings=CLASSES, **default)
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
    result = check_ml(encoder(source, target, version=2, **attributes), 4, x)
    rows = {attribute.name: attribute for attribute in result.graph.node[0].attribute}[f"keys_{source}"]
    assert len(rows.strings or rows.ints or rows.floats) == 2


@pytest.mark.parametrize("version", [2, 3])
def test_without_equal_keys_the_node_is_unchanged(version: int) -> None:
    source = encoder(
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
    source = encoder("strings", "int64s", version=1, **attributes)
    source.graph.node[0].input[0] = "unknown"
    source.graph.node.insert(0, onnx.helper.make_node("Custom", ["x"], ["unknown"], domain="org.example"))
    with pytest.raises(CannotMigrate) as caught:
        lift_ml(source, 2)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("default", "values"), [("default_string", "values_strings"), ("default_int64", "values_int64s")]
)
def test_for_an_unknown_type_the_direction_follows_from_the_default(default: str, values: str) -> None:
    """As the text of version 1 says."""
    given: Any = {default: "b" if default == "default_string" else 1}
    source = encoder("strings", "int64s", version=1, classes_strings=["a"], **given)
    source.graph.node[0].input[0] = "unknown"
    source.graph.node.insert(0, onnx.helper.make_node("Custom", ["x"], ["unknown"], domain="org.example"))
    source.opset_import.append(onnx.helper.make_opsetid("org.example", 1))
    del source.graph.output[:]
    result, log = lift_ml(source, 2, typed=False)
    assert values in [attribute.name for attribute in result.graph.node[1].attribute]
    assert log.changes[0].exactness is Exactness.EXACT


def test_keys_without_values_are_refused() -> None:
    source = encoder("strings", "int64s", version=2, keys_strings=["a"])
    with pytest.raises(CannotMigrate, match="no values"):
        lift_ml(source, 4)
