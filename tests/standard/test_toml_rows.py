"""Tables of TOML files, read as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from onnx_migrate.standard.toml_rows import WrongRow, read_row, toml_key


@dataclass(frozen=True)
class Inner:
    name: str = toml_key(label="")
    size: int | None = None


@dataclass(frozen=True)
class Row:
    title: str
    names: tuple[str, ...]
    first: str = toml_key(like="names")
    count: int | None = toml_key(name="number", default=None)
    flag: bool = True
    choice: Literal["one", "two"] = "one"
    known: tuple[str, ...] = toml_key(known=("pp", "q"), default=())
    attributes: Mapping[str, Any] = toml_key(default_factory=dict)
    rows: tuple[Inner, ...] = toml_key(name="row", default=())
    lines: tuple[Inner, ...] = toml_key(name="line", or_text=True, default=())
    length: int = toml_key(of=str, default=0, read=len)
    file: str = ""


GIVEN = {"title": "x", "names": ["a", "b"]}


def test_values_are_returned_as_they_are() -> None:
    given = {
        **GIVEN,
        "number": 3,
        "flag": False,
        "choice": "two",
        "known": ["q"],
        "attributes": {"k": 1},
        "length": "four",
    }
    given |= {"row": [{"name": "z", "size": 2}], "line": ["y", {"name": "w"}]}

    assert read_row(Row, given, "file", file="f") == Row(
        "x",
        ("a", "b"),
        "a",
        3,
        False,
        "two",
        ("q",),
        {"k": 1},
        (Inner("z", 2),),
        (Inner("y"), Inner("w")),
        4,
        "f",
    )
    assert read_row(Row, GIVEN, "file") == Row("x", ("a", "b"), "a")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"title": 3}, "file: title must be a text, not 3"),
        ({"number": "x"}, "file: number must be a whole number above 0, not 'x'"),
        ({"number": True}, "file: number must be a whole number above 0, not True"),
        ({"number": 0}, "file: number must be a whole number above 0, not 0"),
        ({"flag": 3}, "file: flag must be true or false, not 3"),
        ({"names": "x"}, "file: names must be a list of texts, not 'x'"),
        ({"names": [""]}, "file: names must be a list of texts, not ['']"),
        ({"names": []}, "file: names must not be empty"),
        ({"known": ["p"]}, "file: known has an unknown value 'p' (did you mean pp?)"),
        ({"known": ["zzz"]}, "file: known has an unknown value 'zzz' (known are pp, q)"),
        ({"attributes": "x"}, "file: attributes must be a table, not 'x'"),
        ({"row": "x"}, "file: row must be an array of tables, written [[row]]"),
        ({"row": [{"name": "a"}, "x"]}, "file: [[row]] 2: must be a table"),
        (
            {"row": [{"name": "a", "size": -1}]},
            "file: [[row]] 1 (a): size must be a whole number above 0, not -1",
        ),
        ({"row": [{}]}, "file: [[row]] 1: the key name is missing"),
        ({"choice": "x"}, "file: choice must be one of one, two, not 'x'"),
        ({"attribute": {}}, "file: unknown key 'attribute' (did you mean attributes?)"),
        ({"file": "x"}, "file: unknown key 'file'"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongRow) as error:
        read_row(Row, {**GIVEN, **given}, "file", file="f")
    assert f"{error.value} ({error.value.hint})".startswith(message)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(WrongRow, match="file: the key title is missing"):
        read_row(Row, {}, "file")
    with pytest.raises(WrongRow, match="row 3: must be a table"):
        read_row(Row, ["a"], "row 3")
