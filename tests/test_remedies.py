"""What would help where a runtime does not take a model; all of it was tried."""

from __future__ import annotations

import ast
import shlex
from typing import Any

import onnx
import pytest

from onnx_migrate import convert_version, files, migrate
from onnx_migrate.advice import FIX_DIMS, Advice, Chosen
from onnx_migrate.compatibility import CompatibilityChecker
from onnx_migrate.declared import declared
from onnx_migrate.errors import CannotMigrate, MigrateError
from onnx_migrate.inspection import inspect
from onnx_migrate.options import Options
from onnx_migrate.process import OutOfTime, check_stopped
from onnx_migrate.remedies import remedies
from onnx_migrate.standard.targets import Targets, resolve
from onnx_migrate.tried_advice import tried_advice
from tests.harness import model
from tests.support.targets import targets_of
from tests.test_architecture import parsed, sources

LISTED = """operators = "listed"
[[release]]
opset = 17
%s
[[operator]]
names = ["Relu", "Mul", "Conv", "Sigmoid", "Constant"]
"""
STATIC = targets_of(LISTED % "static = true")
PLAIN = targets_of(LISTED % "")
OPEN = (
    "17 (float[batch,3,height,width] images) => (float[batch,3,height,width] y)"
    " { a = Relu (images) y = Mul (a, images) }"
)
TAIL = """17 (float[2,3] x, float[1,4,4] boxes) => (int64[n,3] kept, float[2,3] z) <int64[1] most = {5}> {
  [a] a = Relu (x) [b] b = Sigmoid (a) [c] z = Mul (b, b) [e] s = Relu (boxes) [f] scores = Sigmoid (s) [g] t = Mul (s, s)
  [nms] found = NonMaxSuppression (t, scores, most) [last] kept = Relu (found)
}"""


NON_ZERO = '<ir_version: 7, opset_import: ["": 13]> g (float[4] x) => (int64[1,n] y) { y = NonZero (x) }'


def helped(text: str, targets: Targets) -> tuple[str, ...]:
    return remedies(CompatibilityChecker(files.load(model(text))), targets)


def test_a_remedy_is_no_promise_where_operators_are_not_known() -> None:
    (text,) = helped(OPEN, targets_of("[[release]]\nstatic = true"))

    assert (
        text
        == "with fixed dims no rule that onnx-migrate knows excludes chip, for example with --fix-shape images:1,3,320,320"
    )


def test_dims_are_fixed_by_options_that_work() -> None:
    (text,) = helped(OPEN, STATIC)

    assert text == "with fixed dims chip supports it, for example with --fix-shape images:1,3,320,320"
    _, option, value = text.partition("--fix-shape ")
    assert option
    migrate(model(OPEN), runtime=STATIC, fix=shlex.split(value), verify=False)


def test_dims_of_one_name_are_fixed_alike() -> None:
    text = "17 (float[N,L] x, float[N,L] z) => (float[N,L] y) { y = Mul (x, z) }"

    assert helped(text, STATIC) == (
        "with fixed dims chip supports it, for example with --fix-shape x:1,128 --fix-shape z:1,128",
    )


def test_fixed_dims_that_do_not_help_are_not_said() -> None:
    text = OPEN.replace("Mul (a, images)", "Asin (a)")

    assert not any("--fix-shape" in item for item in helped(text, STATIC))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_quantised_model_is_taken_as_floats(dtype: str) -> None:
    """MNN has no QuantizeLinear, which of uint8 is written with other operators, and of int8 is not."""
    source = model(f"""17 (float[2,8] x) => (float[2,8] y) <float s = {{0.05}}, {dtype} z = {{3}}> {{
        q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }}""")
    targets = resolve("mnn==3.6.1")
    if dtype == "uint8":
        assert migrate(source, runtime=targets, verify=False)
        return
    with pytest.raises(CannotMigrate) as caught:
        migrate(source, runtime=targets, verify=False)
    assert (
        "as floats, whose numbers are others, MNN 3.6.1 supports it: --quantized-form float"
        in caught.value.hint
    )
    assert migrate(source, runtime=targets, quantized="float").report.verified


def test_the_nodes_at_the_end_that_could_be_cut_off_are_named() -> None:
    text = TAIL.replace("last] kept = Relu (found)", "last] kept = Mul (found, found)")
    (found,) = helped(text, PLAIN)

    assert found == (
        "without the 2 nodes from 'nms' (NonMaxSuppression) on at the end, with 't', 'scores' and 'z' as outputs,"
        " chip supports it: --split writes both parts"
    )


def test_a_model_of_which_little_would_be_left_is_not_cut() -> None:
    assert helped("17 (float[4] x) => (float[4] y) { a = Asin (x) b = Relu (a) y = Relu (b) }", PLAIN) == ()


@pytest.mark.parametrize(("release", "helps"), [("8.4", True), ("8.5", False)])
def test_the_nearest_release_is_named_where_the_answer_is_no(release: str, helps: bool) -> None:
    (advice,) = inspect(model(NON_ZERO), runtime=f"tensorrt=={release}").advice

    assert ("TensorRT 8.5 supports it as it is" in advice.helps) == helps


def test_a_refused_migration_says_what_would_help() -> None:
    with pytest.raises(CannotMigrate) as error:
        migrate(model(OPEN), runtime=STATIC)
    assert error.value.hint.endswith("--fix-shape images:1,3,320,320")

    with pytest.raises(CannotMigrate) as error:
        migrate(model(NON_ZERO), runtime=resolve("tensorrt==8.4"))
    assert error.value.advice[-1] == Advice("TensorRT 8.5 supports it as it is", tried=True)


DET = '<ir_version: 8, opset_import: ["": 11]> g (float[N,N] x) => (float y) { y = Det (x) }'


def test_advice_that_works_has_an_example_and_no_mark() -> None:
    with pytest.raises(CannotMigrate) as caught:
        migrate(model(DET), opset=10)

    first, second = caught.value.advice
    assert first == Advice(
        "fix the dims of the model's inputs with --fix-shape, for example --fix-shape x:1,1",
        True,
        {"fix_shape": Chosen.DIMS},
    )
    assert (second.text, second.tried) == ("opset 11 can be reached", True)
    assert migrate(model(DET), opset=10, fix_shape="x:1,1").report.verified
    assert migrate(model(DET), opset=11).report.verified


@pytest.mark.parametrize(
    ("text", "options", "hint", "change"),
    [
        ("9 (float[1,1,4,4] x, float[4] s) => (float[a,b,c,d] y) { y = Upsample (x, s) }", {"opset": 10}, "Resize of opset 11",
         {"opset": 11}),
        ("9 (float[4] x) => (float[4] y) { y = Relu (x) }", {"opset": 8, "lower": False}, "remove --no-lower",
         {"lower": True}),
        ("17 (float[4] x) => (float[4] y) { y = Relu (x) }", {"ir_version": 6}, "--opset 11", {"opset": "11"}),
        ("17 (int64[4] x) => (int64[4] y) { y = Mul (x, x) }", {"int32": "require"}, "give --int32 to", {"int32": True}),
        ("17 (float[4] x) => (int64[1,n] y) { y = NonZero (x) }", {"static": True}, "--best-effort", {"best_effort": True}),
        ("17 (float[2,4] x) => (float[2,4] y) { y = Relu (x) }", {"fix": "x:3,4"}, "make it dynamic first",
         {"fix": None, "dynamic": "x:0=N"}),
    ],
)  # fmt: skip
def test_advice_without_a_mark_works(
    text: str, options: dict[str, Any], hint: str, change: dict[str, Any]
) -> None:
    with pytest.raises(MigrateError) as caught:
        migrate(model(text), **options)

    assert [one.tried for one in caught.value.advice if one.text.find(hint) >= 0] == [True]
    assert migrate(model(text), **{**options, **change}).report.verified


def test_advice_names_options_that_there_are() -> None:
    """A renamed option would make a trial fail, and the advice would no longer be printed."""
    names = {
        key.value
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Advice"
        for keyword in node.keywords
        if keyword.arg == "options" and isinstance(keyword.value, ast.Dict)
        for key in keyword.value.keys
        if isinstance(key, ast.Constant)
    }
    assert {"opset", "fix_shape", "lower"} <= names <= {item.name for item in declared(Options)}


def test_advice_that_does_not_help_is_not_printed() -> None:
    """All dims are numbers already, and the other opset ends with the same refusal."""
    refusal = CannotMigrate("no equal", hint=(FIX_DIMS, Advice("migrate to opset 9", options={"opset": 9})))
    text = "9 (float[2,2] x) => (float[2,2] y) { y = Relu (x) }"
    source = files.load(model(text))
    assert [one.text for one in tried_advice(refusal, source, Options(opset=8))] == ["migrate to opset 9"]

    with pytest.raises(MigrateError) as caught:
        migrate(model(text), opset=8, ir_version=2)
    same = caught.value
    same.advise(Advice("do the same again", options={"opset": 8}))
    assert tried_advice(same, source, Options(opset=8, ir_version=2)) == ()


def test_dims_of_which_the_user_gave_some_are_not_tried() -> None:
    refusal = CannotMigrate("no equal", hint=FIX_DIMS)

    assert tried_advice(refusal, files.load(model(DET)), Options(opset=10, fix_shape="x:1,1")) == (FIX_DIMS,)


def test_advice_is_not_tried_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_time(*_: object) -> None:
        raise OutOfTime(MigrateError("timed out"))

    monkeypatch.setattr("onnx_migrate.tried_advice._failure", out_of_time)
    with pytest.raises(CannotMigrate) as caught:
        migrate(model(DET), opset=10)

    assert (
        caught.value.hint
        == "not tried: fix the dims of the model's inputs with --fix-shape; opset 11 can be reached"
    )


def test_two_ways_to_the_same_options_are_one() -> None:
    text = """16 (float[1,1,4,4] x, float[N,4] r, int64[N] i) => (float[N,1,1,1] y)
        { y = RoiAlign <coordinate_transformation_mode = "output_half_pixel"> (x, r, i) }"""
    with pytest.raises(CannotMigrate) as caught:
        migrate(model(text), opset=9)

    assert caught.value.hint == "bring the model to opset 10"


def test_an_inspection_tries_the_advice_on_its_refusal() -> None:
    refusal = inspect(model(DET), opset=10).refusal

    assert refusal is not None
    assert refusal.hint_tried
    assert "--fix-shape x:1,1" in refusal.hint


def test_the_help_for_a_runtime_marks_what_was_not_tried() -> None:
    (advice,) = inspect(model(NON_ZERO), runtime="tensorrt==8.4").advice

    assert advice.helps[0].endswith("; not tried: make 'x' an initializer that is not a graph input")
    assert advice.helps[1:] == ("TensorRT 8.5 supports it as it is",)


def test_a_trial_that_takes_too_much_memory_does_not_hide_the_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def exhausted(options: Options) -> None:
        raise MemoryError

    refusal = CannotMigrate("no equal", hint=Advice("opset 9 works", options={"opset": 9}))
    monkeypatch.setattr("onnx_migrate.tried_advice.pipeline_of", exhausted)

    assert tried_advice(refusal, files.load(model(DET)), Options(opset=8)) == ()


def test_a_conversion_tries_the_advice_on_its_refusal() -> None:
    with pytest.raises(CannotMigrate) as caught:
        convert_version(model(DET), 10)

    assert "opset 11 can be reached" in [one.text for one in caught.value.advice if one.tried]


def test_the_model_stays_as_it_is() -> None:
    source = model(TAIL)
    before = onnx.ModelProto.FromString(source.SerializeToString())
    helped_by = CompatibilityChecker(files.load(source))
    remedies(helped_by, PLAIN)

    assert helped_by.model.proto == before


def test_a_search_for_ways_out_that_takes_too_long_leaves_the_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(*_: object) -> tuple[str, ...]:
        monkeypatch.setattr("onnx_migrate.process.deadline.monotonic", lambda: 1e12)
        check_stopped()
        return ("nobody looked at the clock",)

    monkeypatch.setattr("onnx_migrate.remedies.remedies", late)
    with pytest.raises(CannotMigrate) as caught:
        migrate(onnx.parser.parse_model(NON_ZERO), runtime="ncnn", timeout=60, verify=False, simplify=False)
    assert caught.value.code != "timed-out"


QUANTISED = """17 (uint8[4] x) => (uint8[4] y) <float s = {0.1}, uint8 z = {3}> {
    d = DequantizeLinear (x, s, z) r = Relu (d) y = QuantizeLinear (r, s, z) }"""


@pytest.mark.parametrize(
    ("pairs", "option"), [(True, "--quantized-form qdq"), (False, "--quantized-form float")]
)
def test_pairs_come_before_floats_as_they_keep_the_numbers(monkeypatch, pairs, option) -> None:
    from onnx_migrate import remedies as module

    taken = {"qdq": "chip supports it" if pairs else "", "float": "chip supports it"}
    monkeypatch.setattr(module, "_taken", lambda *_, quantized_form="", **__: taken.get(quantized_form, ""))
    assert any(text.endswith(option) for text in helped(QUANTISED, PLAIN))
    assert not any(
        "--quantized-form" in text and not text.endswith(option) for text in helped(QUANTISED, PLAIN)
    )
