"""Passes that the run of a migration asks for more than a model: ways out of errors, cures of results, names of new outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol

from onnx_migrate.advice import Advice
from onnx_migrate.engine.pass_infra import ObligedPass, Pass
from onnx_migrate.errors import MigrateError, VerificationFailed
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["AdvisingPass", "CuringPass", "PartPass", "Retry"]


class Retry(Protocol):
    """Runs the passes again, some of them replaced and optional ones left out, to find a request that works."""

    original: Model
    """The model that the passes get."""
    failed: Model
    """The result that failed."""
    log: ChangeLog
    """The log of the run that failed."""

    @property
    def passes(self) -> Iterable[Pass]:
        """The passes that run."""

    @property
    def is_over(self) -> bool:
        """Whether the time for further tries is over."""

    def loads(self, replaced: Mapping[str, Pass]) -> bool:
        """Return whether ONNX Runtime loads the result of the passes, if it loads the original; `replaced` replaces some."""

    def holds(self, replaced: Mapping[str, Pass]) -> bool:
        """Return whether the result of the passes is proved, with some passes replaced by name."""


class AdvisingPass(Pass):
    """A pass that knows a way out of some errors of the proof."""

    @abstractmethod
    def advice_on(self, error: MigrateError, retry: Retry) -> tuple[Advice, ...]:
        """Return the advice on an error that the proof of the result raised, with a way out if this pass finds one."""


class CuringPass(Pass):
    """A pass that runs only if the proof of a result fails, without options. It may make the result provable."""

    @classmethod
    @abstractmethod
    def cures(cls, error: VerificationFailed) -> bool:
        """Return whether the pass may turn a result that fails with this error into a proved result."""


class PartPass(ObligedPass):
    """A pass that keeps a part of the model: inputs may be missing, and other values may be outputs."""

    def output_names(self, model: Model) -> tuple[str, ...]:
        """Return the names of values of the model that become outputs. Options for outputs may name them."""
        return ()
