"""A model is asked whether it would raise an error: each question holds for one model and not for another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest

from onnx_migrate.explanation.asked_model import Finding
from onnx_migrate.explanation.error_text import explanation_of
from onnx_migrate.explanation.in_model import TARGET, ModelVerdict, ask_model
from onnx_migrate.explanation.node_questions import NODE_QUESTIONS
from onnx_migrate.explanation.questions import QUESTIONS, ask
from onnx_migrate.inspection import load_structure
from onnx_migrate.standard.error_texts import error_texts, find

Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that writes a model of some nodes, and returns its path."""

    def write(
        nodes: str,
        opset: int = 11,
        ir: int = 6,
        inputs: str = "float[1,3,4,4] x",
        more: str = "",
        weights: str = "",
    ) -> str:
        text = f"""<ir_version: {ir}, opset_import: ["": {opset}{more}]>
        g ({inputs}) => (y) {weights} {{ {nodes} }}"""
        path = tmp_path / "m.onnx"
        onnx.save(onnx.parser.parse_model(text), path)
        return str(path)

    return write


def answer(path: str, question: str, **given: str) -> Finding:
    return ask(question, load_structure(path)[0], {name: (value,) for name, value in given.items()})


RESIZE = 'y = Resize <mode = "nearest"> (x, r, s)'
WEIGHTS = "<float[8] r = {0,0,0,0,1,1,1,1}, float[4] s = {1,1,2,2}>"
QUANTIZED = "y = QuantizeLinear(x, s, z)"
NORMALISED = "(x, w, w, w, w)"
BLOCKS = "<int8[2,4] q = {1,2,3,4,5,6,7,8}, float[2,2] s = {1,2,3,4}>"
NEW: dict[str, int] = {"opset": 21, "ir": 10}
COMPUTED = "t = Neg(k) s = Neg(t) y = Upsample(x, s)"


@pytest.mark.parametrize(
    ("question", "given", "yes", "no"),
    [
        (
            "not-in-opset",
            {"op": "Gelu"},
            {"nodes": "y = Gelu(x)", "opset": 17, "ir": 8},
            {"nodes": "y = Gelu(x)", "opset": 20, "ir": 9},
        ),
        ("not-in-opset", {"op": ""}, {"nodes": "y = Foo(x)"}, {"nodes": "y = Relu(x)"}),
        (
            "deprecated",
            {"op": "upsample"},
            {"nodes": "y = Upsample(x, k)", "inputs": "float[1,3,4,4] x, float[4] k"},
            {"nodes": "y = Upsample(x, k)", "inputs": "float[1,3,4,4] x, float[4] k", "opset": 9},
        ),
        (
            "not-registered",
            {"op": "ConstantFill"},
            {"nodes": "y = ConstantFill(x)"},
            {"nodes": "y = Relu(x)"},
        ),
        ("has-operator", {"op": "ai.onnx.Relu"}, {"nodes": "y = Relu(x)"}, {"nodes": "y = Neg(x)"}),
        (
            "has-version",
            {"op": "Relu", "version": "6"},
            {"nodes": "y = Relu(x)"},
            {"nodes": "y = Relu(x)", "opset": 13},
        ),
        (
            "attribute",
            {"op": "ReduceMean", "attribute": "axes"},
            {"nodes": "y = ReduceMean <axes = [1]> (x)", "opset": 18},
            {"nodes": "y = ReduceMean <axes = [1]> (x)", "opset": 17},
        ),
        (
            "has-attribute",
            {"op": "", "attribute": "axes"},
            {"nodes": "y = ReduceMean <axes = [1]> (x)"},
            {"nodes": "y = Relu(x)"},
        ),
        (
            "attribute-not",
            {"op": "Resize", "attribute": "coordinate_transformation_mode", "value": "asymmetric"},
            {"nodes": RESIZE, "weights": WEIGHTS},
            {
                "nodes": RESIZE.replace("mode =", 'coordinate_transformation_mode = "asymmetric", mode ='),
                "weights": WEIGHTS,
            },
        ),
        (
            "computed-input",
            {"op": "Upsample", "input": "scales"},
            {"nodes": COMPUTED, "inputs": "float[1,3,4,4] x, float[4] k", "opset": 9},
            {"nodes": RESIZE, "weights": WEIGHTS},
        ),
        (
            "has-input",
            {"op": "Resize", "input": "sizes"},
            {"nodes": "y = Resize(x, r, s, z)", "weights": WEIGHTS, "inputs": "float[1,3,4,4] x, int64[4] z"},
            {"nodes": RESIZE, "weights": WEIGHTS},
        ),
        ("empty-input", {"op": "Resize"}, {"nodes": RESIZE, "weights": WEIGHTS}, {"nodes": "y = Relu(x)"}),
        (
            "negative-axis",
            {},
            {"nodes": "y = Softmax <axis = -1> (x)"},
            {"nodes": "y = Softmax <axis = 1> (x)"},
        ),
        (
            "lacks-attribute",
            {"op": "Conv", "attribute": "strides"},
            {"nodes": "y = Conv(x, w)", "inputs": "float[1,3,4,4] x, float[2,3,1,1] w"},
            {"nodes": "y = Conv <strides = [1, 1]> (x, w)", "inputs": "float[1,3,4,4] x, float[2,3,1,1] w"},
        ),
        (
            "lacks-attribute",
            {"op": "Squeeze", "attribute": "axes"},
            {"nodes": "y = Squeeze(x)", "opset": 13, "ir": 7},
            {"nodes": "y = Squeeze(x, a)", "opset": 13, "ir": 7, "weights": "<int64[1] a = {0}>"},
        ),
        (
            "attribute-is",
            {"op": "BatchNormalization", "attribute": "training_mode", "value": "1"},
            {"nodes": f"y = BatchNormalization <training_mode = 1> {NORMALISED}", "opset": 15, "ir": 8},
            {"nodes": f"y = BatchNormalization <training_mode = 0> {NORMALISED}", "opset": 15, "ir": 8},
        ),
        (
            "of-domain",
            {"domain": "ai.onnx.ml"},
            {"nodes": "y = ai.onnx.ml.Binarizer(x)", "more": ', "ai.onnx.ml": 3'},
            {"nodes": "y = Relu(x)", "more": ', "ai.onnx.ml": 3'},
        ),
        (
            "wrong-blocks",
            {"op": "DequantizeLinear"},
            {"nodes": "y = DequantizeLinear <axis = 0, block_size = 2> (q, s)", "weights": BLOCKS, **NEW},
            {"nodes": "y = DequantizeLinear <axis = 1, block_size = 2> (q, s)", "weights": BLOCKS, **NEW},
        ),
        (
            "asymmetric",
            {"op": "QuantizeLinear"},
            {"nodes": QUANTIZED, "weights": "<float s = {1.0}, int8 z = {3}>", "opset": 13, "ir": 7},
            {"nodes": QUANTIZED, "weights": "<float s = {1.0}, int8 z = {0}>", "opset": 13, "ir": 7},
        ),
        (
            "asymmetric",
            {"op": "QuantizeLinear"},
            {"nodes": QUANTIZED, "weights": "<float s = {1.0}, uint8 z = {0}>", "opset": 13, "ir": 7},
            {"nodes": "y = Relu(x)", "opset": 13, "ir": 7},
        ),
        (
            "asymmetric",
            {"op": ""},
            {"nodes": "y = QuantizeLinear(x, s)", "weights": "<float s = {1.0}>", "opset": 13, "ir": 7},
            {"nodes": "y = DequantizeLinear(x, s)", "inputs": "int8[2] x, float s", "opset": 13, "ir": 7},
        ),
        ("illegal", {"op": "Relu"}, {"nodes": "y = Relu <alpha = 1.0> (x)"}, {"nodes": "y = Relu(x)"}),
        ("illegal", {}, {"nodes": "y = Relu(z)"}, {"nodes": "y = Relu(x)"}),
    ],
)
def test_questions_on_nodes(
    make: Make, question: str, given: dict[str, str], yes: dict[str, str], no: dict[str, str]
) -> None:
    for model, raises in ((yes, True), (no, False)):
        finding = answer(make(**model), question, **given)
        assert finding.raises is raises, finding
        assert finding.reason
        assert bool(finding.places) or not raises or question == "illegal"


def test_every_question_on_nodes_is_asked_above() -> None:
    mark = next(mark for mark in test_questions_on_nodes.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} == {*NODE_QUESTIONS, "illegal"}


def raises_in(path: str, question: str, **given: str) -> bool | None:
    return answer(path, question, **given).raises


@pytest.mark.parametrize(("most", "raises"), [("5", True), ("6", False), ("", None)])
def test_ir_versions(make: Make, most: str, raises: bool | None) -> None:
    assert raises_in(make("y = Relu(x)"), "ir-newer", max=most) is raises
    assert raises_in(make("y = Relu(x)"), "ir-older", min="7") is True
    assert raises_in(make("y = Relu(x)"), "ir-older", min="3") is False


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
    assert raises_in(path, "import-newer", domain=domain, max=most) is raises
    assert raises_in(path, "import-older", domain="ai.onnx", min="12") is True
    assert raises_in(path, "import-missing") is False


def test_no_import(make: Make) -> None:
    path = make("y = Relu(x)")
    model = onnx.load(path)
    del model.opset_import[:]
    onnx.save(model, path)
    assert raises_in(path, "import-missing") is True


@pytest.mark.parametrize(
    ("dtype", "raises"), [("float", True), ("float32", True), ("tensor(int64)", False), ("none", None)]
)
def test_element_types(make: Make, dtype: str, raises: bool | None) -> None:
    assert raises_in(make("y = Relu(x)"), "element-type", dtype=dtype) is raises


def test_dims_and_initializers(make: Make) -> None:
    fixed = make("y = Add(x, w)", weights="<float[1] w = {1.0}>")
    assert (raises_in(fixed, "dynamic-dims"), raises_in(fixed, "unlisted-initializers")) == (False, True)
    dynamic = make("y = Relu(x)", inputs="float[N, 3] x")
    assert (raises_in(dynamic, "dynamic-dims"), raises_in(dynamic, "unlisted-initializers")) == (True, False)
    assert raises_in(dynamic, "readable") is False


def test_listed_initializers_and_fixed_axes(make: Make) -> None:
    listed = make("y = Add(x, w)", inputs="float[2,3] x, float[1] w", weights="<float[1] w = {1.0}>")
    assert raises_in(listed, "listed-initializers") is True
    assert raises_in(listed, "fixed-axis", input="x", axis="0", got="3") is True
    assert raises_in(listed, "fixed-axis", input="x", axis="0", got="2") is False
    assert raises_in(listed, "fixed-axis", input="x", axis="5", got="2") is None
    assert raises_in(listed, "fixed-axis", input="z", axis="0", got="2") is False
    assert (
        raises_in(make("y = Relu(x)", inputs="float[N,3] x"), "fixed-axis", input="x", axis="0", got="2")
        is False
    )


def verdict(path: str, text: str) -> ModelVerdict:
    (found,) = find(text, error_texts())
    return ask_model(explanation_of(found, text, path), path)


RANGE = "No Op registered for Range with domain_version of 10"
FED = "float a, float b, float c"


def test_a_model_that_raises_it_and_what_the_remedy_does(make: Make) -> None:
    found = verdict(make("y = Range(a, b, c)", 10, inputs=FED), RANGE)
    assert found.raises is True
    assert [(where.operator, where.node) for where in found.places] == [("Range", "y")]
    assert found.mends is True
    assert "reaches opset 11" in found.outlook


@pytest.mark.parametrize(
    ("nodes", "inputs", "opset"), [("y = Range(a, b, c)", FED, 11), ("y = Relu(x)", "float[2] x", 10)]
)
def test_a_model_that_does_not(make: Make, nodes: str, inputs: str, opset: int) -> None:
    found = verdict(make(nodes, opset, inputs=inputs), RANGE)
    assert (found.raises, found.places, found.outlook) == (False, (), "")


def test_a_remedy_that_is_refused_says_so(make: Make) -> None:
    limited = "Opset 17 is under development and support for this is limited."
    text = f"{limited} Current official support for domain ai.onnx is till opset 7"
    found = verdict(make("y = STFT(x, s)", 17, 8, inputs="float[1,16,1] x, int64 s"), text)
    assert found.raises is True
    assert found.mends is False
    assert " fails: " in found.outlook


def test_inside_sub_graphs(make: Make) -> None:
    nodes = """y = If (k) <then_branch = t () => (u) { u = Range(a, b, c) }, else_branch = e () => (v) { v = Identity(d) }>"""
    found = verdict(make(nodes, 10, inputs=f"bool k, {FED}, float[3] d"), RANGE)
    assert [where.scope for where in found.places] == ["graph/y:then_branch"]


def test_a_target_that_the_text_names(make: Make) -> None:
    text = (
        "[TensorRT v8502] No importer registered for op: LayerNormalization. Attempting to import as plugin."
    )
    found = verdict(make("y = LayerNormalization(x, w)", 17, 8, inputs="float[1,4] x, float[4] w"), text)
    assert found.raises is True
    assert any("TensorRT 8.5" in reason for reason in found.reasons)
    assert found.mends is True


def test_every_question_of_the_tables_is_known() -> None:
    asked = {check.question for entry in error_texts() for check in entry.checks}
    assert asked == {*QUESTIONS, TARGET}


@pytest.mark.parametrize(
    "entry", [entry for entry in error_texts() if entry.checks], ids=lambda entry: entry.name
)
def test_every_question_has_what_it_is_asked_with(make: Make, entry) -> None:  # type: ignore[no-untyped-def]
    path = make("y = Relu(x)", 13, 7)
    (found,) = find(entry.example, [entry])
    verdict = ask_model(explanation_of(found, entry.example), path)
    assert verdict.reasons or verdict.raises is None
    bare = " ".join(entry.patterns[-1].words.split())
    for item in find(bare, [entry]):
        ask_model(explanation_of(item, bare), path)
