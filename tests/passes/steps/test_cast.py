"""Cast and CastLike: attributes for 8-bit floats, and CastLike as Cast."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower


@pytest.mark.parametrize("node", ["Cast <to = 6, round_mode = \"down\", saturate = 0> (x)", "Cast <to = 6> (x)",
                                  "CastLike <saturate = 0> (x, like)"])  # fmt: skip
def test_attributes_for_small_floats_are_dropped(node: str) -> None:
    check_down(
        f"""<ir_version: 10, opset_import: ["": 24]> g (float[2,3] x, int32[1] like) => (int32[2,3] y)
            {{ unused = Identity (like) y = {node} }}""",
        23,
        18,
        13,
        specials=False,
    )


@pytest.mark.parametrize("name", ["float", "double", "float16", "int8", "int64", "uint8", "bool", "int32"])
def test_cast_like(name: str) -> None:
    for opset in (15, 19, 21):
        check_down(
            f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x, {name}[0] like) => ({name}[2,3] y)
                {{ y = CastLike (x, like) }}""",
            14,
            9,
            feeds={"x": np.array([[1, 2, 3], [4.5, 0, 7]], np.float32), "like": np.zeros(0, dtype_of(name))},
        )


def dtype_of(name: str) -> np.dtype:  # type: ignore[type-arg]
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))


@pytest.mark.parametrize(("opset", "to"), [(19, 17), (23, 24)])
def test_types_that_do_not_exist_below_are_refused(opset: int, to: int) -> None:
    source = f"""<ir_version: 12, opset_import: ["": {max(opset, 24)}]> g (float[2] x) => (float[2] y)
        {{ small = Cast <to = {to}> (x) y = Cast <to = 1> (small) }}"""
    with pytest.raises(CannotMigrate) as caught:
        lower(source, 23 if to == 24 else 18)
    assert caught.value.code == "no-such-type"
