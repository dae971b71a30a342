"""All bodies of a model are decomposed, and one that has nothing to decompose stays as it is, byte for byte."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.fixtures.test_torch_exports import NAMES, case
from tests.harness import model, run
from tests.steps import write_out

LATER_THAN_TENSORRT_8 = {
    "LayerNormalization", "GroupNormalization", "Gelu", "Mish", "HardSwish", "Hardmax", "CastLike", "Trilu", "OneHot", "Mod",
    "IsInf", "IsNaN", "RMSNormalization", "Attention", "Swish", "RotaryEmbedding", "BitwiseAnd", "Celu", "GreaterOrEqual",
}  # fmt: skip


def test_nothing_lacking_nothing_changed() -> None:
    proto = model("17 (float[2] x) => (float[2] y) { y = Relu (x) }")
    before, log = proto.SerializeToString(), ChangeLog()
    result = decompose_model(Model(proto), lambda node, scope: None, log, "fit")
    assert result.model.proto.SerializeToString() == before
    assert not result.refusals
    assert not log.changes
    assert not log.notes


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("name", NAMES)
def test_exports_of_pytorch(name: str, opset: int) -> None:
    import numpy as np

    from tests.harness import require_opset

    require_opset(opset)
    source, inputs, expected = case(name, opset)
    result, _, refused = write_out(source, LATER_THAN_TENSORRT_8)
    assert not refused
    assert not {node.op_type for node in all_nodes(result)} & LATER_THAN_TENSORRT_8
    onnx.checker.check_model(result, full_check=True)
    for theirs, ours in zip(expected, run(result, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
