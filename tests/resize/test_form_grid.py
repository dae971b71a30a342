"""A Resize computes the same in every form: nodes of the grid, of known and unknown lengths."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import run
from tests.resize.grid import grid, point_model


def check_forms(count: int, seed: int) -> int:
    rng = random.Random(seed)
    changed = 0
    for point in grid(count, seed):
        if point.spec.version < 11:
            continue
        shape = [size if rng.random() < 0.7 else f"d{axis}" for axis, size in enumerate(point.shape)]
        source = point_model(point, shape)
        x = point.feed()
        expected = run(source, {"x": x})[0]
        for form in ("auto", "sizes", "scales"):
            copy = onnx.ModelProto.FromString(source.SerializeToString())
            log = ChangeLog()
            builtin_passes()["resize_form"](form=form).run(Model(copy), log)  # type: ignore[call-arg]
            changed += len(log.changes)
            if copy != source:
                np.testing.assert_array_equal(
                    run(copy, {"x": x})[0], expected, err_msg=f"{point} {shape} {form}"
                )
    return changed


def test_sample() -> None:
    assert check_forms(300, 5) > 30


@pytest.mark.slow
def test_many() -> None:
    assert check_forms(8000, 6) > 500
