"""Weights of few bits become tensors of the standard with the bytes that they have: they are referred to, not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from tests.passes.contrib.one_node import difference, session
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import RUNTIME

pytestmark = skip_if(
    RUNTIME < (1, 32), "ONNX Runtime 1.32 is the one whose operators are written", Elsewhere.NEWEST
)


def large(bits: int = 4, k: int = 128, n: int = 512) -> onnx.ModelProto:
    """Return a model with MatMulNBits of so many weights that they stay in their file."""
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 256, (n, k // 32, 32 * bits // 8)).astype("uint8")
    scales = np.abs(rng.standard_normal(n * k // 32)).astype("float32")
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=32
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", n])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def test_the_bytes_are_referred_to(tmp_path: Path) -> None:
    for bits in (4, 8):
        source, target = tmp_path / f"m{bits}.onnx", tmp_path / f"o{bits}.onnx"
        proto = large(bits)
        onnx.save(large(bits), source, save_as_external_data=True, location=f"m{bits}.data", size_threshold=0)
        migration = onnx_migrate.migrate(source, standard=True, opset=21, simplify=False)
        data = next(item for item in migration.structure.graph.initializer if item.name.endswith("_weights"))
        assert data.data_location == TensorProto.EXTERNAL
        assert data.data_type == (TensorProto.UINT4 if bits == 4 else TensorProto.UINT8)
        migration.save(target)
        result = onnx.load(target)
        feeds = {"x": np.random.default_rng(1).standard_normal((3, 128)).astype("float32")}
        one, other = (session(item).run(None, feeds) for item in (proto, result))
        assert difference(one, other) < 1e-6
        assert (
            target.stat().st_size < source.stat().st_size + (tmp_path / f"m{bits}.data").stat().st_size + 4000
        )
