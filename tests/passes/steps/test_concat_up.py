from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check


@pytest.mark.parametrize(("attributes", "axis"), [("", 1), ("<axis = 0>", 0), ("<axis = 2>", 2)])
def test_concat(attributes: str, axis: int) -> None:
    shape = [2, 2, 2]
    shape[axis] = 4
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,2,2] a, float[2,2,2] b)
        => (float[{",".join(map(str, shape))}] y) {{ y = Concat {attributes} (a, b) }}"""
    a = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    check(source, to=7, feeds={"a": a, "b": -a}, expected=[np.concatenate([a, -a], axis)])
