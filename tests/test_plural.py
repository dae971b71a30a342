"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from onnx_migrate.plural import count_of, listed, size_text


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


def test_names_in_a_sentence() -> None:
    assert [listed(names) for names in ("N", "NH", "NHW")] == ["N", "N and H", "N, H and W"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(999, "999 B"), (2_500_000, "2.5 MB"), (3 * 10**9, "3.0 GB"), (10**400, "more than 2^63 B")],
)
def test_a_size_has_a_unit(size: int, text: str) -> None:
    assert size_text(size) == text
