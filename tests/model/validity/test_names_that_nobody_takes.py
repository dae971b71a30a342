"""Names that neither onnx.checker nor ONNX Runtime takes: they are mended where one meaning is possible, else refused."""

from __future__ import annotations

import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto

import onnx_migrate
from onnx_migrate.errors import InvalidModel
from tests.harness import model

HEAD = '<ir_version: 8, opset_import: ["": 17, "l": 1]> '
OF = '<domain: "l", opset_import: ["": 17, "l": 1]> '
IF = HEAD + "g (float[4] x, bool c) => (float[4] y) { z = Neg (x) "
ELSE = "else_branch = s () => (float[4] r) { r = Abs (z) }> }"
LOOP = HEAD + "g (float[4] x) => (float[4] y) <int64 n = {3}> { z = Neg (x) "

MENDED = {
    "branch returns a node's value": (IF + f"y = If (c) <then_branch = t () => (float[4] z) {{ }}, {ELSE}", "output-not-own"),
    "branch returns an input": (IF + f"y = If (c) <then_branch = t () => (float[4] x) {{ }}, {ELSE}", "output-not-own"),
    "branch of a branch": (
        IF + "y = If (c) <then_branch = t () => (float[4] q) { q = If (c) <then_branch = u () => (float[4] z) { },"
        f" else_branch = v () => (float[4] p) {{ p = Exp (z) }}> }}, {ELSE}",
        "output-not-own",
    ),
    "Loop returns a value around it": (
        LOOP + 'y = Loop (n, "", x) <body = b (int64 i, bool k, float[4] p) => (bool o, float[4] z) { o = Identity (k) }> }',
        "output-not-own",
    ),
    "Scan returns a value around it": (
        HEAD + "g (float[3,4] x, float[4] s) => (float[4] f, float[3,4] y) { z = Neg (s)"
        " f, y = Scan <num_scan_inputs = 1, body = b (float[4] p, float[4] e) => (float[4] o, float[4] z)"
        " { o = Add (p, e) }> (s, x) }",
        "output-not-own",
    ),
    "function returns an input": (
        HEAD + "g (float[4] x) => (float[4] y) { y = l.f (x) }" + OF + "f (a) => (a) { }",
        "output-not-own",
    ),
    "function returns a value twice": (
        HEAD + "g (float[4] x) => (float[4] y) { t, u = l.f (x) y = Add (t, u) }" + OF + "f (a) => (b, b) { b = Exp (a) }",
        "output-not-own",
    ),
    "uncalled function returns an input": (
        HEAD + "g (float[4] x) => (float[4] y) { y = Abs (x) }" + OF + "f (a) => (a) { }",
        "output-not-own",
    ),
    "branch of a function": (
        HEAD + "g (float[4] x, bool c) => (float[4] y) { y = l.f (x, c) }" + OF
        + f"f (a, c) => (b) {{ z = Neg (a) b = If (c) <then_branch = t () => (float[4] z) {{ }}, {ELSE}",
        "output-not-own",
    ),
    "branch shadows a value": (
        IF + f"y = If (c) <then_branch = t () => (float[4] q) {{ w = Exp (z) z = Abs (x) q = Add (z, w) }}, {ELSE}",
        "shadowed-name",
    ),
    "branch shadows what its own branch reads": (
        IF + "y = If (c) <then_branch = t () => (float[4] q) { z = Abs (x) q = If (c) <then_branch = u () => (float[4] p)"
        f" {{ p = Exp (z) }}, else_branch = v () => (float[4] w) {{ w = Neg (z) }}> }}, {ELSE}",
        "shadowed-name",
    ),
    "Loop shadows a value": (
        LOOP + 'y = Loop (n, "", x) <body = b (int64 i, bool k, float[4] p) => (bool o, float[4] z)'
        " { o = Identity (k) z = Exp (p) }> }",
        "shadowed-name",
    ),
    "unsorted branch": (
        IF + f"y = If (c) <then_branch = t () => (float[4] q) {{ q = Abs (w) w = Exp (z) }}, {ELSE}",
        "not-sorted",
    ),
    "unsorted function": (
        HEAD + "g (float[4] x) => (float[4] y) { y = l.f (x) }" + OF + "f (a) => (b) { b = Exp (c) c = Abs (a) }",
        "not-sorted",
    ),
    "TopK without values": (
        HEAD + 'g (float[4] x) => (int64[2] y) <int64[1] k = {2}> { "", y = TopK (x, k) }',
        "unnamed-output",
    ),
}  # fmt: skip

FINE = {
    "branch shadows by an initializer": IF
    + f"y = If (c) <then_branch = t () => (float[4] q) <float[4] z = {{1, 2, 3, 4}}> {{ q = Exp (z) }}, {ELSE}",
    "a later node has the name": HEAD
    + "g (float[4] x, bool c) => (float[4] y) { t = If (c) <then_branch = t () => (float[4] q) { z = Exp (x) q = Abs (z) },"
    " else_branch = s () => (float[4] r) { r = Abs (x) }> z = Neg (x) y = Add (t, z) }",
    "both branches have the name": HEAD
    + "g (float[4] x, bool c) => (float[4] y) { y = If (c) <then_branch = t () => (float[4] q) { q = Exp (x) },"
    " else_branch = s () => (float[4] q) { q = Abs (x) }> }",
    "input of a Loop has the name": HEAD
    + 'g (float[4] x) => (float[4] y) <int64 n = {3}> { y = Loop (n, "", x)'
    " <body = b (int64 i, bool k, float[4] x) => (bool k, float[4] p) { p = Exp (x) }> }",
    "graph returns its input": HEAD + "g (float[4] x) => (float[4] x, float[4] y) { y = Abs (x) }",
    "a branch returns a value twice": IF
    + "t, u = If (c) <then_branch = t () => (float[4] q, float[4] q) { q = Exp (z) },"
    " else_branch = s () => (float[4] r, float[4] o) { r = Abs (z) o = Neg (r) }> y = Add (t, u) }",
}


def loads(proto: ModelProto) -> bool:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        onnx.checker.check_model(proto)
        ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", MENDED)
def test_names_of_one_meaning_are_mended(name: str) -> None:
    text, code = MENDED[name]
    proto = model(text)
    assert not loads(proto)

    found = onnx_migrate.migrate(proto, verify="require", isolated=False)

    assert loads(found.model)
    evaluator = found.report.verification.evaluator
    assert evaluator.startswith("onnxruntime") or evaluator == "a comparison of the graphs"
    assert any(note.code == "mended" for note in found.report.notes)
    with pytest.raises(InvalidModel) as caught:
        onnx_migrate.migrate(proto, verify="off", strict=True)
    assert caught.value.code == code


@pytest.mark.parametrize("name", FINE)
def test_names_that_runtimes_take_stay(name: str) -> None:
    proto = model(FINE[name])
    assert loads(proto)

    found = onnx_migrate.migrate(proto, verify="off", simplify=False)

    assert not [note for note in found.report.notes if note.code == "mended"]


def test_a_shadowed_name_is_read_from_its_node_on() -> None:
    proto = model(MENDED["branch shadows a value"][0])

    found = onnx_migrate.migrate(proto, verify="off", simplify=False).model

    inner = next(item.g for node in found.graph.node for item in node.attribute if item.name == "then_branch")
    assert [(list(node.input), list(node.output)) for node in inner.node] == [
        (["z"], ["w"]),
        (["x"], ["z_1"]),
        (["z_1", "w"], ["q"]),
    ]


def test_a_name_with_two_meanings_is_refused() -> None:
    text = "y = If (c) <then_branch = t () => (float[4] z) { }, else_branch = s () => (float[4] r) { r = Abs (z) r = Exp (z) }> }"
    with pytest.raises(InvalidModel) as caught:
        onnx_migrate.migrate(model(IF + text), verify="off")
    assert caught.value.code == "not-ssa"
