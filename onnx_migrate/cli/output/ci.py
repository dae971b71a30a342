"""Reports for continuous integration: a JUnit report; GitHub's annotations, summary of a job, and outputs of a step."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from xml.etree import ElementTree

import rich_click as click

from onnx_migrate.cli.output.failure import print_remarks
from onnx_migrate.cli.output.preview import difference_of
from onnx_migrate.cli.output.side_files import SideFile, published
from onnx_migrate.messages import count_of, printable

if TYPE_CHECKING:
    from onnx_migrate.batching import Outcome

__all__ = ["Follower", "Judgement", "ci_options", "finish_all", "followers", "writes_annotations"]

F = TypeVar("F", bound=Callable[..., Any])

_LISTED = 200
"""How many models a summary names: GitHub shows 1 MB."""

_OUTPUTS = ("migrated", "unchanged", "refused", "invalid", "failed")


class Follower(Protocol):
    """A listener that gets each model of a run, and the totals at its end."""

    def add(self, outcome: Outcome) -> None:
        """Take a model that has ended."""

    def finish(self, totals: Mapping[str, Any]) -> None:
        """Write what is written at the end. Raises SaveError."""

    def close(self) -> None:
        """Give up what was not written."""


def ci_options(command: F) -> F:
    """Give a command the options for continuous integration."""
    command = click.option(
        "--annotations", type=click.Choice(["auto", "github", "off"]), default="auto", show_default=True,
        help="Print an ::error line for each model that fails or would change, and a ::warning line for each unverified result. "
        "Also append a table to the file in GITHUB_STEP_SUMMARY, and counts to that in GITHUB_OUTPUT. auto does this only in a "
        "GitHub workflow.",
    )(command)  # fmt: skip
    command = click.option(
        "--junit", type=click.Path(), metavar="FILE",
        help="Write a JUnit report to FILE, with a test case for each model. The case of an unverified result is skipped.",
    )(command)  # fmt: skip
    return click.option(
        "--allow-unverified", is_flag=True,
        help="Exit with 0 although results are unverified. Without it, batch, --check, --junit and --annotations exit with 3.",
    )(command)  # fmt: skip


@dataclass(frozen=True)
class Judgement:
    """The rules for troubles: with `check` a model that would change is one; `allow_unverified` lets a late result pass."""

    check: bool = False
    allow_unverified: bool = False

    def trouble(self, outcome: Outcome) -> tuple[str, str, str] | None:
        """Return JUnit's tag ("failure", "error" or "skipped"), a code and a message for a model that is not as it should be."""
        if not outcome.done:
            tag = "failure" if outcome.kind == "refused" else "error"
            return tag, outcome.code, outcome.why
        if outcome.left:
            # Best effort must not hide what is missing.
            message = f"{count_of(outcome.left, 'thing')} that --best-effort left unchanged"
            return "failure", "not-fitted", message
        if self.check and outcome.kind == "migrated":
            from onnx_migrate.report.data import ReportData  # which --help does not need

            difference = (
                f": {difference_of(outcome.report)}" if isinstance(outcome.report, ReportData) else ""
            )
            return "failure", "would-change", f"a migration would change the model{difference}"
        if outcome.doubt:
            stopped = outcome.late and not self.allow_unverified
            return "error" if stopped else "skipped", outcome.state, f"{_kept(outcome)}: {outcome.why}"
        return None


def _kept(outcome: Outcome) -> str:
    written = outcome.output is not None and outcome.kind == "migrated"
    return "the result is written, but not verified" if written else "the result is not verified"


def writes_annotations(annotations: str) -> bool:
    """Whether annotations are printed, as `--annotations` says."""
    return annotations == "github" or (annotations == "auto" and os.environ.get("GITHUB_ACTIONS") == "true")


def followers(
    junit: str | None, annotations: str, *, check: bool, allow_unverified: bool = False
) -> list[Follower]:
    """Return what these options ask for; with `check` a model that would change is a failure. Raises UsageError, SaveError."""
    judgement = Judgement(check, allow_unverified)
    reports: list[Follower] = []
    if junit is not None:
        reports.append(_JUnit(junit, judgement))
    if writes_annotations(annotations):
        reports.append(_GitHub(judgement))
    return reports


def finish_all(to_tell: Sequence[Follower], totals: Mapping[str, Any]) -> None:
    """Let each of them finish, also where another cannot. Raises SaveError."""
    with ExitStack() as stack:
        for follower in reversed(to_tell):
            stack.callback(follower.finish, totals)


class _JUnit:
    def __init__(self, path: str, judgement: Judgement) -> None:
        self._file = SideFile("--junit", path, "a JUnit report", lambda head: b"<testsuites" in head[:200])
        self._file.check()
        self._judgement = judgement
        self._cases: dict[str, ElementTree.Element] = {}

    def add(self, outcome: Outcome) -> None:
        name = printable(outcome.source)
        case = ElementTree.Element(
            "testcase", name=name, classname="onnx-migrate", file=name, time=f"{outcome.seconds:.3f}"
        )
        trouble = self._judgement.trouble(outcome)
        if trouble is not None:
            case.append(_case_result(*trouble))
        elif outcome.verification:
            summary = f"{outcome.kind}, {outcome.verification}"
            ElementTree.SubElement(case, "system-out").text = printable(summary)
        self._cases[name] = case

    def finish(self, totals: Mapping[str, Any]) -> None:
        # Models end in any order, and the file must be reproducible.
        cases = [self._cases[name] for name in sorted(self._cases)]
        counts = {
            "tests": str(len(cases)),
            **{
                name: str(sum(case.find(tag) is not None for case in cases))
                for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped"))
            },
            "time": f"{totals['seconds']:.3f}",
        }
        root = ElementTree.Element("testsuites", counts)
        ElementTree.SubElement(root, "testsuite", counts, name="onnx-migrate").extend(cases)
        ElementTree.indent(root)
        text = (
            '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
        )
        # Names of files may hold bytes that are not UTF-8.
        with published({self._file: [text.encode("utf-8", "backslashreplace")]}):
            pass

    def close(self) -> None:
        self._cases.clear()


def _case_result(tag: str, code: str, message: str) -> ElementTree.Element:
    """Return what a test case holds if it did not pass; schemas of JUnit allow no `type` of a case that is skipped."""
    if tag == "skipped":
        return ElementTree.Element(tag, message=printable(f"{code}: {message}"))
    element = ElementTree.Element(tag, type=printable(code), message=printable(message))
    element.text = printable(message)
    return element


class _GitHub:
    def __init__(self, judgement: Judgement) -> None:
        self._judgement = judgement
        self._rows: list[str] = []

    def add(self, outcome: Outcome) -> None:
        trouble = self._judgement.trouble(outcome)
        if trouble is None:
            return
        tag, code, message = trouble
        level = "warning" if tag == "skipped" else "error"
        position = f"file={_escaped(outcome.source, ':,')},title={_escaped(f'onnx-migrate: {code}', ':,')}"
        # The log of a job does not show the file, so that the message names it too.
        text = message if message.startswith(outcome.source) else f"{outcome.source}: {message}"
        click.echo(f"::{level} {position}::{_escaped(text)}", err=True)
        cells = (outcome.source, self._kind(outcome.state), f"{code}: {message}")
        self._rows.append("| " + " | ".join(map(_cell, cells)) + " |")

    def finish(self, totals: Mapping[str, Any]) -> None:
        counts = {**totals["states"], "verified": totals["verification"]["verified"]}
        totals_text = ", ".join(f"{count:,} {self._kind(kind)}" for kind, count in counts.items() if count)
        lines = [
            f"### onnx-migrate: {count_of(totals['models'], 'model')}",
            "",
            totals_text or "nothing was migrated",
            "",
        ]
        if self._rows:
            more = len(self._rows) - _LISTED
            lines += ["| model | status | reason |", "|---|---|---|", *sorted(self._rows)[:_LISTED], ""]
            lines += [f"and {more:,} more", ""] if more > 0 else []
        _append("GITHUB_STEP_SUMMARY", lines)
        outcomes = {"models": totals["models"], **{kind: totals["outcomes"][kind] for kind in _OUTPUTS}}
        verified = {kind: totals["verification"][kind] for kind in ("verified", "unverified")}
        late = {"timed-out": totals["states"]["timed-out"]}
        _append("GITHUB_OUTPUT", [f"{name}={n}" for name, n in {**outcomes, **verified, **late}.items()])

    def _kind(self, kind: str) -> str:
        return "would be migrated" if self._judgement.check and kind == "migrated" else kind

    def close(self) -> None:
        self._rows.clear()


def _escaped(text: str, more: str = "") -> str:
    """Return a text as commands of a workflow write it (`more`: also these characters, in a property)."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return printable(text)


def _cell(text: str) -> str:
    return html.escape(printable(" ".join(text.split())), quote=False).replace("|", "&#124;")


def _append(variable: str, lines: Sequence[str]) -> None:
    """Append lines to the file that a variable names, if it names one; a line tells of one that cannot be written."""
    path = os.environ.get(variable)
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        print_remarks([f"the file that {variable} names cannot be written: {error.strerror or error}"], path)
