"""The graph of a model before its migration: marks on nodes that would change, and on those that cannot be converted."""

from __future__ import annotations

from onnx_migrate.errors import Where
from onnx_migrate.inspection import inspect
from onnx_migrate.model.model import Model
from onnx_migrate.report.planned_view import planned_bodies
from tests.harness import model

NET = """11 (bool k, float[2,3] x) => (float[2,3] y) {
  [c] c = Clip (x)
  [s] s = Softmax <axis = 1> (c)
  [i] y = If (k) <
    then_branch = t () => (float[2,3] p) { [inner] p = Softmax <axis = 0> (s) },
    else_branch = e () => (float[2,3] q) { [n] q = Neg (s) }
  >
}"""


def marks(refused: tuple[Where, ...] = ()) -> dict[str, dict[str, str]]:
    proto = model(NET)
    plan = inspect(proto, opset=17).plan
    assert plan is not None
    bodies = planned_bodies(Model(proto), plan.changes, refused)
    return {
        body.path: {node.name: node.mark for node in body.nodes if node.change is not None} for body in bodies
    }


def test_nodes_that_a_migration_changes_are_marked_in_every_graph() -> None:
    found = marks()

    assert found["graph"] == {"s": ""}
    assert found["graph/i:then_branch"] == {"inner": ""}
    assert "graph/i:else_branch" not in found


def test_a_node_that_cannot_be_converted_is_marked_as_blocked() -> None:
    found = marks((Where("graph", "c", "Clip"), Where("graph/i:else_branch", "n", "Neg")))

    assert found["graph"] == {"c": "blocked", "s": ""}
    assert found["graph/i:else_branch"] == {"n": "blocked"}
