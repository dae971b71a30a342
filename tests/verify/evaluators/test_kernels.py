"""Which operators ONNX Runtime has a kernel for is what its sessions show; other operators are computed by their body."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest

from onnx_migrate.verify.evaluators.kernels import computed_by_body
from tests.verify.harness import net


def operators_run(model: onnx.ModelProto, folder: Path) -> set[str]:
    """Return the operators of the nodes that a session runs."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(folder / "run.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {node.op_type for node in onnx.load(folder / "run.onnx").graph.node}


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("y = Relu(x)", 13),
        ("y = Relu(x)", 6),
        ("y = ThresholdedRelu(x)", 10),
        ("y = ThresholdedRelu(x)", 22),
        ("y = HardSwish(x)", 14),
        ("y = HardSwish(x)", 22),
        ("y = Mish(x)", 18),
        ("y = Mish(x)", 22),
        ("y = Gelu(x)", 20),
        ("y = Celu(x)", 12),
        ("a = Relu(x) y = MeanVarianceNormalization(a)", 13),
        ("y = LogSoftmax(x)", 13),
        ("c = Constant <value_float = 1.0> () y = Add(x, c)", 13),
    ],
)
def test_what_has_no_kernel_is_not_run(text: str, opset: int, tmp_path: Path) -> None:
    model = net(f"(float[1,2,3,4] x) => (float[1,2,3,4] y) {{ {text} }}", opset=opset)
    used = {node.op_type for node in model.graph.node} - {"Constant"}

    assert computed_by_body(model) == used - operators_run(model, tmp_path)


def test_nodes_of_sub_graphs_count_and_other_domains_do_not() -> None:
    model = net(
        "(bool c, float[4] x) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] a) { a = Mish(x) },"
        " else_branch = e () => (float[4] b) { b = Relu(x) }> }",
        opset=18,
    )
    (branch,) = (item.g for item in model.graph.node[0].attribute if item.name == "then_branch")
    expected = computed_by_body(net("(float[4] x) => (float[4] y) { y = Mish(x) }", opset=18))
    assert computed_by_body(model) == expected
    branch.node[0].domain = "own"
    assert not computed_by_body(model)


def test_without_a_list_of_kernels_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx_migrate.verify.evaluators import kernels

    monkeypatch.delattr(onnxruntime.capi.onnxruntime_pybind11_state, "get_all_opkernel_def")
    kernels._versions.cache_clear()
    assert not computed_by_body(net("(float[4] x) => (float[4] y) { y = Mish(x) }", opset=18))
    monkeypatch.undo()
    kernels._versions.cache_clear()
