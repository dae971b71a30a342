"""A runtime other than ours, which runs in a process of its own and perhaps in another Python (drivers/)."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onnx_migrate import files
from onnx_migrate.messages import count_of
from onnx_migrate.model.model import Model
from onnx_migrate.process import Ending, Limits, OutOfMemory, Program
from onnx_migrate.process.endings import names_lack_of_memory
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.verify.evaluators.driver_facts import drivers
from onnx_migrate.verify.evaluators.interface import EvaluationError, Evaluator, Runnable, one_line
from onnx_migrate.verify.evaluators.onnxruntime import without_source_locations
from onnx_migrate.verify.npz import write_npz

__all__ = ["Foreign", "ForeignProcess", "NotInstalled", "Place"]

_COLOUR = re.compile(r"\x1b\[[\d;]*m")

_PLAIN = "biufcSU"
"""The kinds of arrays that a file can hold."""


class NotInstalled(Exception):
    """A runtime cannot be imported; the message has the reason."""


@dataclass(frozen=True)
class Place:
    """Which runtime, and the Python that it is installed in: its program, and further folders of packages."""

    name: str
    python: str = sys.executable
    folders: tuple[str, ...] = ()

    @classmethod
    def here(cls, name: str) -> Place:
        """Return a runtime that is installed beside this package."""
        return cls(name, sys.executable, tuple(entry or "." for entry in sys.path))


class ForeignProcess:
    """A process with a runtime in it, which runs one model after another; a context manager that ends it.

    `runtime` is its name and version. Raises NotInstalled if the runtime is not there.
    """

    def __init__(self, place: Place, limits: Limits | None = None) -> None:
        facts = drivers()[place.name]
        folders = [str(Path(folder).resolve()) for folder in place.folders]
        command = [place.python, "-I", str(facts.path.with_name("serve.py")), str(facts.path), *folders]
        self._name, self._title = place.name, facts.title
        try:
            self._program = Program(
                command, limits or Limits(), {"PYTHONWARNINGS": "ignore", "RUST_BACKTRACE": "0"}
            )
        except OSError as error:
            raise NotInstalled(f"{place.python}: {error.strerror or error}") from error
        try:
            answer = self._program.ask(None)
            if not isinstance(answer, dict) or "runtime" not in answer:
                words = answer["missing"] if isinstance(answer, dict) else f"{answer}: {answer.log}"  # type: ignore[union-attr]
                raise NotInstalled(one_line(words))
        except BaseException:
            self._program.close()
            raise
        self.runtime: str = answer["runtime"]
        self.ending: Ending | None = None
        """How the process ended, if a model ended it; it then answers no further requests."""
        self._outputs: list[str] = []

    def __enter__(self) -> ForeignProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self._program.close()

    def load(self, path: Path, example: Mapping[str, Any], outputs: list[str]) -> None:
        """Load a model, in place of the one before, to be run on feeds like `example`. Raises EvaluationError."""
        self._outputs = list(outputs)
        self._ask(
            {"load": str(path.absolute()), "inputs": self._write(example, loading=True), "outputs": outputs},
            loading=True,
        )

    def run(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Run the loaded model and return the value of each output by name. Raises EvaluationError."""
        results_path = self._program.folder / "found.npz"
        self._ask({"run": self._write(feed, loading=False), "write": str(results_path)}, loading=False)
        with np.load(results_path, allow_pickle=False) as file:
            values = [file[name] for name in file.files]
        if len(values) != len(self._outputs):
            raise EvaluationError(
                f"it returns {count_of(len(values), 'output')} in place of {len(self._outputs)}"
            )
        return dict(zip(self._outputs, values, strict=True))

    def _write(self, feed: Mapping[str, Any], *, loading: bool) -> str:
        for name, value in feed.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind not in _PLAIN + "O":
                kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
                message = f"input {name!r} is of {kind}, and only tensors of NumPy's types are handed to {self._title}"
                raise EvaluationError(message, loading=loading, limit=True)
        path = self._program.folder / "feed.npz"
        write_npz(path, feed)
        return str(path)

    def _ask(self, request: Mapping[str, Any], *, loading: bool) -> None:
        answer = self._program.ask(request)
        if isinstance(answer, dict) and "error" not in answer:
            return
        self.ending = None if isinstance(answer, dict) else answer
        words = answer["error"] if isinstance(answer, dict) else str(answer)
        printed = self._program.printed() if isinstance(answer, dict) else answer.log  # type: ignore[union-attr]
        text = _with_log(words, printed)
        if self._name == "onnxruntime":
            text = without_source_locations(text)
        if isinstance(answer, OutOfMemory) or names_lack_of_memory(f"{words}\n{printed}"):
            raise MemoryError(one_line(text))
        raise EvaluationError(one_line(text), loading=loading)


class Foreign(Evaluator):
    """A model in a foreign runtime; a context manager, which ends the process. It is loaded on its first run.

    A runtime may need the shapes of the inputs before it loads a model, so an error of loading shows on the first run.
    """

    def __init__(self, runnable: Runnable, place: Place, limits: Limits | None = None) -> None:
        self._stack = ExitStack()
        self._process = self._stack.enter_context(ForeignProcess(place, limits))
        self.name = self._process.runtime
        proto = runnable.proto()
        self._path = runnable.path or self._written(runnable)
        self._inputs = [value.name for value in proto.graph.input]
        self._outputs = [output.name for output in proto.graph.output]
        self._shapes: dict[str, tuple[int, ...]] | None = None

    def __enter__(self) -> Foreign:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once, after loading the model for inputs of these shapes. Raises EvaluationError."""
        inputs = {name: inputs[name] for name in self._inputs if name in inputs}
        shapes = {name: np.shape(value) for name, value in inputs.items()}
        if shapes != self._shapes:
            self._shapes = None
            self._process.load(self._path, inputs, self._outputs)
            self._shapes = shapes
        return self._process.run(inputs)

    def _written(self, runnable: Runnable) -> Path:
        """Write the model into one file, with the weights that it refers to."""
        folder = self._stack.enter_context(TemporaryFolder())
        files.save(Model(runnable.proto(), runnable.external_data), folder / "model.onnx")
        return folder / "model.onnx"


def _with_log(words: str, printed: str) -> str:
    """Return an error's text, and the last lines that the runtime printed, if they differ from it."""
    plain = [_COLOUR.sub("", line).strip() for line in printed.splitlines()]
    lines = [line for line in plain if line and line not in words]
    lines = [line for line in lines if line.startswith("E ")] or lines  # RKNN marks its errors so
    return words + (f": {' / '.join(lines[-3:])}" if lines else "")
