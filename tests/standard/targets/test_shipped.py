"""The tables that come with the package, by name."""

from __future__ import annotations

import pytest

from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.targets import shipped
from onnx_migrate.standard.targets.read import find, known_names, spellings, tables
from onnx_migrate.standard.targets.releases import plain


@pytest.mark.parametrize("name", known_names())
def test_rows_rise(name: str) -> None:
    opsets = [row.opset for row in shipped(name).releases if row.opset is not None]

    assert opsets == sorted(opsets)
    for row in shipped(name).releases:
        if row.opset is not None and row.ir_version is not None:
            assert minimal_ir_version(row.opset) <= row.ir_version, "the IR version that the opset needs"


def test_no_name_stands_for_two_runtimes() -> None:
    seen: dict[str, str] = {}
    for table in tables():
        products = [name for bundle in table.bundles for name in bundle.names]
        for name in {
            plain(item) for item in (table.name, table.title, *table.packages, *table.aliases, *products)
        }:
            assert seen.setdefault(name, table.name) == table.name, name


def test_names_are_found_in_any_spelling() -> None:
    for text in ("onnxruntime", "ONNX Runtime", "onnx-runtime", "ort", "ORT"):
        assert find(text) == (shipped("onnxruntime"), None)
    assert find("abacus") is None
    assert set(known_names()) <= set(spellings().values())
