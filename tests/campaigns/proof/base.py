"""The models that pairs are made of: onnx's own cases for single operators, and those of `written_models`.

Each has a feed on which it runs. onnx takes half a minute to make its cases, so they are kept in a file of the cache.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.campaigns.proof.written_models import WRITTEN

__all__ = ["Base", "recorded", "written"]

_CACHE = Path.home() / ".cache" / "onnx-migrate-tests"

_LARGEST = 60_000
"""Bytes of a model or of its feed from which on a case is left out: it takes long and shows nothing more."""


@dataclass(frozen=True)
class Base:
    """A model, a feed on which it runs, and the operator that it is about, as domain and name."""

    name: str
    model: onnx.ModelProto
    feed: dict[str, Any]
    operator: str

    def changed(self, edit: Any) -> Base:
        """Return a copy whose model was edited in place."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        edit(model)
        return replace(self, model=model)


def written() -> Iterator[Base]:
    """Yield the models that are written as text, with feeds that fit them."""
    for name, (operator, text) in WRITTEN.items():
        model = onnx.parser.parse_model(text)
        rng = np.random.default_rng(7)
        feed = {value.name: _values(value.type, rng) for value in model.graph.input}
        yield Base(name, model, feed, operator)


def _values(kind: onnx.TypeProto, rng: np.random.Generator) -> Any:
    if kind.HasField("map_type"):
        return {"a": 1.5, "b": -2.0} if kind.map_type.key_type == TensorProto.STRING else {0: 1.5, 2: -2.0}
    dims = [dim.dim_value or 2 for dim in kind.tensor_type.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
    if dtype.kind == "O":
        return rng.choice(["a", "b", "c", "Tom"], dims).astype(object)
    if dtype.kind == "f":
        return rng.standard_normal(dims).astype(dtype)
    return rng.integers(0, 2, dims).astype(dtype)


def recorded() -> Iterator[Base]:
    """Yield onnx's cases for operators, without those that are expanded functions or large."""
    file = _CACHE / f"node-cases-{onnx.__version__}.pickle"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(list(_made())))
    for name, data, feed in pickle.loads(file.read_bytes()):  # written by this function alone
        model = onnx.ModelProto.FromString(data)
        nodes = [node for node in model.graph.node if node.op_type != "Constant"]
        if nodes and model.opset_import:
            subject = nodes[-1] if len(nodes) < 4 else nodes[0]
            yield Base(name, model, feed, f"{subject.domain}:{subject.op_type}")


def _made() -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        if case.model is None or "_expanded" in case.name or not case.data_sets:
            continue
        inputs = case.data_sets[0][0]
        data, names = case.model.SerializeToString(), [value.name for value in case.model.graph.input]
        if len(inputs) != len(names) or len(data) + len(pickle.dumps(inputs)) > _LARGEST:
            continue
        yield case.name, data, dict(zip(names, inputs, strict=True))
