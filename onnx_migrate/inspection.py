"""Describes a model before it is migrated: its contents, what would change, and which opsets it can reach."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx

from onnx_migrate import files
from onnx_migrate.advice import Advice, Advisor, Outlook, outlooks, with_nearest_release
from onnx_migrate.analysis.inference.given_up import remembering
from onnx_migrate.engine.pipeline import default_pipeline
from onnx_migrate.engine.pipeline_options import Opset
from onnx_migrate.engine.reachability import (
    Reachability,
    ReachableDomain,
    Refusal,
    find_reachable_domains,
    find_reachable_opsets,
)
from onnx_migrate.engine.steps.step_table import import_steps
from onnx_migrate.errors import LoadError, MigrateError, UsageError
from onnx_migrate.files.reading import from_file
from onnx_migrate.model.graphs import bodies, called, function_key, stored_weights
from onnx_migrate.model.interface import Port
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import byte_size, tensors
from onnx_migrate.model.weights import MEMORY, Weights
from onnx_migrate.report import ModelSummary, Report
from onnx_migrate.report.report import SCHEMA_VERSION
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.operator_counts import PassEffect
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.schema import signature_at
from onnx_migrate.spec.targets import Targets, resolve, tables

__all__ = ["ALL", "Inspection", "Operator", "inspect", "load_structure"]

ALL = "all"
"""What stands for every runtime that is known."""

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
class Inspection:
    """What a model contains, and what migrating it would do.

    `target` is the opset that would be reached, or the requested one. `plan` is the report of that migration, or
    None, and then `refusal` is the error it would end with. The plan is without onnxsim and verification, either of
    which may still fail or change the model. `weights` are the initializers and the tensors of Constants, in all
    bodies. `weight_bytes` is computed from types and dims. `problems` are messages on external data that is missing.
    `advice` is for each runtime that was asked for, `outlooks` for all. `domains` are the custom domains that a plug-in knows.
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
    advice: tuple[Advice, ...] = ()
    outlooks: tuple[Outlook, ...] = ()
    domains: tuple[ReachableDomain, ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes there are, in all bodies."""
        return sum(operator.count for operator in self.operators)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        ports = {"inputs": _ports(self.summary.inputs), "outputs": _ports(self.summary.outputs)}
        plan = self.plan.as_dict() if self.plan else None
        return {
            "schema_version": SCHEMA_VERSION,
            "model": self.model,
            "producer": self.producer,
            "ir_version": self.summary.ir_version,
            "opset": self.opset,
            "opset_imports": dict(self.summary.opset_imports),
            "nodes": self.nodes,
            "operators": [asdict(operator) for operator in self.operators],
            "functions": list(self.functions),
            **ports,
            "weights": self.weights,
            "weight_bytes": self.weight_bytes,
            "external_files": list(self.external_files),
            "problems": list(self.problems),
            "target": self.target,
            "changes": plan["changes"] if plan else None,
            "notes": plan["notes"] if plan else None,
            "refusal": _refusal(self.refusal) if self.refusal else None,
            "reachable": list(self.reachability.opsets),
            "refusals": _refusals(self.reachability.refusals),
            "domains": [
                {
                    "domain": item.domain,
                    "opset": item.opset,
                    "reachable": list(item.reachability.opsets),
                    "refusals": _refusals(item.reachability.refusals),
                }
                for item in self.domains
            ],
            "advice": [item.as_dict() for item in self.advice or self.outlooks],
        }


@remembering()
def inspect(
    source: files.Source,
    *,
    opset: Opset = "17+",
    runtime: str | Sequence[str] | Targets | None = None,
    adapters: str | Sequence[str] = (),
) -> Inspection:
    """Return a description of a model and of its migration; reads no weights and writes nothing.

    `opset` may name custom domains, as that of `migrate`; `adapters` are modules with steps for them, beside installed plug-ins.
    With a `runtime`, as in "onnxruntime==1.14", or several, the target is the newest opset that all of them take, `opset` has
    no effect, and `advice` says how the model stands with each. With "all", `outlooks` says so of every runtime that is known.
    Raises LoadError if the model cannot be read, and UsageError for invalid `opset`, `runtime` and `adapters`.
    """
    import_steps([adapters] if isinstance(adapters, str) else adapters)
    everywhere = runtime == ALL or (isinstance(runtime, (tuple, list)) and list(runtime) == [ALL])
    targets = None if runtime is None or everywhere else resolve(runtime)
    asked: Opset = opset if targets is None else targets.opset or f"{targets.oldest or 1}+"
    model, problems = load_structure(source)
    proto = model.proto
    found = Counter(_operators(proto))
    stored = list(stored_weights(proto))
    summary = ModelSummary.of(proto)
    reachability = find_reachable_opsets(model)
    log, refusal, plan = ChangeLog(), None, None
    pipeline = default_pipeline(opset=None if targets else asked, targets=targets, simplify=False)
    try:
        result = pipeline.run(model, log).model
    except UsageError:
        raise
    except MigrateError as error:
        refusal = error
    else:
        plan = Report(
            model.name,
            summary,
            ModelSummary.of(result.proto),
            pipeline.names,
            tuple(log.changes),
            tuple(log.notes),
            effects=tuple(log.facts_of(PassEffect)),
        )
    return Inspection(
        model=model.name,
        producer=" ".join(filter(None, map(_text, (proto.producer_name, proto.producer_version)))),
        opset=summary.opset,
        summary=summary,
        operators=tuple(Operator(*key, count) for key, count in sorted(found.items(), key=_by_name)),
        functions=tuple(f"{function.domain}:{function.name}" for function in proto.functions),
        weights=len(stored),
        weight_bytes=sum(
            byte_size(tensor.dims, tensor.data_type) or 0 for parts in stored for tensor in parts
        ),
        external_files=_external_files(model),
        problems=problems,
        target=(plan and plan.after.opset) or (asked if isinstance(asked, (int, str)) else str(dict(asked))),
        plan=plan,
        refusal=refusal,
        reachability=reachability,
        domains=find_reachable_domains(model),
        **_advice(model, targets, everywhere=everywhere),
    )


def _advice(model: Model, targets: Targets | None, *, everywhere: bool) -> dict[str, Any]:
    if targets is None and not everywhere:
        return {}
    advisor = Advisor(model)
    if everywhere:
        return {"outlooks": outlooks(advisor, tables())}
    return {"advice": tuple(with_nearest_release(advisor, advisor.advise(item)) for item in targets or ())}


def load_structure(source: files.Source) -> tuple[Model, tuple[str, ...]]:
    """Return a model without its weights, also if external data is missing, and messages on what is missing."""
    if isinstance(source, (str, os.PathLike)):
        source = files.ensure_local(source)
    try:
        return files.load(source), ()
    except LoadError as error:
        if error.code not in _MISSING_DATA or not isinstance(source, (str, os.PathLike)):
            raise
        path = Path(os.path.abspath(source))
        weights = Weights(path.parent, source=path, may_be_missing=True)
        model = Model(from_file(path, str(source), weights), weights, str(source), keepalive=source)
        return model, (str(error),)


def _operators(proto: onnx.ModelProto) -> Iterator[tuple[str, str, int | None]]:
    functions = {function_key(function) for function in proto.functions}
    for located in bodies(proto):
        imports = located.owner.opset_import
        opsets = {"" if item.domain == "ai.onnx" else item.domain: item.version for item in imports}
        opsets.setdefault("", onnx_opset(imports, ir_version=proto.ir_version) or 0)
        for node in located.body.node:
            domain = "" if node.domain == "ai.onnx" else node.domain
            opset = opsets.get(domain, 0)
            form = None if called(node) in functions else signature_at(domain, node.op_type, opset)
            yield domain, node.op_type, form.since_version if form else None


def _text(value: str | bytes) -> str:
    """Return a text, which protobuf gives as bytes where it is not UTF-8."""
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


def _ports(ports: tuple[Port, ...]) -> list[dict[str, Any]]:
    return [
        {"name": port.name, "type": port.kind, "shape": None if port.shape is None else list(port.shape)}
        for port in ports
    ]


def _refusals(refusals: tuple[Refusal, ...]) -> list[dict[str, Any]]:
    return [{**_refusal(item.error), "opsets": list(item.opsets)} for item in refusals]


def _refusal(error: MigrateError) -> dict[str, Any]:
    where = asdict(error.where) if error.where else None
    return {"code": error.code, "reason": error.reason, "hint": error.hint, "where": where}
