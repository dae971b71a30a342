"""Reads a table of error texts."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, cast

from onnx_migrate.spec.error_texts.patterns import Pattern
from onnx_migrate.spec.error_texts.rows import Check, ErrorText, Mend, Sentence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["parse_table"]


def parse_table(data: bytes, file: str) -> tuple[ErrorText, ...]:
    """Return the error texts that the bytes of a TOML file hold. Raises ValueError, naming file, entry and key."""
    given = tomllib.loads(data.decode("utf-8"))
    if set(given) != {"error"}:
        raise ValueError(f"{file}: only [[error]] is known")
    return tuple(_entry(dict(row), f"{file}: {row.get('name', at)}") for at, row in enumerate(given["error"]))


def _entry(row: dict[str, Any], place: str) -> ErrorText:
    try:
        entry = ErrorText(
            name=_slug(row.pop("name")),
            tool=row.pop("tool"),
            stage=row.pop("stage"),
            example=row.pop("example"),
            patterns=tuple(map(Pattern, row.pop("patterns"))),
            meaning=tuple(map(_sentence, row.pop("meaning"))),
            causes=tuple(map(_sentence, row.pop("causes", []))),
            mends=tuple(map(_mend, row.pop("mends"))),
            sources=tuple(row.pop("sources")),
            title=row.pop("title", ""),
            versions=row.pop("versions", ""),
            runtime=row.pop("runtime", ""),
            severity=row.pop("severity", "error"),
            general=row.pop("general", False),
            facts=row.pop("facts", {}),
            checks=tuple(map(_check, row.pop("checks", []))),
        )
    except (KeyError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from error
    if row:
        raise ValueError(f"{place}: unknown keys {', '.join(row)}")
    return entry


def _slug(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"{name!r} is not of lower case letters, digits and single dashes")
    return name


def _sentence(given: str | Mapping[str, str]) -> Sentence:
    if isinstance(given, str):
        return Sentence(given)
    unknown = set(given) - {"text", "needs", "unless", "command"}
    if unknown:
        raise ValueError(f"unknown keys {', '.join(sorted(unknown))}")
    needs, unless = (tuple(given.get(key, "").split()) for key in ("needs", "unless"))
    return Sentence(given.get("text", ""), needs, unless)


def _mend(given: str | Mapping[str, str]) -> Mend:
    return Mend(_sentence(given), "" if isinstance(given, str) else given.get("command", ""))


def _check(given: Mapping[str, str | list[str]]) -> Check:
    values = {key: (value,) if isinstance(value, str) else tuple(value) for key, value in given.items()}
    return Check(cast("tuple[str]", values.pop("ask"))[0], values)
