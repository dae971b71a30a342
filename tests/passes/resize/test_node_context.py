"""What is known of one Resize: the shape of its input, and the axes that it resizes."""

from __future__ import annotations

import importlib

import onnx
import pytest

from onnx_migrate.analysis.known_values import KnownValues, Producers
from onnx_migrate.analysis.scope import scopes
from onnx_migrate.errors import Where
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.rewriter import Rewriter

context = importlib.import_module("onnx_migrate.passes.resize.node_context")


@pytest.mark.parametrize(
    ("dims", "shape"),
    [("2,N,5,7", (2, None, 5, 7)), ("", ()), ("?", (None,))],
    ids=["symbol", "scalar", "dim"],
)
def test_the_shape_is_of_the_input(dims: str, shape: tuple[int | None, ...]) -> None:
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["":18]>
g (float[{dims}] x, float[4] s) => (float[a,b,c,d] y) {{ y = Resize(x, , s) }}""")
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    producers = Producers()
    rw = Rewriter(proto.graph.node[0], scope, 18, 18, Where("graph", "y", "Resize"))

    node = context.ResizeNode(rw, KnownValues(scope, producers), producers, None)

    assert node.shape == (None if dims == "" else shape)


@pytest.mark.parametrize(("attributes", "axes"), [({}, [0, 1, 2, 3]), ({"axes": [-1, 1]}, [3, 1])])
def test_axes(attributes: dict[str, list[int]], axes: list[int]) -> None:
    node = onnx.helper.make_node("Resize", ["x", "", "s"], ["y"], **attributes)

    assert context.axes_of(node, 4) == axes
