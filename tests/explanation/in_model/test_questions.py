"""Questions on the header, the types and the dims of a model."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.explanation.in_model.questions import QUESTIONS
from onnx_migrate.explanation.in_model.view import ModelView
from onnx_migrate.inspection import load_structure
from tests.explanation.in_model.conftest import Make


def ask(path: str, question: str, **given: str) -> bool | None:
    view = ModelView(load_structure(path)[0])
    return QUESTIONS[question](view, {name: (value,) for name, value in given.items()}).raises


@pytest.mark.parametrize(("most", "raises"), [("5", True), ("6", False), ("", None)])
def test_ir_versions(make: Make, most: str, raises: bool | None) -> None:
    assert ask(make("y = Relu(x)"), "ir-newer", max=most) is raises
    assert ask(make("y = Relu(x)"), "ir-older", min="7") is True
    assert ask(make("y = Relu(x)"), "ir-older", min="3") is False


@pytest.mark.parametrize(
    ("domain", "most", "raises"),
    [
        ("ai.onnx", "10", True),
        ("", "11", False),
        ("ai.onnx.ml", "3", True),
        ("com.foo", "3", False),
        ("", "", None),
    ],
)
def test_imports(make: Make, domain: str, most: str, raises: bool | None) -> None:
    path = make("y = Relu(x)", more=', "ai.onnx.ml": 5')
    assert ask(path, "import-newer", domain=domain, max=most) is raises
    assert ask(path, "import-older", domain="ai.onnx", min="12") is True
    assert ask(path, "import-missing") is False


def test_no_import(make: Make) -> None:
    path = make("y = Relu(x)")
    model = onnx.load(path)
    del model.opset_import[:]
    onnx.save(model, path)
    assert ask(path, "import-missing") is True


@pytest.mark.parametrize(
    ("dtype", "raises"), [("float", True), ("float32", True), ("tensor(int64)", False), ("none", None)]
)
def test_element_types(make: Make, dtype: str, raises: bool | None) -> None:
    assert ask(make("y = Relu(x)"), "element-type", dtype=dtype) is raises


def test_dims_and_initializers(make: Make) -> None:
    fixed = make("y = Add(x, w)", weights="<float[1] w = {1.0}>")
    assert (ask(fixed, "dynamic-dims"), ask(fixed, "unlisted-initializers")) == (False, True)
    dynamic = make("y = Relu(x)", inputs="float[N, 3] x")
    assert (ask(dynamic, "dynamic-dims"), ask(dynamic, "unlisted-initializers")) == (True, False)
    assert ask(dynamic, "readable") is False


def test_listed_initializers_and_fixed_axes(make: Make) -> None:
    listed = make("y = Add(x, w)", inputs="float[2,3] x, float[1] w", weights="<float[1] w = {1.0}>")
    assert ask(listed, "listed-initializers") is True
    assert ask(listed, "fixed-axis", input="x", axis="0", got="3") is True
    assert ask(listed, "fixed-axis", input="x", axis="0", got="2") is False
    assert ask(listed, "fixed-axis", input="x", axis="5", got="2") is None
    assert ask(listed, "fixed-axis", input="z", axis="0", got="2") is False
    assert (
        ask(make("y = Relu(x)", inputs="float[N,3] x"), "fixed-axis", input="x", axis="0", got="2") is False
    )
