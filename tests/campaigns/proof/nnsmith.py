"""Random models of NNSmith, migrated and judged against the original by `judge`, which shares nothing with `verify`.

    PYTHON tests/campaigns/proof/nnsmith_models.py FOLDER --models 2000      # PYTHON has nnsmith and PyTorch
    python -m tests.campaigns.proof.nnsmith FOLDER [--sample 300] [--requests 9,11,21,26,fp16] [--save FOLDER]

Each model is migrated to each opset and to float16, as the command does. ONNX Runtime then runs the original and the result
without optimisations. A result is right if the numbers agree within 1e-4 of an output's scale, and within 5e-3 for float16. It
must not have NaN or infinities that the original does not have. A wrong result is "ill-conditioned" if the original moves as far
when its inputs move by one unit in the last place. The command exits with 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.campaigns.proof.forked import Died, call, import_what_it_imports
from tests.campaigns.proof.judge import LIMITS, Unloadable, difference, run, runner

__all__ = ["REQUESTS", "Outcome", "outcome"]

REQUESTS: dict[str, dict[str, Any]] = {
    "9": {"opset": 9},
    "11": {"opset": 11},
    "21": {"opset": 21},
    "26": {"opset": 26},
    "fp16": {"precision": "fp16"},
}


_TOLD = re.compile(
    r"output '([^']+)' differs by up to ([\d.e+-]+) % of its largest value(?: \(limit ([\d.e+-]+) %\))?"
)
"""The sentence of a report that says how far an output is off, and how far it may be."""


@dataclass(frozen=True)
class Outcome:
    """What became of one request: right, wrong, ill-conditioned, refused, unverified-and-right and so on, with the reason."""

    kind: str
    reason: str = ""
    result: bytes = b""
    feed: dict[str, Any] = field(default_factory=dict)
    says: str = ""


def outcome(data: bytes, request: str) -> Outcome:
    """Migrate a model and judge the result; call it in a child."""
    import onnx_migrate

    try:
        done = onnx_migrate.migrate(data, isolated=False, timeout=60, **REQUESTS[request])
    except onnx_migrate.MigrateError as error:
        return Outcome("refused", f"{getattr(error, 'code', '')}: {error}")
    verdict = done.report.verification
    says = "" if verdict is None else verdict.summary
    original = onnx.ModelProto.FromString(data)
    text, feed = _judged(original, done.model, float16=request == "fp16", limits=_reported(verdict))
    if not text:
        return Outcome("right", says=says)
    kind = "ill-conditioned" if feed and _moves(original, feed) else "wrong"
    if kind == "wrong" and request == "fp16" and not (verdict and verdict.verified):
        kind = "off, and the report does not say how far"
    return Outcome(kind, text, done.model.SerializeToString(), feed, says)


def _reported(verdict: Any) -> dict[str, float]:
    """Return how far the report says that each output is off or may be, as a share of its largest magnitude."""
    if verdict is None:
        return {}
    told = {one.name: max(one.limit, one.error) for one in verdict.rounded}
    for name, share, limit in _TOLD.findall(verdict.summary):
        told[name] = max(told.get(name, 0.0), float(share) / 100, float(limit or 0) / 100)
    return told


def _judged(
    original: onnx.ModelProto, result: onnx.ModelProto, *, float16: bool, limits: dict[str, float]
) -> tuple[str, dict[str, Any]]:
    reference = False
    try:
        ours = runner(original)
    except Unloadable:  # as a Tan of doubles, which ONNX Runtime has no kernel for
        ours, reference = runner(original, reference=True), True
    try:
        theirs = runner(result, reference=reference)
    except Unloadable as error:
        return f"does not load: {error}", {}
    # Its Resize writes 0 for NaN, and the largest number for infinity.
    replaces_infinities = reference and any(node.op_type == "Resize" for node in original.graph.node)
    for feed in feeds(original):
        before = run(ours, feed)
        if before is None or (replaces_infinities and not all(map(_finite, before))):
            continue
        after = run(theirs, feed)
        if after is None and reference:  # onnx.reference lacks much that ONNX Runtime has
            continue
        if after is None:
            return "does not run", feed
        text = _rounded_difference(original, before, after, limits) if float16 else difference(before, after)
        if text:
            return text, feed
    return "", {}


def _finite(values: Any) -> bool:
    """Return whether no element is NaN, infinite or the largest number."""
    return values.dtype.kind != "f" or bool((np.abs(values) < np.finfo(values.dtype).max).all())


def feeds(model: onnx.ModelProto) -> Iterator[dict[str, Any]]:
    """Yield five feeds: from 1 to 2, as NNSmith exports with; normal, wide, few values, zeros and ones."""
    for seed in range(5):
        rng, feed = np.random.default_rng(seed), {}
        for value in model.graph.input:
            kind = value.type.tensor_type
            shape = [dim.dim_value for dim in kind.shape.dim]
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            feed[value.name] = _drawn(rng, shape, dtype, seed)
        yield feed


def _drawn(rng: np.random.Generator, shape: list[int], dtype: Any, seed: int) -> Any:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(*[(1, 3), (0, 5), (0, 40), (0, 2), (1, 4)][seed], size=shape).astype(dtype)
    made = [
        lambda: rng.uniform(1, 2, shape),
        lambda: rng.standard_normal(shape),
        lambda: 5 * rng.standard_normal(shape),
        lambda: rng.integers(-2, 3, shape) * 0.5,
        lambda: rng.uniform(0, 1, shape),
    ][seed]()
    return np.asarray(made).astype(dtype)


def _rounded_difference(
    model: onnx.ModelProto, before: list[Any], after: list[Any], limits: dict[str, float]
) -> str:
    """Return how a result in float16 is further off than the report says, or has NaN or infinities of its own."""
    for value, one, other in zip(model.graph.output, before, after, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{value.name}: {one.dtype}{list(one.shape)} became {other.dtype}{list(other.shape)}"
        if one.dtype.kind != "f":
            continue
        if (np.isfinite(one) & ~np.isfinite(other)).any():
            return f"{value.name}: NaN or infinities that the original does not have"
        both = np.isfinite(one) & np.isfinite(other)
        scale = float(np.abs(one[both], dtype=np.float64).max(initial=0.0))
        worst = float(np.abs(one[both].astype(np.float64) - other[both]).max(initial=0.0))
        limit = max(LIMITS["float16"], limits.get(value.name, 0.0))
        if worst > limit * scale and worst > 1e-6:
            return f"{value.name}: off by {worst / (scale or 1):.2g} of the largest magnitude, {limit:.2g} is said"
    return ""


def _moves(model: onnx.ModelProto, feed: dict[str, Any]) -> bool:
    """Return whether the original gives other numbers, too, when its inputs move by one unit, or when it is optimised."""
    try:
        original, reference = runner(model), False
    except Unloadable:
        original, reference = runner(model, reference=True), True
    before = run(original, feed)
    others = [run(original, moved) for moved in _moved_by_one_unit(feed)]
    if not reference:
        others.append(run(runner(model, optimised=True), feed))
    return before is not None and any(after is not None and difference(before, after) for after in others)


def _moved_by_one_unit(feed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the inputs moved up, down, and each element in a direction of its own, as a Softmax ignores the first two."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        signs: Any = (1, -1)[seed] if seed < 2 else None
        moved = {}
        for name, values in feed.items():
            if values.dtype.kind == "f":
                towards = np.inf * (rng.choice([-1, 1], values.shape) if signs is None else signs)
                moved[name] = np.asarray(np.nextafter(values, np.asarray(towards).astype(values.dtype)))
            else:
                moved[name] = values
        yield moved


def _quiet(data: bytes, request: str) -> Outcome:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    return outcome(data, request)


def _saved(folder: Path, name: str, data: bytes, done: Outcome) -> None:
    place = folder / f"nnsmith-{name}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "a.onnx").write_bytes(data)
    (place / "b.onnx").write_bytes(done.result)
    np.savez(place / "witness.npz", **done.feed)
    (place / "note.txt").write_text(f"{done.kind}: {done.reason}\nthe report says: {done.says}\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="take so many of the models, evenly; 0 is all")
    parser.add_argument("--requests", default=",".join(REQUESTS))
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="writes each wrong result there with its feed"
    )
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    files = sorted(asked.folder.glob("*.onnx"))
    if asked.sample and len(files) > asked.sample:
        files = [files[index * len(files) // asked.sample] for index in range(asked.sample)]
    for request in asked.requests.split(","):
        import_what_it_imports(_quiet, files[0].read_bytes(), request)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    begin = time.perf_counter()
    for file in files:
        data = file.read_bytes()
        for request in asked.requests.split(","):
            try:
                done: Outcome = call(_quiet, data, request, seconds=120)
            except (Died, RuntimeError) as error:
                done = Outcome("died", str(error))
            counts[request][done.kind] += 1
            if done.kind == "right" and not done.says.startswith("verified"):
                counts[request]["right, but not verified"] += 1
                print(f"{file.stem} {request}: right, but {done.says}"[:200], flush=True)
            if done.kind != "right":
                reasons[request][f"{done.kind}: {done.reason[:110]}"] += 1
                print(f"{file.stem} {request}: {done.kind}: {done.reason} | {done.says}"[:300], flush=True)
            if asked.save and done.kind == "wrong":
                _saved(asked.save, f"{file.stem}-{request}", data, done)
    for request, of in counts.items():
        print(f"{request:6} {dict(of)}")
        for reason, number in reasons[request].most_common(6):
            print(f"       {number} {reason}")
    print(f"{len(files)} models, {time.perf_counter() - begin:.0f} s")
    if asked.json:
        asked.json.write_text(json.dumps({"counts": counts, "reasons": reasons}, indent=1))
    return int(any(of["wrong"] for of in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
