"""The pass that writes what a target lacks with what it has, and refuses the rest by name."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import onnx_migrate
from onnx_migrate import files
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.targets import Targets
from tests.harness import model, random_feeds, run, same
from tests.steps import operators
from tests.support.targets import targets_of


def fit(source: onnx.ModelProto, targets: Targets, *tolerances: float) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return what the pass makes of a model, which must compute the same, and the log."""
    item, log = make_pass("fit_operators", targets=targets), ChangeLog()
    result = item.run(files.load(model(source)), log).proto
    feeds = random_feeds(source)
    same(run(source, feeds), run(result, feeds), "fitted", *tolerances)
    return result, log


LACKING = """name = "chip"
title = "Chip"
[[release]]
from = "8.5"
opset = 17
source = "its list of operators"
[[operator]]
names = ["LayerNormalization", "GridSample", "ReduceProd"]
lacking = true
until = "8.6"
"""
NORM = "17 (float[2,3,4] x, float[4] s) => (float[2,3,4] y) { n = LayerNormalization (x, s) y = Relu (n) }"


def test_an_operator_that_is_lacking_is_decomposed_at_its_opset() -> None:
    result, log = fit(model(NORM), targets_of(LACKING), 1e-5, 2e-6)

    assert "LayerNormalization" not in operators(result)
    assert result.opset_import[0].version == 17
    assert log.changes[0].reason.startswith("Chip 8.5 has no LayerNormalization: ")


def test_what_cannot_be_decomposed_is_refused_with_its_source_and_the_release_that_has_it() -> None:
    source = model(
        "17 (float[2,3] x) => (float[1,1] y, float[1,1] z) { y = ReduceProd (x) z = ReduceProd (x) }"
    )
    with pytest.raises(CannotMigrate) as error:
        fit(source, targets_of(LACKING))

    assert error.value.code == "target-lacks"
    assert error.value.with_hint == (
        "'y' (ReduceProd-13): Chip 8.5 has no ReduceProd, and onnx-migrate cannot write it with other operators;"
        " 1 more node refused: 'z' (ReduceProd) (read, not measured: its list of operators; Chip 8.6 has it)"
    )


def test_a_value_that_is_not_taken_is_written_otherwise_where_a_step_down_does() -> None:
    targets = targets_of(LACKING + '[[operator]]\nnames = ["Reshape"]\nattributes = { allowzero = [0] }\n')
    text = "17 (float[2,3] x) => (float[a,b] y) <int64[2] s = {%s}> { y = Reshape <allowzero = 1> (x, s) }"
    item, log = make_pass("fit_operators", targets=targets), ChangeLog()
    result = item.run(files.load(model(text % "3, 2")), log).proto

    assert [attribute.i for attribute in result.graph.node[0].attribute] in ([], [0])
    assert "takes Reshape with allowzero 0, not 1" in log.changes[0].reason
    same(
        run(model(text % "3, 2"), {"x": np.ones((2, 3), np.float32)}),
        run(result, {"x": np.ones((2, 3), np.float32)}),
        "reshaped",
    )


def test_functions_are_inlined_for_who_takes_none() -> None:
    targets = targets_of("[[release]]\nopset = 17\nfunctions = false")
    source = model("""<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2] x) => (float[2] y) { y = own.act (x) }
    <opset_import: ["": 17], domain: "own"> act (v) => (w) { w = Relu (v) }""")
    result, log = fit(source, targets)

    assert not result.functions
    assert operators(result) == ["Relu"]
    assert [note.message for note in log.notes] == [
        "inlined 1 local function at their calls, as chip takes none"
    ]


def test_what_is_written_has_versions_that_are_taken() -> None:
    lacking = LACKING.replace('"LayerNormalization", ', '"HardSwish", "HardSigmoid", ')
    targets = targets_of(lacking + '[[operator]]\nnames = ["Clip"]\nnewest = 6\n')
    source = model("17 (float[2,3] x) => (float[2,3] y) { y = HardSwish (x) }")
    found = operators(fit(source, targets, 1e-6, 1e-6)[0])
    assert "Clip" not in found
    assert {"Max", "Min"} <= set(found)


@pytest.mark.parametrize(
    ("call", "kind", "fits"),
    [
        ("Max (x, x)", "int8", True),
        ("Max (x, x)", "uint8", True),
        ("MatMul (x, x)", "int32", False),
        ("Relu (x)", "float16", False),
    ],
)
def test_a_type_that_is_not_taken_is_cast_where_that_is_exact(call: str, kind: str, fits: bool) -> None:
    targets = targets_of(
        '[[release]]\nopset = 17\n[[operator]]\nnames = ["Max", "MatMul"]\ntypes = ["int32", "float32", "uint32"]\n'
        '[[operator]]\nnames = ["Cast"]\ntypes = ["int8", "uint8", "int32", "float16", "float32"]\n'
        '[[operator]]\nnames = ["MatMul", "Relu"]\ntypes = ["float32"]\n'
    )
    source = model(f"17 ({kind}[2,2] x) => ({kind}[2,2] y) {{ y = {call} }}")
    if not fits and kind == "int32":
        with pytest.raises(CannotMigrate, match="takes MatMul of"):
            fit(source, targets)
        return
    result, log = fit(source, targets)
    assert operators(result) == ["Cast", call.partition(" ")[0], "Cast"]
    assert "between Casts" in log.changes[0].reason


def test_constants_become_initializers_where_there_is_no_constant() -> None:
    text = """17 (float[2] x, bool c) => (float[2] y) {
      one = Constant <value = float[2] {1.0, 2.0}> ()
      two = Constant <value_float = 2.5> ()
      a = Mul (x, two)
      b = Add (a, one)
      y = If (c) <then_branch = t () => (float[2] p) { three = Constant <value_floats = [3.0, 4.0]> () p = Mul (b, three) },
                  else_branch = e () => (float[2] q) { q = Mul (b, b) }>
    }"""
    targets = targets_of('operators = "listed"\n[[release]]\n[[operator]]\nnames = ["Add", "Mul", "If"]\n')
    result, log = fit(model(text), targets)
    assert "Constant" not in operators(result)
    assert [note.message for note in log.notes] == [
        "made initializers of 3 Constants, as chip has no Constant"
    ]


PARTLY = """17 (float[2,3,4] x, float[4] s) => (float[2,3,4] y, float[1,1,1] z) {
  [norm] n = LayerNormalization (x, s) [relu] y = Relu (n) [prod] z = ReduceProd (x)
}"""


def test_a_best_effort_writes_what_can_be_done_and_names_what_is_left() -> None:
    source, log = model(PARTLY), ChangeLog()
    feeds = random_feeds(source)
    item = make_pass("fit_operators", targets=targets_of(LACKING), best_effort=True)
    result = item.run(files.load(model(PARTLY)), log)
    again = item.run(result.copy(), log)

    found = operators(result.proto)
    assert "LayerNormalization" not in found
    assert "ReduceProd" in found
    (note,) = log.notes
    assert (note.code, note.subject, note.severity) == ("not-fitted", "prod", "warning")
    assert note.message.startswith("unchanged: 'prod' (ReduceProd-13): Chip 8.5 has no ReduceProd")
    same(run(source, feeds), run(result.proto, feeds), "best effort", 1e-5, 2e-6)
    assert again.proto == result.proto


def test_a_node_that_is_brought_down_and_does_not_fit_when_it_is_lifted_is_refused() -> None:
    source = model("""16 (float[1,2,5,16] x) => (float[1,2,2,8] y) <float[4] s = {1, 1, 0.5, 0.5}> {
        y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "ceil">(x, , s) }""")

    with pytest.raises(onnx_migrate.MigrateError, match="writes Resize again"):
        onnx_migrate.migrate(source, runtime="mnn==3.6", simplify=False, verify=False)
