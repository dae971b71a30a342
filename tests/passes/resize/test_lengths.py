"""Lengths are what ONNX Runtime makes them, whatever onnx infers."""

from __future__ import annotations

import importlib

import numpy as np
import onnx
import pytest

from onnx_migrate.model.model import Model
from tests.harness import run

lengths = importlib.import_module("onnx_migrate.passes.resize.lengths")


@pytest.mark.parametrize(("length", "scale", "out"), [(5, 1.8, 9), (13, 25 / 13, 25), (7, 31 / 7, 30)])
def test_length_that_runs(length: int, scale: float, out: int) -> None:
    scale = float(np.float32(scale))
    source = onnx.parser.parse_model(f"""<ir_version: 7, opset_import: ["":13]>
g (float[1,{length}] x) => (float[a,b] y) <float[2] s = {{1., {scale!r}}}> {{ y = Resize(x, , s) }}""")

    assert run(source, {"x": np.zeros((1, length), np.float32)})[0].shape == (1, out)
    assert lengths.run_length(length, scale) == out


@pytest.mark.skipif(
    tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 22), reason="onnx inferred with 32 bits until 1.22"
)
def test_disagreement_is_onnx_inference_against_the_run() -> None:
    for length in range(1, 40):
        for out in range(1, 40):
            scale = float(np.float32(out / length))
            source = onnx.parser.parse_model(f"""<ir_version: 7, opset_import: ["":13]>
g (float[1,{length}] x) => (float[a,b] z) <float[2] s = {{1., {scale!r}}}> {{
  y = Resize(x, , s)
  z = Relu(y)
}}""")
            inferred = onnx.shape_inference.infer_shapes(source).graph.value_info[0].type.tensor_type.shape
            told = inferred.dim[1].dim_value

            runs = lengths.run_length(length, scale)
            assert lengths.disagree(length, scale) == (told != runs), (length, out)


def test_types_of_a_chain() -> None:
    up, down = float(np.float32(25 / 13)), float(np.float32(31 / 25))
    proto = onnx.parser.parse_model(f"""<ir_version: 7, opset_import: ["":13]>
g (float[1,13] x) => (float[a,b] z) <float[2] s = {{1., {up!r}}}, float[2] t = {{1., {down!r}}}> {{
  y = Resize(x, , s)
  z = Resize(y, , t)
}}""")

    types = lengths.real_types(Model(proto), {})
    later = lengths.real_types(Model(proto), {"x": {1: "W"}})

    assert types.lookup(None, (), "y").shape == (1, 25)
    assert types.lookup(None, (), "z").shape == (1, 31)
    assert later.lookup(None, (), "z").shape == (1, None)
