"""Functions inlined at their calls, or refused with a reason."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.inlining import inline_functions
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.report.codes import CODES
from tests.harness import model, random_feeds, run, same

SOURCE = """<ir_version: 8, opset_import: ["":17, "local":1]>
g (float[2,3] x) => (float[2,3] y) { a = local.First(x)  y = local.Second(a) }
<domain: "local", opset_import: ["":17]> First (a) => (b) { c = Relu(a)  b = Neg(c) }
<domain: "local", opset_import: ["":17]> Second (a) => (b) { b = Abs(a) }"""


def test_only_the_functions_named_are_inlined() -> None:
    source = model(SOURCE)

    result = inline_functions(Model(model(source)), {("local", "First", "")}).proto

    assert [function.name for function in result.functions] == ["Second"]
    feeds = random_feeds(source)
    same(run(source, feeds), run(result, feeds), "inlined")


def test_a_function_of_another_opset_is_refused() -> None:
    source = model(SOURCE)
    source.functions[0].opset_import[0].version = 11

    with pytest.raises(
        CannotMigrate, match=r"function local:First: .*uses opset 11 of ai.onnx, and the model opset 17"
    ) as caught:
        inline_functions(Model(source), {("local", "First", "")})
    assert caught.value.code == "cannot-inline" in CODES
    assert "--opset 17" in caught.value.hint
    inline_functions(Model(source), {("local", "Second", "")})
