"""Element types that an older version does not take: Casts that keep the bits, or a refusal."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from onnx_migrate.engine.steps.lost_types import casts_to, lost_types
from onnx_migrate.engine.steps.registry import step_at
from onnx_migrate.engine.steps.step import Direction
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import model
from tests.steps import check_down, lower, refuses


def text(operator: str, opset: int, dtype: str, inputs: int = 2) -> str:
    names = ["a", "b"][:inputs]
    ports = ", ".join(f"{dtype}[3,4] {name}" for name in names)
    return f"{opset} ({ports}) => ({dtype}[3,4] y) {{ y = {operator}({', '.join(names)}) }}"


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16"])
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_small_integers_compute_in_wider_ones_and_wrap_around(operator: str, dtype: str) -> None:
    check_down(text(operator, 14, dtype), 13, 9)


def test_a_step_that_loses_no_type_is_passed_over() -> None:
    step = step_at(Direction.DOWN, "", "Conv", 11)
    assert step is not None
    assert not lost_types(step)
    lost = step_at(Direction.DOWN, "", "Add", 14)
    assert lost is not None
    assert lost_types(lost) >= {"tensor(int8)", "tensor(uint16)"}


def test_a_rounded_type_is_equivalent_and_not_exact() -> None:
    source = model(text("Sin", 22, "bfloat16", 1))

    _, log = lower(source, 21)

    assert [change.exactness for change in log.changes] == [Exactness.EQUIVALENT]


@pytest.mark.parametrize(
    ("operator", "opset", "dtype", "target", "code"),
    [
        ("Add", 14, "bfloat16", 12, "no-such-type"),
        ("Sin", 22, "bfloat16", 12, "no-such-type"),
        ("MatMul", 13, "int64", 8, "no-equal"),
    ],
)
def test_refusals(operator: str, opset: int, dtype: str, target: int, code: str) -> None:
    source = text(operator, opset, dtype, 1 if operator == "Sin" else 2)
    if operator == "MatMul":
        source = source.replace("int64[3,4] b", "int64[4,4] b")
    refuses(code, lower, source, target)


@pytest.mark.parametrize(
    ("call", "kind", "taken", "wide", "exactness"),
    [
        ("Max (x, x)", "int8", {TensorProto.INT32, TensorProto.FLOAT}, TensorProto.INT32, Exactness.EXACT),
        ("Max (x, x)", "int8", {TensorProto.FLOAT}, TensorProto.FLOAT, Exactness.EXACT),
        ("Max (x, x)", "int64", {TensorProto.INT32, TensorProto.FLOAT}, None, None),
        ("MatMul (x, x)", "int32", {TensorProto.FLOAT}, None, None),
        ("Where (c, x, x)", "bool", {TensorProto.INT32}, None, None),
    ],
)
def test_casts_to_a_type_that_a_target_takes(
    call: str, kind: str, taken: set[int], wide: int | None, exactness: Exactness | None
) -> None:
    proto = model(f"17 ({kind}[2,2] x, bool[2,2] c) => ({kind}[2,2] y) {{ y = {call} }}")
    (scope,) = scopes(proto, Model(proto).weights, result_ir_version=8)
    found = casts_to(taken, proto.graph.node[0], scope, 17)

    assert (found.wide if found else None) == wide
    assert (found.exactness if found else None) == exactness
    if found:
        assert (found.inputs, found.outputs) == ([0, 1], [0])
