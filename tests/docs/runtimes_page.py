"""Writes docs/runtimes.md from the table of runtimes and what was measured. `python -m tests.docs.runtimes_page`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnx_migrate.spec.runtimes import LAST, TABLE, Runtime
from tests.runtimes.forms import FORMS
from tests.runtimes.survey import MEASURED, best
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "runtimes.md"

HEAD = """# Runtimes

`--for RUNTIME==VERSION` brings a model to the newest opset that a release is known to run, refuses one whose IR version it
does not load, and writes each Resize in a form it knows. A name alone is the installed release, from whichever of its
packages; one that is newer than this page is taken for the last row. `--opset` and `--resize-form` on the command line
count before it.

```sh
onnx-migrate model.onnx out.onnx --for onnxruntime==1.14
onnx-migrate model.onnx out.onnx --for openvino==2023.1
onnx-migrate model.onnx out.onnx --for onnxruntime        # the one that is installed
```

ONNX Runtime and TensorRT refuse, or rule out, what is newer than their row, and so does `--for`. OpenVINO and OpenCV refuse
no opset: a model that is newer than the row stays at its own, with a warning. A runtime need not have every operator of
an opset. Verification runs in ONNX Runtime here, whatever `--for` names.

*Resize* in these tables: `auto` is what `--resize-form auto` writes, by scales, or by sizes where the lengths demand it;
`scales` is by scales wherever that is exact. *All axes* means that the attribute `axes` of opset 18 and on is not known, so
scales and sizes are written for all axes, to the same bits.
"""

SOURCES = {
    "onnxruntime": """What the wheels of every minor release load: the newest opset of a model of one Identity, and the newest
IR version. `pytest -m runtimes` does it again, and runs migrated models there. Every release takes every form of Resize
that its opset has.

**AveragePool in ONNX Runtime 1.21 to 1.24** is computed wrong from opset 19 on when padding is counted
(`count_include_pad`) and is only at the end, as `pads = [0, 0, 1, 0]`. `--for` warns of it (`runtime-fault`); up to opset 18
it is right, and so it is in 1.20 and before and in 1.25 and after.""",
    "tensorrt": """Not run: taken from github.com/onnx/onnx-tensorrt, in the branches of these releases. The opsets are those that
docs/operators.md begins with, which says nothing of IR versions. The forms of Resize are those that the importer reads:
scales that come at run time only from 8.4 on, sizes always; `axes` from 10.0 on. 9.x accepts opset 19 and passes over
`axes`, so that a Resize that has them would be given the wrong number of sizes.""",
    "openvino": """Measured with the wheels, on the CPU in float32 (below). OpenVINO takes any opset, and translates an
operator by the newest version it knows: what has changed since then fails, or is computed the old way.""",
    "opencv": """Measured with the wheels of opencv-python-headless, `cv2.dnn.readNetFromONNX` on the CPU (below). OpenCV takes
any opset and looks at few of its changes.""",
}

TITLES = {"onnxruntime": "ONNX Runtime", "tensorrt": "TensorRT", "openvino": "OpenVINO", "opencv": "OpenCV"}

HOW = """## How OpenVINO and OpenCV were measured

Some 900 models were brought to every opset from 9 to 26 by onnx-migrate, neither simplified nor changed otherwise: the cases
of one operator that onnx 1.4, 1.7, 1.10 and 1.13 carry with recorded results, and a fixture of each kind of this project.
A model is *right* where the release loads it, runs it, and gives what was recorded (relative 2e-3, absolute 2e-4; for
OpenCV, which has no vectors and scalars, whatever the shape). It is *lost* at an opset when it is right at an older one
and not there, or cannot be brought there: some nearest Upsamples have no equal at opset 10.

The row takes the newest opset at which at most three in 400 are lost, and none that is newer than the ONNX built into
the release (OpenVINO) or than what ONNX had when it was built (OpenCV): beyond that nothing may have been lost, and
nothing can be meant. What the models do not hold, the figures do not show; those of OpenCV 4 vary by up to three, because its
Gemm does not always give the same.

`python -m tests.runtimes.survey openvino==2023.1.0` measures a release, in a minute or two, and
`python -m tests.docs.runtimes_page` writes this page.

| release | wheel | opset | right there | lost there | of ONNX, at most | the next losses |
|---|---|---|---|---|---|---|
"""

OPENCV = """
Of nearest, OpenCV 4 rounds in a way of its own, in any form: `ceil`, `align_corners` by `round_prefer_floor`, and `half_pixel` by
`round_prefer_floor`, up to 4.7 instead by `round_prefer_ceil`. It has no cubic. OpenCV 5 has all.

**PyTorch's linear Upsample in OpenCV.** Up to opset 10, OpenCV takes the linear Upsample of a model whose `producer_name` is
`pytorch` for `half_pixel`: what PyTorch computed and the file does not say. From opset 11 on it does what the file says,
which after a migration is `asymmetric`. `--resize-intent` writes `half_pixel`, and OpenCV computes then what it did before.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the table as it is."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    tables = [
        f"## {TITLES[name]}\n\n{SOURCES[name]}\n\n{_table(rows, LAST[name])}" for name, rows in TABLE.items()
    ]
    lines = [_measured(key, found) for key, found in measured.items()]
    return "\n".join([HEAD, *tables, HOW + "\n".join(lines), "", _forms(measured)]) + OPENCV


def _table(rows: tuple[Runtime, ...], last: tuple[int, ...]) -> str:
    versions = any(row.ir_version for row in rows)
    lines = ["| from | opset |" + (" IR version |" if versions else "") + " Resize |"]
    lines.append("|---" * (3 + versions) + "|")
    for row in rows:
        form = row.resize_form + ("" if row.resize_axes else ", all axes")
        version = f" {row.ir_version} |" if versions else ""
        lines.append(f"| {_release(row.release)} | {row.opset} |{version} {form} |")
    return "\n".join(lines) + f"\n\nUp to {_release(last)}.\n"


def _release(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _measured(key: str, found: Mapping[str, Any]) -> str:
    opset = str(best(found))
    name, _, release = key.partition(" ")
    cells = [
        f"{TITLES[name]} {release}", found["version"], opset, found["right"][opset], found["lost"].get(opset, 0),
        found["newest"], _next(found["newly lost"], int(opset)),
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def _next(lost: Mapping[str, list[Any]], opset: int) -> str:
    """Return what is lost first at newer opsets."""
    told = []
    for newer, (count, *cases) in lost.items():
        if int(newer) > opset:
            more = f" and {count - 3} more" if count > 3 else ""
            told.append(f"{count} at {newer}: {', '.join(f'`{case}`' for case in cases[:3])}{more}")
    return "; ".join(told[:2])


def _forms(measured: Mapping[str, Any]) -> str:
    """Return which forms of a Resize are right, releases that are alike together."""
    lines = [
        "Of 55 Resizes (nearest, linear and cubic; five sizes), each written in every form, right were:\n",
        "| | opset | " + " | ".join(FORMS) + " |",
        "|---" * (2 + len(FORMS)) + "|",
    ]
    alike: dict[tuple[str, str], list[str]] = {}
    for key, found in measured.items():
        name, _, release = key.partition(" ")
        alike.setdefault((name, json.dumps(found["forms"])), []).append(release)
    for (name, text), releases in alike.items():
        span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        for own, opset in zip((f"{TITLES[name]} {span}", "", ""), (11, 13, 18), strict=True):
            cells = (str(json.loads(text).get(f"{opset} {form}", "")) for form in FORMS)
            lines.append(f"| {own} | {opset} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
