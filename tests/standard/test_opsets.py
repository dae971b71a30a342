"""What a model's opset imports mean, and the IR version that an opset requires."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from onnx_migrate.standard.opsets import (
    imported,
    onnx_opset,
    remove_repeated_imports,
    set_onnx_opset,
)


def imports(**versions: int) -> list[onnx.OperatorSetIdProto]:
    return [helper.make_opsetid(name.replace("_", "."), number) for name, number in versions.items()]


@pytest.mark.parametrize(
    ("entries", "ir_version", "opset"),
    [
        ([helper.make_opsetid("", 9)], 4, 9),
        (imports(ai_onnx=9), 4, 9),
        ([helper.make_opsetid("", 9), helper.make_opsetid("ai.onnx", 9)], 4, 9),
        (imports(com_acme=1), 4, None),
        ([], 2, 1),
        ([], 3, None),
        (imports(com_acme=1), 2, None),
    ],
)
def test_the_opset_of_ai_onnx(
    entries: list[onnx.OperatorSetIdProto], ir_version: int, opset: int | None
) -> None:
    assert onnx_opset(entries, ir_version=ir_version) == opset


def test_of_two_imports_of_one_domain_the_last_holds() -> None:
    both = [helper.make_opsetid("", 9), helper.make_opsetid("ai.onnx", 11)]
    assert onnx_opset(both, ir_version=4) == 11
    assert onnx_opset(both[::-1], ir_version=4) == 9
    assert imported([helper.make_opsetid("x", 2), helper.make_opsetid("x", 1)], "x") == 1
    assert imported(imports(x=2, y=3), "y") == 3
    assert imported(imports(x=2), "y") is None


def test_repeated_imports_are_removed_but_for_the_last() -> None:
    owner = onnx.ModelProto()
    entries = [("", 9), ("x", 2), ("ai.onnx", 11), ("y", 1), ("x", 3)]
    owner.opset_import.extend(helper.make_opsetid(*entry) for entry in entries)

    assert remove_repeated_imports(owner) == [("", [9, 11]), ("x", [2, 3])]
    assert [(item.domain, item.version) for item in owner.opset_import] == [
        ("ai.onnx", 11),
        ("y", 1),
        ("x", 3),
    ]
    assert remove_repeated_imports(owner) == []


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_setting_an_opset_keeps_the_spelling_of_the_domain(domain: str) -> None:
    model = onnx.ModelProto()
    model.opset_import.extend([helper.make_opsetid("com.acme", 1), helper.make_opsetid(domain, 9)])

    set_onnx_opset(model, 17)

    assert [(item.domain, item.version) for item in model.opset_import] == [("com.acme", 1), (domain, 17)]


def test_a_model_without_an_import_gets_one() -> None:
    model = onnx.ModelProto()
    set_onnx_opset(model, 5)
    assert [(item.domain, item.version) for item in model.opset_import] == [("", 5)]
