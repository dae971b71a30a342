"""The sizes that are estimated of the models of onnx's backend tests are those of the recorded outputs, and none is too much."""

from __future__ import annotations

import warnings
from collections import ChainMap

import numpy as np
import pytest

from onnx_migrate.facts.running_cost.bodies import Bodies
from onnx_migrate.facts.running_cost.obstacles import why_not_run
from onnx_migrate.facts.running_cost.value_estimate import ValueEstimate
from onnx_migrate.model.graphs import function_key
from onnx_migrate.model.validity.equations import equation_faults

_UNEVEN = frozenset(("test_split_1d_uneven_split_opset18", "test_split_2d_uneven_split_opset18"))
"""Of a Split into uneven parts the last one is counted as long as the others."""


@pytest.mark.campaign
def test_estimated_sizes_are_those_of_the_recorded_outputs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = [case for case in collect_testcases(None) if case.model is not None and case.data_sets]
    compared = 0
    for case in cases:
        graph = case.model.graph
        assert not why_not_run(case.model, 1 << 32, 20.0), case.name
        assert not list(equation_faults(case.model)), case.name
        inputs, outputs = case.data_sets[0]
        arrays = zip(graph.input, inputs, strict=False)
        known = {
            v.name: ValueEstimate(a.shape, v.type.tensor_type.elem_type)
            for v, a in arrays
            if isinstance(a, np.ndarray)
        }
        bodies = Bodies({function_key(item): item for item in case.model.functions}, dict, 1 << 50)
        found = bodies.main(graph, ChainMap(known), {})
        for estimate, array in zip(found, outputs, strict=False):
            if estimate.dims is not None and isinstance(array, np.ndarray) and case.name not in _UNEVEN:
                compared += 1
                assert estimate.dims == array.shape, case.name
    assert compared > 1000
