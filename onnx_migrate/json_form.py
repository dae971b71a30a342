"""Prints the values of a report as JSON, and the JSON Schema of this output, both from one declaration.

`selects` declares which attributes of a class are printed, in order, as GraphQL does:

- `name` prints the attribute `name`.
- `pass=pass_name` prints the attribute `pass_name` as `pass`.
- `scope=where.scope` prints an attribute of an attribute.
- `error=.{code hint}` prints an object made of a selection; `.` is the value itself.
- `release?` prints null for an empty value.
- `*` stands for all fields of a dataclass or named tuple.

A class without a declaration prints all its fields. The annotation of the field, property or function decides how its value is
printed, and the schema of the output.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from onnx_migrate.cached import cached_property
from onnx_migrate.docstrings import docstring

__all__ = [
    "SCHEMA_VERSION",
    "Schema",
    "Seconds",
    "Version",
    "json_of",
    "printed_class",
    "properties",
    "record",
    "schema",
    "schema_of",
    "selects",
]

Version = Literal[1]
"""The type of `schema_version`."""

SCHEMA_VERSION: Version = 1
"""Version of the output: it increases when a field is removed or changes its meaning, not when a field is added."""

Schema = dict[str, Any]

Seconds = Annotated[float, "seconds"]
"""A duration, which is printed in whole milliseconds."""

_NUMBER: Schema = {"type": ["number", "string"], "description": 'a number; "inf", "-inf" and "nan" are texts'}
_NULL: Schema = {"type": "null"}
_ENTRY = re.compile(r"(\*|\w+)(?:=([\w.]+))?(\??)(?:\{([^{}]*)\})?")

_classes: dict[str, type] = {}
_selections: dict[type, tuple[str, Mapping[str, Callable[[Any], Any]]]] = {}


@dataclass(frozen=True)
class _Form:
    """How to print values of a type, with the schema of the output; `convert` is None for types that JSON has."""

    convert: Callable[[Any], Any] | None
    schema: Schema


@dataclass(frozen=True)
class _Key:
    """A key of an object: a function that gets its value from the printed object, and the form of this value."""

    get: Callable[[Any], Any]
    form: _Form


def selects(kind: type, keys: str, /, **computed: Callable[[Any], Any]) -> None:
    """Declare the printed attributes of a class; `computed` has functions of the value, for keys that are not attributes."""
    _selections[kind] = keys, computed


def json_of(value: Any) -> Any:
    """Return a value as JSON's types; a value of a subclass is printed like one of its base class."""
    kind = next((base for base in type(value).__mro__ if base in _selections), type(value))
    return _printed(value, _keys(kind))


def properties(kind: type) -> dict[str, Schema]:
    """Return the schemas of a class's printed keys."""
    return {name: key.form.schema for name, key in _keys(kind).items()}


def schema(kind: type) -> Schema:
    """Return the schema of a class, described by the first paragraph of its docstring; other classes are `#/$defs/NAME`."""
    return record(properties(kind), " ".join(docstring(kind).split("\n\n")[0].split()))


def schema_of(hint: Any) -> Schema:
    """Return the schema of values of an annotated type."""
    return _form(hint).schema


def printed_class(name: str) -> type:
    """Return the class that earlier schemas call `#/$defs/NAME`."""
    return _classes[name]


def record(keys: Mapping[str, Schema], text: str = "", *, may_lack: Sequence[str] = ()) -> Schema:
    """Return the schema of an object with these keys and no others; keys in `may_lack` are optional."""
    return {
        **({"description": text} if text else {}),
        "type": "object",
        "additionalProperties": False,
        "properties": dict(keys),
        "required": [name for name in keys if name not in may_lack],
    }


def _printed(value: Any, keys: Mapping[str, _Key]) -> dict[str, Any]:
    printed = {}
    for name, key in keys.items():
        content = key.get(value)
        printed[name] = content if key.form.convert is None else key.form.convert(content)
    return printed


@cache
def _keys(kind: type) -> dict[str, _Key]:
    keys, computed = _selections.get(kind, ("*", {}))
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {name: _Key(itemgetter(name), _form(hint)) for name, hint in hints.items()}
    return _selected(kind, keys, computed)


def _selected(kind: type, selection: str, computed: Mapping[str, Callable[[Any], Any]]) -> dict[str, _Key]:
    """Return the keys of a selection."""
    keys = {}
    for name, path, or_null, inner in _ENTRY.findall(selection):
        if name == "*":
            keys.update({field_name: _attribute(kind, field_name) for field_name in _fields(kind)})
        elif name in computed:
            hint = _returned(computed[name])
            keys[name] = _Key(computed[name], _form_of_selected(hint, inner) if inner else _form(hint))
        else:
            keys[name] = _attribute(kind, path or name, inner, or_null=bool(or_null))
    return keys


def _fields(kind: Any) -> Sequence[str]:
    """Return the names of the fields of a dataclass or a named tuple."""
    return (
        [dataclass_field.name for dataclass_field in fields(kind)]
        if is_dataclass(kind)
        else list(kind._fields)
    )


def _attribute(kind: type, path: str, inner: str = "", *, or_null: bool = False) -> _Key:
    """Return the key of an attribute of a value, or of an attribute of an attribute.

    If the first attribute is None, the key prints null, or an empty text. With `or_null`, it prints null for an empty value.
    """
    # A dot stands for the value itself.
    if path == ".":
        return _Key(lambda value: value, _object(_selected(kind, inner, {})))
    *before, last = path.split(".")
    absent = False
    for name in before:
        kind, optional = _without_none(_hint(kind, name))
        # Any attribute of the path may be None.
        absent |= optional
    hint = _hint(kind, last)
    if or_null:
        whole = attrgetter(path)
        return _Key(lambda value: whole(value) or None, _form(hint | None))
    if absent and hint is not str:
        hint = hint | None
    form = _form_of_selected(hint, inner) if inner else _form(hint)
    if not absent:
        return _Key(attrgetter(path), form)
    owner = attrgetter(before[0]) if len(before) == 1 else attrgetter(".".join(before))
    empty = "" if hint is str else None

    def get(value: Any) -> Any:
        holder = owner(value)
        return empty if holder is None else getattr(holder, last)

    return _Key(get, form)


def _object(keys: Mapping[str, _Key]) -> _Form:
    return _Form(
        lambda value: _printed(value, keys), record({name: key.form.schema for name, key in keys.items()})
    )


def _form_of_selected(hint: Any, selection: str) -> _Form:
    """Return the form that prints a selection of a value, of several values, or of None."""
    kind, optional = _without_none(hint)
    several = get_origin(kind) is tuple
    if several:
        kind = get_args(kind)[0]
    keys = _selected(kind, selection, {})
    form = _object(keys)
    if (kind in _selections or _is_record(kind)) and keys.keys() == _keys(kind).keys():
        form = replace(form, schema=_form(kind).schema)
    form = _many(form) if several else form
    return _optional(form) if optional else form


def _hint(kind: type, name: str) -> Any:
    """Return the type of a field or property."""
    attribute = getattr(kind, name, None)
    if isinstance(attribute, property):
        return _returned(attribute.fget)
    if isinstance(attribute, cached_property):
        return _returned(attribute.func)
    return get_type_hints(kind, include_extras=True)[name]


def _returned(function: Any) -> Any:
    return get_type_hints(function, include_extras=True)["return"]


def _is_record(kind: Any) -> bool:
    return is_dataclass(kind) or is_typeddict(kind) or hasattr(kind, "_fields")


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    other_hints = [hint_part for hint_part in get_args(hint) if hint_part is not type(None)]
    return other_hints[0], len(other_hints) < len(get_args(hint))


_PLAIN: dict[Any, _Form] = {
    str: _Form(None, {"type": "string"}),
    int: _Form(None, {"type": "integer"}),
    bool: _Form(None, {"type": "boolean"}),
    float: _Form(lambda value: _number(value), _NUMBER),
    type(None): _Form(None, _NULL),
    Any: _Form(None, {}),
    Seconds: _Form(lambda value: round(value, 3), {"type": "number", "minimum": 0}),
}


@cache
def _form(hint: Any) -> _Form:
    """Return how values of an annotated type are printed."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = get_origin(hint), get_args(hint)
    # A single literal is a constant of the schema.
    if origin is Literal:
        return _Form(None, {"enum": list(inner)} if len(inner) > 1 else {"const": inner[0]})
    if origin in (Union, types.UnionType):
        return _union(inner)
    if origin is tuple and inner[-1] is not Ellipsis:
        return _fixed([_form(member) for member in inner])
    if origin in (tuple, list):
        return _many(_form(inner[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _table(_form(inner[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(lambda value: value.value, {"enum": [member.value for member in hint]})
    if isinstance(hint, type) and (hint in _selections or _is_record(hint)):
        _classes[hint.__name__] = hint
        return _Form(lambda value: _printed(value, _keys(hint)), {"$ref": f"#/$defs/{hint.__name__}"})
    raise TypeError(f"no JSON for {hint}")


def _union(inner: Iterable[Any]) -> _Form:
    """Return the form of a value that has one of several types."""
    forms = [_form(hint) for hint in inner]
    converting = [form for form in forms if form.convert is not None]
    # The schema is shorter with a list of types.
    simple = all(set(form.schema) == {"type"} for form in forms)
    either: Schema = (
        {"type": [form.schema["type"] for form in forms]}
        if simple
        else {"anyOf": [form.schema for form in forms]}
    )
    if not converting:
        return _Form(None, either)
    convert = converting[0].convert if len(converting) == 1 else json_of
    assert convert is not None
    return _Form(lambda value: None if value is None else convert(value), either)


def _optional(form: _Form) -> _Form:
    convert = form.convert
    assert convert is not None
    return _Form(lambda value: None if value is None else convert(value), {"anyOf": [form.schema, _NULL]})


def _many(form: _Form) -> _Form:
    convert = form.convert
    listed = {"type": "array", "items": form.schema}
    return _Form(list if convert is None else lambda values: [convert(value) for value in values], listed)


def _fixed(forms: Sequence[_Form]) -> _Form:
    """Return the form of a tuple with as many items as there are forms."""
    converts = [form.convert or (lambda item: item) for form in forms]
    shape = {
        "type": "array",
        "prefixItems": [form.schema for form in forms],
        "minItems": len(forms),
        "maxItems": len(forms),
    }
    return _Form(lambda items: [convert(item) for convert, item in zip(converts, items, strict=True)], shape)


def _table(form: _Form) -> _Form:
    convert = form.convert
    shape: Schema = {"type": "object", **({"additionalProperties": form.schema} if form.schema else {})}
    if convert is None:
        return _Form(dict, shape)
    return _Form(lambda table: {name: convert(value) for name, value in table.items()}, shape)


def _number(value: Any) -> Any:
    """Return a number, or a text if JSON cannot express the number."""
    return str(value) if isinstance(value, float) and not abs(value) < float("inf") else value
