"""How a repair is tested: the outputs of a batch of three equal those of three runs of the original model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from tests.harness import model, random_feeds, run


def repaired(source: onnx.ModelProto | str, dynamic: Any) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return the model with dims made dynamic, and what was changed."""
    log = ChangeLog()
    result = make_pass("dynamic_dims", dynamic=dynamic).run(Model(model(source)), log).proto
    check_legal(result)
    onnx.checker.check_model(result, full_check=True)
    assert all(change.exactness is Exactness.EXACT and change.reason for change in log.changes)
    return result, log


def check_items(
    source: onnx.ModelProto | str, axes: dict[str, int], outputs: list[int], items: int = 3, rtol: float = 0.0
) -> tuple[onnx.ModelProto, list[str]]:
    """Make the batch dynamic on these axes of inputs, and compare a batch with its items' own runs on those of outputs.

    Returns the result and the reasons of its changes.
    """
    source = model(source)
    result, log = repaired(source, {name: {axis: "N"} for name, axis in axes.items()})
    singles = [random_feeds(source, seed) for seed in range(items)]
    singles = [singles[0] | {name: single[name] for name in axes} for single in singles]
    batch = dict(singles[0])
    for name, axis in axes.items():
        batch[name] = np.concatenate([single[name] for single in singles], axis)
    found = run(result, batch)
    declared = [port.shape for port in Interface.of(result).outputs]
    for number, single in enumerate(singles):
        expected = run(source, single)
        for value, want, axis in zip(found, expected, outputs, strict=True):
            np.testing.assert_allclose(np.take(value, [number], axis), want, rtol=rtol, atol=0)
        for value, want in zip(run(result, single), expected, strict=True):
            np.testing.assert_array_equal(value, want)
    for value, shape in zip(found, declared, strict=True):
        assert shape is None or all(
            isinstance(dim, str) or dim == size for dim, size in zip(shape, value.shape, strict=True)
        )
    return result, [change.reason for change in log.changes]


def text(inputs: str, outputs: str, nodes: str, constants: str = "", opset: int = 17) -> str:
    """Return a model in ONNX's text format."""
    given = f" <{constants}>" if constants else ""
    return f"""<ir_version: 8, opset_import: ["":{opset}]>
g ({inputs}) => ({outputs}){given} {{ {nodes} }}"""
