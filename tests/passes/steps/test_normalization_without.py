"""Normalisations, Softmax and its kin written out compute the same at the opsets of their forms."""

from __future__ import annotations

import pytest

from tests.written_out import at, check_written_out

RANK = {"unranked": "needs-rank"}


@pytest.mark.parametrize("opset", [7, 13, 18])
@pytest.mark.parametrize("dims", ["2,3,4", "2,3,4,5"])
def test_instance_normalization(dims: str, opset: int) -> None:
    check_written_out(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[{dims}] x, float[3] s, float[3] b) => (float[{dims}] y)
        {{ y = InstanceNormalization <epsilon = 0.01> (x, s, b) }}""",
        "InstanceNormalization",
        refused=RANK,
        rtol=1e-5,
        atol=2e-6,
    )


@pytest.mark.parametrize("opset", [7, 9, 15])
@pytest.mark.parametrize("dims", ["2,3", "2,3,4,5"])
def test_batch_normalization(dims: str, opset: int) -> None:
    text = f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[{dims}] x) => (float[{dims}] y)
        <float[3] s = {{1.0, 2.0, -1.0}}, float[3] b = {{0.5, 0.0, 1.0}},
         float[3] m = {{0.1, -1.0, 2.0}}, float[3] v = {{1.0, 0.5, 2.0}}>
        {{ y = BatchNormalization (x, s, b, m, v) }}"""
    check_written_out(text, "BatchNormalization", refused=RANK, rtol=1e-5, atol=2e-6)


def test_a_training_batch_normalization_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["": 15]> g (float[2,3] x, float[3] s) => (float[2,3] y)
        { y, m, v = BatchNormalization <training_mode = 1> (x, s, s, s, s) }"""
    check_written_out(text, "BatchNormalization", variants=["plain"], refused={"plain": "no-equal"})


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("opset", [7, 13])
def test_lrn(opset: int, size: int) -> None:
    check_written_out(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[2,7,4,5] x) => (float[2,7,4,5] y)
        {{ y = LRN <size = {size}, alpha = 0.2, beta = 0.6, bias = 1.5> (x) }}""",
        "LRN",
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [7, 11, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_softmax_and_its_kin(operator: str, axis: int | None, opset: int) -> None:
    attributes = "" if axis is None else f"<axis = {axis}>"
    needs = operator == "Hardmax" or opset < 13
    check_written_out(
        at(opset, f"g (float[2,3,4] x) => (float[2,3,4] y) {{ y = {operator} {attributes} (x) }}"),
        operator,
        refused=RANK if needs else None,
        rtol=0 if operator == "Hardmax" else 1e-5,
        atol=0 if operator == "Hardmax" else 2e-6,
    )
