"""Passes in a row. What one pass gives, the next one takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from onnx_migrate.engine.gc_pause import paused_garbage_collection
from onnx_migrate.engine.pass_infra import Pass, as_pass
from onnx_migrate.errors import MigrateError, PassError, UsageError
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["Pipeline"]


@dataclass(frozen=True)
class Pipeline:
    """An order of passes; immutable, so that the default one can be the start of a user's own."""

    passes: tuple[Pass, ...] = ()

    def __post_init__(self) -> None:
        names = self.names
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two passes of the pipeline are called {name!r}", code="duplicate-pass")

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    @property
    def names(self) -> tuple[str, ...]:
        """The passes' names, in the order they run."""
        return tuple(item.name for item in self.passes)

    def without(self, *names: str) -> Pipeline:
        """Return this pipeline without the passes so named. Raises UsageError for a name it does not have."""
        for name in names:
            self._index(name)
        return Pipeline(tuple(item for item in self.passes if item.name not in names))

    def add(
        self, new: Pass | Callable[..., Any] | str, *, before: str | None = None, after: str | None = None
    ) -> Pipeline:
        """Return this pipeline with a pass more: at the end, or next to the one named.

        `new` is a pass, a function of a ModelProto or graphsurgeon Graph, "module:function", or the name of an
        entry point.
        """
        if before is not None and after is not None:
            raise UsageError("a pass goes before one or after one, not both")
        place = len(self.passes)
        if before is not None:
            place = self._index(before)
        elif after is not None:
            place = self._index(after) + 1
        return Pipeline((*self.passes[:place], as_pass(new), *self.passes[place:]))

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise UsageError(
                f"the pipeline has no pass {name!r}",
                code="no-such-pass",
                hint=f"it has {', '.join(self.names)}",
            )
        return self.names.index(name)

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Run all passes, each as `run_one` does. Raises IllegalModel when a node of the result is not valid."""
        for item in self.passes:
            model = self.run_one(item, model, log)
        check_legal(model.proto)
        return model

    def run_one(self, item: Pass, model: Model, log: ChangeLog) -> Model:
        """Run one pass and hold its result against what every pass must keep.

        Raises PassError when the pass fails in a way it should not, or changes the interface.
        """
        before = Interface.of(model.proto)
        try:
            with paused_garbage_collection():
                result = item.run(model, log)
        except MigrateError:
            raise
        except Exception as error:
            raise PassError(f"pass {item.name!r} failed: {type(error).__name__}: {error}") from error
        changed = before.difference(Interface.of(result.proto))
        if changed:
            raise PassError(f"pass {item.name!r} changed the interface: {changed}", code="interface-changed")
        result.origin = model.origin
        return result
