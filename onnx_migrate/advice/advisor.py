"""Finds how a model stands with runtimes, with one lowering for all of them that want the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnx_migrate.advice.advice import Advice, Standing
from onnx_migrate.engine.gc_pause import paused_garbage_collection
from onnx_migrate.engine.objections import Objection, objections_by_trial
from onnx_migrate.engine.pass_infra import Pass, make_pass
from onnx_migrate.engine.pipeline import default_pipeline
from onnx_migrate.engine.validity import check_original
from onnx_migrate.errors import MigrateError
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.targets import Target, Targets

__all__ = ["Advisor"]

_WRONG = "runtime-fault"
"""The code of notes on nodes that a runtime computes wrongly."""
_OF_PYTORCH = ("intent_note", "resize_intent")
"""The passes that change and note nothing in models of other producers, and name the runtime."""
_TRIED = "runtime-opset"
"""The code of notes on a model of a newer opset than a runtime is known to run."""


@dataclass(frozen=True)
class _Migrated:
    """A model after the passes that do not depend on the runtime alone, with their log; or the error that ended them."""

    model: Model
    log: ChangeLog
    error: MigrateError | None = None


@dataclass
class Advisor:
    """Gives advice on one model. Each distinct way to an opset is taken once, on a copy of the structure.

    What the passes for a runtime say and do to the result is found for each; no weight is read, but small constants.
    """

    model: Model
    _migrated: dict[tuple[Pass, ...], _Migrated] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._fault: MigrateError | None = None
        try:
            check_original(self.model)
        except MigrateError as error:
            self._fault = error
        self._sorted = self.model.copy()
        if self._fault is None:
            sort_model(self._sorted.proto)
        self._operators = sorted({(node.domain, node.op_type) for node in all_nodes(self.model.proto)})
        self._resizes = any(operator in ("Resize", "Upsample") for _, operator in self._operators)

    def advise(self, target: Target) -> Advice:
        """Return how the model stands with one release of a runtime."""
        if self._fault is not None:
            return Advice(target, Standing.NO, obstacles=(_as_objection(self._fault),), refusal=self._fault)
        with paused_garbage_collection():
            passes = default_pipeline(targets=Targets((target,)), simplify=False).passes
            cut = next((at for at, item in enumerate(passes) if item.for_targets), len(passes))
            objections = self._objections(target, passes[cut:])
            if not objections:
                return Advice(target, Standing.AS_IS, opset=_opset(self.model), ir_version=self._ir)
            return self._after(target, passes[:cut], passes[cut:], objections)

    @property
    def _ir(self) -> int:
        return int(self.model.proto.ir_version)

    def _objections(self, target: Target, fittings: Sequence[Pass]) -> tuple[Objection, ...]:
        found = [item for fitting in fittings for item in fitting.objections(self._sorted)]
        form = target.row.resize_form
        if form != "auto" and self._resizes and (_opset(self.model) or 0) >= 11:
            changed = objections_by_trial(make_pass("resize_form", form=form), self._sorted)
            found += [replace(item, reason=f"{target} takes Resize by {form}") for item in changed[:1]]
        return tuple(found)

    def _after(
        self,
        target: Target,
        way: tuple[Pass, ...],
        fittings: Sequence[Pass],
        objections: tuple[Objection, ...],
    ) -> Advice:
        """Return the advice for a model that the target does not take as it is."""
        migrated = self._way(way)
        error, model, log = migrated.error, migrated.model, migrated.log
        if error is None:
            model, log = model.copy(), ChangeLog(list(log.changes), list(log.notes), dict(log.facts))
            try:
                for item in fittings:
                    model = item.run(model, log)
            except MigrateError as raised:
                error = raised
        if error is not None:
            helps = (error.hint,) if error.hint else ()
            return Advice(
                target, Standing.NO, objections, obstacles=(_as_objection(error),), helps=helps, refusal=error
            )
        wrong = tuple(
            Objection(note.message, nodes=1, wrong=True) for note in log.notes if note.code == _WRONG
        )
        tried = any(note.code == _TRIED for note in log.notes)
        return Advice(
            target,
            Standing.NO if wrong else Standing.UNSURE if tried else Standing.AFTER,
            objections,
            _opset(model),
            int(model.proto.ir_version),
            tuple(Counter(change.operators for change in log.changes).most_common()),
            wrong,
            tuple(note.message for note in log.notes if note.severity == "warning" and note.code != _WRONG),
        )

    def _way(self, passes: tuple[Pass, ...]) -> _Migrated:
        """Return the model after passes, without what has no effect on this model, so that runtimes share the rest.

        What brings it to an opset at all need not look for the nearest one.
        """
        idle = () if self._resizes else ("resize_form", *_OF_PYTORCH)
        if self.model.proto.producer_name != "pytorch":
            idle = (*idle, *_OF_PYTORCH)
        passes = tuple(self._without_bounds(item) for item in passes if item.name not in idle)
        strict = tuple(map(_without_nearest, passes))
        found = self._run(strict)
        return found if found.error is None or strict == passes else self._run(passes)

    def _without_bounds(self, item: Pass) -> Pass:
        """Return a pass without targets that bound the version of no operator of the model, any other as it is."""
        given: Any = item
        targets: Targets | None = getattr(item, "targets", None)
        if targets is None or any(targets.newest_version(*key) for key in self._operators):
            return item
        bare: Pass = replace(given, targets=None)
        return bare

    def _run(self, passes: tuple[Pass, ...]) -> _Migrated:
        """Return the model after passes, from the cache where they were run before."""
        known = self._migrated.get(passes)
        if known is None:
            model, log, error = self.model.copy(), ChangeLog(), None
            try:
                for item in passes:
                    model = item.run(model, log)
            except MigrateError as raised:
                error = raised
            known = self._migrated[passes] = _Migrated(model, log, error)
        return known


def _without_nearest(item: Pass) -> Pass:
    """Return a pass that lowers to the nearest opset as one that refuses what it cannot lower, any other as it is."""
    given: Any = item
    strict: Pass = replace(given, nearest=False) if item.name == "lower_opset" and given.nearest else item
    return strict


def _opset(model: Model) -> int | None:
    return onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version)


def _as_objection(error: MigrateError) -> Objection:
    return Objection(error.reason, error.where, int(error.where is not None))
