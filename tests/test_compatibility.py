"""What is said of a model and a runtime, as plain values."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_migrate.inspection  # noqa: F401 (declares what is printed of these values)
from onnx_migrate import default_pipeline, files, migrate
from onnx_migrate.compatibility import (
    Compatibility,
    CompatibilityChecker,
    RuntimeCompatibility,
    Support,
)
from onnx_migrate.engine.incompatibility import Incompatibility
from onnx_migrate.errors import CannotMigrate, MigrateError, Where
from onnx_migrate.facts.node_form import node_forms
from onnx_migrate.json_form import json_of
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.targets import Target, Targets, holds, milestones, resolve, shipped, tables
from tests.harness import model
from tests.support.paths import FIXTURES
from tests.support.targets import targets_of

(TARGET,) = targets_of('[[release]]\nopset = 13\nsource = "its manual"')


def test_standings_are_in_order() -> None:
    assert [item.rank for item in Support] == [4, 3, 2, 1, 0]


def test_as_json() -> None:
    refusal = CannotMigrate("there is no such thing", code="target-lacks")
    objection = Incompatibility("no such thing", Where("graph", "n", "Thing"), 2)
    advice = Compatibility(
        TARGET, Support.NO, (objection,), obstacles=(objection,), helps=("another",), refusal=refusal
    )
    found = json.loads(json.dumps(json_of(advice)))

    assert (found["standing"], found["code"], found["helps"]) == ("no", "target-lacks", ["another"])
    assert found["runtime"]["measured"] is False
    assert found["obstacles"] == [
        {
            "reason": "no such thing",
            "scope": "graph",
            "node": "n",
            "operator": "Thing",
            "nodes": 2,
            "wrong": False,
        }
    ]


TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y) <float[3] s = {1., 1., 1.}> { [n] y = LayerNormalization <axis = 1> (x, s) }"""


def advisor(text: str = TEXT) -> CompatibilityChecker:
    return CompatibilityChecker(files.load(model(text)))


def test_the_releases_of_tensorrt_that_have_layer_normalization() -> None:
    found = advisor().outlook(shipped("tensorrt"))

    assert found.since(Support.AS_IS) == "8.6 and on"
    standings = dict(found.releases)
    assert standings["8.5"] is Support.AFTER
    assert found.advice.standing is Support.AS_IS


@pytest.mark.parametrize(
    ("standings", "least", "expected"),
    [
        ("NAAI", "AS_IS", "4 and on"), ("NAAI", "AFTER", "2 and on"), ("NNNN", "AFTER", ""), ("IIII", "AFTER", "1 and on"),
        ("IINI", "AS_IS", "1 to 2, 4 and on"), ("INAN", "AS_IS", "1"), ("NIIN", "AFTER", "2 to 3"), ("I", "AS_IS", "yes"),
        ("N", "AS_IS", ""),
    ],
)  # fmt: skip
def test_spans_of_releases(standings: str, least: str, expected: str) -> None:
    kinds = {"N": Support.NO, "A": Support.AFTER, "I": Support.AS_IS}
    advice = advisor().advise(*resolve(["onnxruntime==1.14"]))
    releases = tuple((str(at), kinds[letter]) for at, letter in enumerate(standings, 1))

    assert RuntimeCompatibility(advice, releases).since(Support[least]) == expected


def long(count: int) -> CompatibilityChecker:
    """A model of `count` nodes of operators that many runtimes take in another form, or not at all."""
    proto = model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }'
    )
    name = "x"
    del proto.graph.node[:]
    kinds = ("Clip", "Softmax", "HardSwish", "Unsqueeze", "Squeeze")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axis"))
    for at in range(count):
        kind = kinds[at % len(kinds)]
        inputs = [name, "axis"] if kind in ("Unsqueeze", "Squeeze") else [name]
        name = "y" if at == count - 1 else f"v{at}"
        proto.graph.node.append(onnx.helper.make_node(kind, inputs, [name]))
    return CompatibilityChecker(files.load(proto))


def seconds(count: int) -> float:
    given = long(count)
    start = time.process_time()
    for table in tables():
        given.outlook(table)
    return time.process_time() - start


@pytest.mark.campaign
def test_all_runtimes_take_seconds_and_the_time_is_linear() -> None:
    seconds(5)
    short, whole = min(seconds(250) for _ in range(3)), min(seconds(1000) for _ in range(2))

    assert whole < 12
    assert whole < 7 * short


SOURCE = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y) <float[3] s = {1., 1., 1.}> {
  [a] a = LayerNormalization (x, s) [b] b = LayerNormalization (a, s) [c] y = Relu (b)
}"""
LISTED = """operators = "listed"
newer = "refused"
[[operator]]
names = ["Relu", "Add", "Sub", "Mul", "Div", "Sqrt", "ReduceMean", "Pow", "Cast", "Reciprocal", "Constant"]
"""


def advised(text: str, source: onnx.ModelProto | None = None) -> Compatibility:
    (target,) = targets_of(text)
    return CompatibilityChecker(files.load(source or model(SOURCE))).advise(target)


@pytest.mark.parametrize(
    ("text", "standing", "reasons"),
    [
        ("operators = 'any'\n[[release]]\nopset = 17\nir = 8", Support.AS_IS, []),
        ("operators = 'any'\n[[release]]", Support.AS_IS, []),
        ("operators = 'any'\n[[release]]\nopset = 16\nir = 8", Support.AFTER, ["opset 17: "]),
        ("[[release]]\nopset = 17\nir = 8", Support.NOT_KNOWN, []),
        ("[[release]]\nopset = 16\nir = 8", Support.NOT_KNOWN, ["opset 17: "]),
        ("operators = 'any'\n[[release]]\nopset = 17\nir = 7", Support.AFTER, ["IR version 8: "]),
        ("operators = 'any'\n[[release]]\nopset = 20\noldest = 18", Support.AFTER, ["opset 17: "]),
        (f"{LISTED}[[release]]\nopset = 17", Support.AFTER, ["LayerNormalization"]),
        (f"{LISTED.replace('ReduceMean', 'Abs')}[[release]]\nopset = 17", Support.NO, ["LayerNormalization"]),
        ('[[release]]\nopset = 17\n[[operator]]\nnames = ["Relu"]\nnewest = 13', Support.NOT_KNOWN, ["Relu up to"]),
        ('[[release]]\nopset = 17\n[[operator]]\nnames = ["Relu"]\ntypes = ["float16"]', Support.NO, ["float16"]),
        ('[[release]]\nopset = 18\n[[fault]]\nnames = ["Relu"]\ntext = "is wrong"', Support.NO, ["is wrong"]),
    ],
    ids=["fits", "no cap", "opset", "not known", "not known after", "IR", "oldest", "lacks", "hopeless", "version",
         "type", "fault"],
)  # fmt: skip
def test_what_stands_in_the_way(text: str, standing: Support, reasons: list[str]) -> None:
    found = advised(text)

    assert found.standing is standing, found
    assert len(found.objections) == len(reasons)
    for objection, reason in zip(found.objections, reasons, strict=True):
        assert reason in objection.reason
    assert bool(found.obstacles) == (standing is Support.NO)


def test_nodes_that_are_lacking_are_counted_and_the_first_is_named() -> None:
    (found,) = advised(f"{LISTED}[[release]]\nopset = 17").objections

    assert (found.where and found.where.node, found.nodes) == ("a", 2)


def test_what_a_migration_changes() -> None:
    found = advised('operators = "any"\n[[release]]\nopset = 13\nir = 7')

    assert (found.standing, found.opset, found.ir_version) == (Support.AFTER, 13, 7)
    assert any(name.startswith("LayerNormalization-17") and count == 2 for name, count in found.changes)


def test_a_table_with_an_opset_and_no_operator_says_that_they_are_not_known() -> None:
    text = '[[release]]\nopset = 17\n[[operator]]\nnames = ["Relu"]\nmeasured = true\n'
    found = advised(text)

    assert found.operators is not None
    assert str(found.operators) == "operators not known: LayerNormalization (2 of 3 nodes)"
    assert json_of(found)["standing"] == "opset fits, operators not known"
    assert json_of(found)["operators_known"] == {
        "runtime": "chip", "state": "not known", "nodes": 3,
        "not_known": [{"operator": "LayerNormalization", "nodes": 2}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "basis"), [(("Relu", "LayerNormalization"), "measured"), (("Relu",), "read")]
)
def test_the_basis_is_measured_if_all_operators_are(measured: tuple[str, ...], basis: str) -> None:
    rows = "".join(
        f'[[operator]]\nnames = ["{name}"]\nmeasured = {str(name in measured).lower()}\n'
        for name in ("Relu", "LayerNormalization")
    )
    found = advised(f"[[release]]\nopset = 17\n{rows}")

    assert (found.standing, found.basis) == (Support.AS_IS, basis)


def test_no_table_without_operators_says_that_a_model_runs() -> None:
    proto = model(SOURCE)
    checker = CompatibilityChecker(files.load(proto))
    bare = [table for table in tables() if table.extent == "unknown" and not table.operators]

    assert len(bare) > 10
    for table in bare:
        assert checker.advise(milestones(table)[-1]).standing in (Support.NOT_KNOWN, Support.NO), table.name


@pytest.mark.parametrize(
    ("release", "opset", "said"), [("10.13", 17, 0), ("11.0", 17, 1), ("11.5", 17, 1), ("11.5", 26, 1)]
)
def test_what_a_release_changed_is_said_by_inspect_and_by_a_migration(
    release: str, opset: int, said: int
) -> None:
    source = model(f"{opset} (float[2] x) => (float[2] y) {{ y = Relu(x) }}")
    found = CompatibilityChecker(files.load(source)).advise(next(iter(resolve([f"tensorrt=={release}"]))))
    assert sum("has no --fp16" in text for text in found.warnings) == said

    report = migrate(source, runtime=f"tensorrt=={release}", verify=False).report
    assert [note.code for note in report.notes].count("release-note") == said


_CHOSEN = (
    "s = Shape (x) n = Gather (s, i) b = Equal (n, i) y = If (b) <then_branch = g () => (float[] u) { u = Squeeze (x) },"
    " else_branch = h () => (float[] v) { v = Identity (x) }>"
)


@pytest.mark.parametrize(
    "node", ["y = Squeeze (x)", "y = STFT (x, step, window)", _CHOSEN], ids=["Squeeze", "STFT", "If"]
)
def test_openvino_is_not_said_to_run_values_of_open_rank_nor_an_stft_of_open_dims(node: str) -> None:
    """OpenVINO 2026.4.1 compiles none of these (benchmarks/operator_forms.py)."""
    graph = f"g (float[N,M,1] x) => (float[] y) <int64 step = {{8}}, float[1] window = {{1.0}}, int64 i = {{1}}> {{ {node} }}"
    source = files.load(model(f'<ir_version: 8, opset_import: ["": 17]> {graph}'))
    found = CompatibilityChecker(source).advise(next(iter(resolve(["openvino==2026.4"]))))
    assert found.standing is Support.NOT_KNOWN, found


@pytest.mark.parametrize(
    "runtime", ["opencv==4.5", "opencv==5.0", "openvino==2026.4", "tract==0.23", "mnn==3.6"]
)
def test_a_local_function_is_written_out_for_who_reads_none(runtime: str) -> None:
    """The wheels of OpenCV 4.5.5 to 5.0.0, OpenVINO 2023.1.0 and 2026.4.1, tract 0.23.9 and MNN 3.6.1 load no call of one."""
    source = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 9, "own": 1]> g (float[2,8] x) => (float[2,8] y) { y = own.Gate (x) }'
        ' <opset_import: ["": 9], domain: "own"> Gate (x) => (y) { s = Sigmoid (x) y = Mul (x, s) }'
    )
    found = CompatibilityChecker(files.load(source)).advise(next(iter(resolve([runtime]))))
    assert any("local function" in item.reason for item in found.objections)
    assert not migrate(source, runtime=runtime, verify=False).model.functions


LAST = """12 (float[2,3] x, float[2,3] z) => (float[2,3] y) <float[3] c = {1, 2, 3}> {
    i = Identity (c) d = Div (x, z) y = Mul (d, {0}) }"""
COUNTS = "17 (int64[2,4] x) => (int64 y) <int64 c = {8}> { {0} y = Div (m, {1}) }"
NORMAL = """12 (float[2,3,4,4] x) => (float[2,3,4,4] y) <float[3] s = {1, 1, 1}, float[3] m = {0, 0, 0}> {
    {0} = BatchNormalization (x, s, m, m, s) }"""
LOGS = "{1} (float[3,2,2] x) => (float[3,1,2] y) <int64[1] a = {{1}}> {{ y = {0} <keepdims = 1{2}> (x{3}) }}"
JOINED = """13 (float[b,2,4] x, int64[b,2] n) => (float[b,10] y) {
    f = Flatten (x) c = Cast <to = 1> (n) y = Concat <axis = 1> (f, c) }"""
TWICE = "14 (float[2,3,4] x) => (float[n,m,k] y) {{ t = Transpose <perm = [{0}]> (x) y = Transpose <perm = [{1}]> (t) }}"
EMPTY = """14 (float[2,3] x) => (int64 y) <int64[0] e = {}, int64 z = {1}> {
    s = Shape (x) n = Gather (s, z) y = Reshape (n, e) }"""


@pytest.mark.parametrize(
    ("text", "runtime", "standing"),
    [
        (LAST.replace("{0}", "c"), "onnxruntime==1.3", Support.NOT_KNOWN),
        (LAST.replace("{0}", "i"), "onnxruntime==1.3", Support.NOT_KNOWN),
        (LAST.replace("{0}", "z"), "onnxruntime==1.3", Support.AS_IS),
        (LAST.replace("{0}", "c"), "onnxruntime==1.4", Support.AS_IS),
        (COUNTS.replace("{0}", "m = ReduceMax <keepdims = 0> (x)").replace("{1}", "c"), "openvino==2023.1", Support.NOT_KNOWN),
        (COUNTS.replace("{0}", "m = ReduceMax <keepdims = 0> (x) e = Constant <value = int64 {8}> ()").replace("{1}", "e"),
         "openvino==2026.4", Support.NOT_KNOWN),
        (NORMAL.replace("{0}", "y, a, b, c, d"), "onnxruntime==1.8", Support.NOT_KNOWN),
        (NORMAL.replace("{0}", "y, a, b, c, d"), "onnxruntime==1.10", Support.AS_IS),
        (NORMAL.replace("{0}", "y"), "onnxruntime==1.8", Support.AS_IS),
        (JOINED, "opencv==4.9", Support.NOT_KNOWN),
        (JOINED, "opencv==5.0", Support.AS_IS),
        (TWICE.format("1,0,2", "1,0,2"), "onnxruntime==1.10", Support.NOT_KNOWN),
        (TWICE.format("1,0,2", "1,0,2"), "onnxruntime==1.12", Support.AS_IS),
        (EMPTY, "openvino==2023.1", Support.NOT_KNOWN),
        ("13 (float[2,3] x) => (float[2,6] y) <int64[2] r = {1, 2}> { y = Tile (x, r) }", "ncnn==20261020", Support.NOT_KNOWN),
        ("13 (int16[2,3] x) => (float[2,3] y) { y = Cast <to = 1> (x) }", "openvino==2023.1", Support.AS_IS),
        ("13 (float[2,3] x) => (int64[2,n] y) { y = NonZero (x) }", "openvino==2026.4", Support.AS_IS),
        (LOGS.format("ReduceLogSumExp", 17, ", axes = [1]", ""), "openvino==2026.4", Support.AFTER),
        (LOGS.format("ReduceLogSumExp", 18, "", ", a"), "openvino==2026.4", Support.AS_IS),
        (LOGS.format("ReduceL1", 17, ", axes = [1]", ""), "openvino==2026.4", Support.AFTER),
        (LOGS.format("ReduceL2", 17, ", axes = [1]", ""), "openvino==2026.4", Support.AS_IS),
    ],
)  # fmt: skip
def test_what_a_release_computes_wrongly_or_crashes_on_is_not_said_to_run(
    text: str, runtime: str, standing: Support
) -> None:
    """Each was run in the wheels: `fails`, `crashes` or wrong where the answer is not "as it is"."""
    found = CompatibilityChecker(files.load(model(text))).advise(next(iter(resolve([runtime]))))
    assert found.standing is standing, (found.objections, found.operators)


PSP = """11 (float[1,2,4,4] x, float[1,2,2,2] z) => (float[1,10,4,4] y) <float[4] r = {1, 1, 2, 2}> {
    a = Relu (x) b = Resize (z, , r) y = Concat <axis = 1> (a, b, b, b, b) }"""
QUANTIZED = """13 (float[1,4] x, float[4,4] w, float[4] b) => (uint8[1,4] y) <float s = {0.1}, uint8 z = {128}> {
    g = Gemm (x, w, b) y = QuantizeLinear (g, s, z) }"""
POINTS = """12 (float[1,2,4] x) => (float[1,1,4] y) <float[1,2,1] w = {1, 2}, float[1] b = {1}> {
    r = Relu (x) y = Conv <kernel_shape = [1]> (r, w, b) }"""
BODY = "11 (float[n] x, int64[k] t) => (float y) { s = Reshape (x, t) y = Softmax (s) }"
TABLE = """13 (float[n] x) => (float[m] y) <float[4] t = {1, 2, 3, 4}, int64[1] z = {0}, int64[1] o = {1}> {
    e = Shape (x) y = Slice (t, z, e, z, o) }"""
PIXELS = """13 (float[1,8,2,n] x) => (float[a,b,c,d] y) <int64[5] l = {1, 2, 2, 2, -1}, int64 i = {3}, int64[1] v = {0},
    int64[3] w = {1, 4, 2}> {
    r = Reshape (x, l) t = Transpose <perm = [0, 4, 1, 2, 3]> (r) s = Shape (x) g = Gather (s, i) u = Unsqueeze (g, v)
    c = Concat <axis = 0> (u, w) y = Reshape (t, c) }"""
FUNNEL = """13 (float[1,3,2,4] x, float[1,2] n) => (float[b,n,i,t] y) <float[5,2,4] v = {ONES}> {
    s = Shape (n) h = ConstantOfShape <value = float[1] {1.0}> (s) e = Einsum <equation = "ij,tnh->tnh"> (h, v)
    p = Add (x, x) y = Einsum <equation = "binh,tnh->bnit"> (p, e) }""".replace("ONES", ", ".join(["1"] * 40))


@pytest.mark.parametrize(
    ("text", "operator", "fails", "runs"),
    [
        (BODY, "Softmax", "onnxruntime==1.4", "onnxruntime==1.6"),
        (PSP, "Concat", "opencv==5.0", "opencv==4.12"),
        (QUANTIZED, "QuantizeLinear", "opencv==5.0", "opencv==4.12"),
        (POINTS, "Conv", "ncnn==20261020", "opencv==5.0"),
        (TABLE, "Slice", "openvino==2023.1", "openvino==2026.4"),
        (PIXELS, "Reshape", "openvino==2026.4", "openvino==2023.1"),
        (FUNNEL, "Einsum", "openvino==2026.4", "openvino==2023.1"),
    ],
    ids=[
        "ppocrv5_rec",
        "own_psp",
        "fknetwork_int8",
        "silero_decoder_v5",
        "lac_encoder",
        "tesseranet",
        "tr_funnel",
    ],
)
def test_the_form_of_a_node_that_failed_in_a_model_is_one_of_what_failed(
    text: str, operator: str, fails: str, runs: str
) -> None:
    forms = [form for form in node_forms(files.load(model(text))) if form.operator == operator]

    def failed(runtime: str) -> bool:
        boxes = next(iter(resolve([runtime]))).failing.get(operator, ())
        return any(holds(box, form.facts, failing=True) for box in boxes for form in forms)

    assert failed(fails), [form.facts for form in forms]
    assert not failed(runs)


def test_a_fault_that_bounds_the_opset_does_not_end_the_advice() -> None:
    source = model("18 (float16[2,3] x) => (float16[2,3] y) { y = Softmax (x) }")
    found = CompatibilityChecker(files.load(source)).advise(next(iter(resolve(["onnxruntime==1.16"]))))
    assert (found.standing, found.opset) == (Support.AFTER, 17)


def test_a_runtime_that_tries_newer_models_is_perhaps_one() -> None:
    source = model(
        '<ir_version: 7, opset_import: ["": 13]> g (float[4] x) => (float[n] y) { z = Unique (x) y = Relu (z) }'
    )
    found = advised('newer = "tried"\n[[release]]\nopset = 9', source)

    assert found.standing is Support.UNSURE
    assert found.opset == 11
    assert any("known to run models only up to opset 9" in text for text in found.warnings)


def test_an_invalid_model_runs_nowhere() -> None:
    source = model(SOURCE)
    source.graph.node[2].input[0] = "nowhere"
    found = advised("[[release]]\nopset = 17", source)

    assert found.standing is Support.NO
    assert found.refusal is not None


def outcome(source: Path, target: Target) -> tuple[bool, set[str]]:
    """Return whether the migration for a target succeeds, and the codes of its notes."""
    log = ChangeLog()
    try:
        default_pipeline(runtime=Targets((target,)), simplify=False).run(files.load(source), log)
    except MigrateError:
        return False, set()
    return True, {note.code for note in log.notes}


SOURCES = ("classifier_opset12", "transformer_opset12", "resize_bilinear_opset9", "control_flow_opset13")
ALL = [target for table in tables() for target in milestones(table)[-1:]]
SOME = [
    *ALL[::4],
    *resolve(["tensorrt==7.0", "tensorrt==8.2", "opencv==4.5", "onnxruntime==1.3", "windowsml==18362"]),
]


@pytest.mark.parametrize("name", SOURCES)
def test_the_advice_is_what_a_migration_does(name: str) -> None:
    source = FIXTURES / f"{name}.onnx"
    advisor = CompatibilityChecker(files.load(source))
    for target in SOME:
        advice, (done, codes) = advisor.advise(target), outcome(source, target)
        if advice.standing is not Support.AS_IS:
            assert (advice.refusal is None) == done, (str(target), advice.refusal)
        if done and "runtime-opset" in codes and advice.standing is not Support.AS_IS:
            assert advice.standing is Support.UNSURE, str(target)


def test_the_order_of_questions_changes_no_answer() -> None:
    source = FIXTURES / "transformer_opset12.onnx"
    one, other = CompatibilityChecker(files.load(source)), CompatibilityChecker(files.load(source))
    forward = [one.advise(target) for target in SOME]
    backward = [other.advise(target) for target in reversed(SOME)]

    assert [json_of(item) for item in forward] == [json_of(item) for item in reversed(backward)]
    assert one.model.proto == onnx.load(source)


def test_ways_are_shared() -> None:
    advisor = CompatibilityChecker(files.load(model(SOURCE)))
    for target in resolve(["onnxruntime==1.9", "rknn-toolkit==1.7.5", "onnxruntime==1.10", "opencv==4.7"]):
        advisor.advise(target)

    assert len(advisor._migrated) == 2  # to opsets 15 and 12


def test_no_large_weight_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = model(SOURCE)
    tensor = onnx.TensorProto(name="large", dims=[1 << 16], data_type=1, raw_data=b"\0" * (1 << 18))
    source.graph.initializer.append(tensor)
    onnx.save(source, tmp_path / "source.onnx")
    plain = Weights.array

    def small_only(weights: Weights, tensor: onnx.TensorProto) -> Any:
        assert tensor.data_location != onnx.TensorProto.EXTERNAL, f"{tensor.name} was read"
        return plain(weights, tensor)

    monkeypatch.setattr(Weights, "array", small_only)
    advisor = CompatibilityChecker(files.load(tmp_path / "source.onnx"))
    for target in ALL:
        advisor.advise(target)
