"""What a migration raises, and where in a model it points.

Every error carries a `code`, a stable slug that `onnx-migrate explain` knows, and reads as one line:
what is wrong, where, why, and what would help.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CannotMigrate",
    "IllegalModel",
    "LoadError",
    "MigrateError",
    "PassError",
    "SaveError",
    "UsageError",
    "VerificationFailed",
    "Where",
    "saving",
]


@dataclass(frozen=True)
class Where:
    """A node's place in a model: the body it stands in, its name, its operator and the versions at stake.

    `scope` is the path from the main graph ("graph"), through the sub-graphs of named nodes
    ("graph/choose:then_branch"), or from a local function ("function com.acme:Block").
    """

    scope: str = ""
    node: str = ""
    operator: str = ""
    from_version: int | None = None
    to_version: int | None = None

    def __str__(self) -> str:
        text = self.operator or "node"
        if self.from_version is not None:
            text += f"-{self.from_version}"
        if self.to_version is not None:
            text += f" → {self.to_version}"
        if self.node:
            text += f" {self.node!r}"
        if self.scope and self.scope != "graph":
            text += f" in {self.scope}"
        return text


class MigrateError(Exception):
    """The root of all errors this package raises on purpose; one line, ready to be shown."""

    default_code = "failed"

    def __init__(self, reason: str, *, code: str = "", where: Where | None = None, hint: str = "") -> None:
        self.reason = reason
        self.code = code or self.default_code
        self.where = where
        self.hint = hint
        self.partial_report: object = None
        """What had been done to the model until then, an `onnx_migrate.report.PartialReport`; None where that is nothing."""
        super().__init__(reason)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.reason}{hint}"


class LoadError(MigrateError):
    """The source is not a readable ONNX model."""

    default_code = "not-onnx"


class SaveError(MigrateError):
    """The result could not be written; what stood at the target before stands there still."""

    default_code = "cannot-write"


@contextmanager
def saving(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise SaveError for an OSError of the block, but for that of a pipe whose reader has left."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SaveError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from error


class UsageError(MigrateError, ValueError):
    """An argument cannot be meant: an unknown input name, an opset that does not exist, and the like."""

    default_code = "usage"


class CannotMigrate(MigrateError):
    """The model has no equal at the target, or not enough is known of it to write one."""

    default_code = "cannot-migrate"


class IllegalModel(MigrateError):
    """A result that would not be valid at the target; a bug of this tool or of a user's pass."""

    default_code = "illegal-result"


class VerificationFailed(MigrateError):
    """Original and result compute different numbers, or the result does not run."""

    default_code = "numbers-differ"
    verification: Mapping[str, Any] | None = None
    """What was found, output by output, as `Verdict.as_dict` gives it."""


class PassError(MigrateError):
    """A pass raised something that is none of the above; the original exception is its `__cause__`."""

    default_code = "pass-failed"
