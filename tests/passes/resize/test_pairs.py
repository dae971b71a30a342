"""Two nodes that an adapter wrote for one are joined into one again; two of the model's own are not."""

from __future__ import annotations

import importlib

import onnx
import pytest

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import lift, model

pairs = importlib.import_module("onnx_migrate.passes.resize.pairs")
nodes = importlib.import_module("onnx_migrate.passes.resize.resize_nodes")


def found(
    proto: onnx.ModelProto, log: ChangeLog, join: str = ""
) -> list[tuple[list[str], str, str | list[float]]]:
    """Return the operators, input and scales of each pair; join each with the nearest_mode `join`, if given."""
    carried, seen = Model(proto), []
    traversal = nodes.ResizeTraversal("step", carried, log, None)

    def visit(node: object) -> None:
        pair = pairs.pair_of(node)
        if pair is None:
            return
        scales = pair.scales if isinstance(pair.scales, str) else pair.scales.tolist()
        seen.append(([item.op_type for item in pair.nodes], pair.data, scales))
        if join:
            pairs.join_pair(node.rw, pair, node.origin, join)

    traversal.visit_all(visit)
    traversal.end()
    return seen


def source(scales: str, given: str = "", weights: str = "") -> onnx.ModelProto:
    constants = f"<float[2] s = {{{scales}}}{weights}>" if scales else ""
    return model(f"""<ir_version: 5, opset_import: ["":10]>
g (float[9,10] x{given}) => (float[a,b] y) {constants} {{ [up] y = Resize(x, s) }}""")


@pytest.mark.parametrize(
    ("given", "operators", "scales"),
    [
        (("0.5, 2.",), ["Resize", "Resize"], [0.5, 2]),
        (("0.5, 1.25",), ["Gather", "Resize", "Unsqueeze", "Resize"], [0.5, 1.25]),
        (("", ", float[2] s"), ["Gather", "Resize", "Unsqueeze", "Resize"], "s"),
    ],
    ids=["two", "guarded", "run time"],
)
@pytest.mark.parametrize("to", [11, 13])
def test_a_pair_is_found_and_joined(
    given: tuple[str, ...], operators: list[str], scales: str | list[float], to: int
) -> None:
    result, log = lift(source(*given), to)

    assert found(result, log) == [(operators, "x", scales)]
    found(result, log, "floor")

    (node,) = result.graph.node
    assert (node.name, node.op_type, list(node.output)) == ("up", "Resize", ["y"])
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in result.graph.initializer}
    assert node.input[2] == "s" if scales == "s" else arrays[node.input[2]].tolist() == scales
    assert {name for name in node.input[1:] if name} >= set(arrays)
    assert found(result, log) == []


def test_two_of_the_models_own_are_no_pair() -> None:
    proto = model("""<ir_version: 8, opset_import: ["":13]>
g (float[9,10] x) => (float[a,b] y) <float[2] s = {0.5, 1.}, float[2] t = {1., 2.}> {
  m = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "ceil">(x, , s)
  y = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(m, , t)
}""")

    assert found(proto, ChangeLog()) == []


def test_two_lifted_ones_in_a_row_are_no_pair() -> None:
    proto = model("""<ir_version: 5, opset_import: ["":10]>
g (float[9,10] x) => (float[a,b] y) <float[2] s = {0.5, 1.}, float[2] t = {1., 2.}> {
  m = Resize(x, s)
  y = Resize(m, t)
}""")

    assert found(*lift(proto, 13)) == []
