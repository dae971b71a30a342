"""Expressions that are fitted to lengths at some sizes: the right one, or none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx_migrate.passes.dynamic_dims.length_formulas import Lengths, formula

from onnx_migrate.model.dims.expressions import value_of

STEPS = (1, 2, 31, 32, 33, 63, 64)


def found(length: Callable[..., int], **frozen: int) -> Lengths:
    """Return what shape inference would find of a length that this function computes."""
    alone = [{**frozen, name: size + step} for name, size in frozen.items() for step in STEPS]
    together = [
        {name: size + STEPS[place + start] for place, (name, size) in enumerate(frozen.items())}
        for start in (0, 1)
    ]
    tried = [*alone, *(together if len(frozen) > 1 else [])]
    return Lengths(frozen, length(**frozen), [(sizes, length(**sizes)) for sizes in tried])


@pytest.mark.parametrize(
    ("length", "frozen", "text"),
    [
        (lambda h: 2 * h, {"h": 32}, "2*h"),
        (lambda h: h - 2, {"h": 32}, "h - 2"),
        (lambda h: 3 * h + 5, {"h": 7}, "3*h + 5"),
        (lambda h: h // 2, {"h": 33}, "h//2"),
        (lambda h: -(-h // 2), {"h": 33}, "(h + 1)//2"),
        (lambda h: -(-h // 32), {"h": 224}, "(h + 31)//32"),
        (lambda h: h // 32, {"h": 224}, "h//32"),
        (lambda h: 4 * (h // 8), {"h": 64}, "4*(h//8)"),
        (lambda h: h // 4 + 1, {"h": 224}, "h//4 + 1"),
        (lambda n, t: n * t, {"n": 1, "t": 9}, "n*t"),
        (lambda n, t: 8 * n * t, {"n": 2, "t": 9}, "8*n*t"),
        (lambda p, t: p + t, {"p": 4, "t": 9}, "p + t"),
        (lambda p, t: p + t + 1, {"p": 4, "t": 9}, "p + t + 1"),
    ],
)  # fmt: skip
def test_the_expression_of_a_length(length: Callable[..., int], frozen: dict[str, int], text: str) -> None:
    assert formula(found(length, **frozen)) == text
    larger = {name: size + 100 * place for place, (name, size) in enumerate(frozen.items(), 1)}
    assert value_of(text, larger) == length(**larger)


@pytest.mark.parametrize(
    ("length", "frozen"),
    [
        (lambda h: h * h, {"h": 8}),
        (lambda h: min(h, 40), {"h": 32}),
        (lambda h: (h + 12) // 32, {"h": 224}),
        (lambda h, w: (h // 8) * (w // 8), {"h": 64, "w": 64}),
        (lambda h, w: max(h, w), {"h": 32, "w": 48}),
    ],
    ids=["square", "bound", "several fit", "product of quotients", "larger of two"],
)  # fmt: skip
def test_no_expression_where_none_or_several_fit(length: Callable[..., int], frozen: dict[str, int]) -> None:
    assert formula(found(length, **frozen)) is None


def test_a_symbol_that_is_no_identifier_is_in_no_expression() -> None:
    assert formula(Lengths({"a.b": 4}, 8, [({"a.b": size}, 2 * size) for size in (5, 6, 7, 8)])) is None


def test_few_sizes_are_not_enough() -> None:
    assert formula(Lengths({"h": 4}, 8, [({"h": 5}, 10), ({"h": 6}, 12)])) is None
