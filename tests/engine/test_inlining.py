"""Functions inlined at their calls."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.inlining import inline_functions
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from tests.harness import model, random_feeds, run, same

SOURCE = """<ir_version: 8, opset_import: ["":17, "local":1]>
g (float[2,3] x) => (float[2,3] y) { a = local.First(x)  y = local.Second(a) }
<domain: "local", opset_import: ["":17]> First (a) => (b) { c = Relu(a)  b = Neg(c) }
<domain: "local", opset_import: ["":17]> Second (a) => (b) { b = Abs(a) }"""


def test_only_the_functions_named_are_inlined() -> None:
    source = model(SOURCE)

    result = inline_functions(Model(source), {("local", "First", "")}).proto

    assert [function.name for function in result.functions] == ["Second"]
    feeds = random_feeds(source)
    same(run(source, feeds), run(result, feeds), "inlined")


def test_a_function_of_another_opset_is_refused_if_it_stays() -> None:
    source = model(SOURCE)
    source.functions[0].opset_import[0].version = 11

    with pytest.raises(CannotMigrate) as caught:
        inline_functions(Model(source), {("local", "First", "")})
    assert caught.value.code == "cannot-inline"
