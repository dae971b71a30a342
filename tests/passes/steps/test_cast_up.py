from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model

X = np.array([-1.5, 0, 2.75, 100], np.float32)


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [("INT32", "int32", np.int32), ("double", "double", np.float64), ("BOOL", "bool", np.bool_)],
)
def test_type_by_name(name: str, kind: str, dtype: type[np.generic]) -> None:
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[4] x) => ({kind}[4] y)
        {{ y = Cast <to = "{name}"> (x) }}"""
    check(source, to=7, feeds={"x": X}, expected=[X.astype(dtype)])


def test_an_unknown_type_is_refused() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[4] x) => (int32[4] y)
        { y = Cast <to = "INTEGER"> (x) }"""
    with pytest.raises(CannotMigrate) as caught:
        lift(model(source), 7)
    assert caught.value.code == "invalid-node"


@pytest.mark.parametrize("to", [17, 18, 19, 20])
def test_float_8_saturates_as_before(to: int) -> None:
    """From version 24 on the standard specifies another result of infinity for the FNUZ types; runtimes compute the same."""
    source = f"""<ir_version: 9, opset_import: ["": 19]> g (float[6] x) => (float[6] y)
        {{ t = Cast <to = {to}> (x) y = Cast <to = 1> (t) }}"""
    check(source, to=24, feeds={"x": np.array([np.inf, -np.inf, 1e6, -1e6, np.nan, 1], np.float32)})
