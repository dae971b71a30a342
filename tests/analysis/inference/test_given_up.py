import onnx
import pytest

from onnx_migrate.analysis.inference.given_up import cannot_infer, cannot_propagate, give_up, remembering
from onnx_migrate.analysis.onnx_inference import InferenceError, infer_shapes
from onnx_migrate.isolate import OutOfMemory
from tests.hostile import growth
from tests.support.versions import ONNX

NO_ROOM = OutOfMemory(1 << 30)


def test_nothing_is_remembered_outside_a_block() -> None:
    give_up(NO_ROOM, propagate=True)
    assert not cannot_propagate()
    with remembering() as found:
        assert not found.reasons


def test_a_block_inside_another_adds_to_it() -> None:
    with remembering() as outer, remembering() as inner:
        give_up(NO_ROOM, propagate=True)
        assert cannot_propagate()
        assert not cannot_infer()
        give_up(NO_ROOM, propagate=False)
        assert "out of memory (limit 1.0 GB)" in cannot_infer()
        assert outer is inner
        assert len(outer.reasons) == 2
    assert not cannot_propagate()
    assert not cannot_infer()


def test_inference_is_not_tried_again() -> None:
    model = onnx.ModelProto(ir_version=8)
    with remembering():
        give_up(NO_ROOM, propagate=False)
        with pytest.raises(InferenceError, match="given up: out of memory"):
            infer_shapes(model)


def test_shapes_are_inferred_without_propagation_where_that_takes_too_much() -> None:
    with remembering() as found:
        inferred = infer_shapes(growth.doubled_tensors())
    if ONNX < (1, 18):
        pytest.skip("onnx 1.16 and 1.17 stop at such a length")
    sizes = {value.name: value.type.tensor_type.shape.dim[0].dim_value for value in inferred.graph.value_info}
    assert sizes["d38"] == 2**40
    assert len(found.reasons) == 1
    assert "data propagation was given up: out of memory" in found.reasons[0]
