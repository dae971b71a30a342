"""The one way a downward step is tested: run the source at its own opset, lower it, run again, compare the numbers.

`check_down` does so in the settings of `tests.harness`: as it is, with symbolic dims, with unknown ranks, inside an If
branch, and inside a local function; and with a feed of special values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.engine.validity import check_result
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import onnx_opset
from tests.harness import VARIANTS, Feeds, make_variant, model, random_feeds, require_opset, run

Outputs = Sequence[Any]

NUMPY_TYPES = (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""The element types of tensors that numpy has too, strings aside."""


def lower(source: str | onnx.ModelProto, to: int) -> tuple[onnx.ModelProto, ChangeLog]:
    """Bring a copy of a model down to an opset, as convert_version does, and hold it valid there."""
    base = model(source)
    log = ChangeLog()
    first = builtin_passes()["migrate_opset"](opset=to, unlist=False, newer="lower")  # type: ignore[call-arg]
    second = builtin_passes()["lower_opset"](opset=to)  # type: ignore[call-arg]
    result = second.run(first.run(Model(model(base)), log), log)
    check_result(result, Model(base))
    if to >= 9:
        onnx.shape_inference.infer_shapes(result.proto, check_type=True)
    assert onnx_opset(result.proto.opset_import, ir_version=result.proto.ir_version) in (to, None)
    return result.proto, log


def check_down(
    source: str | onnx.ModelProto,
    *targets: int,
    feeds: Feeds | None = None,
    expected: Outputs | None = None,
    refused: Mapping[str, str] | None = None,
    variants: Sequence[str] = VARIANTS,
    specials: bool | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> onnx.ModelProto:
    """Lower a model to each of `targets` (by default the opset before its own) and compare numbers.

    The comparison is of bits, the sign of zero included, unless a tolerance is given (for a step that is EQUIVALENT).
    `expected` are the outputs of a source that no evaluator runs. `refused` maps a variant to the code it must be
    refused with. The plain variant also runs on special values, unless `specials` is False or `feeds` or `expected`
    are given. Returns the plain variant at the first target.
    """
    base = model(source)
    opset = onnx_opset(base.opset_import, ir_version=base.ir_version) or 1
    require_opset(opset)
    values = dict(feeds) if feeds is not None else random_feeds(base)
    if specials is None:
        specials = feeds is None and expected is None
    outputs = run(base, values) if expected is None else expected
    first: onnx.ModelProto | None = None
    for target in targets or (opset - 1,):
        for variant in variants:
            variation, given = make_variant(base, variant, values)
            label = f"{variant} to {target}"
            if refused and variant in refused:
                try:
                    lower(variation, target)
                except CannotMigrate as error:
                    assert error.code == refused[variant], (label, error.code, str(error))  # noqa: PT017
                    continue
                raise AssertionError(f"{label} was not refused with {refused[variant]}")
            result, _ = lower(variation, target)
            same_bits(outputs, run(result, given), label, rtol, atol)
            if variant != "plain":
                continue
            first = first if first is not None else result
            for number, special in enumerate(special_feeds(base) if specials else ()):
                same_bits(
                    run(base, special), run(result, special), f"{label}, special values {number}", rtol, atol
                )
    return first if first is not None else base


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


def same_bits(expected: Outputs, actual: Outputs, what: str, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Hold two lists of outputs equal in type, shape and bits; all NaNs are one. With a tolerance, within it."""
    assert len(expected) == len(actual), f"{what}: {len(expected)} and {len(actual)} outputs"
    for index, (old, new) in enumerate(zip(expected, actual, strict=True)):
        label = f"{what}: output {index}"
        if isinstance(old, list):
            same_bits(old, new, label, rtol, atol)
            continue
        if old is None or new is None:
            assert old is new, label
            continue
        a, b = np.asarray(old), np.asarray(new)
        assert a.dtype == b.dtype, f"{label} is {a.dtype} and became {b.dtype}"
        assert a.shape == b.shape, f"{label} is {a.shape} and became {b.shape}"
        if rtol or atol:
            np.testing.assert_allclose(b, a, rtol=rtol, atol=atol, err_msg=label)
            continue
        np.testing.assert_array_equal(b, a, err_msg=label)
        if a.dtype.kind == "f":
            defined = ~np.isnan(a)
            np.testing.assert_array_equal(
                np.signbit(b)[defined], np.signbit(a)[defined], err_msg=f"{label}, signs"
            )
