"""Writes docs/runtimes.md from the table of runtimes and what was measured. `python -m tests.docs.runtimes_page`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnx_migrate.spec.targets import Table, shipped
from tests.runtimes.forms import FORMS
from tests.runtimes.survey import MEASURED, best
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "runtimes.md"

HEAD = """# Runtimes

`--for RUNTIME==VERSION` brings a model to the newest opset that a release is known to run, refuses a model with an IR
version that the release does not load, and writes each Resize in a form that it supports. A name without a version means
the installed release, from any of its packages; for a release newer than this page, the last row is used. `--opset` and
`--resize-form` on the command line take precedence.

```sh
onnx-migrate model.onnx out.onnx --for onnxruntime==1.14
onnx-migrate model.onnx out.onnx --for openvino==2023.1
onnx-migrate model.onnx out.onnx --for onnxruntime        # the installed release
```

ONNX Runtime and TensorRT reject models that are newer than their row, or do not support them, so `--for` refuses them too.
OpenVINO and OpenCV reject no opset: a model that is newer than the row keeps its opset, with a warning. A runtime need not
support every operator of an opset. The verification runs in ONNX Runtime, whatever `--for` names.

*Resize* in these tables: `auto` is what `--resize-form auto` writes: scales, or sizes where the output lengths need them;
`scales` means scales wherever that is exact. *All axes* means that the attribute `axes` (opset 18 and later) is not
supported, so scales and sizes are written for all axes, with bit-identical results.
"""

SOURCES = {
    "onnxruntime": """Measured with the wheel of every minor release: the newest opset and the newest IR version of a model with
one Identity that it loads. `pytest -m runtimes` repeats this, and runs migrated models there. Every release supports every form
of Resize of its opsets.

**AveragePool in ONNX Runtime 1.21 to 1.24** computes wrong results from opset 19 on when padding is counted
(`count_include_pad`) and is only at the end, as in `pads = [0, 0, 1, 0]`. `--for` warns of it (`runtime-fault`). Results are
correct up to opset 18, and in 1.20 and earlier and 1.25 and later.""",
    "tensorrt": """Not measured, but read from the branches of these releases of github.com/onnx/onnx-tensorrt. The opsets are
those at the start of its docs/operators.md, which does not mention IR versions. The forms of Resize are those that the importer
reads: scales computed at run time from 8.4 on, sizes always, `axes` from 10.0 on. 9.x accepts opset 19 but ignores `axes`, so
it would use the wrong number of sizes for a Resize with `axes`.""",
    "openvino": """Measured with the wheels, on the CPU in float32 (below). OpenVINO accepts any opset, and translates an
operator as the newest version that it knows: an operator that has changed since fails, or computes the old semantics.""",
    "opencv": """Measured with the wheels of opencv-python-headless, `cv2.dnn.readNetFromONNX` on the CPU (below). OpenCV accepts
any opset, and takes few of the changes between them into account.""",
}

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

`python -m tests.runtimes.survey openvino==2023.1.0` measures a release, in a minute or two, and
`python -m tests.docs.runtimes_page` writes this page.

| release | wheel | opset | right | lost | newest opset of its ONNX | lost first at newer opsets |
|---|---|---|---|---|---|---|
"""

OPENCV = """
OpenCV 4 rounds nearest in its own way in every form: `ceil`, `align_corners` as `round_prefer_floor`, and `half_pixel` as
`round_prefer_floor` (up to 4.7 as `round_prefer_ceil`). It does not support cubic. OpenCV 5 supports all.

**Linear Upsample of PyTorch in OpenCV.** Up to opset 10, OpenCV computes the linear Upsample of a model whose
`producer_name` is `pytorch` as `half_pixel`, which is what PyTorch computed, although the file does not say so. From opset 11 on
it computes what the file says. So `--for opencv` writes `half_pixel` there (`resize_intent`), and all wheels from 4.5 to 5.0
compute for the result what they compute for the original; the report says how far that is from what the file says. With a
second `--for` of a runtime that reads the file as it says, `asymmetric` stays and a warning says so; `--without resize_intent`
keeps it too.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the table as it is."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    tables = [
        f"## {shipped(name).title}\n\n{source}\n\n{_table(shipped(name))}" for name, source in SOURCES.items()
    ]
    lines = [_measured(key, found) for key, found in measured.items()]
    return "\n".join([HEAD, *tables, HOW + "\n".join(lines), "", _forms(measured)]) + OPENCV


def _table(table: Table) -> str:
    rows = table.releases
    versions = any(row.ir_version for row in rows)
    lines = ["| from | opset |" + (" IR version |" if versions else "") + " Resize |"]
    lines.append("|---" * (3 + versions) + "|")
    for row in rows:
        form = row.resize_form + ("" if row.resize_axes else ", all axes")
        version = f" {row.ir_version} |" if versions else ""
        lines.append(f"| {row.since} | {row.opset} |{version} {form} |")
    return "\n".join(lines) + f"\n\nUp to {table.newest}.\n"


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
