"""Finds out whether a model would raise a recognised error, which nodes cause it, and how the remedy changes the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.errors import UsageError, Where
from onnx_migrate.explanation.asked_model import Finding
from onnx_migrate.explanation.error_text import Explanation, filled_text
from onnx_migrate.explanation.questions import ask
from onnx_migrate.explanation.trial import Trial, tried
from onnx_migrate.files import Source
from onnx_migrate.inspection import load_structure
from onnx_migrate.model.model import Model
from onnx_migrate.standard.targets import resolve

__all__ = ["TARGET", "ModelVerdict", "ask_model"]

TARGET = "target"
"""The question that the table of a runtime answers; the others are `QUESTIONS`."""

_NO_MIGRATION: tuple[list[str], ...] = ([], ["inspect"], ["verify"])
"""The words after onnx-migrate in commands that change no model; none in a remedy of words alone."""


@dataclass(frozen=True)
class ModelVerdict:
    """Whether a model would raise an error: None if its structure does not show it. `outlook` is the effect of the remedies."""

    raises: bool | None
    reasons: tuple[str, ...] = ()
    places: tuple[Where, ...] = ()
    outlook: str = ""
    mends: bool | None = None
    """Whether a remedy ends with a result, as far as this is clear without weights; None if no remedy could be tried."""


def ask_model(item: Explanation, source: Source) -> ModelVerdict:
    """Return whether a model would raise an error that was recognised. Raises LoadError if it cannot be read."""
    model, _ = load_structure(source)
    possible_findings = [
        _target(model, item)
        if check.question == TARGET
        else ask(check.question, model, _given(check.given, item))
        for check in item.entry.checks
    ]
    # A question without an answer says nothing.
    findings = [finding for finding in possible_findings if finding is not None]
    answers = {finding.raises for finding in findings}
    # One certain cause is enough.
    raises = True if True in answers else None if None in answers or not answers else False
    reported = [finding for finding in findings if finding.raises is raises]
    outlook, mends = ("", None) if raises is False else _outlook(item, source)
    return ModelVerdict(
        raises,
        tuple(dict.fromkeys(finding.reason for finding in reported)),
        tuple(dict.fromkeys(where for finding in reported for where in finding.places)),
        outlook,
        mends,
    )


def _given(given: Mapping[str, tuple[str, ...]], item: Explanation) -> dict[str, tuple[str, ...]]:
    """Return the arguments of a question, filled with the text's values; for operators, all that the text names."""
    values = {name: tuple(filled_text(text, item.facts) for text in texts) for name, texts in given.items()}
    if "op" in values and given["op"][0].startswith("{op"):
        others = item.facts.get("ops", "").split(", ") if "ops" in item.facts else []
        values["op"] = tuple(dict.fromkeys([*values["op"], *filter(None, others), *item.alike]))
    return {"node": item.nodes, **values}


def _target(model: Model, item: Explanation) -> Finding | None:
    """Return the runtime's objections to the model, by its table; None if the text names no known release."""
    if "target_named" not in item.facts:
        return None
    try:
        # The text may name a release that is not in the table.
        (target,) = resolve(item.facts["target"])
    except UsageError:
        return None
    advice = CompatibilityChecker(model).advise(target)
    if advice.standing in (Support.AS_IS, Support.NOT_KNOWN) and not advice.objections:
        return Finding(None, f"nothing is known that {target} does not take of it")
    locations = tuple(objection.where for objection in advice.objections if objection.where)
    return Finding(True, "; ".join(objection.reason for objection in advice.objections), locations)


def _outlook(item: Explanation, source: Source) -> tuple[str, bool | None]:
    """Return the effects of the remedies whose commands can be tried on the structure, and the untried remedies."""
    trials: list[Trial] = []
    untried: list[str] = []
    for remedy in item.remedies:
        if remedy.command.removeprefix("onnx-migrate").split(" ")[1:2] in _NO_MIGRATION:
            continue
        trial = None if _succeeded(trials) else tried(remedy.command, source, item)
        if trial is not None:
            trials.append(trial)
        elif not _succeeded(trials):
            untried.append(remedy.command)
    sentences = [trial.text for trial in trials]
    if untried:
        sentences.append(f"not tried here: {', '.join(untried)}")
    return "; ".join(sentences), _succeeded(trials) if trials else None


def _succeeded(trials: list[Trial]) -> bool:
    return any(trial.succeeds for trial in trials)
