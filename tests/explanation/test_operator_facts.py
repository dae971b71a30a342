from __future__ import annotations

import pytest

from onnx_migrate.explanation.operator_facts import attribute_facts, canonical, operator_facts, operator_names


@pytest.mark.parametrize(
    ("name", "opset", "known"),
    [
        ("Range", 10, "op_newer"),
        ("Range", 11, "op_in_opset"),
        ("LayerNormalization", 16, "op_newer"),
        ("Upsample", 11, "op_gone"),
        ("Upsample", 9, "op_in_opset"),
        ("ConstantFill", 8, "op_experimental"),
        ("ATen", 9, "op_of_torch"),
        ("MeanVarianceNormalization", 13, "op_in_opset"),
        ("Scaler", 3, "op_in_other_domain"),
        ("SkipLayerNormalization", 17, "op_contributed"),
        ("SimplifiedLayerNormalization", 17, "op_contributed"),
        ("FooBar", 17, "op_unknown"),
    ],
)
def test_operators_are_told_apart(name: str, opset: int, known: str) -> None:
    facts = operator_facts(name, opset)
    assert known in facts
    assert name in facts["op_history"]
    kinds = {"op_newer", "op_in_opset", "op_gone", "op_in_other_domain", "op_contributed", "op_unknown"}
    assert kinds & set(facts) <= {known}


def test_the_first_and_last_opset() -> None:
    assert operator_facts("range", 10)["op"] == "Range"
    assert operator_facts("Range", 10)["op_since"] == "11"
    assert operator_facts("Upsample", 11)["op_last"] == "9"


def test_attributes_come_and_go() -> None:
    assert attribute_facts("ReduceMean", "axes", None) == {"attribute_last": "17", "attribute_gone": "18"}
    assert attribute_facts("DequantizeLinear", "block_size", 19) == {"attribute_since": "21"}
    assert attribute_facts("Relu", "foo", None) == {}


def test_names_in_any_spelling() -> None:
    assert canonical("ai.onnx.ml.scaler") == ("ai.onnx.ml", "Scaler")
    assert canonical("com.microsoft:Resize") is None
    assert operator_names()["resize"] == (("", "Resize"),)
