"""Calls of functions are inlined, or refused with a reason."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.inlining import inline_functions
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.report.codes import CODES
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) { t = f.F (x)  y = f.G (t) }
<domain: "f", opset_import: ["": 17]> F (a) => (b) { b = Neg (a) }
<domain: "f", opset_import: ["": 13]> G (a) => (b) { b = Abs (a) }"""


def test_only_those_asked_for_are_inlined() -> None:
    source = Model(model(TEXT))
    assert inline_functions(source, {("f", "F", "")}) == 1
    assert [node.op_type for node in source.proto.graph.node] == ["Neg", "G"]


def test_a_function_of_another_opset_is_refused() -> None:
    with pytest.raises(
        CannotMigrate, match="function f:G: the function cannot be inlined: it uses opset 13"
    ) as caught:
        inline_functions(Model(model(TEXT)))
    assert caught.value.code == "cannot-inline" in CODES
    assert "--opset 17" in caught.value.hint
