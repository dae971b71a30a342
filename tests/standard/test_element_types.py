"""Element types: where each begins, and the wider ones."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, defs, helper

from onnx_migrate.standard.element_types import FIRST_OPSET, type_name, type_text, wider_types


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
