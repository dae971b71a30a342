"""Resize-10 written as Resize-11 or 13, compared with the NumPy oracle."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.errors import Where
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import run
from tests.resize.oracle import Spec, resize

asymmetric = importlib.import_module("onnx_migrate.passes.resize.asymmetric")

X = np.random.default_rng(0).standard_normal((9, 10)).astype(np.float32)


def written(scales: tuple[float, ...], target: int, write: Any, given: bool = False) -> onnx.ModelProto:
    """Return a model of opset 10 as `write` leaves its Resize, at the opset that the Rewriter chose."""
    numbers = ", ".join(map(repr, scales))
    place = ("float[9,10] x, float[2] s", "") if given else ("float[9,10] x", f"<float[2] s = {{{numbers}}}>")
    proto = onnx.parser.parse_model(f"""<ir_version: 5, opset_import: ["":10]>
g ({place[0]}) => (float[a,b] y) {place[1]} {{ y = Resize(x, s) }}""")
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
    proto = written(scales, target, lambda rw: asymmetric.write_asymmetric(rw, "s", "ceil"))

    assert proto.opset_import[0].version == version
    assert bool(proto.graph.node[0].input[1]) == roi
    np.testing.assert_array_equal(run(proto, {"x": X})[0], resize(X, Spec(10), scales=scales))


@pytest.mark.parametrize("target", [11, 13])
@pytest.mark.parametrize("scales", [(0.5, 2), (0.5, 1.05), (1.05, 0.7), (2.5, 0.3), (0.9, 1.5)])
def test_constant_scales_become_two_nodes(scales: tuple[float, ...], target: int) -> None:
    proto = written(
        scales, target, lambda rw: asymmetric.split_by_constants(rw, np.array(scales, np.float32))
    )

    np.testing.assert_array_equal(run(proto, {"x": X})[0], resize(X, Spec(10), scales=scales))


@pytest.mark.parametrize("target", [11, 13])
@pytest.mark.parametrize(
    "scales", [(0.5, 2), (0.5, 1.05), (1.05, 1.05), (1.05, 1), (2, 3), (0.5, 0.3), (1, 1)]
)
def test_scales_at_run_time_become_two_nodes(scales: tuple[float, ...], target: int) -> None:
    proto = written(scales, target, asymmetric.split_at_run_time, given=True)

    found = run(proto, {"x": X, "s": np.array(scales, np.float32)})[0]
    np.testing.assert_array_equal(found, resize(X, Spec(10), scales=scales))
