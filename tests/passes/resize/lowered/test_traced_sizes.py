"""Sizes that are lengths of the input itself are known to leave their axes as they are."""

from __future__ import annotations

import onnx
import pytest

from tests.lowering import lower
from tests.passes.lowerings.test_resize import operators


@pytest.mark.parametrize(
    "first",
    [
        "first = Shape <start = 0, end = 2> (x)",
        "all = Shape (x) first = Slice (all, zero, two)",
        "all = Shape (x) first = Gather (all, both)",
        """all = Shape (x) n = Gather (all, none) c = Gather (all, one) n1 = Unsqueeze (n, zero) c1 = Unsqueeze (c, zero)
        first = Concat <axis = 0> (n1, c1)""",
    ],
)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_first_axes(mode: str, first: str) -> None:
    """Two axes are resampled: 2 Gathers of nearest, 2 + 4 of linear; the others are left alone."""
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
g (float[n,c,5,7] x) => (float[n,c,8,9] y)
<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[2] both = {{0, 1}}, int64 none = {{0}}, int64 one = {{1}},
int64[2] wanted = {{8, 9}}> {{
  {first}
  sizes = Concat <axis = 0> (first, wanted)
  y = Resize <mode = "{mode}", coordinate_transformation_mode = "align_corners"> (x, , , sizes)
}}""")
    result, _ = lower(proto, 10)
    resampled = [node for node in result.graph.node if node.op_type == "Gather" and "taken" in node.output[0]]
    assert "Resize" not in operators(result)
    assert len(resampled) + sum(
        node.output[0] == "y" for node in result.graph.node if node.op_type == "Gather"
    ) == (6 if mode == "linear" else 2)
