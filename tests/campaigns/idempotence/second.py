"""Whether a second migration of a result changes nothing: each model, for each of the requests that change most.

    python -m tests.campaigns.idempotence.second                     # fixtures and onnx's node tests
    python -m tests.campaigns.idempotence.second MODELS... --every 7

MODELS are files or folders of models. Each request is made of a model, and the same again of what came of it: the second
result must have the bytes of the first. Refusals are counted. It exits with 1 if a second migration changed or refused a result.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

import onnx_migrate
from tests.campaigns.fuzz.onnx_cases import onnx_cases
from tests.support.paths import FIXTURES

__all__ = ["REQUESTS", "again", "models"]

REQUESTS: dict[str, dict[str, Any]] = {
    "default": {},
    "opset 17": {"opset": 17},
    "onnxruntime 1.16": {"runtime": "onnxruntime==1.16"},
    "tensorrt 8.6": {"runtime": "tensorrt==8.6"},
    "opencv 4.8": {"runtime": "opencv==4.8"},
}


def models(given: list[str]) -> Iterator[tuple[str, Path | bytes]]:
    """Yield the models of files and folders by name; without any, the fixtures and onnx's node tests."""
    for path in [Path(item) for item in given] or [FIXTURES]:
        for file in sorted(path.rglob("*.onnx")) if path.is_dir() else [path]:
            yield file.stem, file
    if not given:
        yield from onnx_cases()


def again(model: Path | bytes, request: str) -> str:
    """Return what became of a result that was migrated once more: "same", "changed ...", "refused ..."; "" without a result."""
    options = {**REQUESTS[request], "verify": False, "isolated": False}
    try:
        first = onnx_migrate.migrate(model, **options).model
    except onnx_migrate.MigrateError:
        return ""
    try:
        second = onnx_migrate.migrate(first, **options).model
    except onnx_migrate.MigrateError as error:
        return f"refused: {error}"
    if second.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True):
        return "same"
    return f"changed: {_operators(first)} became {_operators(second)}"


def _operators(proto: onnx.ModelProto) -> str:
    found = Counter(node.op_type for node in proto.graph.node)
    return ", ".join(f"{count} {name}" for name, count in sorted(found.items()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*")
    parser.add_argument("--every", type=int, default=1, help="take every so many of the models")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    for name, model in list(models(asked.models))[:: asked.every]:
        for request in REQUESTS:
            ended = again(model, request)
            counts[ended.partition(":")[0] or "no result"] += 1
            if ended not in ("", "same"):
                print(f"{name} ({request}): {ended}", flush=True)
    print(", ".join(f"{count:,} {ended}" for ended, count in counts.most_common()))
    return 1 if counts["changed"] or counts["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
