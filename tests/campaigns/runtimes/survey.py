"""Measures what releases of runtimes run, for the rows of their tables (onnx_migrate/standard/targets/tables).

    python -m tests.campaigns.runtimes.survey                        # all that is in measured.json, again
    python -m tests.campaigns.runtimes.survey openvino==2023.1.0 tract==0.23.9
    python -m tests.campaigns.runtimes.survey rknn==2.5.0 --python /path/to/bin/python   # of an environment that has it

A release takes from two minutes (OpenVINO) to an hour (ncnn, RKNN). What is found is written to measured.json, from which
docs/runtimes.md is made (`python -m tools.pages.runtimes_page`) and against which a test holds the rows.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from tests.campaigns.runtimes import forms, real, sample
from tests.campaigns.runtimes.releases import Ran, run
from tests.campaigns.runtimes.sample import Sampled

__all__ = ["CONVERTERS", "MEASURED", "best", "lacking", "part", "right_at"]

MEASURED = Path(__file__).with_name("measured.json")

_ONNX = {
    "2021-07-30": 15, "2022-02-17": 16, "2022-06-17": 17, "2022-12-12": 18, "2023-05-04": 19, "2023-10-25": 20,
    "2024-03-25": 21, "2024-09-30": 22, "2025-05-09": 23, "2025-08-27": 24, "2025-12-01": 25, "2026-03-27": 26,
    "2026-06-15": 27, "2026-10-05": 28,
}  # fmt: skip
"""From when on ONNX had an opset."""


CONVERTERS = ("tract", "mnn", "ncnn", "rknn")
"""Runtimes that are measured with the small sample."""

SLOW = {"ncnn": ((7, 9, 11, 13, 16, 18, 21), (11, 13, 18)), "rknn": ((12, 16, 19), (18,))}
"""Runtimes that take seconds for a model, and so a part of it: the opsets of cases, and of real models."""


def best(measured: Mapping[str, Any]) -> int:
    """Return the opset to bring models to.

    By the whole sample: the newest at which at most three in 400 are lost. Lost is a model that is right at an older
    opset, and at this one is not, or cannot be brought to it. None is taken that is newer than what the release can have
    known: the ONNX that is built into it (OpenVINO), or that there was (OpenCV).

    By the small sample, to whose every opset models come up and down: the newest at which at most two in 100 fewer are
    right than at the opset with the most.
    """
    right = measured["right"]
    if "lost" not in measured:
        most = max(right.values())
        return max(int(opset) for opset in right if right[opset] * 100 >= most * 98)
    lost = measured["lost"]
    return max(
        int(opset)
        for opset in right
        if int(opset) <= measured["newest"]
        and lost.get(opset, 0) * 400 <= (right[opset] + lost.get(opset, 0)) * 3
    )


def right_at(sampled: Sampled, ended: Mapping[str, str], opsets: Iterable[int]) -> list[bool | None]:
    """Return whether a case is right at each opset; None before its first.

    Its model at an opset is the one of the last opset at which it changed.
    """
    now: bool | None = None
    found = []
    for opset in opsets:
        at = max((own for own in sampled.names if own <= opset), default=None)
        now = None if at is None else ended.get(sampled.names[at]) == "right"
        found.append(now)
    return found


def lacking(sample: Iterable[Sampled], ended: Mapping[str, str], computed: Iterable[str] = ()) -> list[str]:
    """Return the operators of cases that are refused, and in no model that is right, at any opset.

    `computed` are those of other models that are right.
    """
    refused, right = set[str](), set(computed)
    for sampled in sample:
        for name, operators in sampled.operators.items():
            refused |= operators & {sampled.operator} if ended.get(name) == "fails" else frozenset()
            right |= operators if ended.get(name) == "right" else frozenset()
    return sorted(refused - right)


def measure(runtime: str, version: str, folder: Path, names: Sample, kinds: Forms) -> dict[str, Any]:
    """Run the whole sample in a release, and count."""
    models = [name for sampled in names.values() for name in sampled.names.values() if name]
    ran = run(runtime, version, folder / "sample", models)
    opsets = range(9, sample.OPSETS.stop)
    right, lost = Counter[int](), Counter[int]()
    fresh: dict[int, list[str]] = {}
    for case, sampled in names.items():
        was = before = False
        for opset, now in zip(opsets, right_at(sampled, ran.ended, opsets), strict=True):
            right[opset] += bool(now)
            lost[opset] += was and not now
            if before and not now:
                fresh.setdefault(opset, []).append(case.removeprefix("test_"))
            before = bool(now)
            was = was or before
    return {
        "version": version,
        "newest": _newest(ran),
        "right": {str(opset): right[opset] for opset in opsets},
        "lost": {str(opset): lost[opset] for opset in opsets if lost[opset]},
        "newly lost": {
            str(opset): [len(cases), *sorted(cases)[:6]] for opset, cases in sorted(fresh.items())
        },
        "forms": _resized(run(runtime, version, folder / "forms", _all(kinds)), kinds),
    }


def measure_converter(
    runtime: str,
    version: str,
    folder: Path,
    names: Sample,
    kinds: Forms,
    models: Mapping[str, Mapping[int, str]],
    python: str = "",
) -> dict[str, Any]:
    """Run the small sample in a release that converts models first, and count."""
    opsets: Sequence[int] = sample.OPSETS
    models_at: Sequence[int] = real.OPSETS
    if runtime in SLOW:
        opsets, models_at = SLOW[runtime]
        names = part(names)
        kinds = {key: own[::4] for key, own in kinds.items() if runtime != "rknn"}
    wanted = {
        name: None
        for sampled in names.values()
        for opset in opsets
        if (name := sampled.names[max(own for own in sampled.names if own <= opset)])
    }
    ran = run(runtime, version, folder / "small", wanted, python)
    right = Counter[int]()
    never: dict[str, list[str]] = {}
    for case, sampled in names.items():
        found = right_at(sampled, ran.ended, opsets)
        right.update(opset for opset, now in zip(opsets, found, strict=True) if now)
        own = [
            name for name, used in sampled.operators.items() if sampled.operator in used and name in ran.ended
        ]
        if sampled.operator and own and not any(ran.ended[name] == "right" for name in own):
            how = _how(ran, own[-1])
            never.setdefault(sampled.operator, []).append(f"{case.removeprefix('test_')} {how}")
    resized = run(runtime, version, folder / "forms", _all(kinds), python)
    there = [found[opset] for found in models.values() for opset in models_at if found[opset]]
    real_ran = run(runtime, version, folder / "real", there, python)
    computed = {
        node.op_type
        for name, how in real_ran.ended.items()
        if how == "right"
        for node in onnx.load(folder / "real" / f"{name}.onnx").graph.node
    }
    missing = lacking(names.values(), ran.ended, computed)
    return {
        "version": version,
        "cases": len(names),
        "right": {str(opset): right[opset] for opset in opsets},
        "lacking": missing,
        "never right": {name: cases for name, cases in sorted(never.items()) if name not in missing},
        "resizes": len(_all(kinds)),
        "forms": _resized(resized, kinds),
        "models": len(models),
        "models right": {
            str(opset): sum(real_ran.ended.get(found[opset]) == "right" for found in models.values())
            for opset in models_at
        },
        "models never right": {
            name: _how(real_ran, at[-1])
            for name, found in models.items()
            if (at := [one for one in found.values() if one in real_ran.ended])
            and not any(real_ran.ended[one] == "right" for one in at)
        },
    }


def _how(ran: Ran, name: str) -> str:
    """Return how a model ended, and how far from right it was if it ran."""
    return f"{ran.ended[name]}: {ran.why[name][:60]}" if ran.ended[name] == "wrong" else ran.ended[name]


def part(names: Sample) -> Sample:
    """Return one case of each operator, and all fixtures."""
    seen: dict[str, str] = {}
    for case, sampled in names.items():
        seen.setdefault(sampled.operator, case)
    return {case: own for case, own in names.items() if not own.operator or seen[own.operator] == case}


Sample = Mapping[str, Sampled]
Forms = Mapping[tuple[int, str], Sequence[str]]


def _all(kinds: Forms) -> list[str]:
    return [name for found in kinds.values() for name in found]


def _resized(ran: Ran, kinds: Forms) -> dict[str, int]:
    return {
        f"{opset} {form}": sum(ran.ended[name] == "right" for name in own)
        for (opset, form), own in kinds.items()
    }


def _newest(ran: Ran) -> int:
    if "onnx_opset" in ran.release:
        return int(ran.release["onnx_opset"])
    return max(opset for date, opset in _ONNX.items() if date <= ran.release["built"])


def main() -> None:
    """Measure the releases named, or those that are known."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    known = [f"{key.split()[0]}=={found['version']}" for key, found in measured.items()]
    parser = argparse.ArgumentParser(description="Measure what releases of runtimes run.")
    parser.add_argument(
        "releases", nargs="*", default=known, help="as in tract==0.23.9; all of measured.json"
    )
    parser.add_argument(
        "--python", default="", help="a Python that has the release, where pip alone does not do"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        kinds = forms.build(folder / "forms")
        converters = [one for one in given.releases if one.partition("==")[0] in CONVERTERS]
        small = sample.build(folder / "small", small=True) if converters else {}
        models = real.build(folder / "real") if converters else {}
        whole = sample.build(folder / "sample") if len(converters) < len(given.releases) else {}
        for requirement in given.releases:
            runtime, _, version = requirement.partition("==")
            found = (
                measure_converter(runtime, version, folder, small, kinds, models, given.python)
                if requirement in converters
                else measure(runtime, version, folder, whole, kinds)
            )
            key = f"{runtime} {'.'.join(version.split('.')[2:] if runtime == 'ncnn' else version.split('.')[:2])}"
            print(f"{key}: opset {best(found)}, right {found['right']}, Resizes {found['forms']}", flush=True)
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
