"""The values that a table consists of."""

from __future__ import annotations

import pickle

from onnx_migrate.standard.targets import resolve
from onnx_migrate.standard.targets.rows import FORMS, PREDICATES, OperatorRow, ReleaseRow


def test_an_empty_row_bounds_nothing() -> None:
    row, operator = ReleaseRow(), OperatorRow(("Add",))

    assert (row.opset, row.oldest, row.ir_version, row.resize_form, row.resize_axes) == (
        None,
        None,
        None,
        "auto",
        True,
    )
    assert (operator.newest, dict(operator.attributes), operator.types, operator.lacking) == (
        None,
        {},
        (),
        False,
    )
    assert len(set(FORMS)) == 6
    assert len(set(PREDICATES)) == len(PREDICATES)


def test_targets_travel_between_processes() -> None:
    targets = resolve(["onnxruntime==1.22", "opencv==4.8"])

    assert pickle.loads(pickle.dumps(targets)) == targets
    assert hash(targets) == hash(resolve(["onnxruntime==1.22", "opencv==4.8"]))
