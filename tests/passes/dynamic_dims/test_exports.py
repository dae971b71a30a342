"""PyTorch's exports with all sizes frozen: made dynamic and proved, or refused with the node that holds a size."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.support.paths import FIXTURES


@pytest.mark.parametrize(
    ("name", "dynamic", "repaired", "sizes"),
    [
        ("grid_detector_opset11", "image:N,3,32,48", 3, {"N": {1, 2, 3}}),
        ("grid_detector_opset13", "image:N,3,32,48", 3, {"N": {1, 2, 3}}),
        ("grid_detector_opset13", "image:1,3,H,W", 4, {"H": {32, 64}, "W": {48, 80}}),
        (
            "skip_segmenter_opset11",
            "image:N,3,H,W",
            3,
            {"N": {1, 2, 3}, "H": {32, 33, 64}, "W": {48, 49, 80}},
        ),
        (
            "skip_segmenter_opset13",
            "image:N,3,H,W",
            3,
            {"N": {1, 2, 3}, "H": {32, 33, 64}, "W": {48, 49, 80}},
        ),
        ("stateful_lstm_opset11", "steps:T,N,6", 3, {"T": {9, 10, 41}, "N": {1, 2, 3}}),
        ("stateful_lstm_opset13", "steps:T,1,6", 2, {"T": {9, 10, 41}}),
        ("frozen_transformer_opset11", "input_ids:N,12", 4, {"N": {1, 2, 3}}),
        ("frozen_transformer_opset14", "input_ids:N,12", 4, {"N": {1, 2, 3}}),
        ("transformer_opset12", "input_ids:N,T", 5, {"N": {1, 2, 3}, "T": {12, 13, 14}}),
        ("detector_frozen_opset9", "input:N,3,H,W", 9, {"N": {1, 2, 3}}),
        ("detector_sized_opset11", "input:N,3,H,W", 3, {"N": {1, 2, 3}}),
    ],
)
def test_exports_run_at_other_sizes(
    name: str, dynamic: str, repaired: int, sizes: dict[str, set[int]]
) -> None:
    migration = onnx_migrate.migrate(FIXTURES / f"{name}.onnx", dynamic=dynamic)

    proof = migration.report.dynamic
    assert proof is not None
    assert proof.holds
    ran = [dict(trial.sizes) for trial in proof.trials if not trial.problem]
    for symbol, wanted in sizes.items():
        assert wanted <= {trial[symbol] for trial in ran}
    assert sum(change.pass_name == "dynamic_dims" for change in migration.report.changes) >= repaired


@pytest.mark.parametrize(
    ("name", "dynamic", "node"),
    [
        ("frozen_transformer_opset14", "input_ids:N,T", "/Add"),
        ("control_flow_opset13", {"x": {0: "N"}}, "/ReduceMean"),
    ],
)
def test_exports_with_tables_for_one_size_are_refused(name: str, dynamic: object, node: str) -> None:
    with pytest.raises(CannotMigrate) as caught:
        onnx_migrate.migrate(FIXTURES / f"{name}.onnx", dynamic=dynamic)  # type: ignore[arg-type]

    assert caught.value.code == "frozen-dim"
    assert node in str(caught.value)


@pytest.mark.parametrize(
    "name", ["grid_detector_opset13", "frozen_transformer_opset14", "detector_frozen_opset13"]
)
def test_each_item_of_a_batch_equals_what_pytorch_computed(name: str) -> None:
    recorded = dict(np.load(FIXTURES / f"{name}.io.npz"))
    migration = onnx_migrate.migrate(FIXTURES / f"{name}.onnx", dynamic_batch=True, simplify=False)
    session = ort.InferenceSession(migration.model.SerializeToString())
    (given,) = [value.name for value in session.get_inputs()]
    batch = np.concatenate([np.roll(recorded[given], shift, -1) for shift in (3, 0, 5)])

    for output, value in zip(session.get_outputs(), session.run(None, {given: batch}), strict=True):
        np.testing.assert_allclose(value[1:2], recorded[output.name], rtol=1e-4, atol=1e-5)


def test_the_batch_of_an_output_has_the_inputs_symbol() -> None:
    """Behind an Expand to a computed shape onnx's own inference of the whole knows nothing."""
    migration = onnx_migrate.migrate(
        FIXTURES / "stateful_lstm_opset13.onnx", dynamic="steps:9,N,6", verify=False
    )

    (output,) = migration.model.graph.output
    assert [dim.dim_param or dim.dim_value for dim in output.type.tensor_type.shape.dim] == [10, "N", 5]
