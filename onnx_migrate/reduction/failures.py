"""How a check fails, and whether another failure is the same one."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

__all__ = ["Failure", "KeptFailure", "error_line", "shows_error"]

_ALIKE = 0.6
"""Share of the words of the shorter message that both messages have if they report one failure."""

_GROSS = 1e-3
"""Error, as a share of the largest value, that no rounding explains."""

_SHARE = 0.1
"""A model shows the same wrong numbers if its error is at least this share of the original's, or gross."""

_WORD = re.compile(r"[A-Za-z]{3,}")
_PATH = re.compile(r"\S*[/\\]\S+|0x[0-9a-fA-F]+")
_SOURCE = re.compile(r"\b(\w+\.(?:cpp|cc|cxx|h|hpp|rs|py))\b")
_SIGNS = (
    re.compile(r"error|exception|abort|assert|fatal|terminate|fault", re.IGNORECASE),
    re.compile(r"fail|invalid|unsupported|not |cannot|mismatch|differ", re.IGNORECASE),
)
"""Words of errors; the first group is surer than the second."""

_WARNING = re.compile(r"\bwarn", re.IGNORECASE)


@dataclass(frozen=True)
class Failure:
    """How a check failed.

    `kind` is "exit", "signal", "time-out", "load", "run", "crash" or "wrong". `detail` is the exit code, the signal, or the
    kind of wrong numbers: "numbers", "NaN or infinity" or "shape". `text` is the end of the output, or the runtime's message.
    `error` is the largest error of wrong numbers, as a share of the largest value.
    """

    kind: str
    detail: str = ""
    text: str = ""
    error: float = 0.0

    def __str__(self) -> str:
        words = {
            "exit": f"exit code {self.detail}",
            "signal": f"ended by {self.detail}",
            "time-out": "not done in time",
            "load": "does not load",
            "run": "does not run",
            "crash": f"crashes ({self.detail})",
            "wrong": f"computes wrong values ({self.detail})",
        }
        return words[self.kind]


def error_line(text: str) -> str:
    """Return the last line of an output that reads like an error and like no warning, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in reversed(lines) if not _WARNING.search(line)]
    error_lines = (line for sign in _SIGNS for line in errors if sign.search(line))
    return next(error_lines, lines[-1] if lines else "")


def shows_error(error: float, original: float) -> bool:
    """Return whether an error of wrong numbers is as large as that of the original model, or gross; both are shares."""
    return error >= min(_GROSS, _SHARE * original)


@dataclass(frozen=True)
class KeptFailure:
    """The failure that each smaller model must show. `names` are the names of the original's values and nodes.

    With `message`, the text decides in place of the words of the original's message. With `any_failure` each failure counts.
    """

    failure: Failure
    names: Collection[str] = field(default_factory=frozenset, repr=False)
    message: str = ""
    any_failure: bool = False

    def is_same(self, other: Failure | None) -> bool:
        """Return whether another model fails in the same way."""
        if other is None or self.message not in other.text:
            return False
        if self.any_failure:
            return True
        if (other.kind, other.detail) != (self.failure.kind, self.failure.detail):
            return False
        if other.kind == "wrong":
            return shows_error(other.error, self.failure.error)
        return bool(self.message) or self._reads_alike(other)

    def _reads_alike(self, other: Failure) -> bool:
        ours, theirs = self._words(self.failure), self._words(other)
        shorter = min(len(ours), len(theirs))
        alike = not shorter or len(ours & theirs) >= _ALIKE * shorter
        # A similar message from another source file most likely reports another failure.
        files = [{*_SOURCE.findall(_message(each))} for each in (self.failure, other)]
        return alike and len(files[0] & files[1]) >= _ALIKE * max(map(len, files))

    def _words(self, failure: Failure) -> frozenset[str]:
        """Return the words of a message that do not depend on the model: no names, numbers and paths."""
        plain = _PATH.sub(" ", _message(failure))
        parts = (part.strip(".,:;()[]'\"`") for part in plain.split())
        return frozenset(
            word.lower() for part in parts if part not in self.names for word in _WORD.findall(part)
        )


def _message(failure: Failure) -> str:
    return error_line(failure.text) if failure.kind in ("exit", "signal") else failure.text
