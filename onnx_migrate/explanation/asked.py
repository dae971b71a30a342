"""Recognises the subject of a question: a code, a step, an operator, a runtime or an error text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from onnx_migrate.advice import advice_of
from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Step
from onnx_migrate.explanation.error_text import Explanation, explanation_of, page_of
from onnx_migrate.explanation.model_facts import model_facts
from onnx_migrate.explanation.near import near_error_texts, near_names, operators_in
from onnx_migrate.explanation.operators import OperatorSteps, operator_steps, step_heading
from onnx_migrate.explanation.runtime_rows import RuntimeRelease, runtime_rows
from onnx_migrate.explanation.step_examples import step_example
from onnx_migrate.json_form import selects
from onnx_migrate.report.codes import CODES
from onnx_migrate.standard.error_texts import error_texts, find
from onnx_migrate.standard.targets import Table

__all__ = ["Answer", "AskedStep", "Code", "Near", "Unknown", "explain"]

_SHORT = 80
"""Maximum length of a text that is only the name of a runtime, in characters."""

_OWN = re.compile(r"onnx-migrate: ([a-z]+(?:-[a-z]+)*): ")
"""An error of this tool."""


@dataclass(frozen=True)
class AskedStep:
    """The description of one step, under a heading."""

    code: str
    heading: str
    doc: str
    hint: str = ""
    example: str = ""
    """The nodes of a small graph, "becomes", and the nodes after the step."""


@dataclass(frozen=True)
class Answer:
    """What was recognised. Of the four kinds, a text has one or several; a name has at least one."""

    asked: str
    codes: tuple[str, ...] = ()
    steps: tuple[AskedStep, ...] = ()
    operator: OperatorSteps | None = None
    runtime: Table | RuntimeRelease | None = None
    errors: tuple[Explanation, ...] = ()


class Near(NamedTuple):
    """A known error text that is similar to the user's text."""

    name: str
    title: str


@dataclass(frozen=True)
class Unknown:
    """A text that `explain` did not recognise, with the most similar names and error texts."""

    asked: str
    names: tuple[str, ...] = ()
    errors: tuple[Near, ...] = ()
    """The error texts that share most words with it."""
    operators: tuple[str, ...] = ()


def explain(asked: str, model: str = "") -> Answer | Unknown:
    """Explain a name or a pasted text; commands in the answer use `model`, or the path in the text.

    `model` is quoted for a shell. If there is a file at that path, its element types decide which advice the answer gives.
    Raises UsageError for a known runtime with a release that is not, and LoadError if the file is not a readable model.
    """
    # A long text is no name.
    name = " ".join(asked.strip().strip("\"'`").split()) if len(asked) <= _SHORT * 4 else ""
    if name and (by_name := _named(name)) is not None:
        return by_name
    # A pasted report may contain codes of onnx-migrate itself.
    own = tuple(dict.fromkeys(code for code in _OWN.findall(asked) if code in CODES))
    recognised = find(asked, error_texts())
    # The file is only read if the answer can depend on it.
    in_model = model_facts(model) if recognised else {}
    errors = tuple(explanation_of(error_entry, asked, model, in_model) for error_entry in recognised)
    if own or errors:
        return Answer(asked, codes=own, errors=errors)
    rows = runtime_rows(name) if name and len(name) <= _SHORT else None
    if rows is not None:
        return Answer(asked, runtime=rows)
    near = tuple(Near(entry.name, entry.title or entry.example) for entry in near_error_texts(asked))
    return Unknown(asked, near_names(name), near, operators_in(asked))


def _help_of(step: Step) -> str:
    """Return the hint of a step that raises an error, "" for another step; it is not tried, as there is no model."""
    return "; ".join(piece.text for piece in advice_of(step.hint, tried=False))


def _named(name: str) -> Answer | None:
    lowered = name.lower().removesuffix(":")
    if lowered in CODES:
        return Answer(name, codes=(lowered,))
    # Names of steps contain a hyphen.
    if " " not in name and "-" in name:
        asked_steps = tuple(
            AskedStep(step.code, step_heading(step), step.doc, _help_of(step), step_example(step.code))
            for step in steps()
            if step.code == lowered
        )
        if asked_steps:
            return Answer(name, steps=asked_steps)
    entry = next((error_entry for error_entry in error_texts() if error_entry.name == lowered), None)
    if entry is not None:
        recognised = find(entry.example, [entry])
        return Answer(
            name, errors=tuple(explanation_of(error_entry, entry.example) for error_entry in recognised)
        )
    if " " not in name:
        operator = operator_steps(name)
        if operator is not None:
            return Answer(name, operator=operator)
    return None


class Code(TypedDict):
    """A code of onnx-migrate, and its meaning."""

    code: str
    text: str
    page: str


def _codes(answer: Answer) -> list[Code]:
    return [Code(code=code, text=CODES[code], page=page_of(code)) for code in answer.codes]


selects(AskedStep, "code heading text=doc hint example")
selects(Answer, "codes steps operator runtime errors", codes=_codes)
selects(Unknown, "names errors operators")
