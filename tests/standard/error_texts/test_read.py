"""A table that is wrong is refused with file, entry and key."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.standard.error_texts.find import find
from onnx_migrate.standard.error_texts.rows import ErrorText, Mend, error_texts, parse_table
from onnx_migrate.standard.targets import known_names

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
        ('["these are fixed words {opset}"]', '["{a}"]', "a.toml: [[error]] 1 (a-name): patterns"),
        ("[[error]]", "[[eror]]", "a.toml: the key error is missing"),
        ('ask = "q", ', "", "checks: the key ask is missing"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_table(GOOD.replace(old, new).encode(), "a.toml")


def test_a_remedy_needs_the_values_of_its_command_and_its_words() -> None:
    mend = Mend("first with {op}", command="onnx-migrate {model} out.onnx --opset {opset}")
    assert mend.placeholders == {"op", "model", "opset"}


ENTRIES = pytest.mark.parametrize("entry", error_texts(), ids=lambda entry: entry.name)


@ENTRIES
def test_the_example_is_recognised_as_this_entry_only(entry: ErrorText) -> None:
    assert [found.entry.name for found in find(entry.example, error_texts())] == [entry.name]


@ENTRIES
def test_the_title_is_recognised_as_this_entry_only(entry: ErrorText) -> None:
    if entry.title:
        assert [found.entry.name for found in find(entry.title, error_texts())] == [entry.name]


@ENTRIES
def test_the_example_is_recognised_in_a_traceback_and_between_logs(entry: ErrorText) -> None:
    words = entry.example.split(" ")
    wrapped = "\n    ".join(" ".join(words[at : at + 6]) for at in range(0, len(words), 6))
    before = "\x1b[31m2026-01-01 12:00:00.1 [E:onnxruntime:, a.cc:1 f] \x1b[m"
    text = f'{before}{wrapped}\x1b[0m\nTraceback (most recent call last):\n  File "x.py"'
    assert entry.name in [found.entry.name for found in find(text, error_texts())]


@ENTRIES
def test_every_entry_has_a_tool_a_meaning_a_remedy_and_sources(entry: ErrorText) -> None:
    assert all((entry.tool, entry.stage, entry.meaning, entry.mends, entry.sources))
    assert all(re.match(r"https://\S+$", source) for source in entry.sources)
    assert not entry.runtime or entry.runtime in known_names()
    for mend in entry.mends:
        assert mend.command or mend.text
        assert not mend.command or mend.command.startswith(
            (
                "onnx-migrate {model} ",
                "onnx-migrate inspect {model}",
                "onnx-migrate explain ",
                "onnx-migrate verify {model} ",
            )
        )
    for sentence in entry.sentences:
        assert "\u2014" not in sentence.text


def test_names_are_unique_and_texts_are_told_apart() -> None:
    assert len({entry.name for entry in error_texts()}) == len(error_texts())
