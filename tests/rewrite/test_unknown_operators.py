"""Erfc, which tf2onnx writes and the standard has not, becomes 1 - Erf in every body, type and opset that has Erf."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_migrate
from onnx_migrate.errors import CannotMigrate, MigrateError
from tests.harness import model

MODELS = {
    "main graph": "13 (float[5] x) => (float[5] y) { y = Erfc (x) }",
    "behind a node": "13 (float[5] x) => (float[5] y) { a = Identity (x) y = Erfc (a) }",
    "opset 9": "9 (float[5] x) => (float[5] y) { y = Erfc (x) }",
    "branch": "13 (float[5] x, bool c) => (float[5] y) { y = If (c) <then_branch = t () => (float[5] p) { p = Erfc (x) },"
    " else_branch = e () => (float[5] q) { q = Erfc (x) }> }",
    "function": '<ir_version: 8, opset_import: ["": 13, "l": 1]> g (float[5] x) => (float[5] y) { y = l.f (x) }'
    ' <domain: "l", opset_import: ["": 13]> f (a) => (b) { b = Erfc (a) }',
}


@pytest.mark.parametrize("name", MODELS)
def test_erfc_is_one_minus_erf(name: str) -> None:
    proto = model(MODELS[name])

    found = onnx_migrate.migrate(proto, opset=17, verify="require", isolated=False)

    assert any(note.code == "mended" and "Erfc" in note.message for note in found.report.notes)
    x = np.array([-3, -0.5, 0, 0.5, 3], np.float32)
    session = ort.InferenceSession(found.model.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {"x": x, "c": np.array(True)}
    (y,) = session.run(None, {item.name: feed[item.name] for item in session.get_inputs()})
    np.testing.assert_allclose(y, [math.erfc(value) for value in x], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{"strict": True}, {}])
def test_erfc_is_refused_where_nothing_says_what_it_is(options: dict[str, bool]) -> None:
    proto = model(MODELS["main graph"])
    if not options:
        proto.opset_import[0].version = 8  # there is no Erf
    with pytest.raises(CannotMigrate) as caught:
        onnx_migrate.migrate(proto, **options)
    assert caught.value.code == "unknown-operator"


def test_other_unknown_operators_are_refused() -> None:
    proto = model(MODELS["main graph"])
    proto.graph.node[0].op_type = "Erfd"
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(proto)
    assert caught.value.code == "unknown-operator"


def test_a_function_of_that_name_is_called() -> None:
    text = '<ir_version: 8, opset_import: ["": 13, "l": 1]> g (float[5] x) => (float[5] y) { y = l.Erfc (x) }'
    proto = model(text + ' <domain: "l", opset_import: ["": 13]> Erfc (a) => (b) { b = Erf (a) }')

    found = onnx_migrate.migrate(proto, verify="off")

    assert [node.op_type for node in found.model.graph.node] == ["Erfc"]
    assert isinstance(found.model, onnx.ModelProto)
