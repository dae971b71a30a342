"""Reads tables of TOML files as dataclasses, whose fields declare the keys that a table has.

The type of a field says what its key holds. Examples are a text, a number above 0, true or false, or one of some texts
(Literal). It may also hold a list of texts, a table (Mapping), or an array of tables that are dataclasses too.
`toml_key` declares the rest. A key is required if its field has no default. Errors name file, table and key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from onnx_migrate.messages import did_you_mean

__all__ = ["WrongRow", "keys_of", "parsed", "read_row", "toml_key"]

T = TypeVar("T")

_WANTED: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a text", lambda given: isinstance(given, str)),
    int: ("a whole number above 0", lambda given: type(given) is int and given > 0),
    bool: ("true or false", lambda given: isinstance(given, bool)),
    tuple: (
        "a list of texts",
        lambda given: isinstance(given, list) and all(isinstance(item, str) and item for item in given),
    ),
    Mapping: ("a table", lambda given: isinstance(given, dict)),
    list: ("a list", lambda given: isinstance(given, list)),
}


class WrongRow(ValueError):
    """A problem of a table, and a hint; `placed` says that the problem already names its location."""

    def __init__(self, problem: str, hint: str = "", *, placed: bool = False) -> None:
        super().__init__(problem)
        self.hint = hint
        self.placed = placed


def toml_key(
    *,
    name: str = "",
    of: Any = None,
    known: Sequence[str] = (),
    like: str = "",
    label: str | None = None,
    or_text: bool = False,
    read: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Any:
    """Declare a field of a row that its type alone does not describe; `more` is for `dataclasses.field`.

    - `name` is its key in the file, and `of` the type there, if they differ from those of the field.
    - `known` are the allowed texts.
    - `like` is the field whose value, or first value, this one gets if the key is missing.
    - `label` makes the value of this field the location of the row in messages, after these words.
    - `or_text` is for an array in which a text may stand for a row with that text alone.
    - `read` converts the content of the file. It raises WrongRow with a problem that continues the name of the key.
    """
    description = {"name": name, "of": of, "known": known, "like": like, "label": label, "or_text": or_text}
    return field(metadata={**description, "read": read}, **more)


def keys_of(kind: type) -> dict[str, Field[Any]]:
    """Return the fields of a row by their keys."""
    return {row_field.metadata.get("name") or row_field.name: row_field for row_field in fields(kind)}


def parsed(data: bytes, file: str) -> dict[str, Any]:
    """Return the content of the bytes of a TOML file. Raises WrongRow if they are not TOML."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongRow(f"{file}: not TOML: {error}", placed=True) from error


def read_row(kind: type[T], given: Any, place: str, **others: Any) -> T:
    """Return a table as a dataclass, with `others` for fields that are no keys. Raises WrongRow, which begins with `place`."""
    try:
        if not isinstance(given, dict):
            raise WrongRow("must be a table")
        fields_by_key = {
            name: row_field for name, row_field in keys_of(kind).items() if row_field.name not in others
        }
        values = dict(others)
        for name, row_field in fields_by_key.items():
            like = row_field.metadata.get("like")
            if name in given:
                values[row_field.name] = _value(kind, row_field, given[name], name, place)
            elif like:
                # The other field comes earlier in the class, so its value is there already.
                values[row_field.name] = values[like] if isinstance(values[like], str) else values[like][0]
            elif _is_required(row_field):
                raise WrongRow(f"the key {name} is missing")
        for name in given:
            if name not in fields_by_key:
                raise WrongRow(f"unknown key {name!r}", _hint(name, fields_by_key))
        return kind(**values)
    except WrongRow as error:
        # An error from an inner table names its own place already.
        if error.placed:
            raise
        raise WrongRow(f"{place}: {error}", error.hint, placed=True) from error


def _value(kind: type, item: Field[Any], given: Any, name: str, place: str) -> Any:
    description = item.metadata
    hint = description.get("of") or _hints(kind)[item.name]
    if get_origin(hint) in (Union, UnionType):  # with None, which TOML does not have
        hint = get_args(hint)[0]
    origin, inner = get_origin(hint), get_args(hint)
    # An array of tables has a row for each table.
    if origin is tuple and is_dataclass(inner[0]):
        rows: Any = inner[0]
        if not isinstance(given, list):
            raise WrongRow(f"{name} must be an array of tables, written [[{name}]]")
        return tuple(
            rows(row)
            if description.get("or_text") and isinstance(row, str)
            else read_row(rows, row, f"{place}: [[{name}]] {at}{_label(rows, row)}")
            for at, row in enumerate(given, 1)
        )
    allowed_texts = inner if origin is Literal else description.get("known", ())
    wanted, fits = _WANTED[str if origin is Literal else origin or hint]
    if not fits(given):
        raise WrongRow(f"{name} must be {wanted}, not {given!r}")
    if allowed_texts and isinstance(given, str) and given not in allowed_texts:
        raise WrongRow(
            f"{name} must be one of {', '.join(allowed_texts)}, not {given!r}",
            did_you_mean(given, allowed_texts),
        )
    if origin is tuple:
        if not given and _is_required(item):
            raise WrongRow(f"{name} must not be empty")
        for text in given if allowed_texts else ():
            if text not in allowed_texts:
                raise WrongRow(f"{name} has an unknown value {text!r}", _hint(text, allowed_texts))
        given = tuple(given)
    try:
        return description["read"](given) if description.get("read") else given
    except ValueError as error:
        raise WrongRow(f"{name}{error}", getattr(error, "hint", "")) from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _label(kind: type, row: Any) -> str:
    """Return the label of a row, for messages with its number: the first value of the key that serves as the label."""
    for name, row_field in keys_of(kind).items():
        words, value = row_field.metadata.get("label"), row.get(name) if isinstance(row, dict) else None
        if words is not None and value:
            return f" ({words}{value[0] if isinstance(value, list) else value})"
    return ""


def _hint(given: str, known: Iterable[str]) -> str:
    return did_you_mean(given, known) or f"known are {', '.join(known)}"
