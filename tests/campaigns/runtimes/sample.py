"""Models to tell by what a release runs: small ones at every opset, brought there by onnx-migrate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnx.defs import get_all_schemas_with_history

import onnx_migrate
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx
from tests.campaigns.conformance.cases import cases
from tests.support.paths import FIXTURES

__all__ = [
    "MORE",
    "OPSETS",
    "RELEASES",
    "Sampled",
    "brought_to",
    "build",
    "data_of",
    "published",
    "with_constants",
    "write_io",
]

OPSETS = range(7, 27)
"""From the oldest that models come down to, up to what the newest ONNX Runtime verifies."""

RELEASES = ("1.4.1", "1.7.0", "1.10.2", "1.13.1")
"""Of onnx, whose cases are taken: opsets 9 to 18. A later one adds those that the earlier do not have."""

MORE = ("1.17.0", "1.22.0")
"""The releases whose cases the small sample has besides: up to opset 26."""

_MOST = 3
"""How many cases of an operator the small sample has, those in float32 first."""

_DATA = {
    "Add", "And", "Attention", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Concat", "Div", "Einsum", "Equal",
    "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "GridSample", "Less", "LessOrEqual", "MatMul",
    "Max", "Mean", "Min", "Mod", "Mul", "NonMaxSuppression", "Or", "Pow", "RoiAlign", "RotaryEmbedding",
    "ScatterElements", "ScatterND", "Sub", "Sum", "Where", "Xor",
}  # fmt: skip
"""Operators of which all inputs are data; of others, the first is, and models have the rest as weights or constants."""

_NO_DATA = {"BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "MelWeightMatrix", "Range"}
"""Operators of which no input is data."""


@dataclass(frozen=True)
class Sampled:
    """A case: what its model is called at each opset at which it may run otherwise than at the one before.

    It may where the standard changed one of its operators, or a step wrote others. The name is empty where the model cannot
    be brought to the opset. `operator` is the one that the case is of, "" for a fixture; `operators` has all of each model.
    """

    operator: str
    names: Mapping[int, str]
    operators: Mapping[str, frozenset[str]]


def build(folder: Path, *, small: bool = False) -> dict[str, Sampled]:
    """Write the sample.

    The whole one has all cases as they are, at opset 9 and later, and none newer than its opset. The small one is for
    runtimes that convert a model first, and take long to: a few cases of each operator, of newer releases of onnx too,
    brought to every opset; all inputs that hold no data are constants there, which such runtimes want them to be.
    """
    (folder / "io").mkdir(parents=True)
    changed = defaultdict(set)
    for schema in get_all_schemas_with_history():
        if is_onnx(schema.domain):
            changed[schema.name].add(schema.since_version)
    sampled: dict[str, Sampled] = {}
    for case, operator, model, feeds, expected in (
        _few(published(RELEASES + MORE)) if small else published(RELEASES)
    ):
        found: dict[int, str] = {}
        operators: dict[str, frozenset[str]] = {}
        before = b""
        own = onnx_opset(model.opset_import, ir_version=model.ir_version) or 1
        for opset in OPSETS if small else range(max(own, 9), OPSETS.stop):
            result = brought_to(model, opset)
            if result is None:
                if before or not found:
                    found[opset] = ""
                before = b""
                continue
            bodies = [result.graph, *result.functions]
            used = frozenset(name for body in bodies for name in _operators(body))
            anew = any(opset in changed[name] for name in used)
            written = b"".join(body.SerializeToString(deterministic=True) for body in bodies)
            if anew or written != before:
                found[opset] = f"opset{opset}/{case}"
                operators[found[opset]] = used
                (folder / f"opset{opset}").mkdir(exist_ok=True)
                onnx.save(result, folder / f"{found[opset]}.onnx")
            before = written
        sampled[case] = Sampled(operator, found, operators)
        write_io(folder, case, feeds, expected, [value.name for value in model.graph.output])
    return sampled


def brought_to(model: onnx.ModelProto, opset: int) -> onnx.ModelProto | None:
    """Return the model at an opset, None where it cannot be brought there."""
    try:
        return onnx_migrate.migrate(model, opset=opset, simplify=False, verify=False).model
    except onnx_migrate.MigrateError:
        return None


def write_io(
    folder: Path,
    case: str,
    feeds: Mapping[str, Any],
    expected: Sequence[Any],
    names: Sequence[str] = (),
    plain: Sequence[Any] = (),
) -> None:
    """Write what a case is fed and what must come of it, as probe.py reads it.

    All but ONNX Runtime want the names of the outputs. `plain` is what ONNX Runtime computes without optimisation, right as well.
    """
    given = {f"i:{name}": value for name, value in feeds.items()}
    wanted = {f"o:{index:02}": value for index, value in enumerate(expected)}
    wanted |= {f"p:{index:02}": value for index, value in enumerate(plain)}
    np.savez(folder / "io" / f"{case}.npz", names=np.array(names), **given, **wanted)


def _operators(body: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    for node in body.node:
        yield node.op_type
        for _, _, graph in subgraphs(node):
            yield from _operators(graph)


Loaded = tuple[str, str, onnx.ModelProto, dict[str, Any], list[Any]]


def _few(loaded: Iterable[Loaded]) -> Iterator[Loaded]:
    """Return a few cases of each operator, with constants, and the others."""
    kept: dict[str, list[Loaded]] = defaultdict(list)
    for case, operator, model, feeds, expected in loaded:
        if not operator:
            yield case, operator, model, feeds, expected
        elif data := data_of(operator, feeds):
            changed = with_constants(model, feeds, data) if len(data) < len(feeds) else model
            kept[operator].append((case, operator, changed, data, expected))
    for own in kept.values():
        own.sort(key=lambda one: not all(x.dtype != float and x.dtype.itemsize > 2 for x in one[3].values()))
        yield from own[: _MOST * 2 : 2] if len(own) > _MOST else own


def data_of(operator: str, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what holds data of what an operator is fed; models have the rest as weights or constants."""
    if operator in _DATA:
        return feeds
    return {} if operator in _NO_DATA else dict(list(feeds.items())[:1])


def with_constants(
    model: onnx.ModelProto, feeds: Mapping[str, Any], data: Mapping[str, Any]
) -> onnx.ModelProto:
    """Return the model with constants in place of the inputs that are no data."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    result.ir_version = max(model.ir_version, 4)
    result.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in feeds.items() if name not in data
    )
    inputs = [value for value in model.graph.input if value.name in data]
    del result.graph.input[:]
    result.graph.input.extend(inputs)
    return result


def published(releases: Sequence[str]) -> Iterator[Loaded]:
    """Return onnx's cases of plain tensors, with the values recorded, and the oldest of each kind of fixture."""
    seen = set()
    for case in cases(releases):
        random = "dropout" in case.name or "training" in case.name
        if case.kind not in ("node", "simple") or case.name in seen or random or "expanded" in case.name:
            continue
        try:
            model, runs = case.load()
        except (UnicodeDecodeError, TypeError):
            continue  # strings of onnx 1.4, an optional of 1.10
        own = onnx_opset(model.opset_import, ir_version=model.ir_version) or 1
        if not runs or not runs[0][0] or own >= OPSETS.stop:
            continue
        feeds, expected = runs[0]
        if all(is_onnx(opset.domain) for opset in model.opset_import) and all(
            isinstance(x, np.ndarray) and x.dtype.kind in "fiub" for x in (*feeds.values(), *expected)
        ):
            seen.add(case.name)
            operator = model.graph.node[0].op_type if len(model.graph.node) == 1 else ""
            yield case.name, operator, model, feeds, expected
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
        yield kind, "", model, feeds, session.run(None, feeds)


def _kind_and_opset(path: Path) -> tuple[str, int]:
    kind, _, opset = path.stem.rpartition("_opset")
    return kind, int(opset)
