"""Objections are counted by their reason, and found by a trial where a pass does not say them itself."""

from __future__ import annotations

import onnx

from onnx_migrate import files
from onnx_migrate.engine.incompatibility import Incompatibility, counted, objections_by_trial
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import Where
from tests.harness import model

CLIP = """<ir_version: 6, opset_import: ["": 9]>
g (float[4] x) => (float[4] y) { [one] z = Clip <max = 6.0> (x) [two] y = Clip <max = 6.0> (z) }"""


def test_one_objection_for_each_reason_at_its_first_node() -> None:
    first, second = Where("graph", "a", "Add"), Where("graph", "b", "Add")
    found = counted(
        [Incompatibility("no", first, 1), Incompatibility("too new"), Incompatibility("no", second, 2)]
    )

    assert found == (Incompatibility("no", first, 3), Incompatibility("too new"))


def test_what_is_said_of_the_whole_model_counts_no_nodes() -> None:
    assert (Incompatibility("too new").nodes, Incompatibility("too new").where) == (0, None)


def test_what_a_pass_would_change_and_the_model_stays() -> None:
    source = files.load(model(CLIP))
    before = onnx.ModelProto()
    before.CopyFrom(source.proto)

    (found,) = objections_by_trial(make_pass("migrate_opset", opset=11), source)

    assert (found.where and found.where.node, found.nodes) == ("one", 2)
    assert source.proto == before


def test_nothing_where_nothing_changes_and_the_reason_where_it_is_refused() -> None:
    source = files.load(model(CLIP))

    assert objections_by_trial(make_pass("resize_form"), source) == ()
    (found,) = objections_by_trial(make_pass("migrate_opset", opset=8), source)
    assert "newer than the target" in found.reason
