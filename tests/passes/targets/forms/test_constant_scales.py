"""Scales and sizes are read from initializers, or the node is refused."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import CannotMigrate
from tests.passes.targets.test_fit_forms import fit

UP = """<ir_version: 8, opset_import: ["": %d]> g (float[1,2,%s,4] x) => (float[a,b,c,d] y) {
    s = Constant <value = float[4] {1.0, 1.0, 2.0, 2.0}> () t = Identity (s) y = %s }"""


@pytest.mark.parametrize(
    ("opset", "call"), [(9, "Upsample (x, t)"), (10, "Resize (x, t)"), (17, "Resize (x, , t)")]
)
def test_constants_and_copies_of_them_become_initializers(opset: int, call: str) -> None:
    proto, _ = fit(UP % (opset, 3, call), "constant_scales")
    (node,) = proto.graph.node
    assert {name for name in node.input[1:] if name} == {tensor.name for tensor in proto.graph.initializer}


def test_sizes_that_follow_from_a_known_shape() -> None:
    source = """<ir_version: 8, opset_import: ["": 17]> g (float[1,2,3,4] x) => (float[a,b,c,d] y) <int64[4] m = {1, 1, 2, 2}> {
        l = Shape (x) n = Mul (l, m) y = Resize (x, , , n) }"""
    proto, _ = fit(source, "constant_scales")
    assert [node.op_type for node in proto.graph.node] == ["Resize"]
    assert len(proto.graph.initializer) == 1
    with pytest.raises(
        CannotMigrate, match=r"'y' \(Resize-13\): its sizes \('n'\) are computed at run time"
    ) as error:
        fit(source.replace("[1,2,3,4] x", "[1,2,H,W] x"), "constant_scales")
    assert error.value.code == "target-form"
