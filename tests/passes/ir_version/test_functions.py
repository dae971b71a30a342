"""Functions without defaults and overloads: what cannot be written without them."""

from __future__ import annotations

import pytest

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.harness import model, random_feeds, run, same

NESTED = """<ir_version: 9, opset_import: ["": 13, "f": 1]> g (float[2,3] x) => (float[2,3] y)
{{ h = f.G {first} (x)  y = f.G <beta: float = 0.5> (h) }}
<domain: "f", opset_import: ["": 13]> F <alpha: float = 0.25> (a) => (b) {{ b = LeakyRelu <alpha: float = @alpha> (a) }}
<domain: "f", opset_import: ["f": 1]> G <beta> (a) => (b) {{ b = f.F <alpha: float = @beta> (a) }}"""


def test_an_attribute_that_is_always_handed_on() -> None:
    source = model(NESTED.format(first="<beta: float = 0.75>"))
    result = onnx_migrate.migrate(source, ir_version=8).model
    feeds = random_feeds(source)
    same(run(source, feeds), run(result, feeds), "defaults")


def test_a_default_that_holds_only_at_some_calls_is_refused() -> None:
    source = model(NESTED.format(first=""))
    with pytest.raises(CannotMigrate, match="'beta' at every call") as caught:
        onnx_migrate.migrate(source, ir_version=8)
    assert caught.value.code == "no-such-ir"
    assert str(caught.value.where) == "'b' (F) in function f:G"


def test_a_name_that_is_taken_is_not_given_to_an_overload() -> None:
    plain = model(NESTED.format(first="<beta: float = 0.75>"))
    source = model(plain)
    source.ir_version = 10
    source.functions[0].overload = source.functions[1].node[0].overload = "1"
    source.functions[1].name = "F_1"
    for node in source.graph.node:
        node.op_type = "F_1"
    # ONNX Runtime 1.31 does not find overloads that functions call.
    result = onnx_migrate.migrate(source, ir_version=9, verify=False).model

    assert [function.name for function in result.functions] == ["F_1_1", "F_1"]
    feeds = random_feeds(plain)
    same(run(plain, feeds), run(result, feeds), "overloads")
