from __future__ import annotations

from onnx_migrate.explanation.in_model.view import ModelView
from onnx_migrate.inspection import load_structure
from tests.explanation.in_model.conftest import Make


def test_nodes_and_constants(make: Make) -> None:
    path = make(
        "c = Constant <value = float {1.0}> () z = Add(x, c) y = Add(z, w)", weights="<float[1] w = {1.0}>"
    )
    view = ModelView(load_structure(path)[0])
    graph = view.proto.graph
    assert [place.where.operator for place in view.places] == ["Constant", "Add", "Add"]
    assert [view.constant(graph, name) for name in ("c", "w", "z", "x")] == [True, True, False, False]
    assert [place.where.from_version for place in view.of(("add",))] == [7, 7]
    assert (view.opset, view.version_of("com.foo")) == (11, None)
