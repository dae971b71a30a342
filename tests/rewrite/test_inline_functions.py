"""Calls of local functions written out, with equal numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.report.codes import CODES
from onnx_migrate.rewrite.inline_functions import inline_calls, inline_functions, other_opset
from tests.harness import model, random_feeds, reference, run, same

HEAD = '<ir_version: 10, opset_import: ["": 17, "f": 1]> g (float[2] x, bool c) => (float[2] y)'
CASES = {
    "names inside that are taken outside": """{ t = Neg (x)  u = f.F (t)  y = Add (t, u) }
        <domain: "f", opset_import: ["": 17]> F (a) => (b) { t = Exp (a)  u = Neg (t)  b = Sub (u, a) }""",
    "two calls": """{ t = f.F (x)  y = f.F (t) }
        <domain: "f", opset_import: ["": 17]> F (a) => (b) { t = Sin (a)  b = Add (t, a) }""",
    "functions that call functions": """{ y = f.G (x) }
        <domain: "f", opset_import: ["": 17, "f": 1]> G (a) => (b) { t = f.F (a)  b = f.F (t) }
        <domain: "f", opset_import: ["": 17]> F (a) => (b) { t = Sin (a)  b = Add (t, a) }""",
    "defaults, given values and values handed on": """{ t = f.G (x)  u = f.G <beta: float = 0.5> (x)  y = Add (t, u) }
        <domain: "f", opset_import: ["": 17, "f": 1]> G <beta: float = 0.125> (a) => (b) {
            t = f.F <alpha: float = @beta> (a)  u = f.F (a)  b = Mul (t, u) }
        <domain: "f", opset_import: ["": 17]> F <alpha: float = 0.25> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }""",
    "an attribute that is not given": """{ y = f.F (x) }
        <domain: "f", opset_import: ["": 17]> F <alpha> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }""",
    "inputs that are left out": """{ t = f.F (x)  u = f.F (t, t)  y = Add (t, u) }
        <domain: "f", opset_import: ["": 17]> F (a, m) => (b) { k = Constant <value_float = 0.5> ()  n = Identity (a)
            l = ReduceMin <keepdims = 0> (n)  b = Clip (a, l, k) }""",
    "outputs that are left out": """{ y = f.F (x) }
        <domain: "f", opset_import: ["": 17]> F (a) => (b, d) { b = Sin (a)  d = Cos (b) }""",
    "an output that is an input": """{ t, u = f.F (x)  y = Add (t, u) }
        <domain: "f", opset_import: ["": 17]> F (a) => (a, b) { b = Sin (a) }""",
    "a call in a branch": """{ t = Neg (x)
        y = If (c) <then_branch = th () => (float[2] p) { p = f.F (t) }, else_branch = el () => (float[2] q) { q = f.F (x) }> }
        <domain: "f", opset_import: ["": 17]> F (a) => (b) { t = Sin (a)  b = Add (t, a) }""",
    "a call in a branch, and one beside it": """{ t = f.F (x)
        y = If (c) <then_branch = th () => (float[2] p) { p = f.F (t) }, else_branch = el () => (float[2] q) { q = f.F (x) }> }
        <domain: "f", opset_import: ["": 17]> F (a) => (b) { t = Sin (a)  b = Add (t, a) }""",
    "a branch in a function": """{ t = Neg (x)  y = f.F <alpha: float = 0.5> (t, c) }
        <domain: "f", opset_import: ["": 17, "f": 1]> F <alpha> (a, c) => (b) { t = Sin (a)
            b = If (c) <then_branch = th () => (float[2] p) <float[2] w = {1, 2}> { u = LeakyRelu <alpha: float = @alpha> (t)
                                                                                  p = Mul (u, w) },
                        else_branch = el () => (float[2] p) { t2 = f.H (t)  p = Add (t2, a) }> }
        <domain: "f", opset_import: ["": 17]> H (a) => (b) { b = Cos (a) }""",
}


NOT_BY_OLD_RUNTIMES = {"outputs that are left out", "an output that is an input"}
"""ONNX Runtime 1.21 to 1.24 crash on the source."""


def named(proto: onnx.ModelProto) -> onnx.ModelProto:
    for nodes in (proto.graph.node, *(function.node for function in proto.functions)):
        for place, node in enumerate(nodes):
            node.name = f"n{place}"
    return proto


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("condition", [True, False])
def test_the_numbers_stay(case: str, condition: bool) -> None:
    source = named(model(HEAD + CASES[case]))
    onnx.checker.check_model(source)
    result = model(source)
    calls = inline_calls(result)

    assert calls
    assert not result.functions
    assert [entry.domain for entry in result.opset_import] == [""]
    onnx.checker.check_model(result)
    names = [node.name for node in result.graph.node]
    assert len(set(names)) == len(names)
    feeds = {**random_feeds(source), "c": np.array(condition)}
    if case in NOT_BY_OLD_RUNTIMES:
        same(reference(source, feeds, None), run(result, feeds), case, rtol=1e-6)
    else:
        same(run(source, feeds), run(result, feeds), case)


def test_a_graph_that_a_call_gives_reads_the_names_of_the_caller() -> None:
    source = model(
        HEAD
        + """{ t = Neg (x)  y = f.F <body = th () => (float[2] p) { p = Add (t, x) }> (x, c) }
        <domain: "f", opset_import: ["": 17]> F <body> (t, c) => (b) {
            b = If (c) <then_branch: graph = @body, else_branch: graph = @body> }"""
    )
    inline_calls(source)
    feeds = {**random_feeds(source), "c": np.array(True)}
    same([feeds["x"] * 0], run(source, feeds), "given graph")


def test_some_functions_stay() -> None:
    source = model(HEAD + CASES["functions that call functions"])
    feeds = random_feeds(source)
    expected = run(source, feeds)
    assert inline_calls(source, {("f", "F", "")}) == 2

    assert [function.name for function in source.functions] == ["G"]
    assert {entry.domain for entry in source.functions[0].opset_import} == {""}
    assert {entry.domain for entry in source.opset_import} == {"", "f"}
    same(expected, run(source, feeds), "some")


def test_imports_of_a_function_are_added() -> None:
    source = model("""<ir_version: 8, opset_import: ["f": 1]> g (float[2] x) => (float[2] y) { y = f.F (x) }
    <domain: "f", opset_import: ["": 17]> F (a) => (b) { b = Sin (a) }""")
    feeds = random_feeds(source)
    expected = [np.sin(feeds["x"])]
    inline_calls(source)

    assert [(entry.domain, entry.version) for entry in source.opset_import] == [("", 17)]
    np.testing.assert_allclose(run(source, feeds)[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize(("opset", "other"), [(17, None), (13, ("", 13, 17))])
def test_a_function_of_another_opset(opset: int, other: tuple[str, int, int] | None) -> None:
    source = model(HEAD + CASES["two calls"])
    source.functions[0].opset_import[0].version = opset
    assert other_opset(source, source.functions[0]) == other
    source.functions[0].opset_import.add(domain="unused", version=3)
    source.opset_import.add(domain="unused", version=1)
    assert other_opset(source, source.functions[0]) == other


@pytest.mark.long
def test_many_calls_take_linear_time() -> None:
    """Names are found without starting from 1 each time."""
    source = model(HEAD + CASES["two calls"])
    del source.graph.node[:]
    for place in range(20_000):
        source.graph.node.add(
            op_type="F", domain="f", input=[f"v{place}" if place else "x"], output=[f"v{place + 1}"]
        )
    source.graph.output[0].name = "v20000"
    assert inline_calls(source) == 20_000
    assert source.graph.node[-2].output[0] == "t_20000"


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
