"""Writes docs/runtimes.md from the table of runtimes and what was measured. `python -m tests.docs.runtimes_page`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnx_migrate.messages import listed
from onnx_migrate.standard.targets import shipped, tables
from onnx_migrate.standard.targets.measured_forms import ENDING, FAILING, shipped_forms
from tests.campaigns.runtimes.forms import FORMS
from tests.campaigns.runtimes.survey import CONVERTERS, MEASURED, best
from tests.docs.converters import converters
from tests.docs.runtime_sections import contents, ordered, section
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "runtimes.md"

HEAD = """# Runtimes

Nobody needs an opset; a model has to run somewhere. `--for RUNTIME==VERSION` brings it to what that release takes: the opset and
the IR version, the operators that it has, the values of attributes and element types that it takes, the forms of Resize and of
others that it reads.

```sh
onnx-migrate model.onnx out.onnx --for tensorrt==8.2
onnx-migrate model.onnx out.onnx --for "windows 10 build 19041"
onnx-migrate model.onnx out.onnx --for rk3588
onnx-migrate model.onnx out.onnx --for onnxruntime==1.14 --for tensorrt==8.6   # both
onnx-migrate model.onnx out.onnx --for onnxruntime                             # the installed release
onnx-migrate model.onnx out.onnx --for ./mychip.toml                           # your own
```

**Measured or read.** A row that is *measured* was run: a test or the survey of this project loaded models into that release. A
row that is *read* is from the sources named beside it: documentation, code of importers, threads. Reports say "read, not
measured" of it. Where sources contradict each other, the row has the safer of them. A runtime need not support every
combination of an operator that it has.

**Operators.** A release's newest opset says nothing about operators. The column *operators* counts, for the newest release, those
that were *measured* (it loaded them and computed node tests right), *read* (in the source named), and known to be *missing*;
what has no row is missing, there, or *not known*. `inspect --for` says "opset fits, operators not known", with their names, where
a model has one of these, and a migration warns of them (`operators-not-known`).

**Forms.** That an operator was measured does not say that every node of it runs: OpenCV 4.8 computes a ReduceMean over the last
axis right, and one over two axes of a larger image wrong. For {measured} the forms of nodes were measured, too: element types,
ranks, axes, which inputs are constants, how dims are broadcast, and the attributes, in onnx's node tests, in what exporters write
and in the nodes of whole models. "Runs as it is" is said of a model if each of its nodes has a form that was right, and that no
node that failed has; of others, and of all in releases before these, operators are not known. From 1.17 on ONNX Runtime runs
nearly all forms of its operators, and only a model with a node of a form that failed is not known to run. Such forms are kept of
{ruled_out}.
OpenCV fuses nodes: there, each operator before an input of data must have been right before that input, too. Of two corpora
of published models that no row was learned with, four of its releases were said to run 84 without this, five of them wrongly, and
with it 50, none wrongly.

Of 66 published models that no row was learned with, 19 releases of six runtimes were said to run 607 in all. Two were off by
rounding (2e-6 of the largest number), and four wrong: two in pnnx, which takes initializers before the inputs for these and drops
an output that is an input, one in OpenCV 5.0, which computes Mul of one and of several channels by blocks of channels, one in
ONNX Runtime 1.19, which forgets the zeros of a Pad before an AveragePool. Now these are mended, said, or not known.
Of 62 others, judged after that, they were said to run 518, none wrongly; a net for 256 x 256 x 256 voxels did not end within the
time of the program in four of them.
Then releases were tried with nodes of random lengths, axes and modes (`python -m benchmarks.random_nodes`): of 7,764 claims of
1,500 such nodes in OpenCV 4.8, 4.9, 4.10 and 5.0, tract and two OpenVINOs, 64 were wrong. What they showed is told by its
conditions now (`Computed wrongly` below). Of 61 more published models, judged after that, 626 claims were made and two were
wrong: ONNX Runtime 1.4 does not load a value that is declared with a wrong number of axes (mended), and 1.17 runs no STFT of a
signal as long as its window. Of 24 refusals one was false, a rounding that MNN gets right where no halves occur (it says
"perhaps" now).
`python -m benchmarks.runtime_operators` measures both.

A release newer than its table is taken for the last row, with a warning; a release between two rows for the older one. A name
without a version is the installed release, else the default named below, else an error. Several `--for` mean all of them: the
newest opset and IR version that all take, the operators that all have, the forms that one of them wants; if there is no such
opset, an error names two that contradict each other. An operator that a runtime takes only up to a version (*newest*) keeps
the models that use it at an older opset; a note says so. `--resize-form` takes precedence over the table, and `--opset` on the
command line over a `for` of the configuration file; beside `--for`, `--opset N` is taken where the runtime takes N.

The name can be written as it comes to mind (`TensorRT 8.2`, `"jetson with TensorRT 8.2"`, `jetpack==5.1`, `rk3588`); the names
below and their aliases are known, and of others the nearest are suggested. [targets.md](targets.md) says how to describe a
target of your own. What was asked for stands in the report, as text, JSON and HTML: the targets and whether their rows were
measured, the options, the versions of the tools, and the command that does the same again. From Python: `migrate(model,
runtime=["tensorrt==8.6", "./mychip.toml"])`.

The verification runs in ONNX Runtime, whatever `--for` names; `--run-in` runs the result in others.

In the tables, *Resize* `auto` is what `--resize-form auto` writes: scales, or sizes where the output lengths need them; `scales`
means scales wherever that is exact; *all axes*, that the attribute `axes` (opset 18 and later) is not supported, so that scales
and sizes are written for all axes, with bit-identical results. *Wants* are forms that are written for the runtime, and
limits; *no functions*, that it takes no local functions.

"""

HOW = """## How OpenVINO and OpenCV were measured

About 900 models were brought to every opset from 9 to 26 by onnx-migrate, without simplification or other changes: the test
cases of single operators in onnx 1.4, 1.7, 1.10 and 1.13 with their recorded results, and a fixture of each kind of this
project. A model is *right* if the release loads it, runs it, and computes the recorded results (relative 2e-3, absolute
2e-4; for OpenCV, which has no vectors and scalars, in any shape). It is *lost* at an opset if it is right at an older
opset and not at this one, or cannot be brought there: some nearest Upsamples cannot be expressed at opset 10.

The row has the newest opset at which at most three in 400 models are lost, but none that is newer than the ONNX built into
the release (OpenVINO) or the ONNX release at the time it was built (OpenCV): a newer opset may lose none of these models,
but the release cannot support it on purpose. Operators that these models do not contain are not measured. The figures of
OpenCV 4 vary by up to three, because its Gemm is not deterministic.

`python -m tests.campaigns.runtimes.survey openvino==2023.1.0` measures a release, in a minute or two, and
`python -m tests.docs.runtimes_page` writes this page.

| release | wheel | opset | right | lost | newest opset of its ONNX | lost first at newer opsets |
|---|---|---|---|---|---|---|
"""

OPENCV = """
OpenCV 4 does not read `nearest_mode`: it picks as `floor` with `asymmetric`, and as `round_prefer_ceil` with `align_corners` and
`half_pixel` (up to 4.7 as `round_prefer_floor` with `half_pixel`). It does not support cubic. OpenCV 5 supports all.

**Linear Upsample of PyTorch in OpenCV.** Up to opset 10, OpenCV computes the linear Upsample of a model whose
`producer_name` is `pytorch` as `half_pixel`, which is what PyTorch computed, although the file does not say so. From opset 11 on
it computes what the file says. So `--for opencv` writes `half_pixel` there (`resize_intent`), and all wheels from 4.5 to 5.0
compute for the result what they compute for the original; the report says how far that is from what the file says. With a
second `--for` of a runtime that reads the file as it says, `asymmetric` stays and a warning says so; `--skip-pass resize_intent`
keeps it too.
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
        "The number of right results of 55 Resizes (nearest, linear and cubic; five sizes), each written in every form:\n",
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
