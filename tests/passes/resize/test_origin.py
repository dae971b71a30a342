"""Adapters record where a Resize came from, and later passes decide by that alone."""

from __future__ import annotations

import importlib

import pytest

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import lift, model

origins = importlib.import_module("onnx_migrate.passes.resize.origin")
form = importlib.import_module("onnx_migrate.passes.resize.resize_form")
intent = importlib.import_module("onnx_migrate.passes.resize.intent.resize_intent")

BOTH = "float[2] s = {0.5, 2.}"
UP = "float[2] s = {1., 2.}"
CONVERTED = "float[4] r = {0., 0., 1., 1.}, float[2] s = {0.5, 2.}"


def lifted(opset: int, call: str, weights: str) -> tuple[Model, ChangeLog]:
    proto, log = lift(
        model(f"""<ir_version: 5, opset_import: ["":{opset}]>
g (float[9,10] x, float[] u) => (float[a,b] y) <{weights}> {{ [up] y = {call} }}"""),
        13,
    )
    return Model(proto), log


@pytest.mark.parametrize(
    ("opset", "call", "weights", "expected"),
    [
        (9, "Upsample(x, s)", UP, origins.ResizeOrigin(9, "up")),
        (10, "Resize(x, s)", UP, origins.ResizeOrigin(10, "up")),
        (10, "Resize(x, s)", BOTH, origins.ResizeOrigin(10, "up", split_in_two=True)),
        (10, 'Resize<mode = "linear">(x, s)', BOTH, origins.ResizeOrigin(10, "up")),
        (11, "Resize(x, r, s)", CONVERTED, origins.ResizeOrigin(11, "up", written_by_converter=True)),
        (11, 'Resize<nearest_mode = "floor">(x, r, s)', CONVERTED, origins.ResizeOrigin(11, "up")),
        (9, "Upsample(u, s)", UP, origins.ResizeOrigin(9, "up", unchecked=True)),
    ],
)
def test_an_adapter_records_the_origin(opset: int, call: str, weights: str, expected: object) -> None:
    _, log = lifted(opset, call, weights)

    assert log.fact(origins.ResizeOrigin, "graph", "y") == expected
    assert log.facts_of(origins.ResizeOrigin) == [expected]


def test_passes_decide_by_facts_not_by_report_text() -> None:
    """The passes do the same with a log that has the facts alone."""
    for opset, call, weights in ((10, "Resize(x, s)", BOTH), (11, "Resize(x, r, s)", CONVERTED)):
        carried, log = lifted(opset, call, weights)
        other, bare = carried.copy(), ChangeLog(facts=dict(log.facts))
        for item in (intent.ResizeIntent(), form.ResizeForm()):
            item.run(carried, log)
            item.run(other, bare)
        assert other.proto == carried.proto
        logged = [note.code for note in log.notes if note.pass_name in ("resize_intent", "resize_form")]
        assert [note.code for note in bare.notes] == logged


def test_a_repaired_node_is_no_longer_recorded_as_written_by_the_converter() -> None:
    carried, log = lifted(11, "Resize(x, r, s)", CONVERTED.replace("0.5, 2.", "1., 2."))
    intent.ResizeIntent().run(carried, log)

    assert log.fact(origins.ResizeOrigin, "graph", "y") == origins.ResizeOrigin(11, "up")
    form.ResizeForm().run(carried, log)
    assert "converted-resize" not in {note.code for note in log.notes}


def test_a_joined_pair_is_no_longer_recorded_as_split() -> None:
    carried, log = lifted(10, "Resize(x, s)", BOTH)
    carried.proto.producer_name = "pytorch"
    assert [node.op_type for node in carried.proto.graph.node] == ["Resize", "Resize"]

    intent.ResizeIntent().run(carried, log)

    assert [node.name for node in carried.proto.graph.node] == ["up"]
    assert log.fact(origins.ResizeOrigin, "graph", "y") == origins.ResizeOrigin(10, "up")
