"""Axes counted from the end below 11: the same numbers, and no negative axis left where the rank is known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import make_variant, model, random_feeds, run, same_bits
from tests.steps import check_down, lower, refuses

ONE_AXIS = {
    "ArgMax": "(float[2,3,4] x) => (int64[A,B,C] y) {{ y = ArgMax <axis = {axis}> (x) }}",
    "ArgMin": "(float[2,3,4] x) => (int64[A,B] y) {{ y = ArgMin <axis = {axis}, keepdims = 0> (x) }}",
    "Compress": "(float[2,3,4] x) => (float[A,B,C] y) <bool[2] c = {{0, 1}}>"
    " {{ y = Compress <axis = {axis}> (x, c) }}",
    "Concat": "(float[2,3,4] x, float[2,3,4] z) => (float[A,B,C] y) {{ y = Concat <axis = {axis}> (x, z) }}",
    "Flatten": "(float[2,3,4] x) => (float[A,B] y) {{ y = Flatten <axis = {axis}> (x) }}",
    "Hardmax": "(float[2,3,4] x) => (float[2,3,4] y) {{ y = Hardmax <axis = {axis}> (x) }}",
    "LogSoftmax": "(float[2,3,4] x) => (float[2,3,4] y) {{ y = LogSoftmax <axis = {axis}> (x) }}",
    "Softmax": "(float[2,3,4] x) => (float[2,3,4] y) {{ y = Softmax <axis = {axis}> (x) }}",
    "Split": "(float[2,4,4] x) => (float[A,B,C] y, float[D,E,F] z) {{ y, z = Split <axis = {axis}> (x) }}",
}
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def _source(graph: str) -> onnx.ModelProto:
    return model(f'<ir_version: 6, opset_import: ["": 11]> g {graph}')


def _axes(proto: onnx.ModelProto) -> list[int]:
    found: list[int] = []
    for node in proto.graph.node:
        for attribute in node.attribute:
            if attribute.name in ("axis", "axes"):
                value = helper.get_attribute_value(attribute)
                found.extend([value] if isinstance(value, int) else value)
    return found


def _check(source: onnx.ModelProto, specials: bool | None = None) -> None:
    known = ("plain", "symbolic", "if")
    assert any(axis < 0 for axis in _axes(source))
    result = check_down(source, 10, 9, variants=known, specials=specials)
    assert all(axis >= 0 for axis in _axes(result))


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("operator", ONE_AXIS)
def test_an_axis_is_counted_from_the_front(operator: str, axis: int) -> None:
    if (operator, axis) == ("Split", -1):
        axis = -2  # of even length, as is the last
    _check(_source(ONE_AXIS[operator].format(axis=axis)))


@pytest.mark.parametrize("what", REDUCTIONS)
def test_axes_of_reductions_are_counted_from_the_front(what: str) -> None:
    body = f"{{ y = Reduce{what} <axes = [-1, 0]> (x) z = Reduce{what} <axes = [-2], keepdims = 0> (x) }}"
    specials = False if what.startswith("Log") else None  # the sums of special values are compared elsewhere
    _check(_source(f"(float[2,3,4] x) => (float[A,B,C] y, float[D,E] z) {body}"), specials)


def test_axes_of_squeeze_count_in_the_input_and_of_unsqueeze_in_the_output() -> None:
    _check(_source("(float[1,3,1] x) => (float[A] y) { y = Squeeze <axes = [-1, 0]> (x) }"))
    result = check_down(
        _source("(float[2,3] x) => (float[A,B,C,D] y) { y = Unsqueeze <axes = [-1, -3]> (x) }"),
        variants=("plain", "symbolic", "if"),
    )
    assert _axes(result) == [1, 3]


@pytest.mark.parametrize("axes", ["[2, 0]", "[-1, 0]"])
def test_axes_are_sorted(axes: str) -> None:
    """The shape inference of Squeeze-1 in older releases of onnx is wrong for others."""
    source = _source(f"(float[1,3,1] x) => (float[A] y) {{ y = Squeeze <axes = {axes}> (x) }}")
    assert _axes(check_down(source, 10, variants=("plain", "symbolic", "if"))) == [0, 2]


@pytest.mark.parametrize("axes", ["", "<axes = [0, 2]>"])
def test_axes_counted_from_the_front_stay(axes: str) -> None:
    source = _source(f"(float[2,3,4] x) => (float[A,B,C] y) {{ y = ReduceSum {axes} (x) }}")

    result = check_down(source, 10, 9)

    assert [node.SerializeToString() for node in result.graph.node] == [
        node.SerializeToString() for node in source.graph.node
    ]


@pytest.mark.parametrize(
    "graph",
    [
        ONE_AXIS["Concat"].format(axis=-1),
        ONE_AXIS["ArgMax"].format(axis=-2),
        "(float[2,3,4] x) => (float[A,B,C] y) { y = ReduceMean <axes = [-2]> (x) }",
    ],
)
def test_of_an_unknown_rank_a_negative_axis_stays_and_the_report_says_so(graph: str) -> None:
    source = _source(graph)
    feeds = random_feeds(source)
    unranked, given = make_variant(source, "unranked", feeds)

    result, log = lower(unranked, 10)

    same_bits(run(source, feeds), run(result, given), "unranked")
    assert any(axis < 0 for axis in _axes(result))
    assert [change.exactness for change in log.changes] == [Exactness.ASSUMED]
    assert "negative axis" in log.changes[0].reason


def test_flatten_of_an_unknown_rank_is_refused() -> None:
    unranked, _ = make_variant(_source(ONE_AXIS["Flatten"].format(axis=-1)), "unranked", {})

    refuses("needs-rank", lower, unranked, 10)


def test_a_function_called_with_two_ranks_counts_in_each() -> None:
    source = model("""11 (float[2,3,4] x, float[3,4] m) => (float[A,B] y, float[C] z) { y = local.Last (x) z = local.Last (m) }
<domain: "local", opset_import: ["": 11]> Last (a) => (b) { b = ReduceMax <axes = [-1], keepdims = 0> (a) }""")
    feeds = {name: np.abs(value) for name, value in random_feeds(source).items()}

    result, _ = lower(source, 10)

    same_bits(run(source, feeds), run(result, feeds), "two ranks")
