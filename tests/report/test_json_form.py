"""One declaration gives the JSON of a value and its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypedDict

import pytest

from onnx_migrate.json_form import Seconds, json_of, properties, schema, schema_of, selects
from tests.support.skips import Elsewhere, import_or_skip

jsonschema = import_or_skip("jsonschema", Elsewhere.INSTALLED)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Place:
    node: str
    version: int | None = None


@dataclass(frozen=True)
class Value:
    """What is tried.

    More of it.
    """

    kind: Colour
    where: Place | None
    others: tuple[Place, ...]
    numbers: tuple[float, ...]
    pair: tuple[str, tuple[int, ...] | None]
    table: Mapping[str, Place]
    either: float | str
    seconds: Seconds = 0.0

    @property
    def length(self) -> int:
        return len(self.others)


@dataclass(frozen=True)
class Renamed:
    value: Value
    text: str


class Made(TypedDict):
    a: int


@dataclass(frozen=True)
class Several:
    item: Place | Renamed | None
    made: int


def _made(value: Several) -> Made:
    return Made(a=value.made)


selects(Value, "* length")
selects(Renamed, "name=value.where.node version=value.where.version places=value.others{node} text")
selects(Several, "item made", made=_made)

INF = float("inf")


def value(where: Place | None = None) -> Value:
    table = {"t": Place("n")}
    return Value(
        Colour.RED, where, (Place("a", 1),), (1.5, -INF), ("p", (1, 2)), table, float("nan"), 0.12345
    )


def test_fields_properties_and_the_values_inside() -> None:
    assert json_of(value()) == {
        "kind": "red", "where": None, "others": [{"node": "a", "version": 1}], "numbers": [1.5, "-inf"], "pair": ["p", [1, 2]],
        "table": {"t": {"node": "n", "version": None}}, "either": "nan", "seconds": 0.123, "length": 1,
    }  # fmt: skip


def test_a_path_and_a_selection_inside() -> None:
    known, unknown = Renamed(value(Place("x", 3)), "t"), Renamed(value(), "t")
    assert json_of(known) == {"name": "x", "version": 3, "places": [{"node": "a"}], "text": "t"}
    assert json_of(unknown) == {"name": "", "version": None, "places": [{"node": "a"}], "text": "t"}


@pytest.mark.parametrize("item", [Place("a"), Renamed(value(), "t"), None])
def test_one_of_several_classes_and_what_a_function_makes(item: Any) -> None:
    found = json_of(Several(item, 3))
    assert found == {"item": None if item is None else json_of(item), "made": {"a": 3}}


@pytest.mark.parametrize("item", [value(), value(Place("x")), Renamed(value(), "t"), Several(Place("a"), 1)])
def test_what_is_printed_fits_its_schema_and_less_or_more_does_not(item: Any) -> None:
    kinds = (Place, Value, Renamed, Several, Made)
    whole = {**schema(type(item)), "$defs": {kind.__name__: schema(kind) for kind in kinds}}
    printed = json_of(item)
    check = jsonschema.Draft202012Validator(whole).is_valid
    assert check(printed)
    assert not check({**printed, "more": 1})
    for key in printed:
        assert not check({name: other for name, other in printed.items() if name != key})
        assert not check({**printed, key: object()})


def test_a_schema_is_described_by_the_first_paragraph() -> None:
    assert schema(Value)["description"] == "What is tried."
    assert list(properties(Renamed)) == ["name", "version", "places", "text"]
    assert schema_of(str | None) == {"type": ["string", "null"]}


def test_a_type_that_json_has_not_is_an_error() -> None:
    with pytest.raises(TypeError, match="no JSON for"):
        schema_of(bytes)
