"""Inferred types have the lengths that ONNX Runtime computes, in functions and chains too."""

from __future__ import annotations

import importlib

import numpy as np
import onnx
import pytest

from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from tests.harness import model

runtime_types = importlib.import_module("onnx_migrate.passes.resize.runtime_types")


@pytest.mark.parametrize("odd", [0, -1])
def test_dims_of_0_and_minus_1_are_not_known(odd: int) -> None:
    proto = model("13 (float[1,13] x) => (float[a,b] y) <float[2] s = {1., 1.3}> { y = Resize(x, , s) }")
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = odd

    assert runtime_types.run_time_types(Model(proto), DimPlan()).lookup(None, (), "y").shape == (1, None)


def calls(body: str, *sizes: int) -> onnx.ModelProto:
    nodes = "\n".join(f"  y{place} = local.up (x{place})" for place in range(len(sizes)))
    inputs = ", ".join(f"float[1,{size}] x{place}" for place, size in enumerate(sizes))
    return model(f"""13 ({inputs}) => (float[a,b] y0) {{ {nodes} }} <domain: "local", opset_import: ["":13]>
up (v) => (w) {{
{body}
}}""")


def test_types_behind_a_function() -> None:
    up = float(np.float32(25 / 13))
    constant = f"s = Constant<value = float[2] {{1., {up!r}}}>()"
    plain = "s = Constant<value = float[2] {1., 2.}>()"

    once = runtime_types.run_time_types(Model(calls(f"{constant} w = Resize(v, , s)", 13)), DimPlan())
    twice = runtime_types.run_time_types(Model(calls(f"{constant} w = Resize(v, , s)", 13, 9)), DimPlan())
    shared = runtime_types.run_time_types(
        Model(calls(f"{constant} u = Resize(v, , s) w = Resize(u, , s)", 13)), DimPlan()
    )
    harmless = runtime_types.run_time_types(Model(calls(f"{plain} w = Resize(v, , s)", 13, 9)), DimPlan())

    assert once.lookup(None, (), "y0").shape == (1, 25)
    assert twice is None
    assert shared is None
    assert harmless.lookup(None, (), "y1").shape == (1, 18)


def test_types_of_a_chain() -> None:
    up, down = float(np.float32(25 / 13)), float(np.float32(31 / 25))
    proto = model(f"""13 (float[1,13] x) => (float[a,b] z) <float[2] s = {{1., {up!r}}}, float[2] t = {{1., {down!r}}}> {{
  y = Resize(x, , s)
  z = Resize(y, , t)
}}""")

    types = runtime_types.run_time_types(Model(proto), DimPlan())
    later = runtime_types.run_time_types(Model(proto), DimPlan.of({"x": {1: "W"}}, Interface.of(proto)))

    assert types.lookup(None, (), "y").shape == (1, 25)
    assert types.lookup(None, (), "z").shape == (1, 31)
    assert later.lookup(None, (), "z").shape == (1, None)


def test_types_behind_sizes_that_follow_from_known_shapes() -> None:
    proto = model("""13 (float[1,2,4,4] x) => (float[a,b,c,d] y)
<int64[1] zero = {0}, int64[1] two = {2}, int64[2] eight = {8, 8}>
{ s = Shape(x) h = Slice(s, zero, two, zero) z = Concat<axis=0>(h, eight) v = Resize(x, , , z) y = Relu(v) }""")

    types = runtime_types.run_time_types(Model(proto), DimPlan())

    assert types.lookup(None, (), "y").shape == (1, 2, 8, 8)
    assert [item.name for item in proto.graph.initializer] == ["zero", "two", "eight"]
