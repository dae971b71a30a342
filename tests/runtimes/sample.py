"""Models to tell by what a release runs: small ones at every opset, brought there by onnx-migrate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx.defs import get_all_schemas_with_history

import onnx_migrate
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.schema import is_onnx
from tests.conformance.cases import cases
from tests.support.paths import FIXTURES

__all__ = ["OPSETS", "build", "write_io"]

OPSETS = range(9, 27)
"""From what TensorRT and ONNX Runtime can be asked for, up to what the newest ONNX Runtime verifies."""

_RELEASES = ("1.4.1", "1.7.0", "1.10.2", "1.13.1")
"""Of onnx, whose cases are taken: opsets 9 to 18. A later one adds those that the earlier do not have."""


def build(folder: Path) -> dict[str, dict[int, str]]:
    """Write the sample; return, by case, the name of its model at each opset at which it may run otherwise.

    It may where the standard changed one of its operators; at other opsets it is as at the one before. The name is
    empty where the model cannot be brought to an opset.
    """
    (folder / "io").mkdir(parents=True)
    changed = defaultdict(set)
    for schema in get_all_schemas_with_history():
        if is_onnx(schema.domain):
            changed[schema.name].add(schema.since_version)
    names: dict[str, dict[int, str]] = {}
    for case, model, feeds, expected in _cases():
        found: dict[int, str] = {}
        own = onnx_opset(model.opset_import, ir_version=model.ir_version) or 1
        for opset in OPSETS:
            if opset < own:
                continue
            try:
                result = onnx_migrate.migrate(model, opset=opset, simplify=False, verify=False).model
            except onnx_migrate.MigrateError:
                found[opset] = ""
                continue
            bodies = [result.graph, *result.functions]
            anew = any(opset in changed[name] for body in bodies for name in _operators(body))
            if found and list(found.values())[-1] and not anew:
                continue
            found[opset] = f"opset{opset}/{case}"
            (folder / f"opset{opset}").mkdir(exist_ok=True)
            onnx.save(result, folder / f"{found[opset]}.onnx")
        names[case] = found
        write_io(folder, case, feeds, expected)
    return names


def write_io(folder: Path, case: str, feeds: dict[str, Any], expected: list[Any]) -> None:
    """Write what a case is fed and what must come of it, as probe.py reads it."""
    given = {f"i:{name}": value for name, value in feeds.items()}
    wanted = {f"o:{index:02}": value for index, value in enumerate(expected)}
    np.savez(folder / "io" / f"{case}.npz", **given, **wanted)


def _operators(body: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    for node in body.node:
        yield node.op_type
        for _, _, graph in subgraphs(node):
            yield from _operators(graph)


def _cases() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any], list[Any]]]:
    """Return onnx's cases of plain tensors, with the values recorded, and the oldest of each kind of fixture."""
    seen = set()
    for case in cases(_RELEASES):
        random = "dropout" in case.name or "training" in case.name
        if case.kind not in ("node", "simple") or case.name in seen or random or "expanded" in case.name:
            continue
        try:
            model, runs = case.load()
        except (UnicodeDecodeError, TypeError):
            continue  # strings of onnx 1.4, an optional of 1.10
        if runs and runs[0][0] and all(is_onnx(opset.domain) for opset in model.opset_import):
            feeds, expected = runs[0]
            if all(
                isinstance(x, np.ndarray) and x.dtype.kind in "fiub" for x in (*feeds.values(), *expected)
            ):
                seen.add(case.name)
                yield case.name, model, feeds, expected
    for path in sorted(FIXTURES.glob("*_opset*.onnx"), key=_kind_and_opset):
        kind, _ = _kind_and_opset(path)
        if kind in seen:
            continue
        seen.add(kind)
        model = onnx.load(path)
        model.producer_name = (
            ""  # OpenCV reads an old linear Upsample of PyTorch's in another way than it says
        )
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        with np.load(path.with_suffix(".io.npz")) as recorded:
            feeds = {value.name: recorded[value.name] for value in session.get_inputs()}
        yield kind, model, feeds, session.run(None, feeds)


def _kind_and_opset(path: Path) -> tuple[str, int]:
    kind, _, opset = path.stem.rpartition("_opset")
    return kind, int(opset)
