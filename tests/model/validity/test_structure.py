"""Faults are found in every body; the lengths of external data are asked for, the data is not read."""

from __future__ import annotations

from onnx import TensorProto

from onnx_migrate.model.validity.structure import structure_faults
from tests.support.bad_models import bad_models, good_model


def test_a_valid_model_has_none() -> None:
    assert list(structure_faults(good_model())) == []


def test_external_data_is_judged_by_its_length() -> None:
    proto = good_model()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL

    assert list(structure_faults(proto, lambda asked: 8)) == []
    assert [fault.code for fault in structure_faults(proto, lambda asked: 4)] == ["data-size"]


def test_the_faults_of_tensors_are_all_found_here() -> None:
    for bad in bad_models():
        if bad.code in ("data-size", "bad-dims", "two-data-forms", "unknown-dtype"):
            assert bad.code in [fault.code for fault in structure_faults(bad.proto)], bad.name
