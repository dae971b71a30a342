"""The models of the scenarios, and what a model is worth: a digest of all it holds, read by onnx alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["digest_of", "model", "write", "write_external"]


def model(seed: int, *, opset: int = 11, floats: int = 3000) -> onnx.ModelProto:
    """Return a model with two weights that are copied from file to file, and one that stays in the structure."""
    generator = np.random.default_rng(seed)
    weights = {
        "v": generator.standard_normal(floats).astype(np.float32),
        "w": generator.standard_normal(2 * floats).astype(np.float32),
        "small": generator.standard_normal(floats)[:1].astype(np.float32),
    }
    nodes = [
        helper.make_node("Concat", ["v", "w"], ["joined"], axis=0, name="join"),
        helper.make_node("Add", ["joined", "small"], ["sum"], name="add"),
        helper.make_node("Mul", ["sum", "x"], ["product"], name="scale"),
        helper.make_node("Softmax", ["product"], ["y"], axis=0, name="softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3 * floats])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3 * floats])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)


def write(path: Path, seed: int, *, floats: int = 3000, opset: int = 11) -> None:
    """Write a model as one file."""
    onnx.save(model(seed, floats=floats, opset=opset), path)


def write_external(path: Path, seed: int, *, floats: int = 3000, location: str = "", opset: int = 11) -> None:
    """Write a model with its large weights in a file beside it, NAME.onnx.data by default."""
    onnx.save_model(
        model(seed, floats=floats, opset=opset),
        path,
        save_as_external_data=True,
        location=location or f"{path.name}.data",
        size_threshold=1024,
    )


_checked: set[str] = set()


def digest_of(path: Path) -> str:
    """Return a digest of the model and its weights, "absent" where there is none, and what is wrong with a broken one."""
    if not path.exists():
        return "absent"
    try:
        proto = onnx.load(path)
    except Exception as error:  # of any kind: protobuf's, the operating system's, onnx's
        return f"broken: {type(error).__name__}: {error}"
    digest = hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()
    if digest not in _checked:
        onnx.checker.check_model(proto)
        _checked.add(digest)
    return digest
