"""Says for each runtime whether it runs a model unchanged, after a migration, or not at all, and for which reasons.

No runtime is started. The tables of the runtimes list the operators that each release supports. Passes convert copies of the
model's structure to the opsets of these tables. Releases with the same requirements share one conversion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import Any, NamedTuple

from onnx_migrate.advice import advice_text
from onnx_migrate.cached import cached_property
from onnx_migrate.core_options import Opset
from onnx_migrate.engine.fitting_passes import FittingPass, PredictablePass
from onnx_migrate.engine.incompatibility import Incompatibility
from onnx_migrate.engine.opset_bounds import OpsetBounds
from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.engine.pipeline_run import paused_garbage_collection
from onnx_migrate.engine.validity import accepted
from onnx_migrate.errors import MigrateError
from onnx_migrate.facts.node_form import node_forms
from onnx_migrate.model.graphs import all_nodes, operators_of
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.options import Options
from onnx_migrate.pipelines import pipeline_of
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.operator_counts import nodes_by_operator
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.targets import (
    Knowledge,
    NodeForm,
    OperatorKnowledge,
    Table,
    Target,
    Targets,
    milestones,
    operator_knowledge,
)

__all__ = [
    "Compatibility",
    "CompatibilityChecker",
    "RuntimeCompatibility",
    "Support",
]


class Support(str, Enum):
    """Whether a runtime runs a model, as far as we know."""

    AS_IS = "as it is"
    AFTER = "after migration"
    NOT_KNOWN = "opset fits, operators not known"
    """We know no objection to the model, or to its migrated form, but not whether the runtime has some operators."""
    UNSURE = "perhaps"
    """The runtime may run the model.

    Either the runtime computes a node wrongly for some sizes of dynamic dims. Or it tries models with opsets newer than those
    it is known to run, and no conversion to an older opset exists.
    """
    NO = "no"

    @property
    def rank(self) -> int:
        """A number that is higher for better support."""
        return len(Support) - 1 - list(Support).index(self)


class ChangedOperators(NamedTuple):
    """How many nodes of an operator change, as in "Clip-6 → Clip-13"."""

    operators: str
    nodes: int


@dataclass(frozen=True)
class Compatibility:
    """Whether a release of a runtime runs a model, and the reasons if it does not.

    `objections` are the reasons why the runtime rejects the unchanged model. If a migration can help, `opset` and `ir_version`
    are those of its result. `changes` are then the operators that change, as in "Clip-6 → Clip-13", with the number of nodes.
    If a migration cannot help, `obstacles` are the reasons: errors of the migration, or nodes that the runtime computes wrongly
    in the result too. `warnings` apply to the result, and `helps` suggest a solution if the answer is no. `operators` says how
    we know that the runtime supports the operators of the model or the result; it is None if the answer is no.
    """

    target: Target
    standing: Support
    objections: tuple[Incompatibility, ...] = ()
    opset: int | None = None
    ir_version: int | None = None
    changes: tuple[ChangedOperators, ...] = ()
    obstacles: tuple[Incompatibility, ...] = ()
    warnings: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    refusal: MigrateError | None = None
    operators: OperatorKnowledge | None = None

    @property
    def basis(self) -> str:
        """The source of our knowledge: "measured" or "read"."""
        if self.operators is not None and not self.operators.unknown:
            state = self.operators.state
        else:
            state = Knowledge.MEASURED if self.target.measured else Knowledge.READ
        return str(state.value)


@dataclass(frozen=True)
class RuntimeCompatibility:
    """Compatibility with the newest known release of a runtime, and the support in each.

    `releases` are those at which the runtime's table changes, oldest first; the support in one holds until the next.
    """

    advice: Compatibility
    releases: tuple[tuple[str, Support], ...]

    def since(self, least: Support) -> str:
        """Return the releases that support the model at least as well as `least`, as in "8.4 to 9.0, 10.0 and on"; "" for
        none.
        """
        spans = []
        for good, group in groupby(self.releases, lambda entry: entry[1].rank >= least.rank):
            first, *others = (name for name, _ in group)
            final = others[-1] if others else first
            if good and final == self.releases[-1][0]:
                spans.append(f"{first} and on")
            elif good:
                spans.append(first if first == final else f"{first} to {final}")
        return "yes" if spans and len(self.releases) == 1 else ", ".join(spans)


_WRONG = "runtime-fault"
"""The code of notes on nodes that a runtime computes wrongly."""
_SAID = (_WRONG, "operators-not-known")
"""The codes of warnings that the fields of `Compatibility` say."""
_DOUBTS = ("runtime-opset", "possible-runtime-fault")
"""Codes of two notes: the model's opset is newer than the runtime is known to run; the runtime may compute nodes wrongly."""


@dataclass(frozen=True)
class _Migrated:
    """A model after the passes that do not depend on the runtime alone, with their log; or the error that ended them."""

    model: Model
    log: ChangeLog
    error: MigrateError | None = None


@dataclass
class CompatibilityChecker:
    """Gives advice on one model. It converts a copy of the structure once for each distinct sequence of passes.

    For each runtime it collects the notes and changes of the runtime's passes. It reads no weights except small constants.
    """

    model: Model
    opset: Opset | None = None
    """The opset to reach; None selects the opset that suits a runtime best."""
    _migrated: dict[tuple[Pass, ...], _Migrated] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._fault: MigrateError | None = None
        try:
            self.model = accepted(self.model)
        except MigrateError as error:
            self._fault = error
        self._sorted = self.model.copy()
        if self._fault is None:
            sort_model(self._sorted.proto)
        self._operators = operators_of(all_nodes(self.model.proto))
        self._names = {operator for _, operator in self._operators}

    def advise(self, target: Target) -> Compatibility:
        """Return whether one release of a runtime supports the model."""
        if self._fault is not None:
            return Compatibility(
                target, Support.NO, obstacles=(Incompatibility.of(self._fault),), refusal=self._fault
            )
        with paused_garbage_collection():
            # The advice needs no simplified model, and onnxsim takes long.
            options = Options.of_installed(opset=self.opset, runtime=Targets((target,)), simplify=False)
            passes = pipeline_of(options).passes
            cut = next(
                # The passes before the first fitting one do not depend on the runtime's operators.
                (at for at, pipeline_pass in enumerate(passes) if isinstance(pipeline_pass, FittingPass)),
                len(passes),
            )
            objections = self._objections(target, passes[:cut], passes[cut:])
            if not objections:
                knowledge = self._known(target, self.model)
                standing = Support.NOT_KNOWN if knowledge.unknown else Support.AS_IS
                return Compatibility(
                    target,
                    standing,
                    opset=_opset(self.model),
                    ir_version=self._ir,
                    warnings=(f"{target}: {target.row.note}",) if target.row.note else (),
                    operators=knowledge,
                )
            return self._after(target, passes[:cut], passes[cut:], objections)

    def outlook(self, table: Table) -> RuntimeCompatibility:
        """Return whether each release of a runtime at which its table changes supports the model."""
        advices = [self.advise(target) for target in milestones(table)]
        return RuntimeCompatibility(
            advices[-1], tuple((advice.target.release, advice.standing) for advice in advices)
        )

    def _known(self, target: Target, model: Model) -> OperatorKnowledge:
        return operator_knowledge(target, nodes_by_operator(model.proto), lambda: self._forms_of(model))

    def _forms_of(self, model: Model) -> tuple[NodeForm, ...]:
        return self._own_forms if model is self.model else tuple(node_forms(model))

    @cached_property
    def _own_forms(self) -> tuple[NodeForm, ...]:
        """The forms of the nodes of the unchanged model, computed once."""
        return tuple(node_forms(self.model))

    @property
    def _ir(self) -> int:
        return int(self.model.proto.ir_version)

    def _objections(
        self, target: Target, way: Sequence[Pass], fittings: Sequence[Pass]
    ) -> tuple[Incompatibility, ...]:
        objections = [
            reason
            for pipeline_pass in fittings
            if isinstance(pipeline_pass, FittingPass)
            for reason in pipeline_pass.objections(self._sorted)
        ]
        for pipeline_pass in filter(self._may_change, way):
            wishes = (
                # A preference is no objection, but a migration changes the node.
                pipeline_pass.preferences(self._sorted) if isinstance(pipeline_pass, PredictablePass) else ()
            )
            objections += [replace(wish, reason=f"{target} {wish.reason}") for wish in wishes]
        return tuple(objections)

    def _may_change(self, item: Pass) -> bool:
        """Return whether a pass may change or note anything in the model, by what it declares."""
        if not isinstance(item, PredictablePass):
            return True
        is_producer = item.producer in ("", self.model.proto.producer_name)
        return is_producer and (not item.operators or not item.operators.isdisjoint(self._names))

    def _after(
        self,
        target: Target,
        way: tuple[Pass, ...],
        fittings: Sequence[Pass],
        objections: tuple[Incompatibility, ...],
    ) -> Compatibility:
        """Return the advice for a model that the target does not support unchanged."""
        migrated = self._way(way)
        # After a failed migration, the passes for the runtime do not run.
        if migrated.error is None:
            # The changes so far are shared with other runtimes, so this log is a copy.
            own = migrated.log
            log = ChangeLog(list(own.changes), list(own.notes), dict(own.facts))
            migrated = _migrated(migrated.model.copy(), log, fittings)
        model, log, error = migrated.model, migrated.log, migrated.error
        if error is not None:
            helps = tuple(filter(None, [_help_of(error)]))
            return Compatibility(
                target,
                Support.NO,
                objections,
                obstacles=(Incompatibility.of(error),),
                helps=helps,
                refusal=error,
            )
        wrong = tuple(
            # Nodes that the runtime computes wrongly stay in the model.
            Incompatibility(note.message, nodes=1, wrong=True)
            for note in log.notes
            if note.code == _WRONG
        )
        is_in_doubt = any(note.code in _DOUBTS for note in log.notes)
        knowledge = self._known(target, model)
        standing = Support.NOT_KNOWN if knowledge.unknown else Support.AFTER
        return Compatibility(
            target,
            Support.NO if wrong else Support.UNSURE if is_in_doubt else standing,
            objections,
            _opset(model),
            int(model.proto.ir_version),
            tuple(
                ChangedOperators(*operator_change)
                for operator_change in Counter(change.operators for change in log.changes).most_common()
            ),
            wrong,
            tuple(
                note.message
                for note in log.notes
                if note.code == "release-note" or (note.severity == "warning" and note.code not in _SAID)
            ),
            operators=knowledge,
        )

    def _way(self, passes: tuple[Pass, ...]) -> _Migrated:
        """Return the model after passes, without passes that have no effect on this model, so that runtimes share the rest.

        The strict passes come first. If they fail, the other passes, which accept the nearest reachable opset, run instead.
        """
        passes = tuple(
            self._without_bounds(pipeline_pass) for pipeline_pass in passes if self._may_change(pipeline_pass)
        )
        strict = tuple(map(_strict, passes))
        migrated = self._run(strict)
        return migrated if migrated.error is None or strict == passes else self._run(passes)

    def _without_bounds(self, item: Pass) -> Pass:
        """Return a pass without its bounds on the opset if they bind no operator of the model, any other pass unchanged."""
        any_pass: Any = item
        bounds: OpsetBounds | None = getattr(item, "bounds", None)
        if bounds is None or bounds.may_bind(self._operators):
            return item
        bare: Pass = replace(any_pass, bounds=None)
        return bare

    def _run(self, passes: tuple[Pass, ...]) -> _Migrated:
        """Return the model after passes, from the cache if these passes ran before."""
        cached = self._migrated.get(passes)
        if cached is None:
            cached = self._migrated[passes] = _migrated(self.model.copy(), ChangeLog(), passes)
        return cached


def _strict(item: Pass) -> Pass:
    """Return a pass that refuses an opset that it cannot reach, instead of reaching the nearest one."""
    any_pass: Any = item
    strict: Pass = replace(any_pass, nearest=False) if getattr(item, "nearest", False) else item
    return strict


def _migrated(model: Model, log: ChangeLog, passes: Iterable[Pass]) -> _Migrated:
    """Run passes on a model, up to the first pass that raises an error, and return the resulting model."""
    try:
        for pipeline_pass in passes:
            model = pipeline_pass.run(model, log)
    except MigrateError as error:
        return _Migrated(model, log, error)
    return _Migrated(model, log)


def _opset(model: Model) -> int | None:
    return onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version)


def _help_of(error: MigrateError) -> str:
    """Return the advice on a refusal; `remedies` tries fixed dims and says whether they help."""
    return advice_text(piece for piece in error.advice if not piece.fixes_dims)
