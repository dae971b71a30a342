"""Reads the tables of error texts that come with this package."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from onnx_migrate.standard.error_texts.patterns import Pattern
from onnx_migrate.standard.error_texts.rows import Check, ErrorText, Mend, Sentence

__all__ = ["error_texts", "parse_table"]


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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


@cache
def error_texts() -> tuple[ErrorText, ...]:
    """Return all error texts, by table and in its order. Raises ValueError if two have one name."""
    folder = files("onnx_migrate.standard.error_texts").joinpath("tables")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".toml"))
    found = [entry for name in names for entry in parse_table(folder.joinpath(name).read_bytes(), name)]
    repeated = [name for name, number in Counter(entry.name for entry in found).items() if number > 1]
    if repeated:
        raise ValueError(f"two error texts have the name {', '.join(sorted(repeated))}")
    return tuple(found)
