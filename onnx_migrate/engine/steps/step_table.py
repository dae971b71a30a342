"""What the registries of upward and of downward steps share: a table that loads itself, and what every step says."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import onnx

__all__ = ["AnyStep", "StepTable", "reason_of"]

Key = tuple[str, str, int]
"""A step's domain, operator and since_version."""


class AnyStep:
    """What a step says of itself; the dataclasses of both registries are steps."""

    claim: ClassVar[str]
    """What a step that neither rewrites nor refuses is called."""
    adapt: Callable[[onnx.NodeProto, Any], None] | None
    refusal: str
    reason: str

    @property
    def kind(self) -> str:
        """Which of the three the step is: "adapted", "refused", or the name of the claim."""
        return "adapted" if self.adapt else "refused" if self.refusal else self.claim

    @property
    def doc(self) -> str:
        """What the step does and why: the adapter's docstring, or the reason given for the claim or refusal."""
        return inspect.getdoc(self.adapt) or "" if self.adapt else self.reason or self.refusal


class _Keyed(Protocol):
    @property
    def code(self) -> str: ...
    @property
    def key(self) -> Key: ...


StepT = TypeVar("StepT", bound=_Keyed)


class StepTable(Generic[StepT]):
    """The steps that the modules of a package register; the first question imports them all.

    Without a package it holds what is registered by hand.
    """

    def __init__(self, package: str | None) -> None:
        self._package = package
        self._steps: dict[Key, StepT] = {}

    def register(self, step: StepT) -> None:
        """Add a step. Raises ValueError for one that is registered already."""
        if step.key in self._steps:
            raise ValueError(f"{step.code} is registered twice")
        self._steps[step.key] = step

    def get(self, key: Key) -> StepT | None:
        """Return the step of this key, None if none is registered."""
        self._load()
        return self._steps.get(key)

    def all(self) -> list[StepT]:
        """Return every step, by domain, operator and version."""
        self._load()
        return [step for _, step in sorted(self._steps.items())]

    def _load(self) -> None:
        if self._package is None:
            return
        package = importlib.import_module(self._package)
        for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
            importlib.import_module(f"{package.__name__}.{module.name}")
        self._package = None  # only now: another thread must not see a part of the table


def reason_of(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring on one line, which reports give as the reason of a rewrite.

    Raises ValueError for a function without one.
    """
    reason = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
    if not reason:
        raise ValueError(
            f"{function.__name__} needs a docstring: its first paragraph is the reason that reports give"
        )
    return reason
