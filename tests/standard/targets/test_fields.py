"""The keys of a table of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.standard.targets.fields import Fields


def test_values_are_returned_as_they_are() -> None:
    fields = Fields(
        {"a": "x", "n": 3, "f": True, "t": ["p", "q"], "m": {"k": 1}, "r": [{"z": 1}], "c": "two"}, "file"
    )

    assert (fields.text("a", None), fields.number("n"), fields.flag("f")) == ("x", 3, True)
    assert (fields.texts("t"), fields.mapping("m"), fields.rows("r")) == (("p", "q"), {"k": 1}, [{"z": 1}])
    assert fields.choice("c", ("one", "two"), "one") == "two"
    assert (fields.text("b"), fields.number("b"), fields.flag("b", default=True)) == ("", None, True)
    fields.end()


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda f: f.text("n"), "file: n must be a text, not 3"),
        (lambda f: f.text("gone", None), "file: the key gone is missing"),
        (lambda f: f.number("a"), "file: a must be a whole number above 0, not 'x'"),
        (lambda f: f.number("f"), "file: f must be a whole number above 0, not True"),
        (lambda f: f.flag("n"), "file: n must be true or false, not 3"),
        (lambda f: f.texts("a"), "file: a must be a list of texts, not 'x'"),
        (lambda f: f.texts("e", required=True), "file: e must not be empty"),
        (
            lambda f: f.texts("t", known=["pp", "q"]),
            r"file: t has an unknown value 'p' \(did you mean pp\?\)",
        ),
        (lambda f: f.mapping("a"), "file: a must be a table, not 'x'"),
        (lambda f: f.rows("a"), r"file: a must be an array of tables, written \[\[a\]\]"),
        (lambda f: f.choice("a", ("one", "two"), "one"), "file: a must be one of one, two, not 'x'"),
        (
            lambda f: [f.text("attributes"), *map(f._left.pop, "anfte"), f.end()],
            r"file: unknown key 'attribute' \(did you mean attributes\?\)",
        ),
    ],
)
def test_what_is_wrong_is_named(take: Callable[[Fields], Any], message: str) -> None:
    fields = Fields({"a": "x", "n": 3, "f": True, "t": ["p"], "e": [], "attribute": {}}, "file")

    with pytest.raises(UsageError, match=message) as error:
        take(fields)
    assert error.value.code == "bad-target-file"


def test_a_table_must_be_one() -> None:
    with pytest.raises(UsageError, match="row 3: must be a table"):
        Fields(["a"], "row 3")
