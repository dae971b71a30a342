"""How the segments and links of a migration become one verdict on the original: statements, stand-ins, and what fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate import UsageError, VerificationFailed, default_pipeline, migrate
from onnx_migrate.engine.obligations import Behind, Obligation, PassResult
from onnx_migrate.engine.other_numbers import OtherNumbers
from onnx_migrate.engine.pass_infra import ObligedPass, Pass
from onnx_migrate.files import load
from onnx_migrate.model.model import Model
from onnx_migrate.report.html.contents import verdict_text
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verdicts import Distance, Kind, RoundedOutput, Verdict
from onnx_migrate.verification.conversion import with_conversion
from tests.harness import model, require_opset, run
from tests.support.small_model import HERE

NET = "17 (float[N,4] x) => (float[N,4] y) <float[4] w = {0.5, 2., -1., 4.}> { a = Mul(x, w)  b = Exp(a)  y = Sqrt(b) }"
IDS = "17 (int64[N] i, float[N,4] x) => (float[N,4] y, int64[N] j) <float[9,4] t> { a = Gather(t, i)  y = Add(a, x)  j = Neg(i) }"


def scaled(proto: onnx.ModelProto, factor: float) -> None:
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array((array * factor).astype(array.dtype), tensor.name))


@dataclass(frozen=True)
class Scales(ObligedPass):
    """Multiplies the weight, and says with which limit that is meant."""

    name = "scales"
    factor: float = 1.001
    limit: float | None = None
    unmeasured: str = ""

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        scaled(model.proto, self.factor)
        limited = () if self.limit is None else (RoundedOutput("y", 0.0, self.limit),)
        return PassResult(
            model, OtherNumbers(self.name, "scaled", limited=limited, unmeasured=self.unmeasured)
        )


@dataclass(frozen=True)
class Silent(Pass):
    """A user's pass of before obligations, which changes the numbers."""

    name = "silent"
    factor: float = 2.0

    def run(self, model: Model, log: ChangeLog) -> Model:
        scaled(model.proto, self.factor)
        return model


def verdict(
    source: str | onnx.ModelProto, *passes: Any, before: str | None = None, **options: Any
) -> Verdict:
    options = {"simplify": False, **HERE, **options}
    pipeline = default_pipeline(
        **{key: options[key] for key in options.keys() & {"simplify", "opset", "fix"}}
    )
    for item in passes:
        pipeline = pipeline.add(item, before=before)
    found = migrate(model(source), pipeline=pipeline if passes else None, **options).report.verification
    assert found is not None
    return found


def said(verdict: Verdict) -> list[str]:
    return [str(statement) for statement in verdict.statements]


# Two statements


@pytest.mark.parametrize(("kind", "name", "limit"), [("fp16", "float16", "0.5"), ("bf16", "bfloat16", "2")])
@pytest.mark.parametrize("ports", [False, True])
def test_a_precision_has_a_statement_of_its_own_with_its_limit(
    kind: str, name: str, limit: str, ports: bool
) -> None:
    opset = {"opset": "22"} if kind == "bf16" else {}
    require_opset(int(opset.get("opset", 1)))
    found = verdict(NET, precision=kind, precision_io=ports, **opset)
    conversion, precision = said(found)
    assert conversion == "conversion: bit-identical"
    assert precision.startswith(f"{name}: within the limit: output 'y' differs by up to ")
    assert precision.endswith(f" % of its largest value (limit {limit} %)")
    assert "bit-identical" not in precision
    assert found.grade == "other-numbers"


def test_a_result_with_the_same_numbers_has_no_statements() -> None:
    found = verdict(NET, opset=21)
    assert (found.statements, found.stand_ins, found.grade) == ((), (), "bit-identical")


def test_several_changes_have_a_statement_each_in_their_order() -> None:
    subjects = [
        statement.subject
        for statement in verdict(
            IDS.replace("t>", "t = {" + ",".join(map(str, range(36))) + "}>"),
            int32="io",
            precision="fp16",
            opset=17,
        ).statements
    ]
    assert subjects == ["conversion", "float16", "int32"]


def test_int32_at_inputs_and_outputs_is_measured_through_casts() -> None:
    source = IDS.replace("t>", "t = {" + ",".join(map(str, range(36))) + "}>")
    assert (
        said(verdict(source, int32="io", opset=17))[1]
        == "int32: other numbers, as you asked: output 'y' does not differ"
    )


def test_text_and_page_show_every_statement() -> None:
    report = migrate(model(NET), precision="fp16", simplify=False, **HERE).report
    assert report.verification is not None
    for statement in said(report.verification):
        assert statement in report.text(verbose=True)
        assert statement in verdict_text(report.verification)
    assert [item["subject"] for item in report.as_dict()["verification"]["statements"]] == [
        "conversion",
        "float16",
    ]


# Limits


@pytest.mark.parametrize(("limit", "kind"), [(0.0105, Kind.VERIFIED), (0.0035, Kind.UNVERIFIED)])
def test_the_distance_of_the_result_from_the_original_is_held_to_the_limit(limit: float, kind: Kind) -> None:
    found = verdict(NET, Scales(limit=limit))
    assert found.kind is kind
    assert ("beyond the limit" in found.reason) == (kind is Kind.UNVERIFIED)


def test_passes_behind_one_with_a_limit_use_it_up_too() -> None:
    found = verdict(LINE, Scales(limit=0.005), Silent(factor=1.02), rtol=0.1)
    assert found.kind is Kind.UNVERIFIED
    assert "differs by up to 2" in found.reason


@dataclass(frozen=True)
class Breaks(Scales):
    """Makes NaN of numbers below 0."""

    name = "breaks"

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        model.proto.graph.node[-1].op_type = "Sqrt"
        return PassResult(model, OtherNumbers(self.name, "scaled", limited=(RoundedOutput("y", 0.0, 0.5),)))


def test_nan_that_the_original_does_not_have_is_beyond_every_limit() -> None:
    reason = "scaled: beyond the limit: output 'y' has another shape, or NaN"
    with pytest.raises(VerificationFailed, match=reason):
        verdict(LINE, Breaks())


def test_beyond_the_limit_nothing_is_written_where_a_proof_is_required() -> None:
    with pytest.raises(VerificationFailed, match="scaled: beyond the limit") as caught:
        verdict(NET, Scales(limit=1e-5), verify="require")
    assert caught.value.code == "unverified"


def test_a_limit_that_was_not_measured_leaves_the_result_unverified() -> None:
    found = verdict(NET, Scales(unmeasured="it does not run"))
    assert found.reason == "scaled: the numbers were not compared with the original's: it does not run"


def test_without_a_limit_any_distance_is_verified_and_told() -> None:
    found = verdict(NET, Scales(factor=2.0))
    assert found.verified
    assert "scaled: other numbers, as you asked: output 'y' differs by up to" in said(found)[1]


# The conversion


@pytest.mark.parametrize("place", [0, 1])
def test_a_change_that_nobody_asked_for_is_found_on_both_sides_of_one_that_was(place: int) -> None:
    passes = [Silent(), Scales()][:: 1 if place else -1]
    with pytest.raises(VerificationFailed, match="'silent'"):
        verdict(NET, *passes)


def test_a_pass_before_one_that_fixes_sizes_is_proved_too() -> None:
    with pytest.raises(VerificationFailed, match="'silent'"):
        verdict(NET, Silent(), before="fix_dims", fix="N=2")
    assert verdict(NET, Silent(factor=1.0), before="fix_dims", fix="N=2").verified


@pytest.mark.parametrize(
    ("segments", "text", "kind"),
    [
        ([Verdict(Kind.VERIFIED), Verdict(Kind.VERIFIED)], "bit-identical", Kind.VERIFIED),
        ([Verdict(Kind.VERIFIED, own_rounding=True), Verdict(Kind.VERIFIED)], "within rounding", Kind.VERIFIED),
        ([Verdict(Kind.VERIFIED), Verdict(Kind.VERIFIED, own_rounding=True)], "within rounding", Kind.VERIFIED),
        ([Verdict(Kind.UNVERIFIED, "no run"), Verdict(Kind.VERIFIED)], "unverified: no run", Kind.UNVERIFIED),
    ],
)  # fmt: skip
def test_the_conversion_is_as_good_as_its_worst_segment(
    segments: list[Verdict], text: str, kind: Kind
) -> None:
    last = OtherNumbers("a", "b").prove(
        None,
        Model(onnx.ModelProto()),
        Model(onnx.ModelProto()),
        Behind(Model(onnx.ModelProto()), segments[-1]),
    )
    found = with_conversion(last, segments)
    assert (str(found.statements[0]), found.kind) == (f"conversion: {text}", kind)


def test_segments_without_other_numbers_are_one_statement() -> None:
    segments = [Verdict(Kind.VERIFIED, own_rounding=True), Verdict(Kind.VERIFIED)]
    found = with_conversion(segments[-1], segments)
    assert (found.statements, found.grade) == ((), "within-rounding")


# Stand-ins


@pytest.mark.parametrize(
    ("source", "options", "text"),
    [
        (
            "17 (float[2] x) => (float[2] y) { r = RandomNormalLike(x)  y = Add(x, r) }",
            {},
            "fixed numbers stood in",
        ),
        (NET, {"outputs": "b"}, "the part that was cut out stood in for the whole model"),
        (
            "17 (float[2] x, float k) => (float[2] y) { y = Mul(x, k) }",
            {"fix_values": "k=2"},
            "constants stood in for the values of 'k'",
        ),
        (
            NET,
            {"precision": "fp16"},
            "the passes behind precision were compared with the model after precision",
        ),
    ],
)
def test_what_was_run_instead_of_the_original_is_said(
    source: str, options: dict[str, Any], text: str
) -> None:
    (found,) = verdict(source, **options).stand_ins
    assert text in found


def test_float_kernels_that_stand_for_quantised_ones_are_said() -> None:
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (uint8[2,8] x) => (uint8[2,8] y) <float s = {0.1}, uint8 z = {128}> {
            y = com.microsoft.QLinearAdd(x, s, z, x, s, z, s, z) }""")
    (found,) = verdict(source).stand_ins
    assert found.startswith("DequantizeLinear, floats and QuantizeLinear stood in for QLinearAdd")


# Obligations of a user's own


@dataclass(frozen=True)
class Doubled(Obligation):
    """The outputs are twice the original's: the proof runs both."""

    def prove(self, prover: Any, before: Model, after: Model, behind: Behind) -> Verdict:
        x = np.float32([[1, -2, 3, 0.5]])
        one, two = (run(item.proto, {"x": x})[0] for item in (before, behind.result))
        if not np.array_equal(2 * one, two):
            raise VerificationFailed("the outputs are not doubled")
        return replace(behind.verdict, notes=(*behind.verdict.notes, "doubled"))


@dataclass(frozen=True)
class Doubles(ObligedPass):
    name = "doubles"
    factor: float = 2.0

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        scaled(model.proto, self.factor)
        return PassResult(model, Doubled())


LINE = (
    "17 (float[N,4] x) => (float[N,4] y) <float[4] w = {0.5, 2., -1., 4.}> { a = Mul(x, w)  y = Identity(a) }"
)


def test_an_obligation_of_any_pass_is_proved_with_the_result() -> None:
    assert "doubled" in verdict(LINE, Doubles()).notes
    with pytest.raises(VerificationFailed, match="not doubled"):
        verdict(LINE, Doubles(factor=3.0))


def test_inputs_of_the_users_go_through_every_link() -> None:
    """To the precision pass too, which runs the model that the links before it leave."""
    source = "17 (float[N,4] x, float k) => (float[N,4] z) { y = Mul(x, k)  z = Neg(y) }"
    x = np.float32([[1, 2, 3, 4]])
    options: dict[str, Any] = {"fix_values": "k=2", "precision": "fp16", "precision_io": True}
    found = verdict(source, input_data={"x": x, "k": np.float32(2)}, **options)
    assert found.verified
    assert [feed.name for feed in found.feeds] == ["input_data"]
    with pytest.raises(UsageError, match="another value than the one that it is fixed to"):
        verdict(source, input_data={"x": x, "k": np.float32(3)}, **options)


@pytest.mark.parametrize("place", ["precision", None])
def test_an_obligation_gets_the_inputs_for_the_model_before_its_pass(place: str | None) -> None:
    """Which `precision` with float16 inputs changes for the links behind it."""
    kinds: list[str] = []

    class Records(Doubled):
        def prove(self, prover: Any, before: Model, after: Model, behind: Behind) -> Verdict:
            kinds.append(str(prover.settings.feeds.sets[0].inputs["x"].dtype))
            return behind.verdict

    class Recorded(Doubles):
        def apply(self, model: Model, log: ChangeLog) -> PassResult:
            return PassResult(super().apply(model, log).model, Records())

    asked: dict[str, Any] = {"precision": "fp16", "precision_io": True, "simplify": False}
    pipeline = default_pipeline(**asked).add(Recorded(), before=place)
    migrate(model(LINE), pipeline=pipeline, input_data={"x": np.float32([[1, 2, 3, 4]])}, **asked, **HERE)
    assert kinds == ["float32" if place else "float16"]


def test_the_distance_is_that_of_the_result_and_not_of_a_model_before_it() -> None:
    behind = Behind(load(model(NET)), Verdict(Kind.VERIFIED), Distance("y", 1.0, 4.0))
    found = OtherNumbers("p", "s").prove(None, behind.result, behind.result, behind)
    assert said(found) == [
        "s: other numbers, as you asked: output 'y' differs by up to 25 % of its largest value"
    ]
