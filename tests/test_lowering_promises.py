"""The promises of a lowering: right or refused, whole models and every opset between, by any way, the same bytes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate import CannotMigrate, convert_version, migrate
from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.model.legality import check_legal
from onnx_migrate.standard.opsets import onnx_opset
from tests.harness import model, random_feeds, run, same_bits
from tests.lowered_models import CASES, Case


def _ids(case: Case) -> str:
    return case.name


each = pytest.mark.parametrize("case", CASES, ids=_ids)


def _bytes(proto: onnx.ModelProto) -> bytes:
    return proto.SerializeToString(deterministic=True)


def _check(case: Case, result: onnx.ModelProto, to: int) -> None:
    """Hold a model valid at an opset, and its numbers equal to those of the case."""
    assert onnx_opset(result.opset_import, ir_version=result.ir_version) == to
    check_legal(result)
    onnx.checker.check_model(result)
    assert [value.name for value in result.graph.output] == [v.name for v in case.model().graph.output]
    expected = case.expected or run(case.model(), case.given())
    same_bits(expected, run(result, case.given()), f"{case.name} at {to}", case.tolerance, case.tolerance)


def _between(case: Case) -> range:
    return range(case.opset - 1, OLDEST - 1, -1)


@pytest.mark.sample(4)
@each
def test_each_opset_is_reached_with_the_same_numbers_or_refused_with_a_code(case: Case) -> None:
    """What reaches an opset reaches every one between: below the first refusal there are only refusals."""
    source = case.model()
    untouched = _bytes(source)
    for to in _between(case):
        if to >= case.reaches:
            _check(case, convert_version(source, to), to)
            continue
        with pytest.raises(CannotMigrate) as caught:
            convert_version(source, to)
        assert caught.value.code == case.code
        assert caught.value.where is not None
        assert f"opset {case.reaches} can be reached" in caught.value.hint
    assert _bytes(source) == untouched


@pytest.mark.sample(4)
@each
def test_by_way_of_an_opset_between_the_numbers_are_the_same(case: Case) -> None:
    source = case.model()
    ways = [way for way in _between(case) if way > case.reaches]
    for way in {*ways[::4], *ways[-1:]}:
        if way == case.no_way_by:
            with pytest.raises(CannotMigrate, match="migrate to opset 9: "):
                convert_version(convert_version(source, way), case.reaches)
            continue
        _check(case, convert_version(convert_version(source, way), case.reaches), case.reaches)


@pytest.mark.sample(4)
@each
def test_the_same_bytes_each_time_and_nothing_to_do_the_second_time(case: Case) -> None:
    if case.reaches == case.opset:
        return
    once = convert_version(case.model(), case.reaches)

    assert _bytes(convert_version(case.model(), case.reaches)) == _bytes(once)
    assert _bytes(convert_version(once, case.reaches)) == _bytes(once)


@pytest.mark.sample(4)
@each
def test_what_was_lowered_can_be_lifted_to_where_it_came_from(case: Case) -> None:
    if case.reaches == case.opset:
        return
    lowered = convert_version(case.model(), case.reaches)

    _check(case, convert_version(lowered, case.opset), case.opset)


@pytest.mark.parametrize("to", [13, 9, 7])
def test_the_ir_version_becomes_one_that_runtimes_of_the_opset_load(to: int) -> None:
    source = model(
        """<ir_version: 10, opset_import: ["": 22]> g (float[2,3] x) => (float[2,3] y) { y = Cos (x) }"""
    )

    result = convert_version(source, to)

    assert result.ir_version == {13: 7, 9: 4, 7: 3}[to]


def test_a_migration_to_an_older_opset_is_verified_and_says_what_it_did() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 17]>
g (float[2,3,4] x, float[4] s) => (float[2,3,4] y) { a = LayerNormalization (x, s)  y = Softmax <axis = 1> (a) }""")

    migration = migrate(source, opset=9)

    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"
    assert {change.where.operator for change in migration.report.changes} >= {"LayerNormalization", "Softmax"}


def test_a_weight_that_no_node_reads_any_more_is_not_left() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 13]>
g (float[2,3] x) => (float[2] y) <int64[1] a = {1}> { y = ReduceSum <keepdims = 0> (x, a) }""")
    feeds = random_feeds(source)

    result = convert_version(source, 12)

    assert not result.graph.initializer
    same_bits(run(source, feeds), run(result, feeds), "ReduceSum")


def test_a_function_stays_a_function() -> None:
    (case,) = [case for case in CASES if case.function]

    result = convert_version(case.model(), 12)

    assert [function.name for function in result.functions] == ["Act"]
    assert [node.domain for node in result.graph.node] == ["local"]


def test_the_caller_may_still_replace_what_he_could_replace() -> None:
    """Axes that a caller replaces must not become attributes; with no way to keep them, the model is refused."""
    (case,) = [case for case in CASES if case.also_inputs]
    source = case.model()
    for axis, shape in ((1, (2, 4)), (2, (2, 3))):
        feeds = {**case.given(), "a": np.array([axis])}
        assert run(source, feeds)[0].shape == shape
    with pytest.raises(CannotMigrate, match="'a'"):
        convert_version(source, 12)
