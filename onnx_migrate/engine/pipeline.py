"""An order of passes, checked when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from onnx_migrate.engine.model_properties import is_readable
from onnx_migrate.engine.pass_infra import Pass, as_pass
from onnx_migrate.engine.pipeline_run import PipelineResult, PipelineRun, Stage
from onnx_migrate.errors import UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["Pipeline"]


def _no_stage(name: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Pipeline:
    """An order of passes; immutable, so that the default one can be the start of a user's own.

    Raises UsageError for two passes of one name (`duplicate-pass`), and for a pass that needs what a later pass ensures
    (`pass-order`). Of the properties that show in a model, each run of the pipeline checks whether they hold.
    """

    passes: tuple[Pass, ...] = ()

    def __post_init__(self) -> None:
        names = self.names
        for index, pipeline_pass in enumerate(self.passes):
            if pipeline_pass.name in names[:index]:
                raise UsageError(
                    f"two passes of the pipeline are called {pipeline_pass.name!r}",
                    code="duplicate-pass",
                    hint="leave one out, or give one another name",
                )
            # A pass must not need a property that only a later pass ensures.
            for later in self.passes[index + 1 :]:
                missing = [
                    missing_property
                    for missing_property in pipeline_pass.requires & later.ensures
                    if not is_readable(missing_property)
                ]
                if missing:
                    raise UsageError(
                        f"pass {pipeline_pass.name!r} cannot run before {later.name!r}: it needs {missing[0].value}",
                        code="pass-order",
                        hint=f"put {later.name} before {pipeline_pass.name}",
                    )

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    @property
    def names(self) -> tuple[str, ...]:
        """The passes' names, in the order they run."""
        return tuple(pipeline_pass.name for pipeline_pass in self.passes)

    def without(self, *names: str) -> Pipeline:
        """Return this pipeline without the passes so named. Raises UsageError for a name it does not have."""
        for name in names:
            # A misspelt name must be an error, because the pass would run silently.
            self._index(name)
        return Pipeline(
            tuple(pipeline_pass for pipeline_pass in self.passes if pipeline_pass.name not in names)
        )

    def add(
        self, new: Pass | Callable[..., Any] | str, *, before: str | None = None, after: str | None = None
    ) -> Pipeline:
        """Return this pipeline with a pass more: at the end, or next to the one named.

        `new` is a pass, a function of a ModelProto or graphsurgeon Graph, "module:function", or the name of an
        entry point.
        """
        if before is not None and after is not None:
            raise UsageError("`before` and `after` are both given", hint="give one: the pass has one place")
        index = len(self.passes)
        if before is not None:
            index = self._index(before)
        elif after is not None:
            index = self._index(after) + 1
        return Pipeline((*self.passes[:index], as_pass(new), *self.passes[index:]))

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise UsageError(
                f"the pipeline has no pass {name!r}",
                code="no-such-pass",
                hint=f"its passes are {', '.join(self.names) or 'none'}",
            )
        return self.names.index(name)

    def run(
        self,
        model: Model,
        log: ChangeLog,
        *,
        require_optional: bool = False,
        strict: bool = False,
        stage: Stage = _no_stage,
    ) -> PipelineResult:
        """Run all passes on a copy of `model`, and return the result with the segments to verify.

        The pipeline repairs an invalid model to match what ONNX Runtime does, and `log` reports it; with `strict` it raises an
        error. With `require_optional`, a failing optional pass fails the run; else it is skipped and `log` reports it. The
        pipeline calls `stage` with each pass's name, and its context encloses the pass.

        Raises any error of a pass that is a MigrateError. Raises PassError for a pass that raises another exception, changes
        the interface, or breaks what it ensures. Raises IllegalModel if a node of the result is not valid.
        """
        run = PipelineRun(self.passes, model, log, stage, require_optional=require_optional, strict=strict)
        return run.result()

    def intermediate_models(self, model: Model) -> list[tuple[str, Model]]:
        """Run all passes once more, and return a copy of the model after each that changed it, by the pass's name.

        An optional pass is run too, and must not fail. Raises as `run`.
        """
        stages: list[tuple[str, Model]] = []

        def keep(name: str, result: Model) -> None:
            if result.proto != (stages[-1][1] if stages else model).proto:
                stages.append((name, result.copy()))

        PipelineRun(self.passes, model, ChangeLog(), _no_stage, require_optional=True, after=keep).result()
        return stages
