"""The one way a step is tested: run the source at its own opset, migrate it, run again, compare the numbers.

`check` lifts, `check_down` lowers and `check_written_out` writes operators with others. Each does so in the settings of
`tests.harness.make_variant`: as the model is, with symbolic dims, with unknown ranks, inside an If branch that reads outer
values, and inside a local function. In a grid, a row runs as it is and in one of the other settings, in turn: what they can
break does not depend on the numbers of a row. With `pytest --all`, all rows run in all settings.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.validity import check_result
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import onnx_opset
from tests.harness import (
    ONNX_NEWEST,
    ORT_NEWEST,
    VARIANTS,
    Feeds,
    make_variant,
    model,
    random_feeds,
    require_opset,
    runner,
    same,
    text_type,
)
from tests.support.rows import row_of_grid

Source = str | onnx.ModelProto


def lift(source: Source, to: int) -> tuple[onnx.ModelProto, ChangeLog]:
    """Bring a copy of a model to an opset, as convert_version does, and hold it legal."""
    require_opset(to)
    copy = model(source)
    log = ChangeLog()
    result = make_pass("migrate_opset", opset=to, unlist=False).run(Model(copy), log)
    check_legal(result.proto)
    if to >= 9:  # Constant-1 is for floats alone by its schema, and held any type in practice.
        onnx.shape_inference.infer_shapes(result.proto, check_type=True)
    assert onnx_opset(result.proto.opset_import, ir_version=result.proto.ir_version) in (to, None)
    return result.proto, log


def lower(source: Source, to: int) -> tuple[onnx.ModelProto, ChangeLog]:
    """Bring a copy of a model down to an opset, as convert_version does, and hold it valid there."""
    base = model(source)
    log = ChangeLog()
    first = make_pass("migrate_opset", opset=to, unlist=False, newer="lower")
    second = make_pass("lower_opset", opset=to)
    result = second.run(first.run(Model(model(base)), log), log)
    check_result(result, Model(base))
    if to >= 9:
        onnx.shape_inference.infer_shapes(result.proto, check_type=True)
    assert onnx_opset(result.proto.opset_import, ir_version=result.proto.ir_version) in (to, None)
    return result.proto, log


def write_out(
    source: Source, lacking: Collection[str]
) -> tuple[onnx.ModelProto, ChangeLog, list[CannotMigrate]]:
    """Write the operators `lacking` with others in a copy of a model, and hold it valid, at the same opset."""
    base = model(source)
    log = ChangeLog()
    fitted = decompose_model(
        Model(model(base)),
        lambda node, scope: f"T has no {node.op_type}" if node.op_type in lacking else None,
        log,
        "fit",
    )
    refused = [item.error for item in fitted.refusals if isinstance(item.error, CannotMigrate)]
    if not refused:
        proto = fitted.model.proto
        assert not {node.op_type for node in all_nodes(proto)} & set(lacking)
        check_result(fitted.model, Model(base))
        onnx.shape_inference.infer_shapes(proto, check_type=True)
        assert proto.opset_import[0] == base.opset_import[0]
    return fitted.model.proto, log, refused


def refuses(
    code: str, step: Callable[..., object], *given: Any, match: str | None = None, label: str = ""
) -> CannotMigrate:
    """Hold that a step refuses what it is given with a code, and with words that match; return the refusal."""
    with pytest.raises(CannotMigrate, match=match) as caught:
        step(*given)
    assert caught.value.code == code, (label, str(caught.value))
    return caught.value


def operators(proto: onnx.ModelProto) -> list[str]:
    """Return the operators of a model's graph in order."""
    return [node.op_type for node in proto.graph.node]


def compare(
    base: onnx.ModelProto,
    ways: Mapping[str, Callable[[onnx.ModelProto], onnx.ModelProto]],
    *,
    feeds: Feeds | Sequence[Feeds] | None = None,
    expected: Sequence[Any] | None = None,
    refused: Mapping[str, str] | str | None = None,
    variants: Sequence[str] | None = None,
    specials: bool = False,
    signs: bool = True,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> onnx.ModelProto:
    """Hold that the variants of a model (of a grid's row those of `_in_turn`) compute the same after each of the named `ways`.

    The comparison is bit for bit unless a tolerance is given (for a step that is EQUIVALENT), of zeros only with `signs`.
    All of several `feeds` run on each migrated model. `expected` are the outputs of a source that no evaluator runs, for one
    of them. `refused` maps a variant to the code it must be refused with, or is the code of all variants. With `specials` the
    plain variant also runs on special values. Returns what the first way makes of it.
    """
    variants = _in_turn(variants or VARIANTS)
    codes = dict.fromkeys(variants, refused) if isinstance(refused, str) else refused or {}
    if feeds is None or isinstance(feeds, Mapping):
        feeds = [feeds if feeds is not None else random_feeds(base)]
    special: list[tuple[Feeds, Sequence[Any]]] = []
    wanted = [expected] if expected is not None else []
    if expected is None or specials:
        runs = runner(base)
        wanted = wanted or [runs(values) for values in feeds]
        special = [(given, runs(given)) for given in special_feeds(base)] if specials else []
    first: onnx.ModelProto | None = None
    for (way, migrate), variant in itertools.product(ways.items(), variants):
        label = f"{variant} {way}"
        variation, more = make_variant(base, variant, {})
        if variant in codes:
            refuses(codes[variant], migrate, variation, label=label)
            continue
        result = migrate(variation)
        runs = runner(result)
        for number, (values, outputs) in enumerate(zip(feeds, wanted, strict=True)):
            what = f"{label}, feeds {number}" if len(feeds) > 1 else label
            same(outputs, runs({**values, **more}), what, rtol, atol, signs=signs)
        if variant == "plain":
            first = first if first is not None else result
            for number, (given, outputs) in enumerate(special):
                same(outputs, runs(given), f"{label}, special values {number}", rtol, atol, signs=signs)
    return first if first is not None else base


def _in_turn(variants: Sequence[str]) -> Sequence[str]:
    """Return the variants in which the running test is to hold: all, or of a grid's row the plain one and one of the others."""
    row = row_of_grid(os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0])
    others = [variant for variant in variants if variant != "plain"]
    if row is None or not others:
        return variants
    return [variant for variant in variants if variant in ("plain", others[row % len(others)])]


def check(source: Source, *, to: int | None = None, newest: int = ORT_NEWEST, **how: Any) -> onnx.ModelProto:
    """Lift a model one step (`to`, by default the opset after its own) and to the newest, and `compare` numbers."""
    base = model(source)
    step = to or _opset(base) + 1
    targets = sorted({step, max(step, min(newest, ONNX_NEWEST))})
    return compare(base, {f"to {to}": _way(lift, to) for to in targets}, signs=False, **how)


def check_down(source: Source, *targets: int, specials: bool | None = None, **how: Any) -> onnx.ModelProto:
    """Lower a model to each of `targets` (by default the opset before its own) and `compare` numbers.

    The plain variant also runs on special values, unless `specials` is False or `feeds` or `expected` are given.
    """
    base = model(source)
    require_opset(_opset(base))
    if specials is None:
        specials = how.get("feeds") is None and how.get("expected") is None
    ways = {f"to {to}": _way(lower, to) for to in targets or (_opset(base) - 1,)}
    return compare(base, ways, specials=specials, **how)


def check_written_out(source: Source, *lacking: str, **how: Any) -> onnx.ModelProto:
    """Write operators with others and `compare` numbers."""

    def written(proto: onnx.ModelProto) -> onnx.ModelProto:
        result, log, errors = write_out(proto, lacking)
        if errors:
            raise errors[0]
        assert log.changes
        return result

    base = model(source)
    require_opset(_opset(base))
    return compare(base, {f"without {', '.join(lacking)}": written}, **how)


def _opset(proto: onnx.ModelProto) -> int:
    return onnx_opset(proto.opset_import, ir_version=proto.ir_version) or 1


def _way(
    step: Callable[[onnx.ModelProto, int], Any], to: int
) -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    return lambda proto: step(proto, to)[0]


def special_feeds(proto: onnx.ModelProto) -> Iterable[dict[str, np.ndarray[Any, Any]]]:
    """Yield feeds that together give each input all special values of its type, at shifted places."""
    fixed = random_feeds(proto)
    pools = {name: special_values(value.dtype) for name, value in fixed.items()}
    longest = max((len(pool) for pool in pools.values()), default=0)
    for shift in range(0, longest, 3):
        feeds = {}
        for number, (name, value) in enumerate(fixed.items()):
            pool = np.roll(pools[name], shift * (1 + 2 * number) + number)
            feeds[name] = np.resize(pool, value.shape).astype(value.dtype) if len(pool) else value
        yield feeds


def special_values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the values of a type that rewrites get wrong: NaN, infinities, zeros, halves, subnormals, ends of integers."""
    if dtype.kind == "f":
        info = np.finfo(dtype)
        return np.array(
            [
                0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1.0, -1.0, 3.0, info.tiny, -info.tiny,
                info.smallest_subnormal, -info.smallest_subnormal, info.max, info.min,
            ],
            dtype,
        )  # fmt: skip
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2]
        return np.array([*near, *([-1, -2, -7] if dtype.kind == "i" else [])], dtype)
    if dtype.kind == "b":
        return np.array([True, False])
    return np.array([], dtype)


def element_wise(opset: int, call: str, feeds: Feeds, result: str = "") -> str:
    """Return the text of a model of one node `call` of feeds, which gives `result`, or their type, in their common shape."""
    kinds = {name: text_type(value.dtype) for name, value in feeds.items()}
    declared = ", ".join(f"{kinds[name]}{list(value.shape) or ''} {name}" for name, value in feeds.items())
    shape = list(np.broadcast_shapes(*(value.shape for value in feeds.values())))
    return f"{opset} ({declared}) => ({result or next(iter(kinds.values()))}{shape} result) {{ result = {call} }}"
