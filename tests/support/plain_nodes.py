"""How the pass `control_flow` is tested: no such operator is left, and the result computes the same bits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import onnx

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.validity import check_result
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import CONTROL_FLOW, SEQUENCES
from tests.harness import Feeds, model, random_feeds, run

__all__ = ["flattened", "header", "plain"]


def header(inputs: str, outputs: str, opset: int = 17, constants: str = "") -> str:
    """Return the head of a model in ONNX's text format; its nodes follow in braces."""
    given = f"<{constants}>" if constants else ""
    return f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {given}'


def flattened(source: str | onnx.ModelProto, **options: Any) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a model after the pass, which is valid, and what was changed; a second run changes nothing."""
    base, log = model(source), ChangeLog()
    run_pass = make_pass("control_flow", **options).run
    result = run_pass(Model(model(base)), log)
    check_result(result, Model(base))
    onnx.checker.check_model(result.proto, full_check=True)
    before = result.proto.SerializeToString(deterministic=True)
    again = run_pass(Model(model(result.proto)), ChangeLog()).proto
    assert again.SerializeToString(deterministic=True) == before
    return result.proto, log


def plain(source: str | onnx.ModelProto, feeds: Feeds | None = None, **options: Any) -> Counter[str]:
    """Compare a model with what the pass makes of it, bit for bit; return how many nodes of each operator the result has."""
    result, log = flattened(source, **options)
    found = Counter(node.op_type for node in all_nodes(result))
    assert not (CONTROL_FLOW | SEQUENCES) & set(found)
    assert log.changes
    for seed in range(2):
        given = random_feeds(model(source), seed) if feeds is None else feeds
        for want, value in zip(run(model(source), given), run(result, given), strict=True):
            assert (want.dtype, want.shape) == (value.dtype, value.shape)
            assert want.tobytes() == value.tobytes()
    return found
