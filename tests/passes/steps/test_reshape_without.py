"""A Reshape without `allowzero` gives the same elements, and one that is lacking altogether is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_migrate.passes.steps.reshape import reshape

import onnx_migrate
from onnx_migrate.engine.steps.decomposition_registry import decomposition_of
from onnx_migrate.errors import CannotMigrate
from tests.harness import model, run
from tests.written_out import at

CHIP = """name = "chip"
[[release]]
opset = 17
source = "its manual"
[[operator]]
names = ["Reshape"]
attributes = { allowzero = [0] }
"""


def test_it_is_registered() -> None:
    found = decomposition_of("", "Reshape")
    assert found is not None
    assert found.adapt.__name__ == reshape.__name__


@pytest.mark.parametrize("opset", [14, 17])
@pytest.mark.parametrize(("shape", "length"), [("3, 2", 2), ("-1, 2", 2), ("6, 1", 2)])
def test_allowzero_is_left_out_where_no_0_can_be(opset: int, shape: str, length: int, tmp_path: Path) -> None:
    source = model(
        at(
            opset,
            f"g (float[2,3] x) => (float[a,b] y) <int64[{length}] s = {{{shape}}}> {{ y = Reshape <allowzero = 1> (x, s) }}",
        )
    )
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    (chip := tmp_path / "chip.toml").write_text(CHIP)

    result = onnx_migrate.migrate(source, runtime=str(chip), simplify=False).model

    (node,) = [node for node in result.graph.node if node.op_type == "Reshape"]
    assert not node.attribute
    np.testing.assert_array_equal(run(result, feeds)[0], run(source, feeds)[0])


def test_a_target_without_reshape_is_told_so(tmp_path: Path) -> None:
    source = model(at(17, "g (float[2,3] x) => (float[a,b] y) <int64[2] s = {3, 2}> { y = Reshape (x, s) }"))
    (chip := tmp_path / "chip.toml").write_text(
        CHIP.replace("attributes = { allowzero = [0] }", "lacking = true")
    )
    with pytest.raises(
        CannotMigrate, match="has no Reshape, and it cannot be written with other operators: no other"
    ):
        onnx_migrate.migrate(source, runtime=str(chip))
