from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model, run

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("attributes", ["", "<ratio = 0.3>"])
@pytest.mark.parametrize("opset", [7, 10])
def test_inference(attributes: str, opset: int) -> None:
    source = f"""<ir_version: 4, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] y)
        {{ y = Dropout {attributes} (x) }}"""
    check(source, to=12, feeds={"x": X}, expected=[X])


@pytest.mark.parametrize(
    ("opset", "attribute"), [(1, "<is_test = 1, ratio = 0.9>"), (6, "<is_test = 1>"), (7, "")]
)
def test_a_mask_that_nothing_reads_is_removed(opset: int, attribute: str) -> None:
    source = f"""<ir_version: 3, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] y)
        {{ y, mask = Dropout {attribute} (x) }}"""
    result = check(source, to=10, feeds={"x": X}, expected=[X])
    assert len(result.graph.node[0].output) == 1
    _, log = lift(model(source), 26)
    assert log.changes[0].exactness == "exact"


def test_a_mask_in_a_branch_is_read() -> None:
    source = """<ir_version: 4, opset_import: ["": 10]> g (float[2,3] x, bool c)
        => (float[2,3] y, bool[2,3] m)
        { y, mask = Dropout (x)
          m = If (c) <then_branch = t () => (bool[2,3] p) { p = Identity (mask) },
                      else_branch = e () => (bool[2,3] q) { q = Not (mask) }> }"""
    result, log = lift(model(source), 12)
    assert list(result.graph.node[0].output) == ["y", "mask"]
    assert [change.exactness for change in log.changes if change.before.op_type == "Dropout"] == ["assumed"]


def test_a_mask_of_the_data_type_becomes_bool() -> None:
    source = """<ir_version: 4, opset_import: ["": 9]> g (float[2,3] x) => (float[2,3] y, float[2,3] m)
        { y, m = Dropout <ratio = 0.4> (x) }"""
    check(source, to=10, newest=10, feeds={"x": X})
    # Nothing is dropped; the mask is all true at version 12, and all false in ONNX Runtime's version 7.
    check(source, to=12, feeds={"x": X}, expected=[X, np.ones_like(X)])


def test_training() -> None:
    source = """<ir_version: 3, opset_import: ["": 6]> g (float[40,50] x) => (float[40,50] y, float[40,50] m)
        { y, m = Dropout <ratio = 0.25> (x) }"""
    x = np.full((40, 50), 3, np.float32)
    for target in (12, 26):
        result, _ = lift(model(source), target)
        y, mask = run(result, {"x": x})
        np.testing.assert_allclose(y, x * mask / 0.75)
        assert mask.dtype == np.float32
        assert 0.6 < mask.mean() < 0.9
    with pytest.raises(CannotMigrate) as caught:
        lift(model(source), 11)
    assert caught.value.code == "no-equal"


def test_a_ratio_that_is_an_attribute_of_a_function() -> None:
    source = """<ir_version: 8, opset_import: ["": 11, "local": 1]> g (float[2,3] x) => (float[2,3] y)
        { y = local.Drop <part = 0.5> (x) }
        <opset_import: ["": 11], domain: "local"> Drop <part> (a) => (b)
        { b = Dropout <ratio: float = @part> (a) }"""
    check(source, feeds={"x": X}, expected=[X], variants=["plain"])
