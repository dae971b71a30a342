"""The pass that writes what a target lacks with what it has, and refuses the rest by name."""

from __future__ import annotations

import pytest

from onnx_migrate import files
from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model, random_feeds, run, same
from tests.support.targets import targets_of

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
NORM = """<ir_version: 8, opset_import: ["": 17]> g (float[2,3,4] x, float[4] s) => (float[2,3,4] y)
{ n = LayerNormalization (x, s) y = Relu (n) }"""


def test_an_operator_that_is_lacking_is_decomposed_at_its_opset() -> None:
    source, log = model(NORM), ChangeLog()
    feeds = random_feeds(source)
    targets = targets_of(LACKING)
    result = builtin_passes()["fit_operators"](targets=targets).run(files.load(model(NORM)), log).proto  # type: ignore[call-arg]

    assert "LayerNormalization" not in [node.op_type for node in result.graph.node]
    assert result.opset_import[0].version == 17
    assert log.changes[0].reason.startswith("Chip 8.5 has no LayerNormalization: ")
    same(run(source, feeds), run(result, feeds), "decomposed", 1e-5, 2e-6)


def test_what_cannot_be_decomposed_is_refused_with_its_source_and_the_release_that_has_it() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[1,1] y, float[1,1] z)
    { y = ReduceProd (x) z = ReduceProd (x) }""")
    with pytest.raises(CannotMigrate) as error:
        builtin_passes()["fit_operators"](targets=targets_of(LACKING)).run(files.load(source), ChangeLog())  # type: ignore[call-arg]

    assert error.value.code == "target-lacks"
    assert str(error.value) == (
        "'y' (ReduceProd-13): Chip 8.5 has no ReduceProd, and onnx-migrate cannot write it with other operators;"
        " 1 more node refused: 'z' (ReduceProd) (read, not measured: its list of operators; Chip 8.6 has it)"
    )
