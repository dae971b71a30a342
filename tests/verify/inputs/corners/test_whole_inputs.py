"""Feeds of equal elements, of small sizes, of replaced numbers, and of infinities: two models that agree on random numbers."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.inputs.corners.feeds import Corners
from tests.verify.harness import net, random_inputs
from tests.verify.inputs.corners.test_feeds import told_apart_by


def _told(before: str, old: str, new: str, opset: int = 18) -> set[str]:
    assert old in before
    return told_apart_by(net(before, opset=opset), net(before.replace(old, new), opset=opset))


@pytest.mark.parametrize("element", ["float", "double", "int32", "int8"])
@pytest.mark.parametrize("operator", ["ArgMin", "ArgMax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_last_of_equal_elements(operator: str, axis: int, element: str) -> None:
    before = f"({element}[2,2] x) => (int64[2] y) {{ y = {operator} <axis = {axis}, keepdims = 0, select_last_index = 0> (x) }}"
    assert "one number" in _told(before, "index = 0", "index = 1")


def test_the_last_of_equal_elements_that_are_computed() -> None:
    before = """(float[2,2] x) => (int64[2] y) <float[2,2] w = {1.4, -1.8, 0.3, -0.4}>
        { p = MatMul(x, w) y = ArgMax <axis = 1, keepdims = 0, select_last_index = 0> (p) }"""
    assert "zeros" in _told(before, "index = 0", "index = 1")


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("y = ConstantOfShape <value = int32[1] {0}> (n)", "{0}", "{1}"),
        ("y = Expand(five, n)", "five =  {5}", "five =  {6}"),
        ("y = Tile(five, n)", "five =  {5}", "five =  {6}"),
    ],
)
def test_an_output_that_is_declared_empty_has_elements_at_other_sizes(body: str, old: str, new: str) -> None:
    before = f"(int64[1] n) => (int32[0] y) <int32[1] five =  {{5}}> {{ {body} }}"
    assert any(name.startswith("values of size") for name in _told(before, old, new))


def _imputer(replaced: str, imputed: str, element: str) -> str:
    kind = "floats" if element == "float" else "int64s"
    one = "float" if element == "float" else "int64"
    return f"""({element}[2,3] x) => ({element}[2,3] y)
        {{ y = ai.onnx.ml.Imputer <imputed_value_{kind} = [{imputed}], replaced_value_{one} = {replaced}> (x) }}"""


@pytest.mark.parametrize(
    ("replaced", "element", "imputed", "other"),
    [
        ("0.0", "float", "1.0, 2.0, 3.0", "1.0, 2.0, 3.1"),
        ("-77.5", "float", "1.0, 2.0, 3.0", "1.1, 2.0, 3.0"),
        ("1", "int64", "7, 8, 9", "7, 9, 8"),
        ("-9999", "int64", "7, 8, 9", "7, 8, 8"),
    ],
)
def test_each_column_has_the_number_that_is_replaced(
    replaced: str, element: str, imputed: str, other: str
) -> None:
    assert any(
        name.startswith("beside") for name in _told(_imputer(replaced, imputed, element), imputed, other)
    )


def test_nan_that_is_replaced_is_fed_in_each_column() -> None:
    model = net(_imputer("0.0", "1.0, 2.0, 3.0", "float"))
    other = net(_imputer("0.0", "1.0, 2.0, 3.5", "float"))
    for one in (model, other):
        attribute = next(a for a in one.graph.node[0].attribute if a.name == "replaced_value_float")
        attribute.f = float("nan")
    assert any(name.startswith("beside") for name in told_apart_by(model, other))


@pytest.mark.parametrize("element", ["float16", "float", "double"])
@pytest.mark.parametrize("sign", ["negative", "positive"])
def test_one_infinity_that_is_not_found(sign: str, element: str) -> None:
    if element == "float16":
        before = f"({element}[3] x) => (bool[3] y) {{ y = IsInf <detect_{sign} = 1> (x) }}"
    else:
        before = f"""({element}[3] x) => (bool[2,3] y) <int64 two = {{2}}> {{ y = Loop(two, "") <body = b (int64 i, bool go)
            => (bool o, bool[3] f) {{ o = Identity(go) f = IsInf <detect_{sign} = 1> (x) }}> }}"""
    assert _told(before, "= 1>", "= 0>", opset=20) & {"infinities", "NaN and infinities"}


@pytest.mark.parametrize("element", ["float", "double"])
def test_a_clip_without_bounds_is_told_from_none(element: str) -> None:
    before = f"({element}[3] x) => ({element}[3] y) {{ y = Clip(x) }}"
    assert "infinities" in _told(before, "Clip", "Identity")


@pytest.mark.parametrize(
    "body",
    ["s = Sub(x, x) y = Max(s, x)", "y = Softmax(x)", "i = Cast<to=6>(x) f = Cast<to=1>(i) y = Clip(f)"],
)
def test_no_infinity_is_fed_where_it_becomes_nan_or_an_integer(body: str) -> None:
    model = net(f"(float[3] x) => (float[3] y) {{ {body} }}", opset=13)
    assert "infinities" not in {corner.feed.name for corner in Corners(random_inputs(model))}


@pytest.mark.parametrize(
    ("node", "old", "new"),
    [
        (r'RegexFullMatch <pattern = "ab+\\.c">', '.c"', '.cx"'),
        (r'RegexFullMatch <pattern = "(x|y)[0-9]{2}">', "{2}", "{3}"),
        (
            'StringNormalizer <is_case_sensitive = 1, locale = "C", stopwords = ["monday"]>',
            "monday",
            "MONDAY",
        ),
        ('LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1, 2]>', "2]", "3]"),
    ],
)
def test_words_that_a_model_looks_for(node: str, old: str, new: str) -> None:
    domain = "ai.onnx.ml." if node.startswith("Label") else ""
    kind = {"R": "bool[3]", "S": "string[k]", "L": "int64[3]"}[node[0]]
    before = f"(string[3] x) => ({kind} y) {{ y = {domain}{node} (x) }}"
    assert any(name.startswith("corners") for name in _told(before, old, new, opset=20))


@pytest.mark.parametrize(
    ("delimiter", "old", "new"), [("-", '"-"', '"--"'), ("", "= 2", "= 5"), (";", "= 2", "= 1")]
)
def test_strings_of_more_parts_than_are_split(delimiter: str, old: str, new: str) -> None:
    before = f"""(string[3] x) => (string[3,k] y, int64[3] n)
        {{ y, n = StringSplit <delimiter = "{delimiter}", maxsplit = 2> (x) }}"""
    assert any(name.startswith("corners") for name in _told(before, old, new, opset=20))


@pytest.mark.parametrize("branch", ["then_branch", "else_branch"])
@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("NAME = ArgMax <axis = 1, select_last_index = 0> (x)", "index = 0", "index = 1"),
        ("lNAME = LessOrEqual(x, c) NAME = Cast <to = 7> (lNAME)", "LessOrEqual", "Less"),
    ],
)
def test_one_branch_alone_differs(branch: str, body: str, old: str, new: str) -> None:
    other = ({"then_branch", "else_branch"} - {branch}).pop()
    kept = f"{other} = b () => (int64[M,N] s) {{ {body.replace('NAME', 's')} }}"
    changed = f"{branch} = a () => (int64[M,N] r) {{ {body.replace('NAME', 'r')} }}"
    begin = "(float[2,2] x, bool k) => (int64[M,N] y) <float[2] c = {71.5, -63.25}> { y = If(k) <"
    before, after = (
        net(f"{begin}{one}, {kept}> }}", opset=18) for one in (changed, changed.replace(old, new))
    )
    told = told_apart_by(before, after)
    assert any(name.startswith(("one number", "beside")) for name in told), told
