"""The part of docs/runtimes.md on runtimes that convert a model first: how they were measured, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_migrate.standard.targets import shipped
from tests.campaigns.runtimes.survey import CONVERTERS, best

__all__ = ["converters"]

_HOW = """## How we measured {titles}

These runtimes convert a model before they run it, and most of them need constants where the standard allows computed
values. We therefore used other models: up to three cases of each operator from onnx 1.4 to 1.22 with constant
parameters, and fixtures of our own. onnx-migrate converted each to every opset from 7 to 26, without simplification.
*Right* has the same meaning as above. RKNN's simulator computes in float16, so it may differ by 1 %. ncnn and RKNN take
seconds for a model, so they ran one case of each operator at some of the opsets. *Real models* are 12 PyTorch exports
and 14 published models: OCR, speech, detection, classification.

The row of the table gives the newest opset at which at most 2 % fewer models are right than at the best one. Newer
opsets mostly add operators that the runtime lacks; `--for` replaces these at any opset. An operator is *lacking* if the
runtime refused it in every model.
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
        "Right cases by opset; **bold** is the opset that `--for` chooses:\n",
        "| | cases | " + " | ".join(map(str, opsets)) + " |",
        "|---" * (2 + len(opsets)) + "|",
    ]
    for key, found in own.items():
        cells = [_bold(found["right"].get(str(opset), ""), opset == best(found)) for opset in opsets]
        lines.append(f"| {_title(key)} | {found['cases']} | {' | '.join(cells)} |")
    opsets = sorted({int(opset) for found in own.values() for opset in found["models right"]})
    lines += [
        "\nRight real models, and right Resizes in every form of opsets 11, 13 and 18:\n",
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
