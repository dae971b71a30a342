"""Patterns find their text with its placeholders, in time linear to the text."""

from __future__ import annotations

import time

import pytest

from onnx_migrate.standard.error_texts.pasted import lower, plain
from onnx_migrate.standard.error_texts.patterns import Pattern, placeholders_of


def found(pattern: str, text: str) -> list[dict[str, str]]:
    whole = plain(text)
    return [captured for _, _, captured in Pattern(pattern).find(whole, lower(whole))]


def test_placeholders_are_read() -> None:
    text = "x: no op registered FOR Range with domain_version of 10."
    assert found("No Op registered for {op} with domain_version of {opset}", text) == [
        {"op": "Range", "opset": "10"}
    ]


def test_a_placeholder_may_come_first() -> None:
    assert found("{op} is not a registered function/op", "error: ATen is not a registered function/op") == [
        {"op": "ATen"}
    ]


def test_a_long_placeholder_reaches_over_a_dump_of_a_node() -> None:
    text = f"While parsing [Conv]: {'x y ' * 300} and then at last the longest words of all"
    assert found("While parsing [{op}]:{a:long} at last the longest words of all", text)[0]["op"] == "Conv"


def test_a_number_at_the_end_is_whole() -> None:
    assert found("opset must be at most {max_opset}", "opset must be at most 17x") == []
    assert found("opset must be at most {max_opset}", "opset must be at most 17") == [{"max_opset": "17"}]


def test_equal_findings_are_given_once_and_others_each() -> None:
    text = "bad op: A\nbad op: B\nbad op: A\n"
    assert found("bad op: {op}", text) == [{"op": "A"}, {"op": "B"}]


def test_a_placeholder_that_stands_twice_is_read_once() -> None:
    assert found("from {a:number} to {a:number} it fails", "from 1 to 2 it fails") == [{"a": "1"}]


def test_a_pattern_needs_words_and_known_kinds() -> None:
    with pytest.raises(ValueError, match="no words"):
        Pattern("{op} : {opset}")
    with pytest.raises(ValueError, match="kind"):
        found("words to look for {op:nothing}", "words to look for x")


def test_names_of_placeholders() -> None:
    assert placeholders_of("{op} since {opset:number}") == {"op", "opset"}


@pytest.mark.parametrize(
    "line",
    [
        "a" * 100,
        "Fatal error: ",
        "Fatal error: a.b.c.d ",
        "is not a registered function/op ",
        "( [ { (",
        "aaaa.aaaa is not a ",
    ],
)
def test_time_grows_with_the_text_and_no_faster(line: str) -> None:
    pattern = Pattern(
        "Fatal error: {domain:word}:{op}({version}) is not a registered function/op {a:text} end {b:text} of it"
    )

    def seconds(size: int) -> float:
        text = line * (size // len(line))
        start = time.process_time()
        list(pattern.find(text, text.lower()))
        return time.process_time() - start

    assert seconds(4_000_000) < 1.5


def test_a_pattern_is_written_with_its_values() -> None:
    assert (
        Pattern("No Op for {op}{a:text} at {node}").filled({"op": "Range", "a": "x y"})
        == "No Op for Range… at"
    )


def test_quotes_beside_a_placeholder_do_not_count() -> None:
    assert found("does not support '{op}' op type", "does not support Erf op type") == [{"op": "Erf"}]
    assert found("does not support {op} op type", "does not support 'Erf' op type") == [{"op": "Erf"}]
