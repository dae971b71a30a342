"""The part of docs/runtimes.md on runtimes that convert a model first: how they were measured, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_migrate.standard.targets import shipped
from tests.campaigns.runtimes.survey import CONVERTERS, best

__all__ = ["converters"]

_HOW = """## How {titles} were measured

They convert a model before they run it, and most want constants where the standard allows computed values. So their sample is
another: up to three cases of each operator from onnx 1.4 to 1.22, in which only data is fed and all else is constant, and a
fixture of each kind, each brought up and down to every opset from 7 to 26 without simplification. *Right* is as above; RKNN's
simulator computes in float16, and may be off by a hundredth. ncnn and RKNN, which take seconds for a model, ran one case of each
operator at a part of the opsets. A model that crashes or hangs the runtime ends alone. *Real models* are 12 exports of
PyTorch (fixtures) and 14 that others published: OCR, speech, detection, classification.

The row of the table has the newest opset at which at most two in 100 fewer are right than at the best. What is right at an
older opset and not at a newer one is mostly an operator that came in between: it comes apart on the way down, and `--for` takes
it apart at any opset. An operator is *lacking* that was refused in every model.

`python -m tests.campaigns.runtimes.survey tract==0.23.9` measures a release: an hour for all that can be installed with pip.
RKNN-Toolkit2 needs PyTorch, so it is run in an environment of its own, named with `--python`.
"""


def converters(measured: Mapping[str, Any]) -> str:
    """Return the section."""
    own = {key: found for key, found in measured.items() if key.split()[0] in CONVERTERS}
    titles = [shipped(key.split()[0]).title for key in own]
    parts = [_HOW.format(titles=" and ".join([", ".join(titles[:-1]), titles[-1]])), _shares(own)]
    for key, found in own.items():
        name, _, release = key.partition(" ")
        parts.append(f"**{shipped(name).title} {release}** lacks {', '.join(found['lacking'])}.\n")
        parts.append(_never(found))
    return "\n".join(parts)


def _shares(own: Mapping[str, Any]) -> str:
    """Return the tables of what is right at each opset: cases, then real models."""
    opsets = sorted({int(opset) for found in own.values() for opset in found["right"]})
    lines = [
        "Cases that are right, by opset (**bold**: what `--for` brings models to):\n",
        "| | cases | " + " | ".join(map(str, opsets)) + " |",
        "|---" * (2 + len(opsets)) + "|",
    ]
    for key, found in own.items():
        cells = [_bold(found["right"].get(str(opset), ""), opset == best(found)) for opset in opsets]
        lines.append(f"| {_title(key)} | {found['cases']} | {' | '.join(cells)} |")
    opsets = sorted({int(opset) for found in own.values() for opset in found["models right"]})
    lines += [
        "\nReal models that are right, and Resizes (as below, in every form of opsets 11, 13 and 18):\n",
        "| | models | " + " | ".join(map(str, opsets)) + " | not at any | Resizes right |",
        "|---" * (4 + len(opsets)) + "|",
    ]
    for key, found in own.items():
        cells = [str(found["models right"].get(str(opset), "")) for opset in opsets]
        never = ", ".join(f"{name} ({_words(how)})" for name, how in found["models never right"].items())
        resizes = f"{sum(found['forms'].values())} of {found['resizes']}" if found["forms"] else ""
        lines.append(
            f"| {_title(key)} | {found['models']} | {' | '.join(cells)} | {never or 'none'} | {resizes} |"
        )
    return "\n".join(lines) + "\n"


def _never(found: Mapping[str, Any]) -> str:
    """Return the operators of which some cases are not right in any form."""
    lines = []
    for operator, cases in found["never right"].items():
        ends = sorted({_words(case.partition(" ")[2]) for case in cases})
        names = ", ".join(f"`{case.partition(' ')[0]}`" for case in cases)
        lines.append(f"{operator} ({names}: {', '.join(ends)})")
    return f"Never right, though not lacking: {'; '.join(lines)}.\n" if lines else ""


def _words(how: str) -> str:
    return how.partition(":")[0]


def _title(key: str) -> str:
    name, _, release = key.partition(" ")
    return f"{shipped(name).title} {release}"


def _bold(value: Any, bold: bool) -> str:
    return f"**{value}**" if bold else str(value)
