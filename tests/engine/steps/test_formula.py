"""Formulas: their signatures are the schemas; what they return takes the place of the node, and computes the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs

from onnx_migrate.engine.steps import decompose
from onnx_migrate.engine.steps import formula as registry
from onnx_migrate.engine.steps.formula import Formula, Op, Value, formula, formulas
from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.unlisted_operators import RUNTIME_OPERATORS
from tests.harness import model, run
from tests.steps import check_written_out, operators, write_out
from tests.support.skips import Elsewhere, skip

steps(Direction.WITHOUT)  # loads all


def schemas(item: Formula) -> list[Any]:
    """Return the schemas of the versions that a formula stands for, as far as the installed onnx knows them."""
    known = [
        schema
        for schema in defs.get_all_schemas_with_history()
        if (schema.domain, schema.name) == (item.domain, item.operator)
    ]
    exact = [schema for schema in known if schema.since_version == item.since]
    return exact if item.since > 7 and not item.without else known


OF_RUNTIME = {item.name for item in RUNTIME_OPERATORS}
STANDARD = [item for item in formulas() if not item.domain and item.operator not in OF_RUNTIME]
"""The formulas of operators whose schemas onnx has."""


@pytest.mark.parametrize("item", STANDARD, ids=lambda item: f"{item.operator}-{item.since}")
def test_the_parameters_of_a_formula_are_the_inputs_and_attributes_of_its_schema(item: Formula) -> None:
    known = schemas(item)
    if not known:
        skip("this onnx knows no version of the operator", Elsewhere.NEWEST)
    if not item.variadic:
        assert len(item.inputs) == max(len(schema.inputs) for schema in known)
    assert item.since in {1, *(schema.since_version for schema in known)}
    attributes: dict[str, Any] = {}
    for schema in known:
        attributes.update(schema.attributes)
    unknown = set(item.attributes) - set(attributes)
    assert not unknown, f"{item.operator} has no attribute {unknown}; it has {sorted(attributes)}"


class Trial:
    """Writes a Dropout, or another operator, by a function that is a formula for one test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def use(self, function: Callable[..., Any], operator: str, domain: str = "") -> None:
        function.__doc__ = "It is what the test says.\n\nWhat changes: a test.\n\nWhy equal: it is tested."
        self.adapt = adapt = registry._adapter(registry._formula(domain, operator, 1, function, without=True))
        found = Step(Direction.WITHOUT, domain, operator, adapt=adapt, reason="for the test")
        self.monkeypatch.setattr(
            decompose,
            "decomposition_of",
            lambda of, name: found if (of, name) == (domain, operator) else None,
        )

    @contextmanager
    def adapted(self, proto: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, LoweringRewriter]]:
        """Apply the formula to the first node, and give what it wrote."""
        (scope,) = scopes(proto, Weights(), result_ir_version=proto.ir_version)
        node = proto.graph.node[0]
        rw = LoweringRewriter(node, scope, 13, 13, Where(), ValueFacts(scope, Producers()))
        self.adapt(node, rw)
        yield node, rw


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Trial:
    return Trial(monkeypatch)


def unary(operator: str, opset: int = 13) -> str:
    return f"{opset} (float[2,3] x) => (float[2,3] y) {{ y = {operator} (x) }}"


def test_the_last_node_takes_the_place_of_the_node(trial: Trial) -> None:
    trial.use(lambda op, x: op.Sqrt(op.Sqrt(x * x)) ** 2, "Abs")
    source = model(unary("Abs"))
    source.graph.node[0].name, source.graph.node[0].doc_string = "size", "why"
    result = check_written_out(source, "Abs", rtol=1e-6)
    assert operators(result) == ["Mul", "Sqrt", "Sqrt", "Pow"]
    assert (result.graph.node[-1].name, result.graph.node[-1].doc_string) == ("size", "why")


def test_an_input_or_a_constant_becomes_an_identity(trial: Trial) -> None:
    trial.use(lambda op, x: x, "Identity")
    proto, _, _ = write_out(unary("Floor"), ["Ceil"])
    assert operators(proto) == ["Floor"]
    trial.use(lambda op, x: x, "Floor")
    proto, _, refused = write_out(unary("Floor"), ["Floor"])
    assert not refused
    assert operators(proto) == ["Identity"]
    trial.use(lambda op, x: op.constant(np.ones((2, 3), np.float32)), "Floor")
    proto, _, _ = write_out(unary("Floor"), ["Floor"])
    np.testing.assert_array_equal(run(proto, {"x": np.zeros((2, 3), np.float32)})[0], np.ones((2, 3)))


def test_several_outputs(trial: Trial) -> None:
    def top(op: Op, x: Value, k: Value, *, axis: int, largest: int) -> tuple[Value, Value]:
        best = op.ReduceMax(x, [axis])
        return best, op.Cast(best * 0, to=TensorProto.INT64)

    trial.use(top, "TopK")
    text = "13 (float[2,3] x) => (float[2,1] y, int64[2,1] at) <int64[1] k = {1}> { y, at = TopK (x, k) }"
    proto, _, refused = write_out(text, ["TopK"])
    assert not refused
    assert operators(proto) == ["ReduceMax", "Mul", "Cast"]
    x = np.float32([[3, 1, 2], [5, 4, 6]])
    best, zeros = run(proto, {"x": x})
    np.testing.assert_array_equal(best, [[3], [6]])
    np.testing.assert_array_equal(zeros, [[0], [0]])


def test_one_value_may_be_two_outputs(trial: Trial) -> None:
    def both(op: Op, x: Value, k: Value) -> tuple[Value, Value]:
        value = op.Cast(op.ReduceMax(x, [1]), to=TensorProto.INT64)
        return value.cast(TensorProto.FLOAT), value

    trial.use(both, "TopK")
    text = "13 (float[2,3] x) => (float[2,1] y, int64[2,1] at) <int64[1] k = {1}> { y, at = TopK (x, k) }"
    proto, _, _ = write_out(text, ["TopK"])
    assert operators(proto) == ["ReduceMax", "Cast", "Cast"]
    assert proto.graph.node[1].output[0] == "at" == proto.graph.node[2].input[0]


def test_an_output_that_is_read_must_be_given(trial: Trial) -> None:
    trial.use(lambda op, x, k: op.ReduceMax(x, [1]), "TopK")
    text = "13 (float[2,3] x) => (float[2,1] y, int64[2,1] at) <int64[1] k = {1}> { y, at = TopK (x, k) }"
    _, _, refused = write_out(text, ["TopK"])
    assert refused[0].code == "adapter-failed"


def test_what_follows_from_constants_is_computed(trial: Trial) -> None:
    def shifted(op: Op, x: Value) -> Value:
        half = op.constant(0.5, x)
        return x + (half + half) * op.constant(np.float32([1, 2, 3]))

    trial.use(shifted, "Floor")
    proto, _, _ = write_out(unary("Floor"), ["Floor"])
    assert operators(proto) == ["Add"]
    x = np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(run(proto, {"x": x})[0], [[1, 2, 3]] * 2)


@pytest.mark.parametrize("dtype", ["float", "double", "float16", "int32"])
def test_a_number_takes_the_type_of_its_partner(trial: Trial, dtype: str) -> None:
    trial.use(lambda op, x: 3 - x * 2 + x, "Identity")
    text = f"13 ({dtype}[4] x) => ({dtype}[4] y) {{ y = Identity (x) }}"
    proto, _, refused = write_out(text, ["Identity"])
    assert not refused
    given = np.arange(4).astype({"float": "f4", "double": "f8", "float16": "f2", "int32": "i4"}[dtype])
    (found,) = run(proto, {"x": given})
    assert found.dtype == given.dtype
    np.testing.assert_array_equal(found, 3 - given)


def test_an_index_is_int64(trial: Trial) -> None:
    trial.use(
        lambda op, x: op.Gather(x, 1, axis=0) + op.Unsqueeze(op.ReduceSum(x, [0, 1], keepdims=False), [0]),
        "Floor",
    )
    proto, _, refused = write_out(unary("Floor"), ["Floor"])
    assert not refused
    x = np.float32([[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(run(proto, {"x": x})[0], np.float32([18, 19, 20]))


def test_a_refusal_names_the_input_whose_type_is_unknown(trial: Trial) -> None:
    trial.use(lambda op, x: op.Exp(x) + 1, "Floor")
    proto = model(unary("Unknown", 13))
    proto.graph.node[0].domain = "other"
    proto.graph.node[0].output[0] = "mid"
    proto.graph.node.append(onnx.helper.make_node("Floor", ["mid"], ["y"]))
    proto.opset_import.append(onnx.helper.make_opsetid("other", 1))
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    _, _, refused = write_out(proto, ["Floor"])
    assert refused[0].code == "needs-type"
    assert "'mid'" in refused[0].reason


def test_values_are_not_compared_by_python() -> None:
    value = Value(None, array=np.float32([1]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="run time"):
        bool(value)
    with pytest.raises(TypeError, match="elements"):
        list(value)


def test_a_formula_of_another_domain_writes_standard_operators(trial: Trial) -> None:
    def fast_gelu(op: Op, x: Value, bias: Value | None) -> Value:
        x = x if bias is None else x + bias
        return x * 0.5 * (1 + op.Tanh(x * (x * x * 0.035677408136300125 + 0.7978845608028654)))

    trial.use(fast_gelu, "FastGelu", "com.microsoft")
    graph = model("13 (float[2,3] x, float[3] b) => (float[2,3] y) { y = Abs (x, b) }")
    graph.graph.node[0].op_type, graph.graph.node[0].domain = "FastGelu", "com.microsoft"
    graph.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    proto, _, refused = write_out(graph, ["FastGelu"])
    assert not refused
    x, b = np.float32([[-1, 0.5, 2], [0, 3, -4]]), np.float32([0.5, 0, 1])
    exact = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))(x + b)
    np.testing.assert_allclose(run(proto, {"x": x, "b": b})[0], exact, atol=2e-3)
    assert not any(node.domain for node in proto.graph.node)


def test_a_formula_needs_a_docstring_and_is_registered_once() -> None:
    with pytest.raises(ValueError, match="docstring"):
        formula("Acos", since=1)(lambda op, x: x)

    def softplus(op: Op, x: Value) -> Value:
        """It is nothing."""
        return x

    with pytest.raises(ValueError, match="registered twice"):
        formula("Softplus", since=1)(softplus)


def test_the_trial_fails_where_a_formula_is_wrong(trial: Trial) -> None:
    trial.use(lambda op, x: op.Relu(x), "Abs")
    with pytest.raises(AssertionError):
        check_written_out(unary("Abs"), "Abs")


def test_the_node_stays_itself_where_others_are_written_behind_it(trial: Trial) -> None:
    trial.use(lambda op, x: -op.itself(op.Neg(x), axis=None), "Softsign")
    source = model(unary("Softsign"))
    source.graph.node[0].name = "curve"
    proto = model(source)
    with trial.adapted(proto) as (node, rw):
        assert [item.op_type for item in rw.preceding] == ["Neg"]
        assert (node.name, node.op_type) == ("curve", "Softsign")
        assert [item.op_type for item in rw.following] == ["Neg"]
        assert rw.following[0].output == ["y"]
        assert node.output == rw.following[0].input


def test_a_quotient_of_integers_is_rounded_towards_0(trial: Trial) -> None:
    trial.use(
        lambda op, x: x + op.Div(op.constant([-7, 7, -6]), op.constant(2)).cast(TensorProto.FLOAT), "Floor"
    )
    proto, _, _ = write_out(unary("Floor"), ["Floor"])
    assert operators(proto) == ["Add"]
    expected = np.broadcast_to(np.array([-3, 3, -3], np.float32), (2, 3))
    np.testing.assert_array_equal(run(proto, {"x": np.zeros((2, 3), np.float32)})[0], expected)
