"""Compares value by value: every value of one model with that of another, computed from the same inputs.

Differences of earlier nodes do not reach a value that is compared this way, so that rounding cannot add up, and a
fault shows at its own node. Both models are cut at the values that they have by the same name: each such value is
computed from what the original computes for those before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.analysis.onnx_inference import without_fragile_ops
from onnx_migrate.isolate import mark
from onnx_migrate.model.graphs import node_label, producers
from onnx_migrate.verify.compare.arrays import Array
from onnx_migrate.verify.compare.comparison import bit_difference
from onnx_migrate.verify.compare.rounding import beyond_rounding
from onnx_migrate.verify.compare.settings import Settings
from onnx_migrate.verify.equivalence.bit_identity import value_sizes
from onnx_migrate.verify.equivalence.cut_model import CutModel, Reads, varying
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.model_traits import is_random
from onnx_migrate.verify.run_count import begin_run

__all__ = ["first_difference", "first_differing", "keeps_all_names"]

_MEMORY = 1 << 27
"""How many bytes of values are compared in one run, by the sizes that inference finds."""
_UNKNOWN = 1 << 24
"""Bytes assumed of a value of unknown shape."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


def keeps_all_names(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """Whether each value that depends on an input is in `after` by the same name, as after a change of single nodes."""
    return set(varying(before)) <= set(varying(after))


def first_difference(
    original: Runnable,
    other: Runnable,
    feeds: Sequence[Mapping[str, Any]],
    ulps: float,
    *,
    claimed: bool,
    unlike: Collection[str] = (),
) -> str:
    """Describe the first value of `other` that differs by more than rounding from the original's; "" if none does.

    Rounding is `ulps` units of the value's type at its largest magnitude (compare/rounding.py). If identity is `claimed`,
    only where constants and attributes are the same. If it is not, a name may stand for another value, which the nodes
    that read it make up for: then only the last value of those that differ one after the other counts, computed from
    those before the first. Values of operators in `unlike`, which the runtime computes otherwise in the two models, may
    differ. The models run without optimisation. Raises EvaluationError.
    """
    before, after = original.proto(), other.proto()
    if is_random(before) or is_random(after):
        return "the model contains random operators"
    names = _cuts(before, after)
    if claimed:
        found = _differences(original, other, names, feeds, ulps, same_settings=True, unlike=unlike)
        return next(found, ("", ""))[1]
    return next(iter(_unexplained(original, other, names, feeds, ulps).values()), "")


def first_differing(
    original: Runnable, other: Runnable, feeds: Sequence[Mapping[str, Any]], ulps: float
) -> tuple[str, str]:
    """Return the name of the value that `first_difference` finds where nothing is claimed, and what differs; ("", "") if none.

    Raises EvaluationError.
    """
    before, after = original.proto(), other.proto()
    if is_random(before) or is_random(after):
        return "", ""
    return next(iter(_unexplained(original, other, _cuts(before, after), feeds, ulps).items()), ("", ""))


def _cuts(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """Return the values at which the models are cut: those that both have by the same name, unless they are discrete."""
    present, discrete = set(varying(after)), _discrete(before)
    return [name for name in varying(before) if name in present and name not in discrete]


def _unexplained(
    original: Runnable, other: Runnable, names: Sequence[str], feeds: Sequence[Mapping[str, Any]], ulps: float
) -> dict[str, str]:
    """Return the values that differ, with what differs, without those that the nodes which read them make up for."""
    before, after = original.proto(), other.proto()
    problems = dict(_differences(original, other, names, feeds, ulps, same_settings=False))
    reads = Reads(before, names), Reads(after, names)
    followed = {read for name in problems for side in reads for read in side.by([name])} & problems.keys()
    if followed:
        kept = [name for name in names if name not in followed]
        problems = dict(_differences(original, other, kept, feeds, ulps, same_settings=False))
    return problems


def _differences(
    original: Runnable,
    other: Runnable,
    names: Sequence[str],
    feeds: Sequence[Mapping[str, Any]],
    ulps: float,
    *,
    same_settings: bool,
    unlike: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """Yield the values that differ, with what differs; both models are cut at `names`."""
    before, after = original.proto(), other.proto()
    reads = Reads(before, names), Reads(after, names)
    settings, made = Settings(before, after), producers(after.graph)
    chunks = list(_chunks(names, value_sizes(before, feeds[0])))
    boundaries = [{name for side in reads for name in side.by(chunk)}.difference(chunk) for chunk in chunks]
    known: list[dict[str, Array]] = [{} for _ in feeds]  # of each feed, what later chunks are computed from
    for position, (chunk, boundary) in enumerate(zip(chunks, boundaries, strict=True)):
        given_before = {name: value for name, value in known[0].items() if name in boundary}
        exposed = CutModel(original, given_before, chunk)
        later = set().union(*boundaries[position + 1 :])
        models: list[CutModel] = []
        for index, feed in enumerate(feeds):
            mark("original: running, value by value")
            begin_run("value by value")
            run = {**known[index], **exposed.run({**feed, **known[index]})}
            values = {name: run[name] for name in (*boundary, *chunk) if _is_cut(run.get(name))}
            known[index] = {name: value for name, value in run.items() if name in later and _is_cut(value)}
            wanted = [name for name in chunk if name in values]
            models = models or [CutModel(model, values, wanted) for model in (original, other)]
            given = {**feed, **values}
            del run
            mine = models[0].run(given)
            mark("result: running, value by value")
            begin_run("value by value")
            theirs = models[1].run(given)
            for name in wanted:
                problem = ""
                if made[name].op_type not in unlike:
                    problem = beyond_rounding(mine[name], theirs[name], ulps)
                if same_settings and not problem and bit_difference(name, mine[name], theirs[name]):
                    problem = settings.difference(name, reads[1].all_by([name]))
                if problem:
                    maker = f"{made[name].op_type} {node_label(made[name])!r}"
                    yield name, f"from the same inputs {maker} computes another {name!r}: {problem}"


def _is_cut(value: object) -> bool:
    """Whether a model is cut at a value: floats, and bytes, which a quantised model computes with."""
    if not isinstance(value, np.ndarray):
        return False
    return value.dtype.kind == "f" or value.dtype in (np.int8, np.uint8)


def _discrete(model: onnx.ModelProto) -> set[str]:
    """Return the values at which no model is cut, as far as inference finds their types."""
    try:
        inferred = onnx.shape_inference.infer_shapes(without_fragile_ops(model))
    except Exception:
        # The native code raises many kinds. More is computed in both models, and nothing is compared wrongly.
        return set()
    kept = (*_FLOATS, TensorProto.INT8, TensorProto.UINT8)
    return {
        value.name
        for value in inferred.graph.value_info
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type not in kept
    }


def _chunks(names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Divide the names, in their order, into parts of at most `_MEMORY` bytes or a single value."""
    chunk: list[str] = []
    total = 0
    for name in names:
        size = sizes.get(name, _UNKNOWN)
        if chunk and total + size > _MEMORY:
            yield chunk
            chunk, total = [], 0
        chunk.append(name)
        total += size
    if chunk:
        yield chunk
