"""ONNX Runtime: levels of optimisation, and what its errors say of the model."""

from __future__ import annotations

import time

import numpy as np
import pytest

from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.onnxruntime import (
    LOADERS,
    OPTIMIZED,
    UNOPTIMIZED,
    OnnxRuntime,
    without_source_locations,
)
from tests.verify.harness import RELU, runnable


def test_an_error_of_a_run_names_the_node_and_reads_without_source_locations():
    model = OnnxRuntime(runnable("(float[N] x) => (float[2,2] y) { [bad] y = Reshape(x, s) }", s=[2, 2]))
    with pytest.raises(EvaluationError) as caught:
        model.run({"x": np.zeros(5, np.float32)})
    assert caught.value.node == "bad"
    assert not caught.value.loading
    assert str(caught.value).startswith("Reshape 'bad': ")
    assert "onnxruntime/" not in str(caught.value)


def test_an_error_of_loading_names_the_node():
    with pytest.raises(EvaluationError) as caught:
        OnnxRuntime(runnable("(float[2,4] x) => (float[2,3] y) { [bad] y = MatMul(x, w) }", w=[[1.0, 2, 3]]))
    assert (caught.value.node, caught.value.loading, caught.value.limit) == ("bad", True, False)


@pytest.mark.parametrize(
    ("graph", "options", "limit"),
    [
        (RELU, {"opset": 99}, True),
        (RELU, {"ir": 99}, True),
        (RELU.replace("Relu", "Rela"), {}, False),
        ("(float[N,4] x) => (float[N,4] y) { y = Cast<to=99>(x) }", {}, False),
    ],
    ids=["opset", "ir version", "no such operator", "invalid"],
)
def test_a_limit_of_the_release_is_not_a_fault_of_the_model(graph, options, limit):
    with pytest.raises(EvaluationError) as caught:
        OnnxRuntime(runnable(graph, **options))
    assert caught.value.loading
    assert caught.value.limit is limit


def test_the_levels_are_no_optimisation_and_all_of_it():
    names = [
        LOADERS[configuration](runnable(RELU))._session.get_session_options().graph_optimization_level.name
        for configuration in (UNOPTIMIZED, OPTIMIZED)
    ]
    assert names == ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"]


@pytest.mark.parametrize(("given", "threads"), [("", 4), ("0", 4), ("1", 1), ("3", 3), ("64", 4), ("2,1", 4)])
def test_a_model_runs_on_four_threads_or_as_many_as_the_user_allows(monkeypatch, given, threads):
    monkeypatch.setattr("onnx_migrate.verify.evaluators.onnxruntime.os.cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert OnnxRuntime(runnable(RELU))._session.get_session_options().intra_op_num_threads == threads


@pytest.mark.parametrize("level", [UNOPTIMIZED, OPTIMIZED])
def test_memory_is_allocated_for_each_value_and_not_in_an_arena(level):
    assert not LOADERS[level](runnable(RELU))._session.get_session_options().enable_cpu_mem_arena


def test_without_optimisation_weights_are_not_packed():
    entry = "session.disable_prepacking"
    assert OnnxRuntime(runnable(RELU))._session.get_session_options().get_session_config_entry(entry) == "1"
    with pytest.raises(RuntimeError):
        OnnxRuntime(runnable(RELU), optimize=True)._session.get_session_options().get_session_config_entry(
            entry
        )


def test_a_message_with_a_name_of_megabytes_takes_no_time():
    start = time.process_time()
    for name in ("n" * 8_000_000, "a/onnxruntime/b:1 ( " * 400_000, "only *guarantees* " * 400_000):
        text = without_source_locations(f"[ONNXRuntimeError] : 1 : FAIL : Node ({name}) Op (Relu) is wrong")
        assert text.startswith("Node (")
    assert "Op (Relu) is wrong" in without_source_locations(f"Node ({'n' * 8_000_000}) Op (Relu) is wrong")
    assert time.process_time() - start < 20
