"""The base of the registries of upward and downward steps: a table that loads itself, and the texts that every step has."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, TypeVar

import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.docstrings import are_dropped, docstring
from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open.paths import submodules
from onnx_migrate.standard.schema import forget_schemas

__all__ = [
    "ENTRY_POINT_GROUP",
    "AnyStep",
    "StepTable",
    "doc_of",
    "import_package",
    "import_steps",
    "load_installed",
    "names",
    "reason_of",
]


class AnyStep:
    """The texts of a step; the dataclasses of all registries are steps."""

    claim: ClassVar[str]
    """The word for a step that neither rewrites nor refuses."""
    slug: ClassVar[str]
    """A format for the code after the domain, filled with the step's fields."""
    domain: str
    operator: str
    adapt: Callable[[onnx.NodeProto, Any], None] | None
    refusal: str
    reason: str

    @cached_property
    def code(self) -> str:
        """Return the slug for `onnx-migrate explain`, such as "softmax-13-down"."""
        prefix = f"{self.domain}." if self.domain else ""
        return (prefix + self.slug.format(self)).lower()

    @property
    def kind(self) -> str:
        """Which of the three the step is: "adapted", "refused", or the name of the claim."""
        return "adapted" if self.adapt else "refused" if self.refusal else self.claim

    @property
    def doc(self) -> str:
        """Return the explanation of the step: the adapter's docstring, or the reason given for the claim or refusal."""
        return doc_of(self.adapt) if self.adapt else self.reason or self.refusal


_LONGEST_FORMULA = 30
"""A formula of up to this many lines is shown, if its docstring does not describe the changes."""

_ASKED = {
    r"need_dtype|numpy_type|is_float|wide\(\)": "element types",
    r"need_rank": "ranks",
    r"need_static|need_size": "fixed shapes",
    r"need_constant|need_number": "constants",
}
"""Facts that the code of a step needs to know, by the calls that ask for them; a node without them is an error."""


def doc_of(function: Callable[..., Any]) -> str:
    """Return the docstring of a step's function, the facts that its code asks for, and the code of a short formula."""
    formula = inspect.unwrap(function)
    code = _code(formula)
    asked = [what for how, what in _ASKED.items() if re.search(how, "\n".join(code))]
    parts = [docstring(function)]
    if asked:
        parts.append(f"An error if needed but not known: {', '.join(asked)}.")
    if formula is not function and len(code) <= _LONGEST_FORMULA and "What changes:" not in parts[0]:
        parts.append("The formula; a number takes the element type of its partner, which must be known:")
        parts.append(textwrap.indent("\n".join(code), "    "))
    return "\n\n".join(parts)


def _code(step: Callable[..., Any]) -> list[str]:
    """Return the code of a step, and of the private functions in its module that it calls; nothing without the source."""
    found: dict[Any, list[str]] = {}
    pending = [step]
    while pending:
        function = pending.pop(0)
        try:
            source = textwrap.dedent(inspect.getsource(function))
        except OSError:
            return []
        (tree,) = ast.parse(source).body
        assert isinstance(tree, ast.FunctionDef)
        lines, body = source.splitlines(), tree.body[1 if ast.get_docstring(tree) else 0 :]
        own = lines[body[0].lineno - 1 :] if body else []
        if function is step:
            found[function] = textwrap.dedent("\n".join(own)).splitlines()
        else:
            found[function] = ["", *lines[: tree.body[0].lineno - 1], *own]
        names = (item.id for item in ast.walk(tree) if isinstance(item, ast.Name) and item.id.startswith("_"))
        called = (function.__globals__.get(name) for name in names)
        pending += [item for item in called if inspect.isfunction(item) and item not in (*found, *pending)]
    return [line for lines in found.values() for line in lines]


StepT = TypeVar("StepT", bound=AnyStep)

ENTRY_POINT_GROUP = "onnx_migrate.adapters"
"""Each entry point of the group names a module, which registers the steps of custom domains as it is imported."""

_STANDARD = ("", "ai.onnx.ml")


class StepTable(Generic[StepT]):
    """The steps that the modules of packages register; the first question imports them all.

    Without a package it holds only steps that are registered by hand.
    """

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self._steps: dict[tuple[str, str, int], StepT] = {}

    def register(self, step: StepT, version: int = 0) -> None:
        """Add a step; its operator and a version are the key. Raises ValueError for a step that is registered already.

        A step of a custom domain may be registered again by the same function, for example when a notebook cell runs again.
        """
        key = step.domain, step.operator, version
        known = self._steps.get(key)
        if known is not None and (step.domain in _STANDARD or _origin(known) != _origin(step)):
            raise ValueError(f"{step.code} is registered twice")
        self._steps[key] = step
        if step.domain not in _STANDARD:
            forget_schemas()  # a plug-in may have registered schemas too

    def get(self, domain: str, operator: str, version: int = 0) -> StepT | None:
        """Return the step of an operator at a version, None if none is registered."""
        self._load()
        return self._steps.get((domain, operator, version))

    def all(self) -> list[StepT]:
        """Return every step, by domain, operator and version."""
        self._load()
        return [step for _, step in sorted(self._steps.items())]

    def _load(self) -> None:
        if not self._packages:
            return
        for package in self._packages:
            import_package(package)
        load_installed()
        self._packages = ()  # only now: another thread must not see a part of the table


def import_package(name: str) -> None:
    """Import all modules of a package, which register steps."""
    package = importlib.import_module(name)
    for module in submodules(package):
        importlib.import_module(f"{name}.{module}")


def _origin(step: AnyStep) -> tuple[str, str, str, str]:
    """Return the source of a step: its function's module and name, or its claim or refusal."""
    function = step.adapt
    return (
        getattr(function, "__module__", ""), getattr(function, "__qualname__", ""), step.reason if function is None else "",
        step.refusal,
    )  # fmt: skip


@cache
def load_installed() -> tuple[str, ...]:
    """Import the modules that installed packages name as plug-ins with steps, and return their names.

    Raises UsageError, code `plugin-failed`, for one that cannot be imported.
    """
    points = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name)
    for point in points:
        try:
            point.load()
        except Exception as error:  # noqa: PERF203 - what a module raises as it is imported
            raise UsageError(
                f"the plug-in {point.name!r} ({point.value}), which is installed, cannot be loaded: {type(error).__name__}:"
                f" {error}",
                code="plugin-failed",
                hint="fix it, or uninstall the package",
            ) from error
    return tuple(point.name for point in points)


def import_steps(modules: Iterable[str]) -> None:
    """Import modules that register steps. Raises UsageError, code `plugin-failed`, for one that cannot be imported."""
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: PERF203 - what a module raises as it is imported
            raise UsageError(
                f"the module {name!r} with steps for operators cannot be imported: {type(error).__name__}: {error}",
                code="plugin-failed",
                hint="give the name of a module that Python can import from the working folder or PYTHONPATH",
            ) from error


def names(*operators: str) -> list[str]:
    """Return the names of operators; one text may contain several, with spaces between them."""
    return " ".join(operators).split()


def reason_of(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring on one line, which reports give as the reason of a rewrite.

    Raises ValueError for a function without one. A program that has neither docstrings nor sources gets a place to look.
    """
    reason = docstring(function).partition("\n\n")[0].replace("\n", " ").rstrip(".")
    if not reason and are_dropped():
        return f"{function.__module__}.{function.__name__} has the reason in its source, which this program is without"
    if not reason:
        raise ValueError(
            f"{function.__name__} needs a docstring: its first paragraph is the reason that reports give"
        )
    return reason
