"""Nodes are counted in all bodies, and a pass is recorded with what it did to their numbers."""

from __future__ import annotations

from onnx_migrate.model.graphs import bodies
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.operator_counts import PassEffect, operator_counts, record_effect
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["":17, "com.acme":1, "local":1]>
g (bool c, float[2] x) => (float[2] y) {
  a = Relu(x)
  b = com.acme.Thing(a)
  d = local.Block(b)
  y = If (c) <
    then_branch = t () => (float[2] p) { p = Relu(d) },
    else_branch = e () => (float[2] q) {
      q = If (c) < then_branch = t2 () => (float[2] r) { r = Neg(d) }, else_branch = e2 () => (float[2] s) { s = Relu(d) } >
    }>
}
<domain: "local", opset_import: ["":17]> Block (v) => (w) { w = Neg(v) }"""


def test_nodes_of_sub_graphs_and_functions_count() -> None:
    counts = operator_counts(bodies(model(TEXT)))

    assert counts == {"If": 2, "Neg": 2, "Relu": 3, "com.acme.Thing": 1, "local.Block": 1}
    assert list(counts) == sorted(counts)


def test_what_a_pass_did_is_recorded_once() -> None:
    log = ChangeLog()

    record_effect(log, "quiet", {"Relu": 1}, {"Relu": 1}, 0)
    record_effect(log, "busy", {"Relu": 3, "Neg": 1}, {"Relu": 1, "Abs": 2, "Neg": 1}, 0)

    assert log.facts_of(PassEffect) == [PassEffect("busy", (("Abs", 2), ("Relu", -2)), 0, 0)]


def test_what_an_attempt_did_is_forgotten_when_it_is_rolled_back() -> None:
    log = ChangeLog()
    trial = log.trial()
    record_effect(log, "simplify", {"Relu": 3}, {"Relu": 1}, 0)

    trial.roll_back()

    assert log.facts_of(PassEffect) == []
