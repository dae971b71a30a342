"""Upsample and Resize-10 as Resize-11 or 13: what is written, recorded, found again and joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_migrate.passes.resize.resize_form import ResizeForm
from onnx_migrate.passes.resize.resize_intent import ResizeIntent
from onnx_migrate.passes.resize.traversal import ResizeNode, ResizeTraversal

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.resize import pairs
from onnx_migrate.rewrite.resize.pairs import ResizeOrigin
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model, run
from tests.resize.oracle import Spec, resize
from tests.steps import lift, operators

ORIGIN = ResizeOrigin(10, "up")
X = np.random.default_rng(0).standard_normal((9, 10)).astype(np.float32)


def written(scales: tuple[float, ...], target: int, write: Any, given: bool = False) -> onnx.ModelProto:
    """Return a model of opset 10 as `write` leaves its Resize, at the opset that the Rewriter chose."""
    numbers = ", ".join(map(repr, scales))
    place = ("float[9,10] x, float[2] s", "") if given else ("float[9,10] x", f"<float[2] s = {{{numbers}}}>")
    proto = model(f"10 ({place[0]}) => (float[a,b] y) {place[1]} {{ y = Resize(x, s) }}")
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    rw = Rewriter(proto.graph.node[0], scope, 11, target, Where("graph", "y", "Resize"))
    write(rw)
    nodes = [*rw.preceding, rw.node, *rw.following]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del proto.graph.node[:]
    proto.graph.node.extend(copies)
    proto.ir_version, proto.opset_import[0].version = 8, rw.version
    return proto


@pytest.mark.parametrize(("target", "version", "roi"), [(11, 11, True), (12, 11, True), (19, 13, False)])
def test_one_node_has_a_roi_only_where_it_is_required(target: int, version: int, roi: bool) -> None:
    scales = (0.5, 0.7)
    proto = written(scales, target, lambda rw: pairs.write_asymmetric(rw, "s", "ceil"))

    assert proto.opset_import[0].version == version
    assert bool(proto.graph.node[0].input[1]) == roi
    np.testing.assert_array_equal(run(proto, {"x": X})[0], resize(X, Spec(10), scales=scales))


@pytest.mark.parametrize("target", [11, 13])
@pytest.mark.parametrize("scales", [(0.5, 2), (0.5, 1.05), (1.05, 0.7), (2.5, 0.3), (0.9, 1.5)])
def test_constant_scales_become_two_nodes(scales: tuple[float, ...], target: int) -> None:
    proto = written(
        scales, target, lambda rw: pairs.split_by_constants(rw, ORIGIN, np.array(scales, np.float32))
    )

    np.testing.assert_array_equal(run(proto, {"x": X})[0], resize(X, Spec(10), scales=scales))


@pytest.mark.parametrize("target", [11, 13])
@pytest.mark.parametrize(
    "scales", [(0.5, 2), (0.5, 1.05), (1.05, 1.05), (1.05, 1), (2, 3), (0.5, 0.3), (1, 1)]
)
def test_scales_at_run_time_become_two_nodes(scales: tuple[float, ...], target: int) -> None:
    proto = written(scales, target, lambda rw: pairs.split_at_run_time(rw, ORIGIN), given=True)

    found = run(proto, {"x": X, "s": np.array(scales, np.float32)})[0]
    np.testing.assert_array_equal(found, resize(X, Spec(10), scales=scales))


def found(proto: onnx.ModelProto, log: ChangeLog, join: str = "") -> list[tuple[str, int, str | list[float]]]:
    """Return the input, the nodes in front and the scales of each pair; join each with the nearest_mode `join`, if given."""
    carried, seen = Model(proto), []
    traversal = ResizeTraversal("step", carried, log, None)

    def visit(node: ResizeNode) -> None:
        small, origin = node.shrinking, node.origin
        if small is None or origin is None:
            return
        scales = origin.scales if isinstance(origin.scales, str) else origin.scales.tolist()
        seen.append((small.input[0], len(origin.split), scales))
        if join:
            pairs.join_pair(node.rw, small, origin, join)

    traversal.visit_all(visit)
    traversal.end()
    return seen


def source(scales: str, given: str = "", weights: str = "") -> onnx.ModelProto:
    constants = f"<float[2] s = {{{scales}}}{weights}>" if scales else ""
    return model(f"10 (float[9,10] x{given}) => (float[a,b] y) {constants} {{ [up] y = Resize(x, s) }}")


@pytest.mark.parametrize(
    ("given", "front", "scales"),
    [(("0.5, 2.",), 1, [0.5, 2]), (("0.5, 1.25",), 3, [0.5, 1.25]), (("", ", float[2] s"), 3, "s")],
    ids=["two", "guarded", "run time"],
)
@pytest.mark.parametrize("to", [11, 13])
def test_a_pair_is_found_and_joined(
    given: tuple[str, ...], front: int, scales: str | list[float], to: int
) -> None:
    result, log = lift(source(*given), to)

    assert found(result, log) == [("x", front, scales)]
    found(result, log, "floor")

    (node,) = result.graph.node
    assert (node.name, node.op_type, list(node.output)) == ("up", "Resize", ["y"])
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in result.graph.initializer}
    assert node.input[2] == "s" if scales == "s" else arrays[node.input[2]].tolist() == scales
    assert {name for name in node.input[1:] if name} >= set(arrays)
    assert found(result, log) == []


def test_two_of_the_models_own_are_no_pair() -> None:
    proto = model("""13 (float[9,10] x) => (float[a,b] y) <float[2] s = {0.5, 1.}, float[2] t = {1., 2.}> {
  m = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "ceil">(x, , s)
  y = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(m, , t)
}""")

    assert found(proto, ChangeLog()) == []


def test_two_lifted_ones_in_a_row_are_no_pair() -> None:
    proto = model("""10 (float[9,10] x) => (float[a,b] y) <float[2] s = {0.5, 1.}, float[2] t = {1., 2.}> {
  m = Resize(x, s)
  y = Resize(m, t)
}""")

    assert found(*lift(proto, 13)) == []


BOTH = "float[2] s = {0.5, 2.}"
UP = "float[2] s = {1., 2.}"
CONVERTED = "float[4] r = {0., 0., 1., 1.}, float[2] s = {0.5, 2.}"


def lifted(opset: int, call: str, weights: str) -> tuple[Model, ChangeLog]:
    proto, log = lift(
        model(f"{opset} (float[9,10] x, float[] u) => (float[a,b] y) <{weights}> {{ [up] y = {call} }}"), 13
    )
    return Model(proto), log


@pytest.mark.parametrize(
    ("opset", "call", "weights", "expected"),
    [
        (9, "Upsample(x, s)", UP, ResizeOrigin(9, "up")),
        (10, "Resize(x, s)", UP, ResizeOrigin(10, "up")),
        (10, "Resize(x, s)", BOTH, ResizeOrigin(10, "up", split=("up_small",), split_scales=(0.5, 2.0))),
        (10, 'Resize<mode = "linear">(x, s)', BOTH, ResizeOrigin(10, "up")),
        (11, "Resize(x, r, s)", CONVERTED, ResizeOrigin(11, "up", written_by_converter=True)),
        (11, 'Resize<nearest_mode = "floor">(x, r, s)', CONVERTED, ResizeOrigin(11, "up")),
        (9, "Upsample(u, s)", UP, ResizeOrigin(9, "up", unchecked=True)),
    ],
)
def test_an_adapter_records_the_origin(opset: int, call: str, weights: str, expected: object) -> None:
    _, log = lifted(opset, call, weights)

    assert log.fact(ResizeOrigin, "graph", "y") == expected
    assert log.facts_of(ResizeOrigin) == [expected]


def test_passes_decide_by_facts_not_by_report_text() -> None:
    """The passes do the same with a log that has the facts alone."""
    for opset, call, weights in ((10, "Resize(x, s)", BOTH), (11, "Resize(x, r, s)", CONVERTED)):
        carried, log = lifted(opset, call, weights)
        other, bare = carried.copy(), ChangeLog(facts=dict(log.facts))
        for item in (ResizeIntent(), ResizeForm()):
            item.run(carried, log)
            item.run(other, bare)
        assert other.proto == carried.proto
        logged = [note.code for note in log.notes if note.pass_name in ("resize_intent", "resize_form")]
        assert [note.code for note in bare.notes] == logged


def test_a_repaired_node_is_no_longer_recorded_as_written_by_the_converter() -> None:
    carried, log = lifted(11, "Resize(x, r, s)", CONVERTED.replace("0.5, 2.", "1., 2."))
    ResizeIntent().run(carried, log)

    assert log.fact(ResizeOrigin, "graph", "y") == ResizeOrigin(11, "up")
    ResizeForm().run(carried, log)
    assert "converted-resize" not in {note.code for note in log.notes}


def test_a_joined_pair_is_no_longer_recorded_as_split() -> None:
    carried, log = lifted(10, "Resize(x, s)", BOTH)
    carried.proto.producer_name = "pytorch"
    assert operators(carried.proto) == ["Resize", "Resize"]

    ResizeIntent().run(carried, log)

    assert [node.name for node in carried.proto.graph.node] == ["up"]
    assert log.fact(ResizeOrigin, "graph", "y") == ResizeOrigin(10, "up")
