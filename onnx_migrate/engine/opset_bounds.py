"""The interface of bounds on the opset of a model, such as those of the runtimes that will run it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["OpsetBounds"]


class OpsetBounds(Protocol):
    """Says for a model which opset it may have. Each method leaves the model unchanged, and logs a note under a pass's name."""

    def to_raise(
        self, model: Model, opset: int, log: ChangeLog, pass_name: str, *, lowered_later: bool
    ) -> int:
        """Return the opset to raise a model to, for the requested `opset`; another pass may lower it later."""

    def to_lower(self, model: Model, opset: int, log: ChangeLog, pass_name: str) -> int:
        """Return the opset to lower a model to, for the requested `opset`."""

    def without_faults(self, model: Model, opset: int, log: ChangeLog, pass_name: str) -> int:
        """Return the newest opset up to `opset` at which no node is computed wrongly."""

    def may_bind(self, operators: Iterable[tuple[str, str]]) -> bool:
        """Return whether an operator, as domain and name, may bind the opset of a model that has it."""

    def newest(self, model: Model, pass_name: str) -> int:
        """Return the newest opset at which every operator of the model is supported."""
