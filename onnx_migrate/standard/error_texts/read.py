"""Reads the tables of error texts that come with this package."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib.resources import files

from onnx_migrate.standard.error_texts.rows import ErrorTable, ErrorText
from onnx_migrate.standard.toml_rows import parsed, read_row

__all__ = ["error_texts", "parse_table"]


def parse_table(data: bytes, file: str) -> tuple[ErrorText, ...]:
    """Return the error texts that the bytes of a TOML file hold. Raises ValueError, naming file, entry and key."""
    return read_row(ErrorTable, parsed(data, file), file).entries


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
