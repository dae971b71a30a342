"""Element types, and the types that operators take."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, defs, helper

from onnx_migrate.standard.element_types import FIRST_OPSET, type_name, type_text, wider_types
from onnx_migrate.standard.type_constraints import constraints, judge


def test_the_first_opset_is_that_of_cast() -> None:
    taken = {
        version: set(defs.get_schema("Cast", version).type_constraints[0].allowed_type_strs)
        for version in sorted({schema.since_version for schema in defs.get_all_schemas_with_history() if schema.name == "Cast"})
    }  # fmt: skip
    for dtype, opset in FIRST_OPSET.items():
        first = min((version for version, types in taken.items() if type_text(dtype) in types), default=None)
        assert first in (opset, None), type_name(dtype)


@pytest.mark.parametrize(
    "dtype",
    [TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT32, TensorProto.UINT32],
)
def test_every_value_comes_back_from_a_wider_type(dtype: int) -> None:
    narrow = helper.tensor_dtype_to_np_dtype(dtype)
    if narrow.kind == "f":
        values = np.arange(2**16, dtype=np.uint16).view(narrow)
    else:
        info = np.iinfo(narrow)
        values = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], narrow)
    for wide in wider_types(dtype):
        back = values.astype(helper.tensor_dtype_to_np_dtype(wide)).astype(narrow)
        np.testing.assert_array_equal(back, values)


def test_there_is_nothing_wider_than_int64_double_and_strings() -> None:
    assert [wider_types(dtype) for dtype in (TensorProto.INT64, TensorProto.DOUBLE, TensorProto.STRING)] == [
        ()
    ] * 3


FLOAT, INT = "tensor(float)", "tensor(int64)"


def test_formal_parameters() -> None:
    found = constraints("", "Concat", 13)
    assert found is not None
    assert found.formal(7, output=False) == found.inputs[0]
    assert found.formal(1, output=True) is None
    assert constraints("", "NeverWas", 1) is None
    assert constraints("", "Constant", 1) is None  # its constraint was never applied


def test_the_types_of_outputs() -> None:
    assert judge("", "Add", 14, (FLOAT, None), (None,)) == (None, (FLOAT,))
    assert judge("", "Shape", 15, (None,), (None,)) == (None, (INT,))
    assert judge("", "TopK", 11, (FLOAT, INT), (None, None)) == (None, (FLOAT, INT))
    assert judge("", "Loop", 16, (INT, "tensor(bool)", FLOAT), (None,)) == (None, (None,))


def test_versions_differ() -> None:
    assert judge("", "Clip", 12, ("tensor(int32)",), (None,))[0] is None
    complaint, _ = judge("", "Clip", 11, ("tensor(int32)",), (None,))
    assert complaint == "has tensor(int32) as input 0 (input), which Clip-11 does not take there"
