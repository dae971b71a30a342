"""How downward steps of ai.onnx.ml are tested: run, lower, run again, compare the bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import VARIANTS, make_variant, run
from tests.lowering import same_bits

ML = "ai.onnx.ml"


def lower_ml(source: onnx.ModelProto, to: int) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a copy of a model at an older opset of ai.onnx.ml, held legal there."""
    copy = onnx.ModelProto()
    copy.CopyFrom(source)
    log = ChangeLog()
    result = builtin_passes()["lower_ml"](opset=to).run(Model(copy), log).proto  # type: ignore[call-arg]
    check_legal(result)
    check_legal(result, ML)
    assert [entry.version for entry in result.opset_import if entry.domain == ML] == [to]
    return result, log


def check_ml_down(
    source: onnx.ModelProto,
    x: np.ndarray[Any, Any],
    *targets: int,
    expected: Sequence[Any] | None = None,
    variants: Sequence[str] = VARIANTS,
) -> onnx.ModelProto:
    """Lower a model of one input x to each target and compare the bits; returns the plain variant at the last."""
    outputs = run(source, {"x": x}) if expected is None else expected
    plain = source
    for target in targets:
        for variant in variants:
            variation, feeds = make_variant(source, variant, {"x": x})
            result, _ = lower_ml(variation, target)
            if variant == "plain":
                onnx.checker.check_model(result, full_check=True)
            same_bits(outputs, run(result, feeds), f"{variant} to {target}")
            plain = result if variant == "plain" else plain
    return plain
