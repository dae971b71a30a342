"""The interface of a pass, and the registry of this package's passes. A pass takes and returns a model, and logs its changes."""

from __future__ import annotations

import importlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

from onnx_migrate.declared import parameters_of
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.obligations import PassResult
from onnx_migrate.errors import MigrateError, PassError, UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = [
    "REGISTERED",
    "ObligedPass",
    "Pass",
    "UserPass",
    "as_pass",
    "default_passes",
    "installed_passes",
    "package_of",
    "passes_on_request",
    "register_pass",
]

ENTRY_POINT_GROUP = "onnx_migrate.passes"
"""Entry points of passes that run only if the user names them."""

DEFAULT_GROUP = "onnx_migrate.default_passes"
"""Entry points of passes that run in every migration: a package asks for that by this group."""


class Pass(ABC):
    """One step of a pipeline. Subclasses are frozen dataclasses whose fields are the pass's options."""

    name: ClassVar[str]
    title: ClassVar[str] = ""
    """The pass in words for people who follow the progress of a call, such as "raising the opset"."""
    requires: ClassVar[frozenset[ModelProperty]] = frozenset()
    """The properties that the pass needs in the model it gets."""
    ensures: ClassVar[frozenset[ModelProperty]] = frozenset()
    """The properties of the model that the pass returns."""
    optional: ClassVar[bool] = False
    """Whether the migration continues with the model before the pass if the pass fails; a note reports this."""

    @abstractmethod
    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return the model that results, which may be `model` itself edited in place. Raises MigrateError.

        Names, types and order of the model's inputs and outputs must stay.
        """

    def is_wanted(self, original: Model, model: Model) -> bool:
        """Return whether an optional pass must run; `model` is the current version of `original`."""
        return True


class ObligedPass(Pass):
    """A pass whose result is not simply the same numbers: its obligation says how to prove the result.

    A subclass defines `apply` instead of `run`. Its failure fails the migration, even if it is `optional`.
    """

    @abstractmethod
    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Return the model that results, and the obligation. Raises MigrateError.

        The model may be `model` itself, edited in place. The interface may change only as the obligation allows.
        """

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return the model that results, for callers that prove nothing."""
        return self.apply(model, log).model


REGISTERED: dict[str, type[Pass]] = {}
"""The passes of this distribution whose modules are imported, by name; `pass_registry` imports the others."""
_packages: dict[type[Pass], str] = {}
"""The distributions of installed passes that are classes."""


def register_pass(cls: type[Pass]) -> type[Pass]:
    """Make a pass of this package known by its name; a class decorator."""
    if cls.name in REGISTERED:
        raise ValueError(f"two passes are called {cls.name}")
    REGISTERED[cls.name] = cls
    return cls


def is_builtin(item: object) -> bool:
    """Return whether an object is a pass of this package."""
    return type(item) in REGISTERED.values()


def default_passes(options: Any) -> list[Pass]:
    """Return the passes of the default pipeline in their order, including passes of other distributions."""
    module = importlib.import_module("onnx_migrate.passes.default_pipeline")
    passes: list[Pass] = module.default_pipeline(options)
    return passes


@dataclass(frozen=True)
class UserPass(Pass):
    """A function of a `ModelProto` or of a graphsurgeon `Graph`; the annotation of its parameter selects one of them.

    The function edits its argument in place (and returns None) or returns the new one. It sees all weights.
    """

    ensures: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.VALID_NODES})
    function: Callable[..., Any]
    label: str
    package: str = ""
    """The distribution that installed the pass, "" for a function that the user gave."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The function's name, or the entry point's."""
        return self.label

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Call the function. Raises PassError from any exception of the function."""
        from onnx_migrate.engine.graphsurgeon_bridge import run_on_graph, run_on_proto

        runner = run_on_graph if takes_graph(self.function) else run_on_proto
        try:
            result = runner(model, self.function)
        except MigrateError:
            raise
        except Exception as error:
            raise PassError(f"pass {self.name!r} raised {type(error).__name__}: {error}") from error
        if not self.package:  # the run of the pipeline names the package
            log.note(self.name, "user-pass", f"ran {self.name}", subject=self.name)
        return result


def takes_graph(function: Callable[..., Any]) -> bool:
    """Return whether a user's pass takes a graphsurgeon Graph; else it takes a ModelProto.

    Raises UsageError when the annotation of its first parameter says neither.
    """
    parameters = parameters_of(function)
    annotation = parameters[0].annotation if parameters else ""
    # An annotation may be a class, a text, or a ForwardRef.
    annotation_names = (getattr(annotation, name, None) for name in ("__name__", "__forward_arg__"))
    text = (
        annotation if isinstance(annotation, str) else next(filter(None, annotation_names), str(annotation))
    )
    kind = text.rpartition(".")[2]
    if kind not in ("ModelProto", "Graph"):
        raise UsageError(
            f"the first parameter of pass {getattr(function, '__name__', function)!r} has no annotation that says"
            " whether it is a ModelProto or a Graph",
            hint="annotate its parameter as onnx.ModelProto or onnx_graphsurgeon.Graph",
        )
    return kind == "Graph"


def as_pass(given: Pass | Callable[..., Any] | str) -> Pass:
    """Return a pass for a pass, a user's function, "module:function", or the name of an installed entry point."""
    if isinstance(given, Pass):
        return given
    # A class is a pass with its default options.
    if isinstance(given, type) and issubclass(given, Pass):
        return given()
    # Its annotation is checked now, so that the error comes before any work.
    if callable(given):
        takes_graph(given)
        return UserPass(given, getattr(given, "__name__", type(given).__name__))
    installed = _points()
    try:
        if given in installed:
            return _installed(installed[given])
        # The spelling is that of entry points.
        module, _, attribute = given.partition(":")
        if attribute:
            return as_pass(getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"pass {given!r} cannot be loaded: {error}",
            code="no-such-pass",
            hint="give MODULE:FUNCTION of a module that Python can import from the working folder or PYTHONPATH",
        ) from error
    installed_names = ", ".join(sorted(installed))
    raise UsageError(
        f"there is no pass {given!r}",
        code="no-such-pass",
        hint="give MODULE:FUNCTION"
        + (f", or the name of an installed pass: {installed_names}" if installed_names else ""),
    )


def _installed(point: EntryPoint) -> Pass:
    """Return the pass of an entry point, whose package the report names."""
    loaded, package = as_pass(point.load()), point.dist.name if point.dist else ""
    if isinstance(loaded, UserPass):
        return UserPass(loaded.function, point.name, package)
    _packages[type(loaded)] = package
    return loaded


def installed_passes() -> list[Pass]:
    """Return the passes of other distributions that run in every migration, from the group `DEFAULT_GROUP`, by name."""
    return [as_pass(name) for name, point in sorted(_points().items()) if point.group == DEFAULT_GROUP]


def passes_on_request() -> list[Pass]:
    """Return the passes of other distributions that run if the user names them, from `ENTRY_POINT_GROUP`, by name."""
    return [as_pass(name) for name, point in sorted(_points().items()) if point.group != DEFAULT_GROUP]


def package_of(item: Pass) -> str:
    """Return the name of the distribution that installed a pass, "" for a pass that is not installed."""
    return item.package if isinstance(item, UserPass) else _packages.get(type(item), "")


def _points() -> dict[str, EntryPoint]:
    """Return the entry points of installed passes by name. A change of a folder in sys.path starts a new search."""
    folders = []
    for entry in sys.path:
        with suppress(OSError):
            folders.append((entry, os.stat(entry or ".").st_mtime_ns))
    return _points_in(entry_points, tuple(folders))


@lru_cache(maxsize=1)
def _points_in(search: Callable[[], Any], folders: tuple[tuple[str, int], ...]) -> dict[str, EntryPoint]:
    """Return the entry points. `folders` only keys the cache, since each search reads all installed packages."""
    every = search()  # once, since it reads the metadata of all packages
    groups = (ENTRY_POINT_GROUP, DEFAULT_GROUP)
    return {point.name: point for group in groups for point in every.select(group=group)}
