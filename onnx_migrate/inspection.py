"""Describes a model before its migration: its contents, the expected changes, and the opsets it can reach."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

import onnx

from onnx_migrate import files
from onnx_migrate.advice import advice_of, advice_text
from onnx_migrate.compatibility import (
    Compatibility,
    CompatibilityChecker,
    RuntimeCompatibility,
    Support,
)
from onnx_migrate.core_options import Opset
from onnx_migrate.engine.incompatibility import Incompatibility
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.reachability import (
    Reachability,
    ReachableDomain,
    Refusal,
    find_reachable_domains,
    find_reachable_opsets,
)
from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.engine.steps.step_modules import import_steps
from onnx_migrate.errors import LoadError, MigrateError, UsageError, Where
from onnx_migrate.facts.onnx_inference import remembering
from onnx_migrate.files.reading import from_file
from onnx_migrate.json_form import json_of, selects
from onnx_migrate.model.graphs import Body, bodies, called, function_key, node_label, stored_weights
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import MEMORY, Weights
from onnx_migrate.options import Options
from onnx_migrate.pipelines import pipeline_of
from onnx_migrate.remedies import remedies
from onnx_migrate.report import ModelSummary, Report
from onnx_migrate.report.selections import version
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.operator_counts import PassEffect
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import Signature, is_onnx, signature_at
from onnx_migrate.standard.targets import Target, Targets, resolve, tables
from onnx_migrate.tried_advice import tried_advice
from onnx_migrate.url import absolute

__all__ = [
    "ALL",
    "ForeignOperator",
    "Inspection",
    "LocatedNode",
    "Operator",
    "ReleaseSupport",
    "inspect",
    "load_structure",
    "located_nodes",
]

ALL = "all"
"""The value of `runtime` that stands for every known runtime."""

_MISSING_DATA = ("missing-data", "outside-folder", "bad-external-data")


@dataclass(frozen=True)
class Operator:
    """An operator, its version at the opset that its body imports, and the number of its nodes in all bodies.

    `version` is None if the installed onnx has no schema for it, as for a custom domain or a function.
    """

    domain: str
    name: str
    version: int | None
    count: int


@dataclass(frozen=True)
class ForeignOperator:
    """An operator of another domain, the number of its nodes, and whether `--to-onnx-ops` replaces it by ai.onnx operators.

    `direct` is the lowest opset at which the replacement has its best form, None if every opset has it. `reason` explains why
    there is no replacement, and `hint` suggests a solution.
    """

    domain: str
    name: str
    count: int
    written: bool
    direct: int | None = None
    reason: str = ""
    hint: str = ""

    @classmethod
    def of(cls, operator: Operator) -> ForeignOperator:
        """Return what is known of an operator."""
        decomposition = decomposition_of(operator.domain, operator.name)
        key = operator.domain, operator.name, operator.count
        if decomposition is None:
            return cls(*key, False, reason="no form of it is known")
        # The reason is that of the registered refusal.
        if decomposition.refusal:
            return cls(
                *key,
                False,
                reason=decomposition.refusal,
                hint=advice_text(advice_of(decomposition.hint, tried=False)),
            )
        return cls(*key, True, decomposition.direct or None)


@dataclass(frozen=True)
class Inspection:
    """The contents of a model, and the effects of migrating it.

    `target` is the opset that the migration would reach, or the requested one. `plan` is the report of that migration. If it is
    None, `refusal` is the error of the migration. The plan includes neither onnxsim nor verification, and either may still fail
    or change the model. `weights` counts the initializers and the tensors of Constants, in all bodies. `weight_bytes` is
    computed from types and dims. `problems` are messages on missing external data. `advice` covers the requested runtimes,
    `outlooks` all known ones. `domains` are the custom domains that a plug-in knows. `foreign` are the operators outside the
    standard's domains, without the model's own functions.
    """

    model: str
    producer: str
    opset: int | None
    summary: ModelSummary
    operators: tuple[Operator, ...]
    functions: tuple[str, ...]
    weights: int
    weight_bytes: int
    external_files: tuple[str, ...]
    problems: tuple[str, ...]
    target: int | str
    plan: Report | None
    refusal: MigrateError | None
    reachability: Reachability
    advice: tuple[Compatibility, ...] = ()
    outlooks: tuple[RuntimeCompatibility, ...] = ()
    domains: tuple[ReachableDomain, ...] = ()
    foreign: tuple[ForeignOperator, ...] = ()

    @property
    def nodes(self) -> int:
        """Return the number of nodes in all bodies."""
        return sum(operator.count for operator in self.operators)


@remembering()
def inspect(
    source: files.Source,
    *,
    opset: Opset | None = None,
    runtime: str | Sequence[str] | Targets | None = None,
    adapters: str | Sequence[str] = (),
) -> Inspection:
    """Return a description of a model and of its migration; reads no weights and writes nothing.

    `opset` is "17+" by default and may name custom domains, like the `opset` of `migrate`. `adapters` are modules with steps
    for these domains, in addition to installed plug-ins. `runtime` is one runtime, for example "onnxruntime==1.14", or several.
    Then the target is the newest opset that all of them support, unless `opset` names one. `advice` says how well each of them
    supports the model. With "all", `outlooks` says so of every known runtime, each at its own opset.

    Raises LoadError for an unreadable model, and UsageError for invalid `opset`, `runtime` and `adapters`.
    """
    import_steps([adapters] if isinstance(adapters, str) else adapters)
    # A list that holds only "all" means every runtime, too.
    everywhere = runtime == ALL or (isinstance(runtime, (tuple, list)) and list(runtime) == [ALL])
    targets = None if runtime is None or everywhere else resolve(runtime)
    # The default keeps an opset above 17, or the newest one that the runtime supports.
    if opset is None:
        target_opset: Opset = "17+" if targets is None else targets.opset or f"{targets.oldest or 1}+"
    else:
        target_opset = opset
    model, problems = load_structure(source)
    proto = model.proto
    counts = Counter(map(_operator, located_nodes(proto)))
    operators = tuple(Operator(*key, count) for key, count in sorted(counts.items(), key=_by_name))
    own = {function.domain for function in proto.functions}
    stored = list(stored_weights(bodies(proto)))
    summary = ModelSummary.of(proto)
    reachability = find_reachable_opsets(model)
    options = Options.of_installed(opset=opset if targets else target_opset, runtime=targets, simplify=False)
    # Simplification takes long, and the description does not need it.
    plan = _plan(model, summary, pipeline_of(options))
    if isinstance(plan, MigrateError):
        plan.advise(tried_advice(plan, model, options))
    planned = plan if isinstance(plan, Report) else None
    return Inspection(
        model=model.name,
        producer=" ".join(filter(None, map(_text, (proto.producer_name, proto.producer_version)))),
        opset=summary.opset,
        summary=summary,
        operators=operators,
        foreign=tuple(
            ForeignOperator.of(operator) for operator in operators if _is_foreign(operator.domain, own)
        ),
        functions=tuple(f"{function.domain}:{function.name}" for function in proto.functions),
        weights=len(stored),
        weight_bytes=sum(
            byte_size(tensor.dims, tensor.data_type) or 0 for parts in stored for tensor in parts
        ),
        external_files=_external_files(model),
        problems=problems,
        target=(planned and planned.after.opset)
        or (target_opset if isinstance(target_opset, (int, str)) else str(dict(target_opset))),
        plan=planned,
        refusal=plan if isinstance(plan, MigrateError) else None,
        reachability=reachability,
        domains=find_reachable_domains(
            model, lambda opsets: pipeline_of(Options.of_installed(opset=opsets, simplify=False))
        ),
        **_advice(model, targets, None if everywhere else opset, everywhere=everywhere),
    )


def _plan(model: Model, before: ModelSummary, pipeline: Pipeline) -> Report | MigrateError:
    """Return the report of a migration, or the error that it ends with. Raises UsageError."""
    log = ChangeLog()
    try:
        result = pipeline.run(model, log).model
    except UsageError:
        raise
    except MigrateError as error:
        return error
    return Report(
        model.name,
        before,
        ModelSummary.of(result.proto),
        pipeline.names,
        tuple(log.changes),
        tuple(log.notes),
        effects=tuple(log.facts_of(PassEffect)),
        same=not log.changes and files.equal(model, result),
    )


def _advice(
    model: Model, targets: Targets | None, opset: Opset | None, *, everywhere: bool
) -> dict[str, Any]:
    if targets is None and not everywhere:
        return {}
    advisor = CompatibilityChecker(model, opset)
    if everywhere:
        return {"outlooks": tuple(map(advisor.outlook, tables()))}
    return {"advice": tuple(_with_remedies(advisor, target) for target in targets or ())}


def _with_remedies(advisor: CompatibilityChecker, target: Target) -> Compatibility:
    """Return whether a release supports a model, with solutions if the answer is no."""
    advice = advisor.advise(target)
    # Only a runtime that does not support the model needs a solution.
    if advice.standing.rank >= Support.NOT_KNOWN.rank:
        return advice
    targets = Targets((target,))
    helps = advice.helps
    if advice.refusal is not None:
        options = Options.of_installed(opset=advisor.opset, runtime=targets, simplify=False)
        tried = tried_advice(advice.refusal, advisor.model, options)
        own = advice_text(piece for piece in tried if not piece.fixes_dims)  # which the remedies try
        helps = (own,) if own else ()
    return replace(advice, helps=(*helps, *remedies(advisor, targets)))


def load_structure(source: files.Source) -> tuple[Model, tuple[str, ...]]:
    """Return a model without its weights, and messages on missing external data, which is no error here."""
    if isinstance(source, (str, os.PathLike)):
        # The file is read twice if its data is missing.
        source = files.ensure_local(source)
    try:
        return files.load(source), ()
    except LoadError as error:
        # Other errors leave no structure to describe.
        if error.code not in _MISSING_DATA or not isinstance(source, (str, os.PathLike)):
            raise
        path = Path(absolute(source))
        weights = Weights(path.parent, source=path, may_be_missing=True)
        model = Model(from_file(path, str(source), weights), weights, str(source), keepalive=source)
        return model, (error.with_hint,)


@dataclass(frozen=True)
class LocatedNode:
    """A node, and the body that it is in, by its path; `opset` is the version of the node's domain that the body imports.

    `is_call` is whether it calls a local function.
    """

    node: onnx.NodeProto
    body: Body
    path: str
    opset: int
    is_call: bool

    @property
    def form(self) -> Signature | None:
        """The signature of its operator, None if the installed onnx has none, and for a call of a local function."""
        return None if self.is_call else signature_at(self.node.domain, self.node.op_type, self.opset)

    @property
    def where(self) -> Where:
        """Its place, with the version of its operator, or the opset if the version is unknown."""
        form = self.form
        version = form.since_version if form else self.opset or None
        return Where(self.path, node_label(self.node), self.node.op_type, version)


def located_nodes(proto: onnx.ModelProto) -> Iterator[LocatedNode]:
    """Yield all nodes of a model, in all bodies."""
    functions = {function_key(function) for function in proto.functions}
    for located in bodies(proto):
        imports = located.owner.opset_import
        opsets = {
            "" if is_onnx(imported_domain.domain) else imported_domain.domain: imported_domain.version
            for imported_domain in imports
        }
        # A model of IR version 1 or 2 has no imports.
        opsets.setdefault("", onnx_opset(imports, ir_version=proto.ir_version) or 0)
        for node in located.body.node:
            opset = opsets.get("" if is_onnx(node.domain) else node.domain, 0)
            yield LocatedNode(node, located.body, located.path, opset, called(node) in functions)


def _operator(item: LocatedNode) -> tuple[str, str, int | None]:
    form, node = item.form, item.node
    return "" if is_onnx(node.domain) else node.domain, node.op_type, form.since_version if form else None


def _is_foreign(domain: str, own: set[str]) -> bool:
    return bool(domain) and not domain.startswith(("ai.onnx.ml", "ai.onnx.preview")) and domain not in own


def _text(value: str | bytes) -> str:
    """Return a text; protobuf gives it as bytes if it is not UTF-8."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _by_name(entry: tuple[tuple[str, str, int | None], int]) -> tuple[str, str, int]:
    (domain, name, version), _ = entry
    return domain, name, version or 0


def _external_files(model: Model) -> tuple[str, ...]:
    own = model.weights.source.name if model.weights.source else ""
    names = {
        entry.value
        for tensor in tensors(model.proto)
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return tuple(sorted(name for name in names if name != own and not name.startswith(MEMORY)))


# How well the runtime supports the model from this release on; "from" is a keyword of Python.
ReleaseSupport = TypedDict("ReleaseSupport", {"from": str, "standing": str})


def _releases(outlook: RuntimeCompatibility) -> list[ReleaseSupport]:
    return [{"from": name, "standing": standing.value} for name, standing in outlook.releases]


def _imports(inspection: Inspection) -> dict[str, int]:
    return dict(inspection.summary.opset_imports)


def _advised(inspection: Inspection) -> list[Any]:
    return [json_of(entry) for entry in inspection.advice or inspection.outlooks]


_ERROR = "code=error.code reason=error.reason hint=error.hint hint_tried=error.hint_tried where=error.where"

selects(
    Inspection,
    """schema_version model producer ir_version=summary.ir_version opset opset_imports nodes operators functions
    inputs=summary.inputs outputs=summary.outputs weights weight_bytes external_files problems target changes=plan.changes
    notes=plan.notes refusal{code reason hint hint_tried where} reachable=reachability.opsets refusals=reachability.refusals
    domains foreign advice""",
    schema_version=version, opset_imports=_imports, advice=_advised,
)  # fmt: skip
selects(ForeignOperator, "domain name count written direct reason? hint?")
selects(Refusal, f"{_ERROR} opsets")
selects(ReachableDomain, "domain opset reachable=reachability.opsets refusals=reachability.refusals")
selects(Incompatibility, "reason scope=where.scope node=where.node operator=where.operator nodes wrong")
selects(
    Compatibility,
    "runtime=target standing objections opset ir_version changes obstacles code=refusal.code warnings helps"
    " basis operators_known=operators",
)
selects(
    RuntimeCompatibility,
    """runtime=advice.target standing=advice.standing objections=advice.objections opset=advice.opset
    ir_version=advice.ir_version changes=advice.changes obstacles=advice.obstacles code=advice.refusal.code
    warnings=advice.warnings helps=advice.helps basis=advice.basis operators_known=advice.operators releases""",
    releases=_releases,
)  # fmt: skip
