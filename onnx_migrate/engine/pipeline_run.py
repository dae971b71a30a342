"""One run of a pipeline. It handles passes that fail, have obligations, or break their promises."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from onnx_migrate.advice import Advice
from onnx_migrate.engine.model_properties import ModelProperty, violation
from onnx_migrate.engine.obligations import Chain, Link, Obligation, PassResult
from onnx_migrate.engine.pass_infra import ObligedPass, Pass, is_builtin, package_of
from onnx_migrate.engine.pass_registry import builtin_passes
from onnx_migrate.engine.validity import (
    accepted,
    check_result,
    note_older_ir,
    note_tolerated,
    settle_ir_version,
)
from onnx_migrate.errors import CannotMigrate, MigrateError, PassError
from onnx_migrate.facts.onnx_inference import remembering
from onnx_migrate.facts.shapes import InferredOutputs
from onnx_migrate.model.dims.open_names import OpenNames
from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model, Segment
from onnx_migrate.rewrite.change_log import Attempt, ChangeLog, Exactness
from onnx_migrate.rewrite.operator_counts import operator_counts, record_effect
from onnx_migrate.standard.ir_versions import IrFeature

__all__ = ["PipelineResult", "PipelineRun", "Stage", "paused_garbage_collection"]

CHECKED_NODES = 10_000
"""The pipeline checks what its own passes ensure up to this many nodes; beyond that, the check would cost 10 % of the time."""

Stage = Callable[[str], AbstractContextManager[None]]
"""Called with a pass's name; the pass runs within the context that it returns."""


@dataclass(frozen=True)
class _BeforeOptional:
    """The model before an optional pass, and the part of the log that the pass wrote."""

    name: str
    model: Model
    trial: Attempt

    def restore(self, reason: str) -> Model:
        """Return the model before the pass; the log then gives the reason for the skip instead of the pass's changes."""
        self.trial.roll_back()
        self.trial.log.note(
            self.name,
            "left-out",
            f"skipped {self.name}, so it changed nothing: {reason}",
            severity="warning",
        )
        return self.model


@dataclass(frozen=True)
class PipelineResult:
    """The result of a pipeline: segments that keep every number, and links between them, which have obligations.

    A segment is `exact` if all its changes keep every bit; it has an unsimplified model if all passes are of this package.
    """

    segments: tuple[Segment[Model], ...]
    links: tuple[Link, ...] = ()
    _before_optional: _BeforeOptional | None = None

    @property
    def model(self) -> Model:
        """The model after the last pass."""
        return self.segments[-1].result

    def links_to(self, place: int) -> tuple[Link, ...]:
        """Return the links between the segment at a place and the segment before it, in order."""
        return tuple(link for link in self.links if link.leads_to == place)

    @property
    def can_leave_out(self) -> bool:
        """Whether an optional pass ran, which `without_optional` can leave out."""
        return self._before_optional is not None

    def without_optional(self, reason: str) -> PipelineResult:
        """Return the result without the optional pass; the log is rolled back to before it and names `reason`."""
        if self._before_optional is None:
            return self
        last = replace(self.segments[-1], result=self._before_optional.restore(reason))
        return replace(self.with_last(last), _before_optional=None)

    def with_last(self, segment: Segment[Model]) -> PipelineResult:
        """Return the result with another last segment."""
        return replace(self, segments=(*self.segments[:-1], segment))


class PipelineRun:
    """Runs passes in their order on a copy of a model.

    Between two passes the run knows only the properties in `_holding` about the model. `after` gets each pass's name and
    the model after it. `strict` refuses an invalid original, even if ONNX Runtime would read it.
    """

    def __init__(
        self,
        passes: Iterable[Pass],
        original: Model,
        log: ChangeLog,
        stage: Stage,
        *,
        require_optional: bool,
        strict: bool = False,
        after: Callable[[str, Model], None] | None = None,
    ) -> None:
        self._passes = tuple(passes)
        self._strict = strict
        self._log = log
        self._stage = stage
        self._require_optional = require_optional
        self._after = after
        # Results of this package's own passes need fewer checks.
        self._own = all(map(is_builtin, self._passes))
        self._model = original.copy()
        self._counts = operator_counts(bodies(original.proto))
        self._start = self._original = original
        self._first_change = len(log.changes)
        self._segments: list[Segment[Model]] = []
        self._links: list[Link] = []
        self._before_optional: _BeforeOptional | None = None
        self._holding: set[ModelProperty] = set()

    def result(self) -> PipelineResult:
        """Run all passes.

        Raises InvalidModel for an invalid original, PassError for a broken promise, IllegalModel for an invalid result, and
        any MigrateError of a pass.
        """
        with remembering() as given_up, paused_garbage_collection():
            result = self._result()
            for reason in given_up.reasons:
                self._log.note("result", "inference-limit", reason, severity="warning")
        return result

    def _result(self) -> PipelineResult:
        # A broken model is repaired before the first pass sees it.
        usable = accepted(self._original, self._log, strict=self._strict)
        if usable is not self._original:
            self._model, self._start, self._original = usable.copy(), usable, usable
        note_tolerated(self._original, self._log)
        note_older_ir(self._original, self._log)
        for pipeline_pass in self._passes:
            with self._stage(pipeline_pass.name):
                self._check_required(pipeline_pass)
                if isinstance(pipeline_pass, ObligedPass):
                    self._run_obliged(pipeline_pass)
                elif pipeline_pass.optional and not self._require_optional:
                    if pipeline_pass.is_wanted(self._original, self._model):
                        self._try(pipeline_pass)
                else:
                    self._run(pipeline_pass)
        before = self._before_optional
        names = self._log.fact(OpenNames, "", "") or OpenNames({})
        for model in (before.model, self._model) if before else (self._model,):
            names.put_back(model.proto.graph)
        small = len(self._model.proto.graph.node) <= CHECKED_NODES
        if small or before or not self._own or self._model.proto.ir_version < IrFeature.UNLISTED.since:
            for model in (before.model, self._model) if before else (self._model,):
                settle_ir_version(model, self._original, self._log)
        check_result(self._model, self._original, names=small or not self._own)
        last = self._segment(before.model if before else self._model, self._model)
        return PipelineResult((*self._segments, last), tuple(self._links), before)

    def _run_obliged(self, item: ObligedPass) -> None:
        """Run a pass that may have an obligation. If it has one, the segment before the pass ends and the next begins."""
        before = self._model.copy()
        segment = self._segment(before, before)
        obligation = self._run(item)
        if obligation is None or self._model.proto == before.proto:
            return
        if obligation.other_numbers or before.proto != self._start.proto:
            self._segments.append(segment)
        else:
            before = self._start  # no pass before this one changed the model
        self._start_segment()
        self._links.append(Link(item.name, before, self._start, obligation, len(self._segments)))
        self._log.record_fact("", "", Chain(tuple(self._links)))
        if obligation.sentence:
            self._log.note(item.name, "other-numbers", obligation.sentence, severity="warning")

    def _try(self, item: Pass) -> None:
        """Run an optional pass; if it fails, go on with the model before it."""
        before = _BeforeOptional(item.name, self._model.copy(), self._log.trial())
        try:
            self._run(item)
        except MigrateError as error:
            self._model, self._before_optional = before.restore(error.with_hint), None
        else:
            self._before_optional = before

    def _start_segment(self) -> None:
        self._log.facts.pop((InferredOutputs, "", ""), None)  # other numbers may come in other shapes
        self._start, self._first_change = self._model.copy(), len(self._log.changes)

    def _segment(self, unsimplified: Model, result: Model) -> Segment[Model]:
        own_unsimplified = unsimplified if self._own else None
        return Segment(self._start, result, own_unsimplified, self._is_exact())

    def _is_exact(self) -> bool:
        """Return whether all passes are this package's, and all changes of the segment are bit for bit exact."""
        changes = self._log.changes[self._first_change :]
        return self._own and {change.exactness for change in changes} <= {Exactness.EXACT}

    def _run(self, item: Pass) -> Obligation | None:
        """Run one pass, check the interface that it must keep and the properties that it ensures, and return its obligation."""
        before, nodes = Interface.of(self._model.proto), len(self._model.proto.graph.node)
        logged = len(self._log.changes), len(self._log.notes)
        try:
            applied = _applied(item, self._model, self._log)
        except (MigrateError, MemoryError):
            raise
        except RecursionError as error:
            raise CannotMigrate(
                f"the model is nested too deeply for the pass {item.name!r}",
                code="too-deep",
                hint="export it with fewer sub-graphs in sub-graphs, or leave the pass out with --skip-pass",
            ) from error
        except Exception as error:
            raise PassError(f"pass {item.name!r} failed: {type(error).__name__}: {error}") from error
        result, obligation = applied.model, applied.obligation
        # The report names passes that are not this package's own.
        if package := package_of(item):
            text = f"ran {item.name} of the installed package {package}"
            self._log.note(item.name, "user-pass", text, subject=item.name)
        self._check_ensured(item, result)
        # A pass may change dims, but no names, types or order.
        changed = before.difference(Interface.of(result.proto))
        if changed and not (obligation is not None and obligation.changes_interface):
            raise PassError(
                f"pass {item.name!r} changed the interface: {changed}",
                code="interface-changed",
                hint="a pass must keep names, types and order of the model's inputs and outputs",
            )
        # The pass may return another Model, and the origin says which files must not be overwritten.
        result.origin, result.stamp = self._model.origin, self._model.stamp
        self._model = result
        has_logged = logged != (len(self._log.changes), len(self._log.notes))
        if has_logged or not self._own or nodes <= CHECKED_NODES or nodes != len(result.proto.graph.node):
            counts = operator_counts(bodies(result.proto))
            record_effect(self._log, item.name, self._counts, counts, logged[0])
            self._counts = counts
        if self._after is not None:
            self._after(item.name, result)
        return obligation

    def _check_required(self, item: Pass) -> None:
        for required in sorted(item.requires - self._holding, key=list(ModelProperty).index):
            if required is ModelProperty.VALID_NODES:
                check_result(self._model, self._original, names=False)
            elif complaint := violation(required, self._model.proto):
                makers = [name for name, cls in builtin_passes().items() if required in cls.ensures]
                raise PassError(
                    f"pass {item.name!r} needs {required.value}, but {complaint}",
                    code="missing-property",
                    hint=f"run {' or '.join(makers)} before it" if makers else "",
                )
            self._holding.add(required)

    def _check_ensured(self, item: Pass, result: Model) -> None:
        """Check the properties that a user's pass ensures; for this package's passes, only if the check is quick."""
        own = is_builtin(item)
        if not own or len(result.proto.graph.node) <= CHECKED_NODES:
            for ensured in sorted(item.ensures, key=list(ModelProperty).index):
                if complaint := violation(ensured, result.proto):
                    valid = ensured is ModelProperty.VALID_NODES
                    # The user learns which pass broke the model, before later passes fail because of it.
                    raise PassError(
                        f"pass {item.name!r} left a node that is not valid: {complaint}"
                        if valid
                        else f"pass {item.name!r} says that it leaves {ensured.value}, but {complaint}",
                        code="illegal-result" if valid else "missing-property",
                        hint=Advice(
                            "please report this bug of onnx-migrate" if own else "correct the pass",
                            tried=True,
                        ),
                    )
        # A user's pass may break any property, so only those that it ensures hold after it.
        still_holding = self._holding - {ModelProperty.VALID_NODES} if own else set()
        self._holding = still_holding | item.ensures


def _applied(item: Pass, model: Model, log: ChangeLog) -> PassResult:
    return item.apply(model, log) if isinstance(item, ObligedPass) else PassResult(item.run(model, log))


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Pause cyclic garbage collection in the block, and restore the state it was in before.

    Each full collection visits every object that a pass has created so far. On 50,000 rewritten nodes that is a third
    of the time, and it grows faster than the number of nodes. The pause covers the whole process. If pauses of several
    threads overlap, the thread that began first resumes collection, so that it cannot stay off.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
