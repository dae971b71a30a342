"""A table that is wrong is refused with file, entry and key."""

from __future__ import annotations

import pytest

from onnx_migrate.spec.error_texts.read import parse_table

GOOD = """
[[error]]
name = "a-name"
tool = "t"
stage = "s"
example = "these are fixed words 7"
patterns = ["these are fixed words {opset}"]
meaning = ["opset {opset}", {text = "x", needs = "a b", unless = "c"}]
mends = ["words", {command = "onnx-migrate {model} out.onnx", text = "y"}]
sources = ["https://example.org"]
checks = [{ask = "q", op = "{op}", values = ["1", "2"]}]
"""


def test_a_table_is_read() -> None:
    (entry,) = parse_table(GOOD.encode(), "a.toml")
    assert entry.meaning[1].needs == ("a", "b")
    assert entry.meaning[1].unless == ("c",)
    assert [mend.command for mend in entry.mends] == ["", "onnx-migrate {model} out.onnx"]
    assert entry.checks[0].question == "q"
    assert dict(entry.checks[0].given) == {"op": ("{op}",), "values": ("1", "2")}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "a-name"', 'name = "A name"', "lower case"),
        ('tool = "t"', "", "tool"),
        ('stage = "s"', 'stage = "s"\nsatge = "s"', "satge"),
        ('unless = "c"', 'unles = "c"', "unles"),
        ("fixed words {opset}", "{a}", "a.toml: a-name"),
        ("[[error]]", "[[eror]]", "only"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, problem: str) -> None:
    text = GOOD.replace('["these are {a}"]', '["{a}"]').replace(old, new)
    if "{a}" in new:
        text = GOOD.replace('["these are fixed words {opset}"]', '["{a}"]')
    with pytest.raises(ValueError, match=problem):
        parse_table(text.encode(), "a.toml")
