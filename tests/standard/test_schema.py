"""Signatures are those of onnx.defs, and a violation is found where onnx's checker finds one."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest
from onnx import defs, helper

from onnx_migrate.standard import schema as schema_module
from onnx_migrate.standard.schema import (
    declare_operator,
    declared_operators,
    forget_schemas,
    is_onnx,
    newest_opset,
    schema_cache,
    schema_violation,
    signature,
    signature_at,
    versions,
)


@pytest.fixture(autouse=True)
def none_declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(schema_module, "_declared", {})
    yield
    monkeypatch.undo()
    forget_schemas()


def test_a_declared_operator_has_versions_and_takes_anything() -> None:
    assert (versions("com.example", "Gizmo"), newest_opset("com.example")) == ((), 0)

    declare_operator("Gizmo", 1, 4, domain="com.example")
    declare_operator("Gizmo", 3, domain="com.example")

    assert declared_operators() == {("com.example", "Gizmo"): (1, 3, 4)}
    assert (versions("com.example", "Gizmo"), newest_opset("com.example")) == ((1, 3, 4), 4)
    form = signature_at("com.example", "Gizmo", 2)
    assert form is not None
    assert (form.since_version, form.unchecked, form.min_inputs) == (1, True, 0)
    assert signature_at("com.example", "Gizmo", 4) is not None


@pytest.mark.parametrize(
    ("found", "domain"),
    [((1,), ""), ((1,), "ai.onnx"), ((1,), "ai.onnx.ml"), ((), "com.example"), ((0, 1), "com.example")],
)
def test_what_cannot_be_declared(found: tuple[int, ...], domain: str) -> None:
    with pytest.raises(ValueError, match=r"standard's|needs the versions"):
        declare_operator("Gizmo", *found, domain=domain)
    assert not declared_operators()


def test_answers_are_kept_until_another_operator_is_known() -> None:
    asked = []

    @schema_cache
    def answer(name: str) -> str:
        asked.append(name)
        return name

    answer("a")
    answer("a")
    declare_operator("Gizmo", 1, domain="com.example")
    answer("a")
    assert asked == ["a", "a"]


@pytest.mark.parametrize("operator", ["Relu", "Clip", "Resize", "BatchNormalization", "Upsample"])
def test_the_signature_at_an_opset_is_the_one_that_onnx_uses(operator: str) -> None:
    for opset in range(versions("", operator)[0], newest_opset() + 1):
        schema = defs.get_schema(operator, opset, "")
        form = signature_at("", operator, opset)

        assert form is not None
        assert (form.since_version, form.deprecated) == (schema.since_version, schema.deprecated)
        assert (form.min_inputs, form.max_outputs) == (schema.min_input, schema.max_output)
        assert form.attributes.keys() == schema.attributes.keys()


def test_versions_ascend_and_an_older_opset_has_no_signature() -> None:
    assert versions("ai.onnx", "Softmax") == (1, 11, 13)
    assert signature_at("", "Einsum", 11) is None
    assert signature_at("", "NoSuchOperator", 17) is None
    assert versions("", "NoSuchOperator") == ()
    with pytest.raises(ValueError, match="not in tuple"):
        signature("", "Softmax", 12)


def test_the_domain_of_the_standard_has_two_spellings() -> None:
    assert is_onnx("")
    assert is_onnx("ai.onnx")
    assert not is_onnx("ai.onnx.ml")
    assert signature_at("ai.onnx", "Relu", 14) is signature_at("ai.onnx", "Relu", 14)
    assert newest_opset() == defs.onnx_opset_version()
    assert newest_opset("no.such.domain") == 0


def test_experimental_operators_have_a_deprecated_version_where_they_were_removed() -> None:
    assert [form.deprecated for form in (signature("", "Affine", 1), signature("", "Affine", 10))] == [
        False,
        True,
    ]
    # The standard's own ThresholdedRelu came with the opset that removed the experimental one.
    assert versions("", "ThresholdedRelu")[:2] == (1, 10)
    assert not signature("", "ThresholdedRelu", 10).deprecated


CASES = [
    (helper.make_node("Relu", ["x"], ["y"]), 14, None),
    (helper.make_node("Relu", ["x", "z"], ["y"]), 14, "has 2 inputs, but Relu-14 takes 1"),
    (helper.make_node("Relu", ["x", ""], ["y"]), 14, "has 2 inputs, but Relu-14 takes 1"),
    (helper.make_node("Clip", ["x", "", "m"], ["y"]), 13, None),
    (helper.make_node("Add", ["", "x"], ["y"]), 14, "omits input 0, which Add-14 requires"),
    (helper.make_node("Concat", [], ["y"], axis=0), 13, "has 0 inputs, but Concat-13 takes 1 or more"),
    (helper.make_node("Relu", ["x"], ["y", "z"]), 14, "has 2 outputs, but Relu-14 has 1"),
    (helper.make_node("Relu", ["x"], ["y"], slope=1.0), 14, "has an attribute 'slope', which Relu-14 does not have"),
    (
        helper.make_node("Softmax", ["x"], ["y"], axis=1.0),
        13,
        "has attribute 'axis' of type FLOAT, but Softmax-13 takes INT",
    ),
    (helper.make_node("Concat", ["x"], ["y"]), 13, "lacks attribute 'axis', which Concat-13 requires"),
    (helper.make_node("Upsample", ["x", "s"], ["y"]), 10, "Upsample was removed from the standard in version 10"),
]  # fmt: skip


@pytest.mark.parametrize(("node", "opset", "message"), CASES, ids=[str(message) for _, _, message in CASES])
def test_a_violation_is_named_and_onnx_refuses_the_same_nodes(
    node: onnx.NodeProto, opset: int, message: str | None
) -> None:
    form = signature_at("", node.op_type, opset)
    assert form is not None

    assert schema_violation(node, form) == message

    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = 8, {"": opset}
    if message is None:
        onnx.checker.check_node(node, context)
    else:
        with pytest.raises(onnx.checker.ValidationError):
            onnx.checker.check_node(node, context)


def test_a_constant_has_one_value() -> None:
    for opset, count in ((11, 0), (13, 0), (13, 2)):
        form = signature_at("", "Constant", opset)
        node = helper.make_node(
            "Constant", [], ["y"], **dict([("value_int", 1), ("value_float", 1.0)][:count])
        )
        assert form is not None
        assert f"has {count} attributes, and a Constant has exactly one" in str(schema_violation(node, form))
