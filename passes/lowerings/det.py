"""Det: below opset 11 small determinants are written out."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_LARGEST = 4


@lowering("Det", leaves=11, exactness=Exactness.EQUIVALENT)
def det_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Det becomes the sum of products that Laplace's formula gives.

    What changes: rows and columns are taken apart by Gather, and multiplied, added and subtracted.

    Why equal: a determinant is that sum. ONNX Runtime eliminates rows first: 2.4e-7 of the largest product measured.

    Limits: the matrices must have 1 to 4 rows, a number that is known.
    """
    source = rw.input(0)
    rank = rw.need_rank(source)
    shape = rw.shape(source) or ()
    size = next((length for length in shape[rank - 2 :] if length is not None), None)
    if size is None or not 1 <= size <= _LARGEST:
        rw.refuse(
            f"Det does not exist below opset 11, and it is written out for matrices of 1 to {_LARGEST} rows; these have"
            f" {'an unknown number' if size is None else size}",
            code="needs-shape" if size is None else "no-equal",
            hint="fix the dims of the model's inputs with --fix" if size is None else "",
        )
    elements: dict[tuple[int, int], str] = {}

    def element(row: int, column: int) -> str:
        if (row, column) not in elements:
            value = source
            for at, axis in ((row, rank - 2), (column, rank - 2)):
                value = rw.before(
                    "Gather", [value, rw.constant(np.array(at, np.int64), "at")], hint="element", axis=axis
                )
            elements[row, column] = value
        return elements[row, column]

    minors: dict[tuple[int, ...], str] = {}

    def determinant(columns: tuple[int, ...]) -> str:
        """Return the determinant of these columns of the last rows."""
        row = size - len(columns)
        if len(columns) == 1:
            return element(row, columns[0])
        if columns not in minors:
            total = ""
            for number, column in enumerate(columns):
                rest = determinant(columns[:number] + columns[number + 1 :])
                term = rw.before("Mul", [element(row, column), rest], hint="term")
                operator = "Sub" if number % 2 else "Add"
                total = rw.before(operator, [total, term], hint="sum") if total else term
            minors[columns] = total
        return minors[columns]

    determinant(tuple(range(size)))
    rw.preceding[-1].output[0] = rw.output(0)
    rw.remove()
