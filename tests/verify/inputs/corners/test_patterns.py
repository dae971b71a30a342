"""Strings that are made of the text of a regular expression."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.verify.inputs.corners.patterns import samples

PATTERNS = [
    r"www\.[\w.-]+\.\bcom\b",
    r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)",
    r"[a-z]+\d{2,4}",
    r"[^a-z]{3}",
    r"(?:ab|cd)*e?",
    r"(?P<name>x+)y",
    r"\d+\.\d+|none",
    r"\s*\(\d\)\s*",
    r"[]a]+",
    r"a.c",
    r"",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_sample_matches_and_another_does_not(pattern: str) -> None:
    matching = [text for text in samples(pattern) if re.fullmatch(pattern, text)]
    assert matching
    assert len(matching) < len(samples(pattern))


@pytest.mark.parametrize(
    "pattern", ["(", "[", "a{", "\\", "a)b", "a|b)c", "x{2,1}", "*", "(?", "(?P", "[^", "{,}"]
)
def test_a_pattern_that_is_not_valid_is_read_too(pattern: str) -> None:
    assert pattern in samples(pattern) or pattern == ""


@pytest.mark.parametrize("pattern", ["(" * 3000 + ")" * 3000, "((((a{40}){40}){40}){40}){40}"])
def test_groups_in_each_other_make_no_long_string(pattern: str) -> None:
    assert all(len(text) <= max(len(pattern), 401) for text in samples(pattern))
