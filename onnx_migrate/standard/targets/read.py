"""Reads the file of a target; docs/targets.md describes its form."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from itertools import pairwise
from typing import Any, Literal, cast

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open import read_at_most
from onnx_migrate.standard.targets.fields import Fields
from onnx_migrate.standard.targets.releases import is_number, key
from onnx_migrate.standard.targets.rows import (
    FORMS,
    PREDICATES,
    Bundle,
    FaultRow,
    OperatorRow,
    ReleaseRow,
    Table,
    Value,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["parse_table", "read_table"]

_LARGEST = 1 << 24
"""The most bytes of the file of a target."""

_TYPES = (
    "float32", "float16", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bool", "string", "complex64", "complex128", "int4", "uint4", "int2", "uint2", "float8e4m3fn", "float8e4m3fnuz",
    "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "float6e2m3", "float6e3m2",
)  # fmt: skip

_STANDARD = {"float32": "float", "float64": "double"}
"""How ONNX names the types that everyone else names otherwise."""


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read the file of a user's own target. Raises UsageError, code `bad-target-file`, naming file, row and key."""
    try:
        data = read_at_most(path, _LARGEST)
    except OSError as error:
        raise UsageError(
            f"{os.fspath(path)}: {error.strerror}",
            code="bad-target-file",
            hint="give the path of a file as docs/targets.md describes it",
        ) from error
    return parse_table(data, os.fspath(path))


def parse_table(data: bytes, file: str) -> Table:
    """Return the table that the bytes of a file hold. Raises UsageError, code `bad-target-file`."""
    try:
        given = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: not TOML: {error}", code="bad-target-file") from error
    fields = Fields(given, file)
    name = fields.text("name", None)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise fields.wrong(f"name must be of lower case letters, digits, - and _, not {name!r}")
    rows = [_release(row, f"{file}: [[release]] {at}") for at, row in enumerate(fields.rows("release"), 1)]
    table = Table(
        name,
        fields.text("title", name),
        tuple(rows),
        tuple(_operator(row, file, at) for at, row in enumerate(fields.rows("operator"), 1)),
        tuple(_fault(row, file, at) for at, row in enumerate(fields.rows("fault"), 1)),
        fields.texts("aliases"),
        tuple(_bundle(row, f"{file}: [[bundle]] {at}") for at, row in enumerate(fields.rows("bundle"), 1)),
        fields.texts("packages"),
        cast("Literal['refused', 'tried']", fields.choice("newer", ("refused", "tried"), "refused")),
        fields.choice("operators", ("listed", "any"), "any") == "listed",
        fields.flag("custom_operators"),
        _number_of(fields, "newest"),
        _number_of(fields, "default"),
        fields.texts("notes"),
        file,
        hashlib.sha256(data).hexdigest(),
    )
    fields.end()
    _check_order(rows, fields)
    return table


def _check_order(rows: list[ReleaseRow], fields: Fields) -> None:
    if not rows:
        raise fields.wrong("there is no [[release]]", "give at least one; without `from` it holds for all")
    for at, (one, other) in enumerate(pairwise(rows), 2):
        if not one.since or not other.since or key(one.since) >= key(other.since):
            raise fields.wrong(
                f"[[release]] {at}: of several rows each needs `from`, and the oldest comes first"
            )


def _release(given: Any, place: str) -> ReleaseRow:
    since = given.get("from") if isinstance(given, dict) else None
    fields = Fields(given, f"{place} (from {since})" if since else place)
    row = ReleaseRow(
        _number_of(fields, "from"),
        fields.texts("names"),
        fields.number("opset"),
        fields.number("oldest"),
        fields.number("ir"),
        fields.flag("measured"),
        fields.text("source"),
        cast(
            "Literal['auto', 'scales', 'sizes']",
            fields.choice("resize_form", ("auto", "scales", "sizes"), "auto"),
        ),
        fields.flag("resize_axes", default=True),
        fields.flag("resize_intent"),
        frozenset(fields.texts("write", known=FORMS)),
        fields.flag("functions", default=True),
    )
    fields.end()
    if row.opset is not None and row.oldest is not None and row.opset < row.oldest:
        raise fields.wrong(f"opset {row.opset} is older than oldest {row.oldest}")
    return row


def _operator(given: Any, file: str, at: int) -> OperatorRow:
    names = given.get("names") if isinstance(given, dict) else None
    named = f" ({names[0]})" if isinstance(names, list) and names else ""
    fields = Fields(given, f"{file}: [[operator]] {at}{named}")
    row = OperatorRow(
        fields.texts("names", required=True),
        _domain(fields),
        _number_of(fields, "from"),
        _number_of(fields, "until"),
        fields.number("newest"),
        _attributes(fields),
        tuple(_STANDARD.get(name, name) for name in fields.texts("types", known=_TYPES)),
        fields.flag("lacking"),
        fields.flag("measured"),
        fields.text("source"),
    )
    fields.end()
    if row.lacking and (row.newest or row.attributes or row.types):
        raise fields.wrong("a row with lacking says nothing of newest, attributes and types")
    return row


def _fault(given: Any, file: str, at: int) -> FaultRow:
    operator = given.get("operator", "") if isinstance(given, dict) else ""
    fields = Fields(given, f"{file}: [[fault]] {at} ({operator})" if operator else f"{file}: [[fault]] {at}")
    row = FaultRow(
        fields.text("operator", None),
        fields.text("text", None),
        fields.text("help"),
        _domain(fields),
        _number_of(fields, "from"),
        _number_of(fields, "until"),
        fields.number("opset"),
        _attributes(fields),
        fields.choice("when", ("", *PREDICATES), ""),
        fields.text("source"),
    )
    fields.end()
    return row


def _bundle(given: Any, place: str) -> Bundle:
    fields = Fields(given, place)
    names = fields.texts("names", required=True)
    bundle = Bundle(names, fields.text("title", names[0]), fields.mapping("releases"), fields.text("default"))
    fields.end()
    for release, own in bundle.releases.items():
        if not isinstance(own, str) or not is_number(own):
            raise fields.wrong(f"releases must give a release such as '8.6' for {release!r}, not {own!r}")
    if not bundle.releases:
        raise fields.wrong("the key releases is missing")
    if bundle.default and bundle.default not in bundle.releases:
        raise fields.wrong(f"default {bundle.default!r} is none of its releases")
    return bundle


def _domain(fields: Fields) -> str:
    domain = fields.text("domain")
    return "" if domain == "ai.onnx" else domain


def _number_of(fields: Fields, name: str) -> str:
    release = fields.text(name)
    if release and not is_number(release):
        raise fields.wrong(f"{name} must be a release such as '8.6', not {release!r}")
    return release


def _attributes(fields: Fields) -> dict[str, tuple[Value, ...]]:
    found: dict[str, tuple[Value, ...]] = {}
    for name, values in fields.mapping("attributes").items():
        if not isinstance(values, list) or not values:
            raise fields.wrong(f"attributes.{name} must be a list of values, not {values!r}")
        found[name] = tuple(_value(item, name, fields) for item in values)
    return found


def _value(item: Any, name: str, fields: Fields) -> Value:
    if isinstance(item, list):
        return tuple(cast("str | int | float", _value(part, name, fields)) for part in item)
    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        raise fields.wrong(
            f"attributes.{name} has the value {item!r}", "values are texts, numbers and lists of them"
        )
    return item
