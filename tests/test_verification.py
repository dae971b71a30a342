"""Which model a migration returns for a verdict, and when there is none."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser
import onnxruntime
import pytest

from onnx_migrate import CannotMigrate, PassError, UsageError, VerificationFailed, migrate, process
from onnx_migrate.core_options import policy_of
from onnx_migrate.verify import loading
from onnx_migrate.verify.dynamic import proof
from onnx_migrate.verify.equivalence import task
from onnx_migrate.verify.evaluators import LEVELS, UNOPTIMIZED, EvaluationError, Evaluator, Runnable
from tests.harness import require_opset
from tests.support.skips import Elsewhere, skip_if
from tests.support.small_model import HERE, bytes_of, small

ODD = """<ir_version: 6, opset_import: ["": 11]>
g (float[2] x) => (float[1] y) <int64[1] far = {9}> { a = Relu(x)  b = Identity(a)  y = Gather(b, far) }"""
"""It loads, runs on no input, and onnxsim would remove the Identity."""

ROI_ALIGN = """<ir_version: 8, opset_import: ["": 16]>
g (float[1,2,8,8] x, float[3,4] r) => (float[3,2,2,2] y) <int64[3] b = {0,0,0}> {
    y = RoiAlign<output_height=2, output_width=2>(x, r, b) }"""

OPTIMISER_FAULT = """<ir_version: 8, opset_import: ["": 13]>
g (float[1,4,4,3] x) => (float[1,3,4,4] y) <float s = {0.1}, int8 z = {1}> {
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) t = Transpose<perm=[0,3,1,2]>(d) y = Sigmoid(t) }"""


def model(text: str) -> onnx.ModelProto:
    found: onnx.ModelProto = onnx.parser.parse_model(text)
    return found


def test_true_and_false_are_policies() -> None:
    assert [policy_of(item) for item in (True, False, "require", "off")] == ["auto", "off", "require", "off"]
    with pytest.raises(UsageError, match="maybe"):
        migrate(small(), verify="maybe")  # type: ignore[arg-type]


def test_an_unverified_result_is_not_simplified() -> None:
    result = migrate(model(ODD), **HERE)
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "unverified"
    assert [node.op_type for node in result.model.graph.node] == ["Relu", "Identity", "Gather"]
    (note,) = [note for note in result.report.notes if note.code == "left-out"]
    assert "could not be compared" in note.message
    unverified = migrate(model(ODD), verify="off", **HERE)
    assert len(unverified.model.graph.node) < 3


def test_what_is_required_is_not_left_out() -> None:
    with pytest.raises(
        VerificationFailed, match="could not be compared: the original does not run"
    ) as caught:
        migrate(model(ODD), verify="require", **HERE)
    assert caught.value.code == "unverified"
    assert caught.value.verification is not None
    with pytest.raises(PassError, match="simplification is required, but") as refused:
        migrate(model(ODD), simplify="require", **HERE)
    assert refused.value.code == "not-simplified"


def test_a_simplifier_whose_result_does_not_load_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no inputs run on the original, too: then the result is only loaded."""
    import onnxsim

    def simplify(proto: onnx.ModelProto, **options: Any) -> tuple[onnx.ModelProto, bool]:
        proto.graph.node[0].op_type = "Softmax"
        proto.graph.node[0].attribute.append(onnx.helper.make_attribute("axis", 7))
        return proto, True

    monkeypatch.setattr(onnxsim, "simplify", simplify)
    for source in (model(ODD), model(ODD.replace("9", "1"))):
        result = migrate(source, **HERE)
        assert result.model.graph.node[0].op_type == "Relu"


def broken(proto: onnx.ModelProto) -> None:
    """A pass whose result onnx accepts, and ONNX Runtime does not load."""
    proto.graph.node[0].domain = "nobody.knows"
    proto.opset_import.add(domain="nobody.knows", version=1)


@pytest.mark.parametrize("far", ["9", "1"], ids=["no inputs", "inputs"])
def test_a_result_that_does_not_load_is_refused(far: str) -> None:
    with pytest.raises(
        VerificationFailed, match=r"loads the original, but not the result: .*nobody.knows"
    ) as caught:
        migrate(model(ODD.replace("9", far)), passes=[broken], **HERE)
    assert caught.value.code == "does-not-load"
    assert "--verify=off" in caught.value.hint
    assert "newest" not in caught.value.hint  # it loads at no opset


@skip_if(onnx.defs.onnx_opset_version() < 23, "onnx is older", Elsewhere.NEWEST)
@pytest.mark.parametrize("levels", [LEVELS, (UNOPTIMIZED,)], ids=["all", "unoptimised"])
def test_the_newest_opset_at_which_it_loads_as_the_original_does_is_named(
    monkeypatch: pytest.MonkeyPatch, levels: tuple[Evaluator, ...]
) -> None:
    require_opset(23)
    real = loading.open_model

    def opened(item: Runnable, level: Evaluator) -> Any:
        if level not in levels:
            raise EvaluationError("the optimiser fails", loading=True)
        return real(item, level)

    monkeypatch.setattr(loading, "open_model", opened)
    with pytest.raises(VerificationFailed) as caught:
        migrate(model(ROI_ALIGN), opset=23, simplify=False, **HERE)
    error = caught.value
    assert error.code == "does-not-load"
    assert error.where is not None
    assert error.where.operator == "RoiAlign"
    assert "opset 21 is the newest at which it loads" in error.hint
    assert "RoiAlign(22)" in error.reason


ONE_RELEASE = skip_if(
    not onnxruntime.__version__.startswith("1.31."),
    "the fault is that of one release's optimiser",
    Elsewhere.ONE_RELEASE,
)


def with_output_dtype(proto: onnx.ModelProto) -> None:
    """A pass that writes what ONNX Runtime's optimiser breaks, and nothing else mends."""
    for node in proto.graph.node:
        if node.op_type == "QuantizeLinear" and proto.opset_import[0].version >= 21:
            node.attribute.append(onnx.helper.make_attribute("output_dtype", onnx.TensorProto.INT8))


@ONE_RELEASE
def test_a_result_that_loads_without_optimisation_only() -> None:
    with pytest.raises(VerificationFailed) as caught:
        migrate(model(OPTIMISER_FAULT), opset=21, simplify=False, passes=[with_output_dtype], **HERE)
    assert "opset 20 is the newest at which it loads; with optimisations off it loads" in caught.value.hint


@ONE_RELEASE
@pytest.mark.parametrize("simplify", [False, True])
def test_a_spelling_that_loads_is_preferred_to_a_refusal(simplify: bool) -> None:
    result = migrate(model(OPTIMISER_FAULT), opset=21, simplify=simplify, **HERE)
    assert result.report.verification is not None
    assert (result.report.verification.kind.value, result.report.verification.exact) == ("verified", True)
    onnxruntime.InferenceSession(result.model.SerializeToString())
    operators = [node.op_type for node in result.model.graph.node]
    assert operators.count("QuantizeLinear") == 2
    assert "quantized_pairs" in {change.pass_name for change in result.report.changes}


def ends(monkeypatch: pytest.MonkeyPatch, function: str, ending: process.Ending) -> None:
    real = process.run

    def run(called: str, *args: Any, **options: Any) -> process.Ending:
        return ending if called == function else real(called, *args, **options)

    monkeypatch.setattr(process, "run", run)


@pytest.mark.parametrize(
    "ending", [process.TimedOut(600.0), process.OutOfMemory(2 << 30)], ids=["time", "memory"]
)
def test_a_limit_leaves_the_result_unverified_and_as_migrated(
    monkeypatch: pytest.MonkeyPatch, ending: process.Ending
) -> None:
    plain = migrate(small(), simplify=False, **HERE)
    ends(monkeypatch, task.CHECK, ending)
    result = migrate(small(), **HERE)
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "unverified"
    assert str(ending) in result.report.verification.reason
    assert bytes_of(result.model) == bytes_of(plain.model)
    with pytest.raises(VerificationFailed, match="could not be compared"):
        migrate(small(), verify="require", **HERE)


def test_a_limit_at_other_sizes_is_not_a_frozen_dim(monkeypatch: pytest.MonkeyPatch) -> None:
    ends(monkeypatch, proof.PROVE, process.TimedOut(600.0))
    result = migrate(small(), dynamic_batch=True, **HERE)
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "unverified"
    assert "dynamic dims are not proved: timed out after 600 s" in result.report.verification.reason
    assert result.report.verification.comparisons
    assert "left-out" in {note.code for note in result.report.notes}
    with pytest.raises(VerificationFailed, match="timed out after 600 s"):
        migrate(small(), dynamic_batch=True, verify="require", **HERE)
    ends(monkeypatch, proof.PROVE, process.Crashed("exit code 1", stage=""))  # before the model was loaded
    with pytest.raises(VerificationFailed, match="exit code 1"):
        migrate(small(), dynamic_batch=True, verify="require", **HERE)
    ends(monkeypatch, proof.PROVE, process.Crashed("SIGSEGV", stage="result: running"))
    with pytest.raises(CannotMigrate, match="SIGSEGV"):
        migrate(small(), dynamic_batch=True, **HERE)


def test_a_request_that_the_proof_refuses_ends_with_the_part_that_works() -> None:
    mixes = model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1,3,8,8] x) => (float[1,3,8,8] y) {
        r = Relu(x) m = ReduceMax<axes = [0], keepdims = 1>(x) y = Add(r, m) }"""
    )
    with pytest.raises(
        CannotMigrate, match=r"differs between item 0 .*\nHint: H and W can be made dynamic"
    ) as caught:
        migrate(mixes, dynamic="x:N,3,H,W", **HERE)
    assert caught.value.hint.endswith("--dynamic x:2=H,3=W")
    migrate(mixes, dynamic="x:2=H,3=W", **HERE)
    with pytest.raises(CannotMigrate, match="do not make the axis that fails dynamic"):
        migrate(mixes, dynamic="x:N", **HERE)


def test_a_tiny_limit_is_reported_with_its_seconds() -> None:
    result = migrate(small(), simplify=False, timeout=0.01)
    assert result.report.verification is not None
    assert "timed out after 0.01 s" in result.report.verification.reason


TWICE = """<ir_version: 6, opset_import: ["": 11]>
g (float[N,4] x) => (float[N,4] y) { a = Relu(x)  b = Identity(a)  y = Add(b, x) }"""


def marked(text: str, doc: str) -> onnx.ModelProto:
    found = model(text)
    found.doc_string = doc
    return found


def test_a_result_that_runs_right_elsewhere_is_returned_with_what_came_of_it(faulty: object) -> None:
    result = migrate(model(TWICE), prove_in="faulty", **HERE)
    (proof,) = result.report.as_dict()["proved_in"]
    assert (proof["runtime"], proof["outcome"], proof["passed"]) == ("Faulty 2.3.4", "right", True)
    assert proof["result"]["right"]
    assert "prove" in result.report.seconds
    assert migrate(model(TWICE), **HERE).report.as_dict()["proved_in"] == []


@pytest.mark.long
def test_a_simplification_that_a_runtime_computes_wrongly_is_left_out(faulty: object) -> None:
    result = migrate(marked(TWICE, "NEEDS=Identity"), prove_in=["faulty"], **HERE)
    assert [node.op_type for node in result.model.graph.node] == ["Relu", "Identity", "Add"]
    (note,) = [note for note in result.report.notes if note.code == "left-out"]
    assert "in Faulty 2.3.4, the result is wrong, and the original is right" in note.message
    assert result.report.proved_in[0].outcome == "right"
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"
    with pytest.raises(VerificationFailed) as caught:
        migrate(marked(TWICE, "NEEDS=Identity"), prove_in="faulty", simplify="require", **HERE)
    assert caught.value.code == "runtime-differs"
    off = migrate(marked(TWICE, "NEEDS=Identity"), prove_in="faulty", verify="off", **HERE)
    assert len(off.model.graph.node) == 3


@pytest.mark.long
def test_statements_are_on_the_result_without_the_simplification_that_a_runtime_computes_wrongly(
    faulty: object,
) -> None:
    original = marked(TWICE, "NEEDS=Identity")
    report = migrate(original, prove_in="faulty", precision="fp16", **HERE).report
    assert "left-out" in {note.code for note in report.notes}
    assert report.verification is not None
    assert [statement.subject for statement in report.verification.statements] == ["conversion", "float16"]
    assert str(report.verification.statements[0]) == "conversion: bit-identical"


@pytest.mark.parametrize(("doc", "code"), [("REFUSE", "runtime-fails"), ("NEEDS=None", "")])
def test_a_result_that_a_runtime_does_not_run_is_not_returned(faulty: object, doc: str, code: str) -> None:
    if not code:  # both are off alike, which is not the migration's fault
        assert migrate(marked(TWICE, doc), prove_in="faulty", **HERE).report.proved_in[0].outcome == "alike"
        return
    with pytest.raises(VerificationFailed, match="neither the result nor the original runs") as caught:
        migrate(marked(TWICE, doc), prove_in="faulty", **HERE)
    assert caught.value.code == code
    assert caught.value.proved_in[0].outcome == "refused"
    assert caught.value.verification is not None


def test_a_change_for_the_worse_is_not_returned(faulty: object) -> None:
    upsample = """<ir_version: 4, opset_import: ["": 9]> g (float[1,1,2,2] x) => (float[1,1,4,4] y)
    <float[4] s = {1, 1, 2, 2}> { y = Upsample(x, s) }"""
    with pytest.raises(VerificationFailed, match="the original is bit-identical") as caught:
        migrate(marked(upsample, "NEEDS=Upsample"), prove_in="faulty", **HERE)
    assert caught.value.code == "runtime-differs"


def test_a_runtime_that_is_not_there_is_said_before_any_work() -> None:
    with pytest.raises(UsageError, match="nothing can be run in 'nowhere' here"):
        migrate("no-such-model.onnx", prove_in="nowhere")
