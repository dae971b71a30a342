"""TensorScatter: ScatterElements at counted places."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.analysis.value_types import ValueType
from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import integers, iota, size_of


@lowering("TensorScatter", leaves=24, types=LostTypes.OWN)
def tensor_scatter_24_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The update is scattered to the places that follow the index of its item.

    What changes: ScatterElements along `axis`, at the indices 0, 1, 2 … plus the item's own, modulo the size of the cache in mode
    circular.

    Why equal: the text of the standard; elements are moved. Bit for bit.

    Limits: the rank of the cache must be known.
    """
    cache, update = rw.input(0), rw.input(1)
    rank = rw.need_rank(cache)
    axis = rw.get("axis", -2) % rank
    places = rw.before(
        "Reshape",
        [iota(rw, size_of(rw, update, axis)), integers(rw, -1, *[1] * (rank - 1 - axis))],
        hint="steps",
    )
    if rw.input(2):
        starts = rw.before("Reshape", [rw.input(2), integers(rw, -1, *[1] * (rank - 1))], hint="starts")
        places = rw.before("Add", [starts, places], hint="places")
    if rw.get("mode", "linear") == "circular":
        places = rw.before("Mod", [places, size_of(rw, cache, axis)], hint="places")
    places = rw.before("Expand", [places, rw.before("Shape", [update], hint="shape")], hint="places")
    rw.scope.record_type(places, ValueType(int(TensorProto.INT64), rw.shape(update)))
    rw.after("ScatterElements", [cache, places, update], [rw.output(0)], axis=axis)
    rw.remove()
