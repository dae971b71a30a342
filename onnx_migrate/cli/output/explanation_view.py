"""Prints explanations, and the answer to an unknown text."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from onnx_migrate.messages import printable

if TYPE_CHECKING:
    from onnx_migrate.explanation import Answer, Explanation, Group, ModelVerdict, Unknown
    from onnx_migrate.explanation.asked import AskedStep
    from onnx_migrate.explanation.operators import OperatorSteps, StepLine
    from onnx_migrate.explanation.runtime_rows import RuntimeRelease
    from onnx_migrate.standard.targets import Table

__all__ = ["answer_lines", "overview_lines", "unknown_lines", "verdict_lines"]

_WIDTH = 100
_MOST_ERRORS = 5
_MOST_NODES = 10


def answer_lines(answer: Answer) -> Iterator[str]:
    """Yield the lines of an answer."""
    from onnx_migrate.report.codes import CODES

    parts: list[list[str]] = [[code, "", _wrapped(CODES[code])] for code in answer.codes]
    parts += [_step_lines(step) for step in answer.steps]
    if answer.operator:
        parts.append(list(_operator(answer.operator)))
    if answer.runtime:
        parts.append(list(_runtime(answer.runtime)))
    parts += [list(_error(error_entry)) for error_entry in answer.errors[:_MOST_ERRORS]]
    if len(answer.errors) > _MOST_ERRORS:
        rest = answer.errors[_MOST_ERRORS:]
        parts.append(
            [
                "Also recognised, each explained by its name:",
                *(f"  {error_entry.name}" for error_entry in rest),
            ]
        )
    for index, part in enumerate(parts):
        if index:
            yield ""
        yield from part


def _step_lines(step: AskedStep) -> list[str]:
    example = ["", "Example:", "", step.example] if step.example else []
    return [step.heading, "", step.doc, *example, *(["", step.hint] if step.hint else [])]


def verdict_lines(name: str, verdict: ModelVerdict, title: str) -> Iterator[str]:
    """Yield whether a model would raise an error, why, and at which nodes."""
    answer = {
        True: "would raise this",
        False: "would not raise this",
        None: "the model alone does not answer this",
    }
    reasons = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
    yield _wrapped(
        f"{printable(name)}: {answer[verdict.raises]}{reasons}" + (f" ({printable(title)})" if title else "")
    )
    for where in verdict.places[:_MOST_NODES]:
        yield f"  {printable(str(where))}"
    if len(verdict.places) > _MOST_NODES:
        yield f"  and {len(verdict.places) - _MOST_NODES} more (--json lists them)"
    if verdict.outlook:
        yield _wrapped(verdict.outlook)


def unknown_lines(unknown: Unknown) -> Iterator[str]:
    """Yield the lines that follow the error of a text that was not recognised."""
    if unknown.names:
        yield f"did you mean {' or '.join(unknown.names)}?"
    if unknown.errors:
        yield "the nearest error texts:"
        for name, title in unknown.errors:
            yield f"  {printable(title)}"
            yield f"      onnx-migrate explain {name}"
    if unknown.operators:
        yield "for the operators in this text:"
        for name in unknown.operators:
            yield f"  onnx-migrate explain {name}"
    yield "to check a model for a runtime: onnx-migrate inspect MODEL --for RUNTIME==VERSION"
    yield "for a list of all texts and codes: onnx-migrate explain"
    yield "please report the text as an issue of onnx-migrate, with the tool and its version"


def overview_lines(groups: Iterable[Group]) -> Iterator[str]:
    """Yield all that can be explained."""
    width = max(60, shutil.get_terminal_size((_WIDTH, 24)).columns)
    yield "onnx-migrate explain TEXT, where TEXT is"
    yield '  an error text of any tool: onnx-migrate explain "No Op registered for Range with domain_version of 10"'
    yield "  a log on standard input: trtexec --onnx=model.onnx 2>&1 | onnx-migrate explain -"
    yield "  a code of onnx-migrate, as below: onnx-migrate explain needs-rank"
    yield "  an operator: onnx-migrate explain Resize; one of its steps: resize-13, resize-13-down, softplus-written-out"
    yield "  a runtime: onnx-migrate explain tensorrt; one release: onnx-migrate explain tensorrt==8.6"
    yield "onnx-migrate explain MODEL TEXT says whether this model would raise the error."
    for group in groups:
        yield f"\n{group.title}"
        for name, line in group.lines:
            text = " ".join(printable(line).split())
            shown = textwrap.shorten(text, max(30, width - 30), placeholder=" …")
            yield f"  {name:<26} {shown}" if len(name) <= 26 else f"  {name}\n      {shown}"


def _error(item: Explanation) -> Iterator[str]:
    from onnx_migrate.explanation.error_text import page_of

    entry = item.entry
    kind = "warning of" if entry.severity == "warning" else "said by"
    yield printable(textwrap.shorten(item.said, 200, placeholder=" …"))
    yield f"  {kind} {entry.tool}, {entry.stage}{f', {entry.versions}' if entry.versions else ''}"
    yield ""
    yield _wrapped(" ".join(item.meaning))
    if item.alike:
        yield _wrapped(f"The same applies to {', '.join(item.alike)}.")
    if item.causes:
        yield ""
        yield _wrapped(" ".join(item.causes), "Cause: ")
    yield ""
    for remedy in item.remedies:
        if remedy.command:
            yield f"  {printable(remedy.command)}"
            yield _wrapped(remedy.text, "      ")
        else:
            yield _wrapped(remedy.text, "  ")
    yield ""
    yield f"More: {page_of(item.name)}"


def _operator(operator: OperatorSteps) -> Iterator[str]:
    versions = ", ".join(map(str, operator.versions))
    yield f"{operator.label}: {operator.history}; versions {versions}"
    for title, lines in (
        ("up", operator.up),
        ("down", operator.down),
        ("where a runtime lacks it", operator.written_out),
    ):
        if lines:
            yield ""
            yield title
            yield from map(_step, lines)
    yield ""
    codes = [line.code for line in (*operator.up, *operator.down, *operator.written_out)]
    if codes:
        yield f"In full: onnx-migrate explain {codes[0]}"
    else:
        yield "onnx-migrate has no steps for it: its nodes stay unchanged."


def _step(line: StepLine) -> str:
    kind = f"{line.kind}, {line.exactness}" if line.exactness else line.kind
    head = f"  {line.code:<24} {line.versions + ': ' if line.versions else ''}{kind}"
    return head + "\n" + _wrapped(line.reason, "      ")


def _runtime(found: Table | RuntimeRelease) -> Iterator[str]:
    from onnx_migrate.explanation.runtime_rows import RuntimeRelease

    if isinstance(found, RuntimeRelease):
        yield from _release(found)
        table = found.target.table
    else:
        yield from _releases(found)
        table = found
    for note in table.notes:
        yield _wrapped(note)
    yield "More: docs/runtimes.md"


def _releases(table: Table) -> Iterator[str]:
    yield f"{table.title}: what its releases take"
    yield ""
    yield f"  {'from':<14} {'opsets':<12} {'IR':<4} known from"
    for row in table.releases:
        oldest = f"{row.oldest}–" if row.oldest else ""
        opsets = "any" if row.opset is None else f"{oldest}{row.opset}"
        source = "measured" if row.measured else "read"
        yield f"  {row.since:<14} {opsets:<12} {row.ir_version or '':<4} {source}"
    yield ""
    example = f"{table.name}=={table.newest or table.releases[-1].since}"
    yield f"One release in full: onnx-migrate explain {example}"
    yield f"A model for it: onnx-migrate model.onnx out.onnx --for {example}"


def _release(release: RuntimeRelease) -> Iterator[str]:
    target = release.target
    table = target.table
    yield f"{target.qualified} supports:"
    yield ""
    oldest = f", from opset {target.oldest} on" if target.oldest else ""
    newer = ", tries newer ones" if table.newer == "tried" and target.opset else ""
    yield f"  opset        {f'up to {target.opset}' if target.opset else 'any'}{oldest}{newer}"
    if target.ir_version:
        yield f"  IR version   up to {target.ir_version}"
    if not target.row.functions:
        yield "  functions    no: onnx-migrate replaces calls by the functions' nodes"
    if target.row.resize_form != "auto" or not target.row.resize_axes:
        form = [] if target.row.resize_form == "auto" else [f"by {target.row.resize_form}"]
        yield f"  Resize       {', '.join([*form, *([] if target.row.resize_axes else ['for all axes'])])}"
    if target.row.write:
        yield f"  forms        {', '.join(sorted(target.row.write))}"
    if release.operators:
        yield _wrapped(", ".join(release.operators), f"  operators    {len(release.operators)}: ")
    if release.lacking:
        yield _wrapped(", ".join(release.lacking), "  lacks        ")
    yield f"  others       all other operators are {release.others}"
    for fault in target.faults:
        help_ = f": {fault.help}" if fault.help else ""
        yield _wrapped(f"{', '.join(fault.names)}: {fault.text}{help_}", "  wrong        ")
    yield _wrapped(target.row.source, "  known from   ")
    yield ""
    request = f"{table.name}=={target.number}" if target.number else table.name
    yield f"A model for it: onnx-migrate model.onnx out.onnx --for {request}"
    yield f"To see what a model needs: onnx-migrate inspect model.onnx --for {request}"


def _wrapped(text: str, indent: str = "") -> str:
    """Return paragraphs of a text in lines; its own lines after the first do not change."""
    rest = " " * len(indent)
    first, *others = map(printable, text.split("\n"))
    lines = textwrap.fill(
        first,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "\n".join([lines, *(f"{rest}    {line}".rstrip() for line in others)])
