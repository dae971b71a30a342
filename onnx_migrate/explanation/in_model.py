"""Whether a given model would raise an error that was recognised, because of which nodes, and what the remedy does to it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.errors import MigrateError, UsageError, Where
from onnx_migrate.explanation.error_text import Explanation, filled_text
from onnx_migrate.explanation.questions import Finding, ask
from onnx_migrate.files import Source
from onnx_migrate.inspection import inspect, load_structure
from onnx_migrate.messages import count_of
from onnx_migrate.model.model import Model
from onnx_migrate.standard.targets import resolve

__all__ = ["TARGET", "ModelVerdict", "ask_model"]

TARGET = "target"
"""The question that the table of a runtime answers; the others are `QUESTIONS`."""


@dataclass(frozen=True)
class ModelVerdict:
    """Whether a model would raise an error: None if its structure does not say. `outlook` is what the first remedy would do."""

    raises: bool | None
    reasons: tuple[str, ...] = ()
    places: tuple[Where, ...] = ()
    outlook: str = ""
    mends: bool | None = None
    """Whether that remedy ends with a result, as far as that is known without weights."""


def ask_model(item: Explanation, source: Source) -> ModelVerdict:
    """Return whether a model would raise an error that was recognised. Raises LoadError if it cannot be read."""
    model, _ = load_structure(source)
    asked = [
        _target(model, item)
        if check.question == TARGET
        else ask(check.question, model, _given(check.given, item))
        for check in item.entry.checks
    ]
    found = [finding for finding in asked if finding is not None]
    answers = {finding.raises for finding in found}
    raises = True if True in answers else None if None in answers or not answers else False
    reported = [finding for finding in found if finding.raises is raises]
    outlook, mends = ("", None) if raises is False else _outlook(item, source)
    return ModelVerdict(
        raises,
        tuple(dict.fromkeys(finding.reason for finding in reported)),
        tuple(dict.fromkeys(where for finding in reported for where in finding.places)),
        outlook,
        mends,
    )


def _given(given: Mapping[str, tuple[str, ...]], item: Explanation) -> dict[str, tuple[str, ...]]:
    """Return what a question is asked with, with the values of the text; of operators, all that the text names."""
    values = {name: tuple(filled_text(text, item.facts) for text in texts) for name, texts in given.items()}
    if "op" in values and given["op"][0].startswith("{op"):
        others = item.facts.get("ops", "").split(", ") if "ops" in item.facts else []
        values["op"] = tuple(dict.fromkeys([*values["op"], *filter(None, others), *item.alike]))
    return values


def _target(model: Model, item: Explanation) -> Finding | None:
    """Return what the table of the runtime has against the model; None if the text names no release that is known."""
    if "target_named" not in item.facts:
        return None
    try:
        (target,) = resolve(item.facts["target"])
    except UsageError:
        return None
    advice = CompatibilityChecker(model).advise(target)
    if advice.standing in (Support.AS_IS, Support.NOT_KNOWN) and not advice.objections:
        return Finding(None, f"nothing is known that {target} does not take of it")
    places = tuple(objection.where for objection in advice.objections if objection.where)
    return Finding(True, "; ".join(objection.reason for objection in advice.objections), places)


def _outlook(item: Explanation, source: Source) -> tuple[str, bool | None]:
    """Return what the first remedy that can be planned would do."""
    for remedy in item.remedies:
        words = shlex.split(remedy.command) if remedy.command else []
        options = dict(pairwise(words))
        opset, runtime = options.get("--opset", ""), options.get("--for", "")
        if not words or "NAME=SIZE" in words or not (re.fullmatch(r"\d+\+?", opset) or runtime):
            continue
        try:
            planned = inspect(source, opset=opset or (None if runtime else "17+"), runtime=runtime or None)
        except UsageError:
            continue
        except MigrateError as error:
            return str(error), False
        if planned.refusal is not None:
            return f"{remedy.command} is refused: {planned.refusal}", False
        changes = len(planned.plan.changes) if planned.plan else 0
        reached = planned.plan.after.opset if planned.plan else None
        return f"{remedy.command} reaches opset {reached}; {count_of(changes, 'node')} to change", True
    return "", None
