"""The table of IR versions, against that of the installed onnx."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from onnx_migrate.standard.ir_versions import (
    DTYPE_FEATURES,
    NEWEST_IR,
    IrFeature,
    minimal_ir_version,
    newest_opset_of_ir,
)


@pytest.mark.parametrize(
    ("opset", "ir_version"),
    [
        (1, 3),
        (3, 3),
        (8, 3),
        (9, 4),
        (10, 5),
        (11, 6),
        (12, 7),
        (14, 7),
        (15, 8),
        (18, 8),
        (19, 9),
        (20, 9),
        (21, 10),
    ],
)
def test_the_oldest_ir_version_of_an_opset(opset: int, ir_version: int) -> None:
    assert minimal_ir_version(opset) == minimal_ir_version(opset, "") == ir_version


@pytest.mark.parametrize(("opset", "ir_version"), [(1, 3), (2, 6), (3, 8), (4, 9), (5, 10)])
def test_the_oldest_ir_version_of_an_opset_for_machine_learning(opset: int, ir_version: int) -> None:
    assert minimal_ir_version(opset, "ai.onnx.ml") == ir_version


@pytest.mark.parametrize("release", helper.VERSION_TABLE, ids=lambda row: str(row[0]))
def test_a_release_has_what_its_opsets_need(release: tuple[str, int, int, int]) -> None:
    _, ir_version, opset, ml = release[:4]
    assert minimal_ir_version(opset) <= ir_version
    assert minimal_ir_version(ml, "ai.onnx.ml") <= ir_version
    assert newest_opset_of_ir(ir_version) >= opset


@pytest.mark.parametrize(
    ("ir_version", "opset"), [(3, 8), (4, 9), (5, 10), (6, 11), (7, 14), (8, 18), (9, 20)]
)
def test_the_newest_opset_of_an_ir_version(ir_version: int, opset: int) -> None:
    assert newest_opset_of_ir(ir_version) == opset


def test_an_opset_of_another_domain_needs_no_ir_version() -> None:
    assert minimal_ir_version(5, "com.acme") == 3


def test_every_element_type_is_of_the_first_version_or_in_the_table() -> None:
    first = set(range(1, 16))  # up to COMPLEX128: onnx.proto of release 1.1
    assert set(TensorProto.DataType.values()) - {0} <= first | DTYPE_FEATURES.keys()
    assert first.isdisjoint(DTYPE_FEATURES)


def test_no_feature_is_newer_than_the_newest_version() -> None:
    known = [feature.since for feature in IrFeature if feature.since <= NEWEST_IR]
    assert NEWEST_IR > 13 or len(known) < len(IrFeature)
    assert len({feature.slug for feature in IrFeature}) == len(IrFeature)
