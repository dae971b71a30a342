"""The value that a migration returns: the report, the original, and the result, which can be saved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Generic, cast

import onnx

from onnx_migrate import files
from onnx_migrate.cached import cached_property
from onnx_migrate.errors import UsageError
from onnx_migrate.files import GivenModel as M
from onnx_migrate.messages import count_of
from onnx_migrate.model.model import Model
from onnx_migrate.report import Report

if TYPE_CHECKING:
    from onnx_migrate.files import Beside, NewContent
    from onnx_migrate.report.diff import DiffEntry

__all__ = ["Migration"]


@contextmanager
def _with_rest(rest: list[NewContent], beside: Beside | None, size: int) -> Iterator[None]:
    with files.published(rest), nullcontext() if beside is None else beside(size):
        yield


@dataclass(frozen=True, repr=False)
class Migration(Generic[M]):
    """A migrated and, unless the caller turned that off, verified model, and the report of the changes."""

    report: Report
    original: Model
    """The unchanged model, as loaded."""
    _model: Model
    _rest: Model | None = None

    def __str__(self) -> str:
        return self.report.text()

    def __repr__(self) -> str:
        report, verdict = self.report, self.report.verification
        opsets = f"opset {report.before.opset} → {report.after.opset}"
        proof = verdict.kind.value if verdict else "not compared"
        return f"<Migration of {report.model}: {opsets}, {count_of(len(report.changes), 'change')}, {proof}>"

    @cached_property
    def model(self) -> M:
        """The result as what was given: an onnx_ir.Model, with its tensor objects, for one; else a complete ModelProto.

        The weights of a ModelProto are read when it is first asked for.
        """
        return self._given_back(self._model)

    @cached_property
    def rest(self) -> M | None:
        """Return the unchanged part of the original behind the result's outputs, in the form of `model`; None without `cut`."""
        return None if self._rest is None else self._given_back(self._rest)

    def _given_back(self, model: Model) -> M:
        source = self.original.source_object
        kind = files.returned_kind(source)
        return cast("M", kind.given_back(model, source) if kind else files.inline(model))

    @property
    def structure(self) -> onnx.ModelProto:
        """The result; its large weights stay in their files, marked as external data. Do not change it."""
        return self._model.proto

    def same_as_original(self) -> bool:
        """Return whether the result equals the original, weights included; they are read only where moved."""
        return self.report.same or files.equal(self.original, self._model)

    def viewed(self, report: Report) -> Report:
        """Return a report of this migration with the view of the result for a page: the changed nodes, and the graph."""
        return report.viewed(self._model)

    def html(self) -> str:
        """Return the report as a page that needs no other file, with the graph of the result.

        Raises UsageError without jinja2 ("onnx-migrate[html]").
        """
        return self.viewed(self.report).html()

    def differences(self) -> list[DiffEntry]:
        """Return how the result differs from the original, node by node, as `--diff` shows it; for lines see `diff_lines`."""
        from onnx_migrate.report.diff import diff_entries

        weights = self.original.weights, self._model.weights
        return list(diff_entries(self.original.proto, self._model.proto, weights=weights))

    def save(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        external: bool = False,
        in_place: bool = False,
        beside: Beside | None = None,
    ) -> None:
        """Write the result to `path`, which may be a URL, atomically; weights go from file to file.

        If `path` is a file object, opened in binary mode, the result goes to it as with `write`.

        The result is one file, unless it exceeds 2 GB or `external` asks for the weights beside it, in PATH.data (for a URL see
        `files.upload`). With `cut`, the rest of the model goes to `files.rest_path(path)`.

        Writing over the source needs `in_place`. Raises SaveError, and then the old file at `path` is still there.

        `beside` is for files that must appear together with the result or not at all. It is called with the size of the result,
        when that is complete under a temporary name. It returns a context, in which the result takes its name.
        """
        if not isinstance(path, (str, os.PathLike)):
            # A stream can take only one model.
            if external or in_place or beside or self._rest or not hasattr(path, "write"):
                raise UsageError(
                    f"a result cannot be saved to a {type(path).__name__} with these arguments",
                    hint="give a path, or only a file opened in binary mode",
                )
            self.write(path)
            return
        if self._rest is not None:
            rest = files.contents_beside(self._rest, files.rest_path(path), external=external)
            # Both files take their names together.
            beside = partial(_with_rest, rest, beside)
        files.save(self._model, path, external=external, in_place=in_place, beside=beside)

    def write(self, file: BinaryIO) -> None:
        """Write the result as one file to the end of an open file.

        Raises UsageError for a model that was cut in two, SaveError over 2 GB, LoadError and OSError.
        """
        if self._rest is not None:
            raise UsageError("a model that is cut in two needs two files", hint="name a file as OUTPUT")
        files.write(self._model, file)
