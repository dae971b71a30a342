"""The exceptions of this package, and the place in a model that they refer to.

Every error has a `code`, a stable slug that `onnx-migrate explain` explains. The text of an error is one line, which names the
place and the problem. Its `hint` suggests a solution, and marks suggestions that nobody tried. Both start in lower case and
have no full stop at the end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from onnx_migrate.advice import Advice, Hint, advice_of, advice_text
from onnx_migrate.messages import printable

if TYPE_CHECKING:
    from onnx_migrate.verdicts import FirstDifference, RuntimeProof, Verdict

__all__ = [
    "Cancelled",
    "CannotMigrate",
    "IllegalModel",
    "InvalidModel",
    "LoadError",
    "MigrateError",
    "PassError",
    "SaveError",
    "UsageError",
    "VerificationFailed",
    "Where",
    "require_onnxruntime",
    "require_package",
    "saving",
]


class Where(NamedTuple):
    """The place of a node in a model: its graph or function, its name, its operator, and the operator's versions.

    `scope` is the path from the main graph ("graph"), through the sub-graphs of named nodes
    ("graph/choose:then_branch"), or from a local function ("function com.acme:Block").
    """

    scope: str = ""
    node: str = ""
    operator: str = ""
    from_version: int | None = None
    to_version: int | None = None

    def __str__(self) -> str:
        operator = self.operator
        if self.scope and not self.node and not operator:
            return self.scope
        if operator and self.from_version is not None:
            operator += f"-{self.from_version}"
        if operator and self.to_version not in (None, self.from_version):
            operator += f" → {self.to_version}"
        text = (
            f"{self.node!r} ({operator})" if self.node and operator else operator or repr(self.node or "node")
        )
        return f"{text} in {self.scope}" if self.scope not in ("", "graph") else text


_NOTE = "Hint: "
"""The first word of an exception's note that contains its hint."""


class MigrateError(Exception):
    """The base class of all errors that this package raises on purpose; its text is one line for the user."""

    default_code = "failed"
    corrects: ClassVar[bool] = False
    """Whether a hint in bare words corrects what the user typed, so that it holds without a trial."""
    code: str
    reason: str
    advice: tuple[Advice, ...]
    """Each way out, with whether it was tried."""
    where: Where | None

    def __init__(self, reason: str, *, code: str = "", where: Where | None = None, hint: Hint = "") -> None:
        self.reason = reason
        self.code = code or self.default_code
        self.where = where
        self.partial_report: object = None
        """An `onnx_migrate.report.PartialReport` of the changes to the model so far; None if it was not loaded."""
        super().__init__(reason)
        self.advise(hint)

    def __str__(self) -> str:
        location = f"{self.where}: " if self.where else ""
        return printable(" ".join(f"{location}{self.reason}".split()))

    @property
    def hint(self) -> str:
        """The advice as one text, "" without any; "not tried: " stands before advice that nobody tried on the model."""
        return printable(" ".join(advice_text(self.advice).split()))

    @property
    def hint_tried(self) -> bool:
        """Whether all of the hint was tried and works."""
        return all(piece.tried for piece in self.advice)

    @property
    def with_hint(self) -> str:
        """The text and the hint in one line, as the command line prints them."""
        return f"{self} ({self.hint})" if self.hint else str(self)

    def advise(self, hint: Hint) -> None:
        """Replace the advice; tracebacks show it below the text from Python 3.11 on."""
        others = [note for note in getattr(self, "__notes__", ()) if not note.startswith(_NOTE)]
        self.advice = advice_of(hint, tried=self.corrects)
        self.__notes__ = [*others, *([f"{_NOTE}{self.hint}"] if self.advice else [])]


class LoadError(MigrateError):
    """The source is not a readable ONNX model."""

    default_code = "not-onnx"
    corrects = True


class SaveError(MigrateError):
    """The result could not be written; an existing file at the target is unchanged."""

    default_code = "cannot-write"
    corrects = True


@contextmanager
def saving(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert an OSError of the block to SaveError for `path`; a BrokenPipeError stays unchanged."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SaveError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from error


class UsageError(MigrateError, ValueError):
    """An argument is not valid, such as an unknown input name or an opset that does not exist."""

    default_code = "usage"
    corrects = True


def require_package(module: str, purpose: str, command: str, otherwise: str) -> None:
    """Raise UsageError, code `not-installed`, unless a module can be imported.

    `purpose` is what needs it, `command` installs it, and `otherwise` says how to do without. A folder of this name without
    an `__init__`, as an uninstallation may leave it, does not count.
    """
    module_or_spec = sys.modules.get(module) or find_spec(module)
    # A namespace package, such as an empty folder, has neither an origin nor a file.
    if getattr(module_or_spec, "origin", None) is None and getattr(module_or_spec, "__file__", None) is None:
        raise UsageError(
            f"{purpose} needs {module}, which is not installed",
            code="not-installed",
            hint=f"{command}; {otherwise}",
        )


def require_onnxruntime(purpose: str, otherwise: str) -> None:
    """Raise UsageError, code `not-installed`, unless one of the packages that bring the module onnxruntime is installed."""
    command = "pip install onnxruntime, or another package of it, as onnxruntime-gpu"
    require_package("onnxruntime", purpose, command, otherwise)


class CannotMigrate(MigrateError):
    """The model cannot be expressed at the target, or too little is known of it to do so exactly."""

    default_code = "cannot-migrate"


class InvalidModel(LoadError, CannotMigrate):
    """The source is readable but not a valid ONNX model: it contradicts itself or the standard at the named place."""

    default_code = "invalid-node"
    corrects = False


class IllegalModel(MigrateError):
    """The result would not be valid at the target, because of a bug of this package or of a user's pass."""

    default_code = "illegal-result"


class Cancelled(MigrateError):
    """The caller asked for the end, by the token `cancel`; the children are ended, and nothing is written."""

    default_code = "cancelled"


class VerificationFailed(MigrateError):
    """Original and result compute different numbers, or the result does not run."""

    default_code = "numbers-differ"
    verification: Verdict | None = None
    """The findings for each output."""
    proved_in: tuple[RuntimeProof, ...] = ()
    """The results of running the models in other runtimes."""
    first_difference: FirstDifference | None = None
    """The pass after which the numbers first differ, and the node; None if they do not differ, or nobody knows the node."""


class PassError(MigrateError):
    """A pass raised an exception that is not a MigrateError; that exception is the `__cause__`."""

    default_code = "pass-failed"
