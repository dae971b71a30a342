"""Writes docs/runtimes.md from the table of runtimes and what was measured. `python -m tools.pages.runtimes_page`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnx_migrate.messages import listed
from onnx_migrate.standard.targets import shipped, tables
from onnx_migrate.standard.targets.measured_forms import ENDING, FAILING, shipped_forms
from tests.campaigns.runtimes.forms import FORMS
from tests.campaigns.runtimes.survey import CONVERTERS, MEASURED, best
from tests.support.paths import ROOT
from tools.pages.converters import converters
from tools.pages.runtime_sections import contents, ordered, section

PAGE = ROOT / "docs" / "runtimes.md"

HEAD = """# Runtimes

You rarely need to know an opset: a model has to run somewhere. `--for RUNTIME==VERSION` converts a model to what that
release supports: opset, IR version, operators, attributes, element types and forms.

```sh
onnx-migrate model.onnx out.onnx --for tensorrt==8.2
onnx-migrate model.onnx out.onnx --for "windows 10 build 19041"
onnx-migrate model.onnx out.onnx --for rk3588
onnx-migrate model.onnx out.onnx --for onnxruntime==1.14 --for tensorrt==8.6   # both
onnx-migrate model.onnx out.onnx --for onnxruntime                             # the installed release
onnx-migrate model.onnx out.onnx --for ./mychip.toml                           # your own
```

**Names.** You can write a name as you know it: `TensorRT 8.2`, `"jetson with TensorRT 8.2"`, `jetpack==5.1`, `rk3588`.
If a name is unknown, the error suggests the nearest ones. [Targets](targets.md) explains how to describe your own.

**Measured or read.** For a *measured* row, we loaded models into that release and ran them. A *read* row comes from the
sources beside it: documentation, source code or threads. If sources contradict each other, the row follows the safer
one. A runtime may not support every combination of an operator.

**Operators.** The opset of a release does not tell you its operators. The column *operators* counts, for the newest
release:

- *measured*: the release loaded the operator and computed node tests right.
- *read*: the source names it.
- *missing*: we know that it is absent.
- *not known*: no source says anything. `inspect --for` names such operators, and a migration prints a warning
  (`operators-not-known`).

**Forms.** A runtime may compute one form of a node right and another one wrong. OpenCV 4.8, for example, computes a
ReduceMean over the last axis right, and one over two axes of a larger image wrong. For some releases we therefore
measured forms: element types, ranks, axes, constant inputs, broadcasting and attributes. For these, "runs as it is"
means that each node of the model has a form that was right.

- Right forms are known for {measured}.
- Failed forms are known for {ruled_out}.

**Several releases.** Several `--for` options apply together: the newest opset and IR version that all support, the
operators that all have, and the forms that one of them needs. If no opset fits, the error names two that contradict
each other.

- A release newer than its table counts as the last row, with a warning. A release between two rows counts as the older
  one.
- A name without a version means the installed release, else the default below, else it is an error.
- If a runtime supports an operator only up to a version (*newest*), the model stays at an older opset, with a note.
- `--resize-form` overrides the table. `--opset` on the command line overrides a `for` of the configuration file. Beside
  `--for`, `--opset N` applies if the runtime supports N.

The verification runs in ONNX Runtime. `--run-in` runs the result in other runtimes ([proof](proving.md)). From
Python: `migrate(model, runtime=["tensorrt==8.6", "./mychip.toml"])`.

**Accuracy of the tables.** We judged them with published models and random nodes that had no part in them:

| judged with | claims that a model runs | wrong claims |
|---|---|---|
| 66 published models, 19 releases of six runtimes | 607 | 4, and 2 differed by 2e-6 of the largest number; fixed since |
| 62 others, afterwards | 518 | 0; a net of 256 x 256 x 256 voxels took too long in four releases |
| 1,500 random nodes in seven releases | 7,764 | 64, which the tables now describe (*Computed wrongly* below) |
| 61 more published models, afterwards | 626 | 2, both in ONNX Runtime; fixed since |

Of 24 claims that a model does not run, one was wrong.

In the tables, *Resize* `auto` means scales, or sizes if the output lengths need them. `scales` means scales if that is
exact. *all axes* means that the runtime does not support the attribute `axes`, so scales and sizes cover all axes.
*Wants* lists the [forms](targets.md#forms) that onnx-migrate writes for the runtime, and limits. *no functions* means
that it does not support local functions.

"""

HOW = """## How we measured OpenVINO and OpenCV

onnx-migrate converted about 900 models to every opset from 9 to 26, without simplification: the operator test cases of
onnx 1.4, 1.7, 1.10 and 1.13, and fixtures of our own. A model is *right* if the release loads it and computes the
recorded results (relative 2e-3, absolute 2e-4; for OpenCV in any shape). A model is *lost* at an opset if it is right
at an older opset and not at this one.

The row gives the newest opset at which at most three in 400 models are lost. It is never newer than the ONNX in the
release (OpenVINO), or the ONNX release of that time (OpenCV). Operators outside these models are not measured. The
figures of OpenCV 4 vary by up to three, because its Gemm is not deterministic.

| release | wheel | opset | right | lost | newest opset of its ONNX | lost first at newer opsets |
|---|---|---|---|---|---|---|
"""

OPENCV = """
OpenCV 4 does not read `nearest_mode`. It uses `floor` with `asymmetric`, and `round_prefer_ceil` with `align_corners`
and `half_pixel` (up to 4.7 `round_prefer_floor` with `half_pixel`). It does not support cubic. OpenCV 5 supports all.

**Linear Upsample of PyTorch in OpenCV.** Up to opset 10, OpenCV computes the linear Upsample of a model whose
`producer_name` is `pytorch` as `half_pixel`. That is PyTorch's computation, although the file does not say so. From
opset 11 on, OpenCV follows the file. So `--for opencv` writes `half_pixel` there (`resize_intent`), and all wheels from
4.5 to 5.0 compute the same for the original and the result. The report gives the difference from the file. If a second
`--for` names a runtime that follows the file, `asymmetric` stays, with a warning. `--skip-pass resize_intent` keeps it
too.
"""


def _with_forms(ending: str) -> str:
    """Return the releases whose forms were measured, those that were right or those that failed."""
    found = {table.title: shipped_forms(table.name, ending) for table in tables()}
    return listed(
        f"{title} {', '.join(release for release, boxes in zip(own.releases, own.boxes, strict=True) if boxes)}"
        for title, own in found.items()
        if own
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the table as it is."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    whole = {key: found for key, found in measured.items() if key.split()[0] not in CONVERTERS}
    lines = [_measured(key, found) for key, found in whole.items()]
    return (
        "\n".join(
            [
                HEAD.replace("{measured}", _with_forms(ENDING)).replace("{ruled_out}", _with_forms(FAILING))
                + contents(tables()),
                *map(section, ordered(tables())),
                HOW + "\n".join(lines),
                "",
                _forms(whole),
            ]
        )
        + OPENCV
        + "\n"
        + converters(measured)
    )


def _measured(key: str, found: Mapping[str, Any]) -> str:
    opset = str(best(found))
    name, _, release = key.partition(" ")
    cells = [
        f"{shipped(name).title} {release}", found["version"], opset, found["right"][opset], found["lost"].get(opset, 0),
        found["newest"], _next(found["newly lost"], int(opset)),
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def _next(lost: Mapping[str, list[Any]], opset: int) -> str:
    """Return the models that are lost at the next two opsets with losses."""
    losses = []
    for newer, (count, *cases) in lost.items():
        if int(newer) > opset:
            more = f" and {count - 3} more" if count > 3 else ""
            losses.append(f"{count} at {newer}: {', '.join(f'`{case}`' for case in cases[:3])}{more}")
    return "; ".join(losses[:2])


def _forms(measured: Mapping[str, Any]) -> str:
    """Return a table of the forms of Resize that are right; equal releases share a row."""
    lines = [
        "The table counts the right results of 55 Resizes: nearest, linear and cubic, five sizes, each in every form.\n",
        "| | opset | " + " | ".join(FORMS) + " |",
        "|---" * (2 + len(FORMS)) + "|",
    ]
    alike: dict[tuple[str, str], list[str]] = {}
    for key, found in measured.items():
        name, _, release = key.partition(" ")
        alike.setdefault((name, json.dumps(found["forms"])), []).append(release)
    for (name, text), releases in alike.items():
        span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        for own, opset in zip((f"{shipped(name).title} {span}", "", ""), (11, 13, 18), strict=True):
            cells = (str(json.loads(text).get(f"{opset} {form}", "")) for form in FORMS)
            lines.append(f"| {own} | {opset} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
