"""Measures what releases of OpenVINO and OpenCV run, for the rows of `onnx_migrate.spec.targets`.

    python -m tests.runtimes.survey                        # all that is in measured.json, again
    python -m tests.runtimes.survey openvino==2023.1.0 opencv==4.8.1.78

Each release takes up to two minutes. What is found is written to measured.json, from which docs/runtimes.md is made
(`python -m tests.docs.runtimes_page`) and against which a test holds the rows.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.runtimes import forms, sample
from tests.runtimes.releases import Ran, run

__all__ = ["MEASURED", "best"]

MEASURED = Path(__file__).with_name("measured.json")

_ONNX = {
    "2021-07-30": 15, "2022-02-17": 16, "2022-06-17": 17, "2022-12-12": 18, "2023-05-04": 19, "2023-10-25": 20,
    "2024-03-25": 21, "2024-09-30": 22, "2025-05-09": 23, "2025-08-27": 24, "2025-12-01": 25, "2026-03-27": 26,
    "2026-06-15": 27, "2026-10-05": 28,
}  # fmt: skip
"""From when on ONNX had an opset."""


def best(measured: Mapping[str, Any]) -> int:
    """Return the opset to bring models to: the newest at which at most three in 400 are lost.

    Lost is a model that is right at an older opset, and at this one is not, or cannot be brought to it. None is taken
    that is newer than what the release can have known: the ONNX that is built into it (OpenVINO), or that there was
    (OpenCV).
    """
    right, lost = measured["right"], measured["lost"]
    return max(
        int(opset)
        for opset in right
        if int(opset) <= measured["newest"]
        and lost.get(opset, 0) * 400 <= (right[opset] + lost.get(opset, 0)) * 3
    )


def measure(runtime: str, version: str, folder: Path, names: Sample, kinds: Forms) -> dict[str, Any]:
    """Run all models in a release, and count."""
    models = [name for found in names.values() for name in found.values() if name]
    ran = run(runtime, version, folder / "sample", models)
    right, lost = Counter[int](), Counter[int]()
    fresh: dict[int, list[str]] = {}
    for case, found in names.items():
        was = now = False
        for opset in sample.OPSETS:
            before, now = now, ran.ended.get(found[opset]) == "right" if opset in found else now
            right[opset] += now
            lost[opset] += was and not now
            if before and not now:
                fresh.setdefault(opset, []).append(case.removeprefix("test_"))
            was = was or now
    resized = run(runtime, version, folder / "forms", [name for found in kinds.values() for name in found])
    return {
        "version": version,
        "newest": _newest(ran),
        "right": {str(opset): right[opset] for opset in sample.OPSETS},
        "lost": {str(opset): lost[opset] for opset in sample.OPSETS if lost[opset]},
        "newly lost": {
            str(opset): [len(cases), *sorted(cases)[:6]] for opset, cases in sorted(fresh.items())
        },
        "forms": {
            f"{opset} {form}": sum(resized.ended[name] == "right" for name in own)
            for (opset, form), own in kinds.items()
        },
    }


Sample = Mapping[str, Mapping[int, str]]
Forms = Mapping[tuple[int, str], Sequence[str]]


def _newest(ran: Ran) -> int:
    if "onnx_opset" in ran.release:
        return int(ran.release["onnx_opset"])
    return max(opset for date, opset in _ONNX.items() if date <= ran.release["built"])


def main() -> None:
    """Measure the releases named, or those that are known."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    known = [f"{key.split()[0]}=={found['version']}" for key, found in measured.items()]
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        names, kinds = sample.build(folder / "sample"), forms.build(folder / "forms")
        for requirement in sys.argv[1:] or known:
            runtime, _, version = requirement.partition("==")
            found = measure(runtime, version, folder, names, kinds)
            key = f"{runtime} {'.'.join(version.split('.')[:2])}"
            print(
                f"{key}: opset {best(found)}, lost {found['lost']}, Resizes right {found['forms']}",
                flush=True,
            )
            measured[key] = found
            ordered = dict(sorted(measured.items(), key=lambda item: _order(item[0])))
            MEASURED.write_text(_text(ordered), encoding="utf-8")


def _order(key: str) -> tuple[str, list[int]]:
    runtime, _, release = key.partition(" ")
    return runtime, [int(part) for part in release.split(".")]


def _text(measured: Mapping[str, Any]) -> str:
    """Write a release to a few lines, so that a change of one is seen as such."""
    lines = []
    for key, found in measured.items():
        parts = ",\n    ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
        lines.append(f"  {json.dumps(key)}: {{\n    {parts}\n  }}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
