"""How far a value is followed to the convolution that leaves it in blocks of channels."""

from __future__ import annotations

import onnx
import pytest
from onnx_migrate.passes.targets.channel_blocks import narrow_inputs


def _makers(steps: int, first: str) -> dict[str, onnx.NodeProto]:
    """Return a chain of Relu behind a first node, which reads "x"."""
    nodes = [onnx.helper.make_node(first, ["x"], ["v0"])]
    nodes += [onnx.helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"]) for at in range(steps)]
    return {node.output[0]: node for node in nodes}


@pytest.mark.parametrize(
    ("steps", "first", "narrow"),
    [(3, "Conv", [1]), (3, "MatMul", []), (100, "Conv", [1]), (100, "MatMul", [1])],
)
def test_a_convolution_that_is_far_away_is_taken_for_granted(
    steps: int, first: str, narrow: list[int]
) -> None:
    makers = _makers(steps, first)
    node = onnx.helper.make_node("Mul", [f"v{steps}", f"v{steps - 1}"], ["y"])
    shapes = {f"v{steps}": (1, 3, 4, 4), f"v{steps - 1}": (1, 1, 4, 4)}
    asked: list[str] = []

    def maker_of(name: str) -> onnx.NodeProto | None:
        asked.append(name)
        return makers.get(name)

    assert narrow_inputs(node, shapes.get, maker_of) == narrow
    assert len(asked) <= 2 * 65
