"""onnxsim on a file, with lower and lower limits for folded tensors until the result is small enough."""

from __future__ import annotations

from pathlib import Path

import onnx

from onnx_migrate.engine.pass_infra import builtin_passes
from tests.harness import model
from tests.steps import operators

TEXT = """17 (float[1,4] x) => (float[1,3000] y)
<float[4,1] w = {1., 2., 3., 4.}, int64[2] n = {4, 3000}> { e = Expand(w, n)  y = MatMul(x, e) }"""


def simplify_file(folder: Path, allowed: int) -> int:
    builtin_passes()
    from onnx_migrate.passes.onnxsim_child import simplify_file

    onnx.save(model(TEXT), folder / "a.onnx")
    return simplify_file(str(folder / "a.onnx"), str(folder / "b.onnx"), allowed, True, True, False)


def test_with_enough_room_a_constant_is_folded(tmp_path: Path) -> None:
    size = simplify_file(tmp_path, 1 << 20)

    result = onnx.load(tmp_path / "b.onnx")
    assert operators(result) == ["MatMul"]
    assert size == result.ByteSize() > 48_000


def test_with_less_it_stays_computed(tmp_path: Path) -> None:
    simplify_file(tmp_path, 20_000)

    assert operators(onnx.load(tmp_path / "b.onnx")) == ["Expand", "MatMul"]


def test_with_too_little_nothing_is_written(tmp_path: Path) -> None:
    assert simplify_file(tmp_path, 10) > 10
    assert not (tmp_path / "b.onnx").exists()
