"""If and Loop are unchanged; the nodes of their sub-graphs are lifted."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check


@pytest.mark.parametrize("condition", [True, False])
def test_if(condition: bool) -> None:
    """The branches have nodes that change, on values of the outer graph."""
    source = """<ir_version: 4, opset_import: ["": 7]>
        graph (bool c, float[2, 3] x) => (float[2, 1] y) {
            y = If (c) <
                then_branch = t () => (float[2, 1] a) { a = ReduceSum <axes = [1]> (x) },
                else_branch = e () => (float[2, 1] b)
                    { n = Softmax <axis = 0> (x)  b = ReduceMax <axes = [1]> (n) }
            >
        }"""
    check(source, to=13, feeds={"c": np.array(condition), "x": np.arange(6, dtype=np.float32).reshape(2, 3)})


@pytest.mark.parametrize(("trips", "condition"), [("m", "go"), ("m", '""'), ('""', "go")])
def test_loop(trips: str, condition: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 8]>
        graph (int64 m, bool go, float[2, 3] x, float[1, 3] start)
            => (float[1, 3] last, float[t, 1, 3] all) {{
            last, all = Loop ({trips}, {condition}, start) <
                body = b (int64 i, bool going, float[1, 3] state)
                    => (bool more, float[1, 3] next, float[1, 3] out) {{
                    sum = ReduceSum <axes = [0]> (x)
                    next = Add (state, sum)
                    out = Softmax <axis = 0> (next)
                    hundred = Constant <value = float {{100}}> ()
                    top = ReduceMax <keepdims = 0> (next)
                    more = Less (top, hundred)
                }}
            >
        }}"""
    feeds = {
        "m": np.array(4, np.int64),
        "go": np.array(True),
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "start": np.ones((1, 3), np.float32),
    }
    check(source, to=18, feeds=feeds)
