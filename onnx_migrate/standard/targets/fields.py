"""The keys of one table of a TOML file, each taken once and checked; errors name file, row and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from onnx_migrate.errors import UsageError

__all__ = ["Fields"]


class Fields:
    """The keys of a table of a file; `place` names the table in messages. All methods raise UsageError."""

    def __init__(self, given: Any, place: str) -> None:
        self._place = place
        if not isinstance(given, dict):
            raise self.wrong("must be a table")
        self._left: dict[str, Any] = dict(given)
        self._known: list[str] = []

    def wrong(self, problem: str, hint: str = "") -> UsageError:
        """Return the error for a problem of this table."""
        return UsageError(f"{self._place}: {problem}", code="bad-target-file", hint=hint)

    def text(self, key: str, default: str | None = "") -> str:
        """Return a text; one without a default must be there."""
        value = self._take(key, default is None)
        if value is None:
            return default or ""
        if not isinstance(value, str):
            raise self._type(key, "a text", value)
        return value

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Return one of some texts."""
        value = self.text(key, default)
        if value not in choices:
            raise self.wrong(f"{key} must be one of {', '.join(choices)}, not {value!r}")
        return value

    def number(self, key: str) -> int | None:
        """Return a whole number above 0, None if it is not there."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._type(key, "a whole number above 0", value)
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return true or false."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._type(key, "true or false", value)
        return value

    def texts(self, key: str, *, required: bool = False, known: Iterable[str] = ()) -> tuple[str, ...]:
        """Return a list of texts, each of the known ones if there are any."""
        value = self._take(key, required)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self._type(key, "a list of texts", value)
        if required and not value:
            raise self.wrong(f"{key} must not be empty")
        allowed = list(known)
        for item in value:
            if allowed and item not in allowed:
                raise self.wrong(f"{key} has an unknown value {item!r}", _hint(item, allowed))
        return tuple(value)

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Return a table, empty if it is not there."""
        value = self._take(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._type(key, "a table", value)
        return value

    def rows(self, key: str) -> list[Any]:
        """Return an array of tables, empty if it is not there."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(f"{key} must be an array of tables, written [[{key}]]")
        return value

    def end(self) -> None:
        """Raise UsageError for a key that nobody took."""
        for key in self._left:
            raise self.wrong(f"unknown key {key!r}", _hint(key, self._known))

    def _take(self, key: str, required: bool = False) -> Any:
        self._known.append(key)
        if required and key not in self._left:
            raise self.wrong(f"the key {key} is missing")
        return self._left.pop(key, None)

    def _type(self, key: str, wanted: str, value: Any) -> UsageError:
        return self.wrong(f"{key} must be {wanted}, not {value!r}")


def _hint(given: str, known: Iterable[str]) -> str:
    names = list(known)
    close = get_close_matches(given, names, 1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}"
