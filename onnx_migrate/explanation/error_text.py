"""Explains a recognised error text with the values that it contains."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType

from onnx_migrate.explanation.facts import Facts, facts_of
from onnx_migrate.json_form import selects
from onnx_migrate.standard.error_texts import ErrorText, Mend, RecognisedText, Sentence

__all__ = ["Explanation", "Remedy", "explanation_of", "filled", "page_of"]

_MOST_ALIKE = 20

_CANNOT = ("onnx-migrate cannot mend", "onnx-migrate cannot fix")
"""The first words of a remedy without a command."""

_FIX_ALONE = r"onnx-migrate \{model\} out\.onnx --fix-shape NAME=SIZE"
"""The command that only gives sizes to dynamic dims."""

_CUSTOM = "onnx-migrate cannot write it with other operators. Export the model without it, or give the runtime its plugin."


@dataclass(frozen=True)
class Remedy:
    """A remedy: a command with remarks on it, or only words if onnx-migrate cannot help."""

    command: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """The meaning of an error text: the program that raises it, its consequences, its causes and the remedies."""

    entry: ErrorText = field(repr=False)
    said: str
    """The words that were recognised."""
    facts: Facts
    meaning: tuple[str, ...]
    causes: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    alike: tuple[str, ...] = ()
    """Further operators, or other values, for which the text reports the same error."""
    nodes: tuple[str, ...] = ()
    """The names of the nodes that the text complains of."""

    @property
    def name(self) -> str:
        """The slug of the error text, and the name of its page."""
        return self.entry.name

    @property
    def title(self) -> str:
        """The sentence that people search for."""
        return self.entry.title or self.entry.example


def page_of(name: str) -> str:
    """Return the page of an error text or a code, in the documentation."""
    return f"docs/errors/{name}.md"


def explanation_of(
    found: RecognisedText, text: str, model: str = "", in_model: Facts = MappingProxyType({})
) -> Explanation:
    """Return the explanation of an error text; `model` is the path that commands name, "" for the one in the text.

    `in_model` are the facts of that model, which decide what advice can help.
    """
    entry = found.entry
    every = [{**facts_of(entry, captured, text, model), **in_model} for captured in found.captures]
    facts = every[0]
    remedies = _remedies(entry.mends, facts)
    if (
        entry.runtime
        and "op_unknown" in facts
        and not any(remedy.text.startswith(_CANNOT) for remedy in remedies)
    ):
        remedies = (Remedy("", f"{facts['op_history']}: {_CUSTOM}"), *remedies)
    # One text may name several nodes or operators with the same error.
    alike = dict.fromkeys(_label(other) for other in every[1:_MOST_ALIKE])
    # The first one is explained in full.
    alike.pop(_label(facts), None)
    alike.pop("", None)
    return Explanation(
        entry,
        found.said,
        facts,
        filled(entry.meaning, facts),
        filled(entry.causes, facts),
        remedies,
        tuple(alike),
        tuple(dict.fromkeys(facts["node"] for facts in every if "node" in facts)),
    )


def filled(sentences: Iterable[Sentence], facts: Facts) -> tuple[str, ...]:
    """Return the sentences for which all facts are known, with the facts filled in."""
    return tuple(filled_text(sentence.text, facts) for sentence in sentences if _fits(sentence, facts))


def filled_text(text: str, facts: Facts) -> str:
    """Return a text with its placeholders filled; {opset|OPSET} becomes OPSET if the opset is unknown."""
    return re.sub(r"\{(\w+)(?:\|([^{}]*))?\}", lambda found: facts.get(found[1], found[2] or ""), text)


def _remedies(mends: Iterable[Mend], facts: Facts) -> tuple[Remedy, ...]:
    """Return the remedies, without commands that do not change this model; without any remedy, the reason."""
    fitting = [mend for mend in mends if _fits(mend, facts)]
    helping = tuple(_remedy(mend, facts) for mend in fitting if not _idle(mend, facts))
    return helping or tuple(Remedy("", _idle(mend, facts)) for mend in fitting[:1])


def _idle(mend: Mend, facts: Facts) -> str:
    """Return why a command does not change the model, "" if it may."""
    if "fixed" in facts and re.fullmatch(_FIX_ALONE, mend.command):
        return "Every dim of this model's inputs is a number already: fixing dims does not help."
    if "only_float32" in facts and "--precision fp32" in mend.command:
        return "Every floating-point type of this model is float32 already: --precision fp32 does not help."
    return ""


def _remedy(mend: Mend, facts: Facts) -> Remedy:
    command, text = filled_text(mend.command, facts), filled_text(mend.text, facts)
    if "open_dims" in facts or "fixed" in facts:
        command = re.sub(
            r" ?--fix-shape NAME=SIZE", f" {facts['open_dims']}" if "open_dims" in facts else "", command
        )
        text = re.sub(r" ?Leave --fix-shape out if no dim is (?:open|dynamic)\.", "", text)
    if "target_example" in facts and "{target}" in mend.command:
        name = facts["target"].partition("==")[0]
        text += f" Name your release in place of {facts['target']}: onnx-migrate explain {name} lists them."
    return Remedy(command, text)


def _fits(sentence: Sentence, facts: Facts) -> bool:
    needed = {*sentence.needs, *sentence.placeholders}
    return needed <= facts.keys() and facts.keys().isdisjoint(sentence.unless)


def _label(facts: Facts) -> str:
    """Return the words that distinguish findings of an error text from each other."""
    names = ("op", "attribute", "dtype", "opset", "ir", "node")
    return next((facts[name] for name in names if name in facts), "")


def _values(item: Explanation) -> dict[str, str]:
    return {name: value for name, value in item.facts.items() if value != "yes"}


def _page(item: Explanation) -> str:
    return page_of(item.name)


selects(Remedy, "command? text")
selects(
    Explanation,
    """name title said tool=entry.tool stage=entry.stage versions=entry.versions severity=entry.severity values meaning causes
    remedies alike page sources=entry.sources""",
    values=_values, page=_page,
)  # fmt: skip
