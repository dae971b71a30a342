"""Counts of the nodes that depend on each symbol."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, Value, fixed, merged_axis
from onnx_migrate.passes.dynamic_dims.repair.interpreter import Coverage

ASSIGNMENTS = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
N, H = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["H"])


def test_a_symbol_counts_once_a_node_also_as_a_factor_and_in_a_computed_length() -> None:
    coverage = Coverage(ASSIGNMENTS)

    coverage.count([Value(1, (N, H)), Value(1, (N,))])
    coverage.count([Value(1, (merged_axis([N, fixed(4)]),))])

    coverage.count([Value(1, (Dim(tuple(size // 4 for size in H.sizes)),))])

    assert coverage.by_symbol == {"N": 2, "H": 2}


def test_nodes_that_vary_with_the_batch_alone_do_not_count_as_varying() -> None:
    coverage = Coverage(ASSIGNMENTS)

    coverage.count([Value(1, (N,))])
    coverage.count([Value(1, (Dim(tuple(2 * size for size in H.sizes)),))])

    assert coverage.varying == 1
