"""Measures which operators releases of runtimes run, and in which forms, and writes the operator rows and forms of their tables.

    python -m benchmarks.runtime_operators opencv==4.8.1.78 opencv==4.12.0.88     # measures, and writes opencv.operators.toml
    python -m benchmarks.runtime_operators opencv --write-only                    # from what is kept
    python -m benchmarks.runtime_operators tract==0.23.9 --models FOLDER          # NAME.onnx and io/NAME.npz, besides

Every model of `operator_cases` is run in the wheel of the release (tests/campaigns/runtimes/releases.py), in a process that may
crash or be given up, and so are whole models and their cuts (`model_cuts`). How each ended is kept, so that a second run goes on
where the first was stopped, and runs only what is new or has changed. The rows say which operators there are and what cannot run;
the forms (`form_boxes`), which nodes ran right. A release takes ten minutes (OpenCV) to hours (ncnn, of which --sample 5 runs
each fifth case).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

import onnx_migrate
from benchmarks.form_samples import Kept, add_models, wanted
from benchmarks.form_tables import write_forms
from benchmarks.operator_cases import Case, build
from benchmarks.operator_limits import Ended
from benchmarks.operator_rows import Measured, rows, text
from onnx_migrate.standard.targets import ENDING, FAILING, FORMS, resolve
from onnx_migrate.standard.targets.releases import key
from tests.campaigns.runtimes.releases import run
from tests.real.wheels import CACHE

FOLDER = CACHE / "operators"
TABLES = Path(onnx_migrate.__file__).parent / "standard" / "targets" / "tables"

ANY_SHAPE = ("opencv", "ncnn")
"""The runtimes without scalars and vectors."""

_RULED_OUT = ("onnxruntime", "openvino")
"""The runtimes that run nearly all forms of their operators: of these the forms that failed are written, too."""

_ENOUGH = 0.2
"""The share of the cases from which on what they say of limits counts."""

_AT_ONCE = 200
"""After how many models what was found is kept."""


def sampled(cases: Sequence[Case], each: int) -> list[Case]:
    """Return each Nth case of every version of an operator in every type, and so at least one."""
    groups: dict[tuple[str, str, int], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.operator, case.type, case.version].append(case)
    return [case for own in groups.values() for case in own[::each]]


def measure(runtime: str, version: str, cases: Sequence[Case], folder: Path = FOLDER) -> None:
    """Run the cases that have not been run yet in a release, and what fails in the forms that `write` of a row may name."""
    path = _results(runtime, version, folder)
    _run(runtime, version, {case.name: case.digest for case in cases}, folder, path)
    kept = _kept(path)
    failing = [
        case for case in cases if kept[case.name][1] != "right" and case.type == "float32" and not case.empty
    ]
    together = {name: case for case in failing if (name := _written(case, FORMS, folder))}
    _run(runtime, version, {name: case.digest for name, case in together.items()}, folder, path)
    kept = _kept(path)
    each = {
        name: case.digest
        for other, case in together.items()
        for form in FORMS
        if kept[other][1] == "right" and (name := _written(case, (form,), folder))
    }
    _run(runtime, version, each, folder, path)

    _run(runtime, version, wanted(folder), folder, path)


def _run(runtime: str, version: str, wanted: Mapping[str, str], folder: Path, path: Path) -> None:
    """Run models, given with what tells their files apart, and keep how they ended."""
    kept = _kept(path)
    left = [name for name, digest in wanted.items() if kept.get(name, ("",))[0] != digest]
    start = time.monotonic()
    for at in range(0, len(left), _AT_ONCE):
        part = left[at : at + _AT_ONCE]
        ran = run(runtime, version, folder, part)
        with path.open("a", encoding="utf-8") as file:
            for name in part:
                file.write(json.dumps([name, wanted[name], ran.ended[name], ran.why.get(name, "")]) + "\n")
        done = f"{at + len(part)} of {len(left)}, {time.monotonic() - start:.0f} s"
        print(f"{runtime} {version}: {done}: {dict(Counter(ran.ended.values()))}", flush=True)


def _written(case: Case, forms: Sequence[str], folder: Path) -> str:
    """Return the name of a case's model in these forms, "" if that is no other model or cannot be written."""
    opset, _, stem = case.name.partition("/")
    name = f"{opset}-{'-'.join(forms) if len(forms) == 1 else 'all'}/{stem}"
    path = folder / f"{name}.onnx"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        model = onnx.load(folder / f"{case.name}.onnx")
        target = folder / "form.toml"
        target.write_text(f'name = "form"\noperators = "any"\n[[release]]\nwrite = {json.dumps(forms)}\n')
        try:
            result = onnx_migrate.migrate(model, runtime=str(target), simplify=False, verify=False).model
        except onnx_migrate.MigrateError:
            result = model
        same = [list(model.graph.node), list(model.graph.initializer)] == [
            list(result.graph.node), list(result.graph.initializer),
        ]  # fmt: skip
        path.write_bytes(b"" if same else result.SerializeToString())
    return name if path.stat().st_size else ""


def measured(runtime: str, cases: Sequence[Case], folder: Path = FOLDER) -> list[Measured]:
    """Return what is kept of the releases of a runtime, oldest first."""
    found = []
    for version, kept in _all_kept(runtime, folder).items():
        ended = []
        for case in cases:
            digest, how, why = kept.get(case.name, ("", "", ""))
            if digest == case.digest:
                opset, _, stem = case.name.partition("/")
                own = frozenset(
                    form for form in FORMS if kept.get(f"{opset}-{form}/{stem}", ("", ""))[1] == "right"
                )
                ended.append(Ended(case, how, why, own))
        (target,) = resolve([f"{runtime}=={version}"])
        axes = 2 if runtime in ANY_SHAPE else 0
        right, failing = _of_models(runtime, version, folder)
        row = target.row
        found.append(
            Measured(
                version, ended, row.write, row.resize_axes, right, failing, axes,
                sampled=len(ended) < _ENOUGH * len(cases), opset=row.opset,
            )
        )  # fmt: skip
    return found


def _of_models(
    runtime: str, version: str, folder: Path
) -> tuple[Mapping[str, int], tuple[frozenset[str], ...]]:
    """Return in how many models that `runtime_models` found right an operator is, and those of each that is not.

    A model counts as it is, and once more if its result was run.
    """
    models, right, failing = folder / "models", Counter[str](), []
    ended = models / f"{runtime}=={version}.json"
    judged = models / f"{runtime}=={version}.judged.json"
    found: list[tuple[frozenset[str], str]] = []
    if ended.exists():
        for name, how in json.loads(ended.read_text(encoding="utf-8"))["ended"].items():
            model = onnx.load(models / f"{name}.onnx", load_external_data=False)
            found.append((frozenset(node.op_type for node in model.graph.node), how))
    if judged.exists():
        results = json.loads(judged.read_text(encoding="utf-8"))
        found += [(frozenset(one["operators"]), one["result"]) for one in results if "operators" in one]
    for own, how in found:
        if how == "right":
            right.update(own)
        elif how not in ("times out", "refused"):
            failing.append(own)
    return right, tuple(failing)


def _results(runtime: str, version: str, folder: Path) -> Path:
    (folder / "results").mkdir(parents=True, exist_ok=True)
    return folder / "results" / f"{runtime}=={version}.jsonl"


def _kept(path: Path) -> dict[str, tuple[str, str, str]]:
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {name: (digest, how, why) for name, digest, how, why in lines}


def _all_kept(runtime: str, folder: Path) -> dict[str, Kept]:
    """Return what is kept of the releases of a runtime, oldest first."""
    paths = (folder / "results").glob(f"{runtime}==*.jsonl")
    versions = sorted((path.stem.partition("==")[2] for path in paths), key=key)
    return {version: _kept(_results(runtime, version, folder)) for version in versions}


def main() -> None:
    """Measure the releases named, and write the rows of their runtimes."""
    parser = argparse.ArgumentParser(description="Measure operators, and write their rows.")
    parser.add_argument("releases", nargs="+", help="as in opencv==4.8.1.78; with --write-only, as in opencv")
    parser.add_argument(
        "--sample", type=int, default=1, help="run each Nth case of an operator's version and type"
    )
    parser.add_argument(
        "--forms-only", action="store_true", help="write the forms, and leave the rows as they are"
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="write only forms, and bring those that are there up to date with what is kept",
    )
    parser.add_argument("--write-only", action="store_true", help="write the rows of what is kept")
    parser.add_argument(
        "--models", type=Path, action="append", default=[], help="a folder of models, with their data in io"
    )
    given = parser.parse_args()
    cases = build(FOLDER)
    for models in given.models:
        add_models(models, FOLDER)
    for requirement in given.releases:
        runtime, _, version = requirement.partition("==")
        if not given.write_only:
            measure(runtime, version, sampled(cases, given.sample))
    for runtime in dict.fromkeys(requirement.partition("==")[0] for requirement in given.releases):
        if not given.forms_only and not given.add:
            path = TABLES / f"{runtime}.operators.toml"
            path.write_text(text(rows(measured(runtime, cases))), encoding="utf-8")
        kept = _all_kept(runtime, FOLDER)
        for ending in (ENDING, FAILING) if runtime in _RULED_OUT else (ENDING,):
            write_forms(runtime, cases, TABLES / f"{runtime}{ending}", FOLDER, kept, add=given.add)


if __name__ == "__main__":
    main()
