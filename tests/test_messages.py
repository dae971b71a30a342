"""Texts for people: numbers with their nouns, text that is safe to print, and remarks on what went wrong beside a result."""

from __future__ import annotations

import threading

import pytest

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.messages import (
    collected_remarks,
    count_and_verb,
    count_of,
    listed,
    markup_of,
    printable,
    remark,
    size_text,
)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "node", "0 nodes"),
        (1, "node", "1 node"),
        (1, "axis", "1 axis"),
        (3, "axis", "3 axes"),
        (2, "byte of weights", "2 bytes of weights"),
        (1, "byte of weights", "1 byte of weights"),
    ],
)
def test_the_noun_fits_the_number(number: int, noun: str, text: str) -> None:
    assert count_of(number, noun) == text


@pytest.mark.parametrize(
    ("number", "verb", "text"),
    [
        (1, "compute", "1 node computes"),
        (2, "compute", "2 nodes compute"),
        (1, "are written", "1 node is written"),
        (0, "have", "0 nodes have"),
        (1, "have", "1 node has"),
    ],
)
def test_the_verb_fits_the_number(number: int, verb: str, text: str) -> None:
    assert count_and_verb(number, "node", verb) == text


def test_names_in_a_sentence() -> None:
    assert [listed(names) for names in ("N", "NH", "NHW")] == ["N", "N and H", "N, H and W"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(999, "999 B"), (2_500_000, "2.5 MB"), (3 * 10**9, "3.0 GB"), (10**400, "more than 2^63 B")],
)
def test_a_size_has_a_unit(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain → text, naïve 模型", "plain → text, naïve 模型"),
        ("\x1b[2Jgone\x07", r"\x1b[2Jgone\x07"),
        ("one\nonnx-migrate: verified", r"one\nonnx-migrate: verified"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("name\udcff", r"name\udcff"),
        ("name\uffff\ufffe", r"name\uffff\ufffe"),
    ],
)
def test_what_a_terminal_obeys_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert str(CannotMigrate("no", where=Where("graph", text, "Relu"))).isprintable()


def test_a_long_name_is_cut_and_a_long_text_is_not() -> None:
    assert printable("x" * 8_000_000) == f"{'x' * 200}…{'x' * 50} (8,000,000 characters)"
    assert printable("x" * 1000) == "x" * 1000
    assert printable("word " * 1000) == "word " * 1000
    error = CannotMigrate("no", where=Where("graph", "y" * 8_000_000, "Relu"))
    assert len(str(error)) < 1000


def test_an_error_is_one_line() -> None:
    assert str(CannotMigrate("first\n  second")) == "first second"


def test_markup_shows_brackets() -> None:
    assert markup_of("[bold]\x1b") == r"\[bold]\x1b"


def test_remarks_are_collected_by_the_innermost_block() -> None:
    with collected_remarks() as outer:
        remark("one")
        with collected_remarks() as inner:
            remark("two")
        remark("three")
    assert (outer, inner) == (["one", "three"], ["two"])


def test_a_remark_that_nobody_collects_is_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="^left behind$"):
        remark("left behind")


def test_threads_collect_their_own() -> None:
    caught: list[str] = []

    def other() -> None:
        with collected_remarks() as remarks:
            remark("of the other")
        caught.extend(remarks)

    with collected_remarks() as own:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert (own, caught) == ([], ["of the other"])
