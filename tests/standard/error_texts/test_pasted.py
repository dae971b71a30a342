"""Pasted text is made comparable."""

from __future__ import annotations

import codecs

import pytest

from onnx_migrate.standard.error_texts.pasted import decoded, joined, lower, plain, words_of


@pytest.mark.parametrize(
    "text",
    [
        'Unsupported "model"  IR\nversion: 10',
        "\x1b[1;31mUnsupported\x1b[0m model IR version: 10",
        "> Unsupported model\n> IR version: 10",
        "│ Unsupported model │\n│ IR version: 10    │",
        "Unsupported `model` IR version: 10",
        "**Unsupported** model IR\tversion: 10",
        "Unsupported &quot;model&quot; IR version: 10",
        "Unsupported model\\nIR version: 10",
    ],
)
def test_colours_quotes_and_line_breaks_do_not_count(text: str) -> None:
    assert plain(text) == "Unsupported model IR version: 10"


def test_other_marks_stay() -> None:
    assert plain("[8] need <= 12 && (x:0 != y)") == "[8] need <= 12 && (x:0 != y)"


def test_lower_case_keeps_the_length() -> None:
    assert lower("İX") == "İx"
    assert lower("ÄX") == "äx"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF8, "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_files_of_powershell_are_read(mark: bytes, encoding: str) -> None:
    assert decoded(mark + "Größe".encode(encoding)) == "Größe"


def test_bytes_that_are_no_text_are_read_too() -> None:
    assert decoded(b"a\xffb") == "a\ufffdb"


def test_words() -> None:
    assert words_of("No Op registered, domain_version 10") == ["registered", "domain_version"]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["a" * 60 + " No Op regis", "tered for Range"], "No Op registered for Range"),
        (["a" * 60 + " No Op", "registered for Range", "b" * 66 + "c"], "No Op registered for Range"),
        (["a" * 60 + " No Op regis\r", "tered for Range\r"], "No Op registered for Range"),
    ],
)
def test_lines_that_a_terminal_cut_are_put_together(lines: list[str], text: str) -> None:
    assert text in joined("\n".join(lines))


@pytest.mark.parametrize("text", ["", "one line", "two\nshort lines", "x" * 80 + "\n" + "y" * 20 + "\nz"])
def test_lines_that_end_by_themselves_stay(text: str) -> None:
    assert joined(text).count("\n") >= text.count("\n") - (len(text) > 80)
