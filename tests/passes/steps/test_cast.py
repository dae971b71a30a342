"""Cast and CastLike: types by name, attributes for 8-bit floats, and CastLike as Cast."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import dtype_of
from tests.steps import check, check_down, lift, lower, refuses


@pytest.mark.parametrize("node", ["Cast <to = 6, round_mode = \"down\", saturate = 0> (x)", "Cast <to = 6> (x)",
                                  "CastLike <saturate = 0> (x, like)"])  # fmt: skip
def test_attributes_for_small_floats_are_dropped(node: str) -> None:
    source = f"24 (float[2,3] x, int32[1] like) => (int32[2,3] y) {{ unused = Identity (like) y = {node} }}"
    check_down(source, 23, 18, 13, specials=False)


@pytest.mark.parametrize("name", ["float", "double", "float16", "int8", "int64", "uint8", "bool", "int32"])
def test_cast_like(name: str) -> None:
    for opset in (15, 19, 21):
        check_down(
            f"{opset} (float[2,3] x, {name}[0] like) => ({name}[2,3] y) {{ y = CastLike (x, like) }}",
            14,
            9,
            feeds={"x": np.array([[1, 2, 3], [4.5, 0, 7]], np.float32), "like": np.zeros(0, dtype_of(name))},
        )


@pytest.mark.parametrize(("opset", "to"), [(19, 17), (23, 24)])
def test_types_that_do_not_exist_below_are_refused(opset: int, to: int) -> None:
    source = f"""{max(opset, 24)} (float[2] x) => (float[2] y)
        {{ small = Cast <to = {to}> (x) y = Cast <to = 1> (small) }}"""
    refuses("no-such-type", lower, source, 23 if to == 24 else 18)


X = np.array([-1.5, 0, 2.75, 100], np.float32)


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [("INT32", "int32", np.int32), ("double", "double", np.float64), ("BOOL", "bool", np.bool_)],
)
def test_type_by_name(name: str, kind: str, dtype: type[np.generic]) -> None:
    source = f'1 (float[4] x) => ({kind}[4] y) {{ y = Cast <to = "{name}"> (x) }}'
    check(source, to=7, feeds={"x": X}, expected=[X.astype(dtype)])


def test_an_unknown_type_is_refused() -> None:
    source = '1 (float[4] x) => (int32[4] y) { y = Cast <to = "INTEGER"> (x) }'
    refuses("invalid-node", lift, source, 7)


@pytest.mark.parametrize("to", [17, 18, 19, 20])
def test_float_8_saturates_as_before(to: int) -> None:
    """From version 24 on the standard specifies another result of infinity for the FNUZ types; runtimes compute the same."""
    source = f"19 (float[6] x) => (float[6] y) {{ t = Cast <to = {to}> (x) y = Cast <to = 1> (t) }}"
    check(source, to=24, feeds={"x": np.array([np.inf, -np.inf, 1e6, -1e6, np.nan, 1], np.float32)})
