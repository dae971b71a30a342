"""The pass that breaks the numbers is found by bisection, and the node in it."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import numpy_helper

import onnx_migrate
from onnx_migrate import verification
from onnx_migrate.errors import VerificationFailed
from onnx_migrate.files import load
from onnx_migrate.isolate import Limits
from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import FirstDifference
from onnx_migrate.verify import faulty_pass
from onnx_migrate.verify.faulty_pass import first_difference
from onnx_migrate.verify.prover import Prover
from tests.harness import model

TEXT = """<ir_version: 7, opset_import: ["":11]>
g (bool c, float[2,8] x) => (float[2,8] y) <float[8] w = {1., -2., 3., -4., 5., -6., 7., -8.}> {
  [first] a = Mul(x, w)  [second] b = Clip(a)  [third] d = Sin(b)
  [choice] e = If (c) <
    then_branch = t () => (float[2,8] p) { p = Neg(d) }, else_branch = f () => (float[2,8] q) { q = Abs(d) } >
  [fourth] g = Add(e, w)  [last] y = Tanh(g)
}"""

Edit = Callable[[onnx.ModelProto], None]


def node(proto: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(item for item in proto.graph.node if item.name == name)


def breaks_an_operator(proto: onnx.ModelProto) -> None:
    node(proto, "third").op_type = "Cos"


def breaks_a_weight(proto: onnx.ModelProto) -> None:
    values = numpy_helper.to_array(proto.graph.initializer[0]).copy()
    values[3] += 0.5
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w"))


def breaks_a_branch(proto: onnx.ModelProto) -> None:
    for attribute in node(proto, "choice").attribute:
        attribute.g.node[0].op_type = "Exp"


def breaks_and_renames(proto: onnx.ModelProto) -> None:
    """The node that differs computes a value of a new name, so the fault shows at the next one that kept its own."""
    node(proto, "third").op_type = "Cos"
    node(proto, "third").output[0] = "other"
    for attribute in node(proto, "choice").attribute:
        attribute.g.node[0].input[0] = "other"


def renames(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].name = "erste"


def documents(proto: onnx.ModelProto) -> None:
    proto.doc_string = "words"


def failed(*passes: Edit, **options: object) -> VerificationFailed:
    with pytest.raises(VerificationFailed) as caught:
        onnx_migrate.migrate(model(TEXT), passes=passes, isolated=False, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("broken", "culprit", "operator"),
    [
        (breaks_an_operator, "third", "Cos"),
        (breaks_a_weight, "first", "Mul"),
        (breaks_a_branch, "choice", "If"),
        (breaks_and_renames, "choice", "If"),
    ],
)
def test_the_pass_and_the_node_are_named(broken: Edit, culprit: str, operator: str) -> None:
    error = failed(documents, broken, simplify=False)

    found = error.first_difference
    assert found is not None
    assert (found.passes, found.node, found.operator) == ((broken.__name__,), culprit, operator)
    assert error.reason.startswith(
        f"the numbers first differ after pass '{broken.__name__}', at node '{culprit}' ({operator}): output 'y': "
    )
    assert "computes another" in found.problem


def test_the_order_of_the_passes_does_not_matter_nor_does_simplification() -> None:
    for passes in ((breaks_an_operator, renames), (renames, breaks_an_operator)):
        found = failed(*passes).first_difference
        assert found is not None
        assert (found.passes, found.node) == (("breaks_an_operator",), "third")


def test_a_result_without_a_fault_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "first_difference", lambda *args, **options: pytest.fail("was called"))

    assert onnx_migrate.migrate(model(TEXT), passes=[documents], isolated=False).report.verified


def stages(*edits: Edit) -> list[tuple[str, Model]]:
    current, found = model(TEXT), []
    for edit in edits:
        edit(current)
        found.append((edit.__name__, load(current).copy()))
    return found


def invalidates(proto: onnx.ModelProto) -> None:
    node(proto, "last").domain = "com.nowhere"


def validates(proto: onnx.ModelProto) -> None:
    node(proto, "last").domain = ""


def blamed(*edits: Edit) -> FirstDifference | None:
    start = load(model(TEXT))
    with Prover(start, None, None, None, 0, Limits(), False) as prover:
        return first_difference(prover, start, stages(*edits), claimed=False)


def test_a_model_that_does_not_run_is_passed_over() -> None:
    found = blamed(documents, invalidates, breaks_an_operator, validates, renames)

    assert found is not None
    assert found.passes == ("invalidates", "breaks_an_operator", "validates")
    assert found.node == "third"


def test_bisection_takes_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = faulty_pass._same
    monkeypatch.setattr(
        faulty_pass, "_same", lambda *args, **options: calls.append(1) or real(*args, **options)
    )
    edits: list[Edit] = [documents, renames] * 7 + [breaks_an_operator] + [documents, renames] * 8

    found = blamed(*edits)

    assert found is not None
    assert found.passes == ("breaks_an_operator",)
    assert len(calls) <= 5


def test_without_stages_nothing_is_blamed() -> None:
    assert blamed() is None


def test_where_time_is_over_the_passes_that_are_left_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faulty_pass, "_PATIENCE", 0.0)

    found = blamed(documents, breaks_an_operator, renames)

    assert found is not None
    assert found.passes == ("documents", "breaks_an_operator", "renames")
    assert found.node == "third"
