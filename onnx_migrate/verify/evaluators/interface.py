"""What every runtime offers here: an evaluator that has loaded a model, and the error where that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_migrate.process.endings import names_lack_of_memory

__all__ = ["EvaluationError", "Evaluator", "one_line", "raise_if_out_of_memory"]


class EvaluationError(Exception):
    """A model does not load (`loading`) or does not run; the message is the runtime's, on one line.

    `node` is the name of the node that the runtime names as the cause, "" if it names none. `limit` says that the
    model may be valid and that the runtime lacks the opset or a kernel.
    """

    def __init__(self, message: str, node: str = "", *, loading: bool = False, limit: bool = False) -> None:
        super().__init__(message)
        self.node = node
        self.loading = loading
        self.limit = limit

    @property
    def failed_to(self) -> str:
        """What failed, as a verb: "load" or "run"."""
        return "load" if self.loading else "run"


class Evaluator:
    """A loaded model. `name` is the runtime and its version, as in "onnxruntime 1.20.0"; `notes` are for the report."""

    name = ""
    notes: tuple[str, ...] = ()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once, with a value for each input by name, and return a value for each graph output by name.

        Tensors are numpy arrays, sequences lists, an absent optional None. Raises EvaluationError, and MemoryError where the
        runtime lacks memory, which is no fault of the model.
        """
        raise NotImplementedError


def raise_if_out_of_memory(error: Exception, text: str = "") -> None:
    """Raise MemoryError where that is what an error of a runtime says: it tells nothing of the model.

    `text` is the message, in place of the error's own.
    """
    if isinstance(error, MemoryError) or names_lack_of_memory(str(error)):
        raise MemoryError(one_line(text or str(error))) from error


def one_line(text: str) -> str:
    """Return a runtime's message on one line, cut at 400 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 400 else text[:397] + "..."
