"""What a pass is: it takes a model and gives a model, and says what it did."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar

from onnx_migrate.errors import IllegalModel, MigrateError, PassError, UsageError
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

if TYPE_CHECKING:
    pass

__all__ = ["Pass", "UserPass", "as_pass", "builtin_passes", "installed_passes", "register_pass"]

ENTRY_POINT_GROUP = "onnx_migrate.passes"


class Pass(ABC):
    """One step of a pipeline. Subclasses are frozen dataclasses whose fields are the pass's options."""

    name: ClassVar[str]
    changes_numbers: ClassVar[bool] = False
    """Whether it is to: what follows is held against the model it gives, what came before against its argument."""
    narrows: ClassVar[bool] = False
    """Whether it leaves the nodes alone and lets inputs have fewer sizes: what follows is held against its result."""
    optional: ClassVar[bool] = False
    """Whether the migration goes on with the model as it was before, and says so, when the pass fails."""

    @abstractmethod
    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return the model that results, which may be `model` itself edited in place. Raises MigrateError's kinds."""


_builtin: dict[str, type[Pass]] = {}


def register_pass(cls: type[Pass]) -> type[Pass]:
    """Make a pass of this package known by its name; a class decorator."""
    if cls.name in _builtin:
        raise ValueError(f"two passes are called {cls.name}")
    _builtin[cls.name] = cls
    return cls


@cache
def builtin_passes() -> dict[str, type[Pass]]:
    """Return the passes of this package by name."""
    package = importlib.import_module("onnx_migrate.passes")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        if module.name != "adapters":
            importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_builtin.items()))


@dataclass(frozen=True)
class UserPass(Pass):
    """A function of a `ModelProto` or of a graphsurgeon `Graph`, told apart by its parameter's annotation.

    The function edits its argument in place (and returns None) or returns the new one. It sees all weights.
    """

    function: Callable[..., Any]
    label: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """The function's name, or the entry point's."""
        return self.label

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Call the function. Raises PassError from whatever it raises."""
        from onnx_migrate.engine.graphsurgeon_bridge import run_on_graph, run_on_proto

        runner = run_on_graph if takes_graph(self.function) else run_on_proto
        try:
            result = runner(model, self.function)
        except MigrateError:
            raise
        except Exception as error:
            raise PassError(f"pass {self.name!r} raised {type(error).__name__}: {error}") from error
        try:
            check_legal(result.proto)
        except IllegalModel as error:
            raise PassError(
                f"pass {self.name!r} left a node that is not valid: {error}", code=error.code
            ) from error
        log.note(self.name, "user-pass", f"ran {self.name}", subject=self.name)
        return result


def takes_graph(function: Callable[..., Any]) -> bool:
    """Tell whether a user's pass takes a graphsurgeon Graph (True) or a ModelProto (False).

    Raises UsageError when the annotation of its first parameter says neither.
    """
    parameters = list(inspect.signature(function).parameters.values())
    annotation = parameters[0].annotation if parameters else inspect.Parameter.empty
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    kind = text.rpartition(".")[2]
    if kind not in ("ModelProto", "Graph"):
        raise UsageError(
            f"pass {getattr(function, '__name__', function)!r} does not say what it takes",
            hint="annotate its parameter as onnx.ModelProto or onnx_graphsurgeon.Graph",
        )
    return kind == "Graph"


def as_pass(given: Pass | Callable[..., Any] | str) -> Pass:
    """Return a pass for a pass, a user's function, "module:function", or the name of an installed entry point."""
    if isinstance(given, Pass):
        return given
    if isinstance(given, type) and issubclass(given, Pass):
        return given()
    if callable(given):
        takes_graph(given)
        return UserPass(given, getattr(given, "__name__", type(given).__name__))
    installed = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    try:
        if given in installed:
            return _named(installed[given].load(), given)
        module, _, attribute = given.partition(":")
        if attribute:
            return as_pass(getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise UsageError(f"pass {given!r} cannot be loaded: {error}", code="no-such-pass") from error
    known = ", ".join(sorted(installed)) or "none is installed"
    raise UsageError(
        f"there is no pass {given!r}", code="no-such-pass", hint=f"MODULE:FUNCTION, or one of: {known}"
    )


def _named(loaded: Any, name: str) -> Pass:
    found = as_pass(loaded)
    return UserPass(found.function, name) if isinstance(found, UserPass) else found


def installed_passes() -> list[Pass]:
    """Return the passes of other distributions, from the entry-point group `onnx_migrate.passes`, by name."""
    names = sorted({point.name for point in entry_points(group=ENTRY_POINT_GROUP)})
    return [as_pass(name) for name in names]
