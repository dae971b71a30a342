"""Two models are compared by what they compute, not by how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from onnx_migrate.comparison import compare
from onnx_migrate.errors import InvalidModel, LoadError, UsageError
from onnx_migrate.json_form import json_of
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.prover import Prover

TEXT = """<ir_version: 8, opset_import: ["":17]>
g (float[2,3] x) => (float[2,3] y) { a = Add(x, x)  y = Relu(a) }"""


def model(text: str = TEXT) -> onnx.ModelProto:
    found: onnx.ModelProto = onnx.parser.parse_model(text)
    return found


@pytest.mark.parametrize(
    ("other", "options", "kind"),
    [
        (TEXT, {"exact": True}, Kind.VERIFIED),
        (TEXT.replace('"":17', '"":14'), {}, Kind.VERIFIED),
        (TEXT.replace("a = Add(x, x)  y = Relu(a)", "a = Relu(x)  y = Add(a, a)"), {}, Kind.VERIFIED),
        (TEXT.replace("Relu", "Identity"), {}, Kind.DIFFERS),
        (TEXT.replace("Add(x, x)", "Sub(x, x)"), {"atol": 1000.0}, Kind.VERIFIED),
    ],
    ids=["same", "other-opset", "other-nodes", "other-numbers", "within-tolerance"],
)  # fmt: skip
def test_the_verdict_is_of_the_numbers(other: str, options: dict[str, Any], kind: Kind) -> None:
    assert compare(model(), model(other), isolated=False, **options).kind is kind


@pytest.mark.parametrize(("old", "new"), [("x)", "x, float[1] z)"), ("y", "w")])
def test_another_interface_differs_without_a_run(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prover, "verify", lambda *_: pytest.fail("the models were run"))
    other = TEXT.replace(f"[2,3] {old}", f"[2,3] {new}").replace(
        "y = Relu", f"{new} = Relu" if old == "y" else "y = Relu"
    )

    verdict = compare(model(), model(other), isolated=False)

    assert verdict.kind is Kind.DIFFERS
    assert new.split()[-1].rstrip(")") in verdict.reason


def test_a_file_that_is_no_model() -> None:
    with pytest.raises(LoadError):
        compare(model(), b"<html>")


def test_the_runs_are_told_as_they_begin() -> None:
    places: list[str] = []
    compare(model(), model(), isolated=False, progress=lambda event: places.append(str(event)))
    assert places[:2] == ["comparing with the original", "comparing with the original: input 1, run 1"]


@pytest.mark.parametrize("place", [0, 1])
def test_a_model_that_is_not_valid_is_refused_by_its_name(place: int, tmp_path: Path) -> None:
    broken = model()
    broken.graph.node[1].input[0] = "nowhere"
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for index, path in enumerate(paths):
        onnx.save(broken if index == place else model(), path)

    with pytest.raises(InvalidModel) as caught:
        compare(*paths)

    assert caught.value.code == "undefined-name"
    assert str(caught.value).startswith(
        f"{paths[place]}: 'y' (Relu): not a valid ONNX model: it reads 'nowhere'"
    )


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("Add(x, x)", "Add(x, y)", "cycle"),
        ("Relu(a)", "Relu(a, a)", "invalid-node"),
        ("Relu(a)", "Relu <bogus = 1> (a)", "invalid-node"),
        ("Add(x, x)", "Add(x, k)", "type-mismatch"),
        ("Relu(a)", 'RoundTrip <mode = "XYZ"> (a)', "invalid-node"),
    ],
    ids=["cycle", "too many inputs", "unknown attribute", "types that differ", "no such operator"],
)  # fmt: skip
def test_nodes_that_no_schema_allows_are_refused_where_onnx_runtime_does_not_load_them(
    old: str, new: str, code: str
) -> None:
    text = TEXT.replace(" y) {", " y) <int64 k = {1}> {")
    broken = model(text.replace(old, new))
    for pair in ((broken, model(text)), (model(text), broken), (broken, broken)):
        with pytest.raises(InvalidModel) as caught:
            compare(*pair, isolated=False)
        assert caught.value.code == code


def test_a_form_that_no_schema_knows_and_onnx_runtime_runs_is_compared() -> None:
    text = TEXT.replace("a = Add(x, x)", "a = SimplifiedLayerNormalization(x, s)")
    own = model(text.replace(" y) {", " y) <float[3] s = {1., 2., 3.}> {"))

    assert compare(own, own, isolated=False).kind is Kind.VERIFIED


@pytest.mark.parametrize("exact", [False, True])
def test_weights_that_differ_and_show_in_no_output_are_noted_and_no_reason_to_refuse(exact: bool) -> None:
    text = TEXT.replace("a = Add(x, x)  y = Relu(a)", "a = Min(x, w)  m = Mul(a, v)  y = Sub(x, m)")
    text = text.replace(" y) {", " y) <float w = {-1e9}, float v = {0}> {").replace("Min(x, w)", "Max(x, w)")
    other = text.replace("-1e9", "-2e9")

    verdict = compare(model(text), model(other), exact=exact, isolated=False)

    assert verdict.kind is Kind.VERIFIED
    assert (
        "weights of the same name have other data in the second model, which no output shows: 'w'"
        in verdict.notes
    )
    assert not any("other data" in note for note in compare(model(text), model(text), isolated=False).notes)


def test_a_runtime_that_runs_the_other_wrongly_makes_them_differ(faulty: object) -> None:
    same = compare(model(), model(), isolated=False, prove_in="faulty")
    assert (same.kind, [item.outcome for item in same.proved_in]) == (Kind.VERIFIED, ["right"])
    off = model()
    off.doc_string = "OFF=1"
    verdict = compare(model(), off, isolated=False, prove_in=["faulty"])
    assert verdict.kind is Kind.DIFFERS
    assert verdict.reason.startswith("in Faulty 2.3.4, the result is wrong, and the original is right")
    plain = json_of(verdict)
    assert plain["proved_in"][0]["outcome"] == "worse"
    assert plain["comparisons"][0]["identical"]
    assert plain["grade"] == "differs"


def test_a_runtime_that_lacks_memory_leaves_it_open(faulty: object) -> None:
    off = model()
    off.doc_string = "LACK"
    verdict = compare(model(), off, isolated=False, prove_in=["faulty"])
    assert verdict.kind is Kind.UNVERIFIED
    assert "out of memory" in verdict.reason


WEIGHTED = """<ir_version: 8, opset_import: ["":17]>
g (float[2,3] x) => (float[2,3] y) <float[1] k = {K}> { a = Mul(x, k)  b = Mul(a, a)  c = Sqrt(b)  y = Div(c, k) }"""


@pytest.mark.parametrize(("k", "kind"), [("1.7", Kind.VERIFIED), ("1000.", Kind.DIFFERS)])
def test_a_model_of_another_precision_is_held_to_that(k: str, kind: Kind) -> None:
    """The second one overflows inside, which ONNX Runtime does not show."""
    original = model(WEIGHTED.replace("K", k))
    narrow = convert_float(original)

    verdict = compare(original, narrow, isolated=False, cast=True)

    assert verdict.kind is kind
    assert compare(original, narrow, isolated=False).kind is Kind.DIFFERS  # by their types
    if kind is Kind.DIFFERS:
        assert "the first value that leaves the original is 'b'" in verdict.reason


def convert_float(source: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with every float32 replaced by float16."""
    result = onnx.ModelProto()
    result.CopyFrom(source)
    for value in (*result.graph.input, *result.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for tensor in result.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor).astype("float16")
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return result


def test_inputs_and_outputs_of_other_names_are_mapped() -> None:
    other = model(
        TEXT.replace("(float[2,3] x)", "(float[2,3] pixel_values)").replace(
            "(x, x)", "(pixel_values, pixel_values)"
        )
    )
    refused = compare(model(), other, isolated=False)

    assert (
        refused.reason
        == "the inputs were x and became pixel_values; --match-name x=pixel_values compares them in their order"
    )
    assert compare(model(), other, names={"x": "pixel_values"}, isolated=False).verified
    with pytest.raises(UsageError, match="no input or output 'pixel'"):
        compare(model(), other, names={"x": "pixel"}, isolated=False)


def test_an_inner_value_of_a_mapped_name_is_another() -> None:
    other = model(
        """<ir_version: 8, opset_import: ["":17]> g (float[2,3] p) => (float[2,3] y) { x = Add(p, p)  y = Relu(x) }"""
    )

    assert compare(model(), other, names={"x": "p"}, isolated=False).verified


HALF = """<ir_version: 8, opset_import: ["": 17]> g (float16[2] x) => (float16[2] y) { y = Relu(x) }"""
INSIDE = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {
    w = Constant <value = float16[1] {16947}> () h = Cast <to = 10> (x) r = Mul (h, w) y = Cast <to = 1> (r) }"""
TIMES = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <float[1] w = {3.1}> { y = Mul(x, w) }"""


@pytest.mark.parametrize(
    ("one", "two", "advised"),
    [
        (HALF.replace("float16", "float"), HALF, True),
        (TIMES, INSIDE, True),
        (INSIDE, TIMES, True),
        (HALF, HALF.replace("Relu", "Exp"), False),
    ],
)
def test_models_of_other_precision_are_told_of_cast(one: str, two: str, advised: bool) -> None:
    models = [onnx.parser.parse_model(text) for text in (one, two)]
    found = compare(*models)
    note = "only one of the models computes in float16: --cast allows the error of its rounding"
    assert (found.kind is Kind.DIFFERS, note in found.notes) == (True, advised)
    assert note not in compare(*models, cast=True).notes
