"""Nodes that a runtime computes wrongly."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.spec.targets import PREDICATES
from tests.harness import model
from tests.support.targets import targets_of

FAULT = """[[release]]
opset = 22
[[fault]]
operator = "{operator}"
opset = 13
attributes = {{ {attributes} }}
text = "errs"
"""


@pytest.mark.parametrize(
    ("operator", "attributes", "opset", "found"),
    [
        ("Softmax", "axis = [1, 2]", 13, ["y"]),
        ("Softmax", "axis = [0]", 13, []),
        ("Softmax", "axis = [1]", 12, []),
        ("Softmax", "", 13, ["y"]),
        ("Relu", "", 13, []),
    ],
)
def test_faults_are_of_operators_attributes_and_opsets(
    operator: str, attributes: str, opset: int, found: list[str]
) -> None:
    builtin_passes()
    from onnx_migrate.passes.targets.faults import faulty_nodes

    proto = model(
        f'<ir_version: 7, opset_import: ["": {opset}]> g (float[2,2] x) => (float[2,2] y) {{ y = Softmax <axis = 1> (x) }}'
    )
    (target,) = targets_of(FAULT.format(operator=operator, attributes=attributes))

    assert [node.output[0] for node, _ in faulty_nodes(target, proto, opset)] == found


def test_every_condition_of_a_table_is_known() -> None:
    builtin_passes()
    from onnx_migrate.passes.targets import faults

    assert tuple(faults._CONDITIONS) == PREDICATES
