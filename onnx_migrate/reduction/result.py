"""The result of a reduction: the small model, inputs on which it fails, and a report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx_migrate import files
from onnx_migrate.cached import cached_property
from onnx_migrate.files import NewContent
from onnx_migrate.files.destination import check_file, resolve_links
from onnx_migrate.messages import count_of, first_of
from onnx_migrate.model.interface import Interface
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.checks import Check
from onnx_migrate.reduction.failures import Failure, error_line
from onnx_migrate.verify.inputs.given import GivenInputs, data_files
from onnx_migrate.verify.npz import write_npz
from onnx_migrate.verify.settings import Settings

__all__ = ["Reduction", "ReductionReport", "beside_path", "input_files", "inputs_path", "ports_of"]

_LONGEST = 300
"""Most characters of a message in the report."""

_SHOWN = 5
"""Most weights that the report names."""


def inputs_path(path: str | os.PathLike[str]) -> str:
    """Return the path of the inputs of a model: "a.npz" for "a.onnx"."""
    return f"{os.fspath(path).removesuffix('.onnx')}.npz"


def beside_path(path: str | os.PathLike[str]) -> str:
    """Return the path of the second model of a pair: "a.other.onnx" for "a.onnx"."""
    return f"{os.fspath(path).removesuffix('.onnx')}.other.onnx"


@dataclass(frozen=True)
class ReductionReport:
    """The facts about a reduction.

    `failure` is the one that the smaller model shows. `finished` is False if the time was over; the model is then the smallest
    so far. `runs` of the check were made, `repeated` models had been checked before, and `invalid` ones were not checked.
    `kept_weights` are those that still have the user's numbers: without them the failure does not show.
    """

    model: str
    check: str
    failure: Failure
    nodes_before: int
    nodes: int
    operators: tuple[tuple[str, int], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    runs: int
    repeated: int
    invalid: int
    seconds: float
    finished: bool
    stripped: bool
    kept_weights: tuple[str, ...]
    notes: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        before = count_of(self.nodes_before, "node")
        yield f"{count_of(self.nodes, 'node')} of {before} {'shows' if self.nodes == 1 else 'show'} the failure: {self.failure}"
        message = error_line(self.failure.text)
        if message:
            yield f"  message   {message[:_LONGEST]}"
        yield f"  operators {', '.join(f'{name} × {number}' if number > 1 else name for name, number in self.operators)}"
        yield f"  inputs    {', '.join(self.inputs) or 'none'}"
        yield f"  outputs   {', '.join(self.outputs)}"
        yield f"  {count_of(self.runs, 'run')} of the check in {self.seconds:.1f} s"
        if not self.finished:
            yield "  the time limit ended the search: a smaller model may exist"
        if self.stripped:
            kept_names = first_of([*map(repr, self.kept_weights)], _SHOWN)
            yield f"  weights   random, except {kept_names}" if kept_names else "  weights   random"
        yield from (f"  {note}" for note in self.notes)

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True)
class Reduction:
    """A small model that shows a failure, with its inputs. `other` is the second model of a pair."""

    report: ReductionReport
    _candidate: Candidate
    _check: Check | None
    _other: Candidate | None = None
    _input_files: tuple[str, ...] = ()
    """The files that the user's inputs were read from."""

    def __str__(self) -> str:
        return str(self.report)

    @cached_property
    def model(self) -> onnx.ModelProto:
        """Return the small model, with its weights."""
        return files.inline(self._candidate.model)

    @cached_property
    def other(self) -> onnx.ModelProto | None:
        """Return the small part of the second model; None without a pair."""
        return None if self._other is None else files.inline(self._other.model)

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs on which the model fails, by name; {} if the check gives the model no inputs."""
        needs = self._check is None or self._check.needs_values
        return self._candidate.complete_feed() if needs else {}

    def command(self, path: str | os.PathLike[str]) -> str:
        """Return the shell command that reproduces the failure with the files that `save` writes for a path."""
        import shlex

        name, inputs = os.fspath(path), inputs_path(path) if self._has_arrays else ""
        if self._check is not None:
            return self._check.command(name, inputs)
        data = f" --input-data {shlex.quote(inputs)}" if inputs else ""
        return f"onnx-migrate verify {shlex.quote(name)} {shlex.quote(beside_path(name))}{data}"

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the model, and beside it its inputs as .npz and the second model, all or none; return the paths.

        Raises SaveError.
        """
        name = os.fspath(path)
        written = [name]
        contents = []
        if self._has_arrays:
            written.append(inputs_path(name))
            contents.append(_content(inputs_path(name), self._npz()))
        if self._other is not None:
            written.append(beside_path(name))
            contents += files.contents_beside(self._other.model, beside_path(name))
            files.check_not_source([name], self._other.model.origin)
        files.check_not_source(written[1:], self._candidate.model.origin)
        files.check_not_source(written, self._input_files, "the inputs are")

        @contextmanager
        def beside(_size: int) -> Iterator[None]:
            with files.published(contents):
                yield

        files.save(self._candidate.model, path, beside=beside)
        return written

    @property
    def _has_arrays(self) -> bool:
        return any(isinstance(value, np.ndarray) for value in self.inputs.values())

    def _npz(self) -> bytes:
        file = BytesIO()
        write_npz(file, self.inputs)
        return file.getvalue()


def _content(path: str, data: bytes) -> NewContent:
    def check() -> Path:
        check_file(path)
        return resolve_links(path)

    return NewContent(path, check, [data])


def input_files(settings: Settings) -> tuple[str, ...]:
    """Return the absolute paths of the files that the user's inputs are read from."""
    own_inputs = settings.input_data
    paths = data_files(own_inputs.data) if isinstance(own_inputs, GivenInputs) else ()
    return tuple(map(os.path.abspath, paths))


def ports_of(candidate: Candidate) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the inputs and outputs of a model as texts."""
    interface = Interface.of(candidate.proto)
    return tuple(map(str, interface.inputs)), tuple(map(str, interface.outputs))
