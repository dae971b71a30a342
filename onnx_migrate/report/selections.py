"""Declares the JSON form of a report, and of the values of other packages in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import onnx

from onnx_migrate._version import __version__
from onnx_migrate.declared import declared
from onnx_migrate.json_form import SCHEMA_VERSION, Seconds, Version, selects
from onnx_migrate.model.interface import Port
from onnx_migrate.options import Options
from onnx_migrate.report.changed_nodes import node_after, node_before, shown_constants, shown_helpers
from onnx_migrate.report.data import ModelSummary, ReportData
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.feature_values import SECTIONS
from onnx_migrate.report.operator_table import OperatorRow, OperatorStep
from onnx_migrate.report.request import tool_versions
from onnx_migrate.reported import Section
from onnx_migrate.rewrite.change_log import Change, Note
from onnx_migrate.standard.targets import OperatorKnowledge, Target
from onnx_migrate.standard.targets.knowledge import UnknownOperator
from onnx_migrate.verdicts import Comparison, RuntimeProof, Side, SizeCondition, Verdict

__all__ = ["AskedFor", "Tool", "version"]


class Tool(TypedDict):
    """The program that made the report, and the onnx package that it ran with."""

    name: str
    version: str
    onnx: str


class AskedFor(TypedDict):
    """The options of a migration. `options` has those that differ from the defaults, also under
    their former names. `command` is the command line that repeats the migration."""

    targets: tuple[Target, ...]
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    command: str | None


def version(_value: object) -> Version:
    """Return the version of the JSON output."""
    return SCHEMA_VERSION


def _tool(_report: ReportData) -> Tool:
    return Tool(name="onnx-migrate", version=__version__, onnx=onnx.__version__)


def _asked_for(report: ReportData | Failure) -> AskedFor | None:
    request = report.request
    if request is None:
        return None
    targets = tuple(request.targets or ())
    # Readers of older reports know the options by their old names.
    former = {
        name: request.options[option.name]
        for option in declared(Options)
        for name in option.former
        if option.name in request.options
    }
    return AskedFor(
        targets=targets,
        options={**request.options, **former},
        versions=tool_versions(),
        command=report.command,
    )


def _imports(summary: ModelSummary) -> dict[str, int]:
    return dict(summary.opset_imports)


def _seconds_of_proof(proof: RuntimeProof) -> Seconds:
    return proof.seconds


def _key(section: Section) -> str:
    """Return the entry that prints the value of a feature."""
    return f"{section.name}={section.name}.{section.json}" if section.json else section.name


selects(
    ReportData,
    f"""schema_version tool model request outcome before after operators file_bytes passes changes notes verification dynamic
    proved_in header_only seconds operators_known {" ".join(map(_key, SECTIONS))}""",
    schema_version=version, tool=_tool, request=_asked_for,
)  # fmt: skip
selects(
    Failure,
    """schema_version model outcome
    error=.{code kind reason hint hint_tried scope=where.scope node=where.node operator=where.operator
    from_version=where.from_version to_version=where.to_version} request before=done.before changes=done.changes
    notes=done.notes seconds=done.seconds blocked=done.node verification first_difference proved_in""",
    schema_version=version, request=_asked_for,
)  # fmt: skip
selects(
    ModelSummary,
    "opset ir_version opset_imports nodes weight_bytes parameters inputs outputs",
    opset_imports=_imports,
)
selects(Port, "name type=kind shape")
selects(OperatorRow, "operator before after steps")
selects(OperatorStep, "pass=pass_name step difference nodes")
selects(
    Change,
    """pass=pass_name scope=where.scope node=where.node before after kept_attributes helpers=emitted
    helper_nodes{operator domain version inputs outputs attributes} constants reason exactness""",
    before=node_before, after=node_after, helper_nodes=shown_helpers, constants=shown_constants,
)  # fmt: skip
selects(Note, "step=pass_name code message subject severity")
selects(
    Target,
    """request name title=table.title release? opset oldest_opset=oldest ir_version measured later_than_table=later
    release_assumed=assumed source=row.source table=table.file table_sha256=table.digest""",
)
selects(OperatorKnowledge, "runtime state nodes not_known=unknown")
selects(UnknownOperator, "operator nodes")
selects(Comparison, "* identical")
selects(SizeCondition, "symbol text note")
selects(Verdict, "* grade")
selects(
    Side,
    """failed reason right largest_absolute=worst.largest_absolute largest_relative=worst.largest_relative
    allowed=worst.allowed comparisons{*} text""",
)
selects(
    RuntimeProof,
    "asked runtime outcome passed result original text notes seconds",
    seconds=_seconds_of_proof,
)
