"""Constants of several elements: the feeds hold each element beside the element that it meets."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.inputs.corners.feeds import Corners
from tests.verify.harness import net, random_inputs
from tests.verify.inputs.corners.test_feeds import told_apart_by

_TYPES = [
    "float16",
    "float",
    "double",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
]
_COMPARING = ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]


def _changed(before: str, number: str, other: str) -> set[str]:
    """Return the feeds that tell apart a model and the one with another number in its constant."""
    assert number in before
    return told_apart_by(net(before, opset=19), net(before.replace(number, other), opset=19))


@pytest.mark.parametrize("element", _TYPES)
@pytest.mark.parametrize("operator", _COMPARING)
def test_one_more_in_one_element_of_a_constant(operator: str, element: str) -> None:
    before = f"({element}[2,5] x) => (bool[2,5] y) <{element}[5] c = {{11, 22, 33, 44, 55}}> {{ y = {operator}(x, c) }}"
    assert any(name.startswith("beside") for name in _changed(before, "33", "34"))


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("element", ["float", "int32", "uint64"])
def test_the_larger_or_smaller_of_a_constant(operator: str, element: str) -> None:
    before = f"({element}[5] x) => ({element}[5] y) <{element}[5] c = {{61, 42, 93, 44, 55}}> {{ y = {operator}(x, c) }}"
    assert any(name.startswith("beside") for name in _changed(before, "93", "94"))


@pytest.mark.parametrize("operator", ["Div", "Mod"])
@pytest.mark.parametrize("element", [name for name in _TYPES if "int" in name])
def test_one_more_in_a_divisor_of_integers(operator: str, element: str) -> None:
    before = f"({element}[6] x) => ({element}[6] y) <{element}[6] c = {{21, 42, 73, 44, 55, 16}}> {{ y = {operator}(x, c) }}"
    assert any(name.startswith("beside") for name in _changed(before, "73", "74"))


@pytest.mark.parametrize("number", ["{-7}", "{0}", "{255}"])
def test_no_integer_is_divided_that_would_end_the_process(number: str) -> None:
    text = f"(int32[6] x) => (int32[6] y) <int32 c = {number}> {{ y = Div(c, x) }}"
    feeds = [corner.feed for corner in Corners(random_inputs(net(text)))]
    beside = [feed.inputs["x"] for feed in feeds if feed.name.startswith("beside")]
    assert beside
    assert all(np.all(values != 0) for values in beside)


def test_the_least_integer_is_not_divided_by_minus_one() -> None:
    text = "(int8[2] x) => (int8[2] y) <int8[2] c = {-1, -128}> { y = Div(x, c) }"
    for corner in Corners(random_inputs(net(text, opset=14))):
        assert np.all(corner.feed.inputs["x"] != -128), corner.feed.name


@pytest.mark.parametrize(
    "body",
    [
        """y = If(k) <then_branch = t () => (bool[5] a) { a = Less(x, c) },
        else_branch = e () => (bool[5] b) { b = Less(x, c) }>""",
        """d = Loop(two, "") <body = l (int64 i, bool go) => (bool o, bool[5] a) { o = Identity(go) a = Less(x, c) }>
           n = Cast<to=6>(d) m = ReduceMax(n, zero) s = Squeeze(m, zero) y = Cast<to=9>(s)""",
        """s = SequenceConstruct(x, x) i = Squeeze(zero) e = SequenceAt(s, i) y = Less(e, c)""",
        """i = Identity(c) y = Less(x, i)""",
    ],
)
def test_a_constant_is_met_behind_other_nodes_and_in_bodies(body: str) -> None:
    before = f"""(int32[5] x) => (bool[5] y) <int32[5] c = {{11, 22, 33, 44, 55}}, int64 two = {{2}}, int64[1] zero = {{0}},
        bool k = {{1}}> {{ {body} }}"""
    assert any(name.startswith("beside") for name in _changed(before, "33", "34"))


def test_a_constant_that_the_result_alone_has() -> None:
    before = "(int32[5] x) => (int32[5] y) { y = Identity(x) }"
    after = "(int32[5] x) => (int32[5] y) <int32[5] c = {811, 822, 833, 844, 855}> { y = Min(x, c) }"
    assert any(name.startswith("beside") for name in told_apart_by(net(before), net(after)))


def test_an_input_that_is_broadcast_meets_several_elements() -> None:
    before = "(int32[1] x) => (bool[4] y) <int32[4] c = {11, 22, 33, 44}> { y = Less(x, c) }"
    feeds = [corner.feed for corner in Corners(random_inputs(net(before)))]
    assert {int(feed.inputs["x"][0]) // 11 * 11 for feed in feeds if feed.name.startswith("beside")} & {
        22,
        33,
        44,
    }


@pytest.mark.parametrize("dims", ["N,M", "?,?", "N,4", "2,M"])
def test_open_dims_get_the_length_of_the_constant(dims: str) -> None:
    before = f"(int32[{dims}] x) => (bool[A,4] y) <int32[2,4] c = {{11, 22, 33, 44, 55, 66, 77, 88}}> {{ y = Less(x, c) }}"
    assert any(name.startswith("beside") for name in _changed(before, "66", "67"))


def test_an_open_number_of_columns_is_that_of_an_imputer() -> None:
    before = """(float[N,M] x) => (float[N,M] y)
        { y = ai.onnx.ml.Imputer <imputed_value_floats = [1.0, 2.0, 3.0], replaced_value_float = 9.5> (x) }"""
    assert any(name.startswith("beside") for name in _changed(before, "3.0", "3.5"))


@pytest.mark.parametrize("element", ["int16", "int64", "uint8"])
def test_a_divisor_in_a_scan(element: str) -> None:
    before = f"""({element}[2,3] x) => ({element}[2,3] y) <{element}[3] c = {{81, 12, 53}}>
        {{ y = Scan <num_scan_inputs = 1, body = b ({element}[3] s) => ({element}[3] d) {{ d = Div(s, c) }}> (x) }}"""
    assert any(name.startswith("beside") for name in _changed(before, "53", "54"))


def test_no_integer_beside_a_constant_is_a_large_size() -> None:
    text = """(int64[2] n) => (float[k] y) <int64[2] c = {3, 900000000}, float[1] one = {1.0}, int64[1] first = {0}>
        { m = Min(n, c) s = Gather(m, first) y = Expand(one, s) }"""
    for corner in Corners(random_inputs(net(text))):
        assert abs(corner.feed.inputs["n"]).max() <= 256, corner.feed.name
