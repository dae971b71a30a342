"""Dims that are fixed, opened, or planned."""

from __future__ import annotations

from typing import Any

import onnx
import onnxruntime as ort
import pytest
from onnx_migrate.passes.input_dims import requested_dims

import onnx_migrate
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import UsageError, VerificationFailed
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.support.repairs import text

NET = """17 (float[N,3,H,W] x, float[N] z) => (float[N,3,h2,w2] y, float[N,M] v)
  <float[4] k = {1., 1., 2., 2.}, int64[2] m = {0, 1}> {
  y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , k)
  v = Reshape(z, m)
}"""


def shapes(fix: Any, source: str = NET) -> dict[str, Any]:
    migration = onnx_migrate.migrate(model(source), fix=fix, simplify=False)
    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"
    interface = Interface.of(migration.model)
    return {port.name: port.shape for port in (*interface.inputs, *interface.outputs)}


def test_a_symbol_becomes_a_number_everywhere() -> None:
    assert shapes("N=1") == {"x": (1, 3, "H", "W"), "z": (1,), "y": (1, 3, "h2", "w2"), "v": (1, 1)}


@pytest.mark.parametrize(
    "fix", ["x:1,3,8,6", {"x": [1, 3, 8, 6]}, {"N": 1, "H": 8, "W": 6}, ["N=1", "x:1,3,8,6"]]
)
def test_all_sizes_of_an_input_at_once(fix: Any) -> None:
    assert shapes(fix) == {"x": (1, 3, 8, 6), "z": (1,), "y": (1, 3, 16, 12), "v": (1, 1)}


@pytest.mark.parametrize(
    ("fix", "code"),
    [
        ("K=1", "unknown-symbol"),
        ("q:1", "no-such-input"),
        ("x:1,3", "no-such-axis"),
        ("x:1,4,8,8", "other-size"),
        (["N=1", "x:2,3,8,8"], "other-size"),
        ("x=", "usage"),
        ("x:a,b", "usage"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(fix: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        shapes(fix)
    assert caught.value.code == code


def test_fixing_a_dynamic_dim_restores_the_original() -> None:
    """A network with the batch fixed and simplified is made dynamic again, as it was."""
    fixed = onnx_migrate.migrate(model(NET), fix="x:1,3,8,6").model

    back = onnx_migrate.migrate(fixed, dynamic_batch=True)

    assert back.report.dynamic is not None
    assert back.report.dynamic.holds
    assert Interface.of(back.model).outputs[0].shape == ("N", 3, 16, 12)


def test_an_expression_of_a_symbol_becomes_its_value() -> None:
    text = "17 (float[N,4] x, int64[2] s) => (float[A,B] y) { y = Reshape(x, s) }"
    source = model(text)
    for dim, expression in zip(
        source.graph.output[0].type.tensor_type.shape.dim, ("2*N", "N + M"), strict=True
    ):
        dim.dim_param = expression
    migration = onnx_migrate.migrate(source, fix="N=3", simplify=False, verify=False)
    assert Interface.of(migration.model).outputs[0].shape == (6, "N + M")


OPEN_NET = "17 (float[1,2] x) => (float[1,2] y) { y = Relu(x) }"


def declare(value: onnx.ValueInfoProto, dims: list[Any]) -> None:
    for dim, given in zip(value.type.tensor_type.shape.dim, dims, strict=True):
        if isinstance(given, int):
            dim.dim_value = given
        else:
            dim.dim_param = given


@pytest.mark.parametrize("written", [["?", "?"], ["None", "None"], [-1, -1], [0, -1], ["-1", "?"]])
def test_each_unknown_dim_gets_a_name_of_its_own(written: list[Any]) -> None:
    source = model(OPEN_NET)
    for value in (*source.graph.input, *source.graph.output):
        declare(value, [1 if dim == 0 else dim for dim in written])
    declare(source.graph.input[0], written)
    result = make_pass("open_dims").run(Model(source), ChangeLog()).proto

    interface = Interface.of(result)
    assert interface.inputs[0].shape == ("x_dim_0", "x_dim_1")
    assert interface.outputs[0].shape in (("y_dim_0", "y_dim_1"), (1, "y_dim_1"))
    ort.InferenceSession(result.SerializeToString())


def test_names_and_sizes_are_kept() -> None:
    source = model(OPEN_NET)
    declare(source.graph.input[0], ["N", 2])
    result = make_pass("open_dims").run(Model(source), ChangeLog()).proto

    assert Interface.of(result).inputs[0].shape == ("N", 2)


def test_an_empty_output_stays_empty() -> None:
    source = model(OPEN_NET)
    declare(source.graph.output[0], [0, 2])

    result = make_pass("open_dims").run(Model(source), ChangeLog()).proto

    assert Interface.of(result).outputs[0].shape == (0, 2)


SOURCE = text("float[1,4] x", "float[1,4] y", "y = Relu(x)")


def test_a_request_that_can_be_read_once_serves_all_passes() -> None:
    log, request = ChangeLog(), iter(["x:N,4"])

    first = requested_dims(request, Model(model(SOURCE)), log)
    second = requested_dims(request, Model(model(SOURCE)), log)

    assert first.axes == {"x": {0: "N"}}
    assert second is first


def test_another_request_is_resolved_anew() -> None:
    log = ChangeLog()
    requested_dims("x:N,4", Model(model(SOURCE)), log)

    assert requested_dims("x:1,K", Model(model(SOURCE)), log).axes == {"x": {1: "K"}}
    assert requested_dims(None, Model(model(SOURCE)), log).is_empty


BRANCHES = """17 (float[N,4] x) => (float[M] y) <int64 zero = {0}, int64 one = {1}, int64[1] axes = {0}, int64[1] flat = {-1}> {
  s = Shape(x)  n = Gather(s, zero)  c = Equal(n, one)
  z = If(c) <then_branch = t () => (float[K] a) { a = Squeeze(x, axes) },
    else_branch = e () => (float[L] b) { b = Reshape(x, flat) }>
  y = Relu(z) }"""
"""A model of which ONNX Runtime refuses the then_branch, which is not taken, once N is 2."""


def test_a_model_that_no_longer_loads_with_fixed_dims_is_refused() -> None:
    with pytest.raises(VerificationFailed) as caught:
        onnx_migrate.migrate(model(BRANCHES), fix="N=2", simplify=False)
    assert caught.value.code == "does-not-load"
    assert "--no-control-flow" in caught.value.hint

    found = onnx_migrate.migrate(model(BRANCHES), fix="N=2", simplify=False, control_flow=False)
    assert found.report.verified
    assert "If" not in {node.op_type for node in found.model.graph.node}
    ort.InferenceSession(found.model.SerializeToString())


@pytest.mark.parametrize(
    "options", [{"opset": 18}, {"precision": "fp16"}, {"runtime": "onnxruntime==1.16"}], ids=str
)
@pytest.mark.parametrize("written", ["?", "None", "-1", "dynamic", -1])
def test_a_result_has_the_open_dims_that_the_model_has(written: Any, options: dict[str, Any]) -> None:
    source = model(OPEN_NET)
    for value in (*source.graph.input, *source.graph.output):
        declare(value, [written, written])

    result = onnx_migrate.migrate(source, isolated=False, **options)

    for name in ("input", "output"):
        assert [*getattr(result.model.graph, name)] == [*getattr(source.graph, name)]
    assert not [note for note in result.report.notes if note.code == "open-dims"]


@pytest.mark.parametrize(("given", "returned"), [("?", -1), (-1, "?"), (-1, "N"), (-1, 1)])
def test_each_open_dim_gets_its_own_name_or_number_back(given: Any, returned: Any) -> None:
    source = model(OPEN_NET)
    declare(source.graph.input[0], [given, 2])
    declare(source.graph.output[0], [returned, 2])

    result = onnx_migrate.migrate(source, opset=18, isolated=False)

    assert result.model.graph.input[0] == source.graph.input[0]
    assert result.model.graph.output[0] == source.graph.output[0] or returned == 1
    assert result.report.verified


@pytest.mark.parametrize("unnamed", [-1, "?"])
def test_a_batch_that_becomes_dynamic_gets_its_name_beside_open_dims(unnamed: Any) -> None:
    source = model(
        "17 (float[1,2] x, float[1,3] w) => (float[1,2] y, float[1,3] z) { y = Relu(x)  z = Relu(w) }"
    )
    for value in (*source.graph.input, *source.graph.output):
        declare(value, [1, unnamed])

    result = onnx_migrate.migrate(source, dynamic_batch=True, isolated=False)

    for value in (*result.model.graph.input, *result.model.graph.output):
        batch, length = value.type.tensor_type.shape.dim
        assert (batch.dim_param, length.dim_value or length.dim_param) == ("N", unnamed)
