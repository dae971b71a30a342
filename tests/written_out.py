"""The one way a decomposition is tested: run the source, write an operator with others, run again, compare the numbers.

`check_written_out` does so in the settings of `tests.harness`, as `tests.lowering.check_down` does for steps down.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import onnx

from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.validity import check_result
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import onnx_opset
from tests.harness import VARIANTS, Feeds, make_variant, model, random_feeds, require_opset, run
from tests.lowering import same_bits, special_feeds


def at(opset: int, graph: str) -> str:
    """Return a model of an opset in ONNX's text format."""
    return f'<ir_version: 8, opset_import: ["": {opset}]> {graph}'


def write_out(
    source: str | onnx.ModelProto, lacking: Collection[str]
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


def check_written_out(
    source: str | onnx.ModelProto,
    *lacking: str,
    feeds: Feeds | None = None,
    refused: Mapping[str, str] | None = None,
    variants: Sequence[str] = VARIANTS,
    specials: bool = False,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> onnx.ModelProto:
    """Write operators with others and compare numbers: bit for bit unless a tolerance is given.

    `refused` maps a variant to the code it must be refused with. With `specials` the plain variant also runs on special
    values. Returns the plain variant.
    """
    base = model(source)
    require_opset(onnx_opset(base.opset_import, ir_version=base.ir_version) or 1)
    values: dict[str, Any] = dict(feeds) if feeds is not None else random_feeds(base)
    expected = run(base, values)
    first = base
    for variant in variants:
        variation, given = make_variant(base, variant, values)
        result, log, errors = write_out(variation, lacking)
        if refused and variant in refused:
            assert [error.code for error in errors][:1] == [refused[variant]], (
                variant,
                list(map(str, errors)),
            )
            continue
        assert not errors, (variant, list(map(str, errors)))
        assert log.changes, variant
        same_bits(expected, run(result, given), variant, rtol, atol)
        if variant == "plain":
            first = result
            for number, special in enumerate(special_feeds(base) if specials else ()):
                same_bits(run(base, special), run(result, special), f"special values {number}", rtol, atol)
    return first
