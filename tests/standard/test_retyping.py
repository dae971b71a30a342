"""Which inputs and outputs of an operator take another type: by onnx's schemas, and ONNX Runtime's own."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from onnx_migrate.standard.retyping import _OTHERS, derived_types, retyping
from tests.support.skips import Elsewhere, import_or_skip, skip_if
from tests.support.versions import RUNTIME

F16, BF16, F32, I64 = TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.INT64


@pytest.mark.parametrize(
    ("operator", "version", "inputs", "outputs", "expected"),
    [
        ("Conv", 11, "111", "1", ("111", "1")),
        ("Resize", 13, "1010", "1", ("1000", "1")),  # scales are float32 by the schema
        ("LayerNormalization", 17, "111", "111", ("111", "100")),  # mean and deviation stay
        ("Cast", 13, "0", "1", ("0", "1")),
        ("Cast", 13, "1", "1", ("0", "1")),  # reads any type
        ("Cast", 13, "1", "0", None),
        ("QuantizeLinear", 13, "110", "0", None),
        ("QuantizeLinear", 19, "110", "0", ("110", "0")),
        ("DequantizeLinear", 13, "010", "1", None),
        ("DequantizeLinear", 19, "010", "1", ("010", "1")),
        ("Range", 11, "111", "1", None),
        ("Shape", 15, "1", "0", None),
        ("ConstantOfShape", 9, "0", "1", ("0", "1")),
        ("NonMaxSuppression", 11, "11011", "0", None),
        ("Greater", 13, "11", "0", ("11", "0")),
        ("Concat", 13, "1111", "1", ("1111", "1")),
    ],
)
def test_of_the_standard(
    operator: str, version: int, inputs: str, outputs: str, expected: tuple[str, str] | None
) -> None:
    given = [tuple(flag == "1" for flag in flags) for flags in (inputs, outputs)]
    found = retyping("", operator, version, *given, F16)
    texts = found and tuple("".join("01"[flag] for flag in flags) for flags in (found.inputs, found.outputs))

    assert texts == expected


def test_of_onnx_runtime() -> None:
    found = retyping(
        "com.microsoft", "SkipLayerNormalization", 1, (True,) * 4, (True, False, False, True), F16
    )

    assert found is not None
    assert found.outputs == (True, False, False, True)
    assert retyping("com.microsoft", "DynamicQuantizeMatMul", 1, (True,), (True,), F16) is None
    assert retyping("com.microsoft", "FusedConv", 1, (True, True), (True,), BF16) is None


def test_types_that_follow_from_inputs() -> None:
    assert derived_types("", "Add", 14, (F16, F16), 1) == (F16,)
    assert derived_types("", "Shape", 15, (F16,), 1) == (I64,)
    assert derived_types("com.microsoft", "SkipLayerNormalization", 1, (F16, F16, F16), 4) == (
        F16,
        F32,
        F32,
        F16,
    )
    assert derived_types("com.acme", "Unknown", 1, (F16,), 2) == (0, 0)


@skip_if(RUNTIME < (1, 32), "ONNX Runtime 1.32 registers more types than before", Elsewhere.NEWEST)
def test_the_rows_are_those_that_onnx_runtime_registers() -> None:
    state = import_or_skip("onnxruntime.capi.onnxruntime_pybind11_state", Elsewhere.INSTALLED)
    schemas = {
        (schema.domain, schema.name): schema
        for schema in state.get_all_operator_schema()
        if schema.domain == "com.microsoft" or schema.since_version == 1
    }
    for domain, rows in _OTHERS.items():
        for name, (inputs, outputs, bfloat) in rows.items():
            schema = schemas.get((domain, name))
            if schema is None or len(schema.inputs) != len(inputs) or len(schema.outputs) != len(outputs):
                continue  # of another release of ONNX Runtime
            allowed = {item.type_param_str: item.allowed_type_strs for item in schema.type_constraints}
            for letter, formal in zip(inputs + outputs, (*schema.inputs, *schema.outputs), strict=True):
                kinds = allowed.get(formal.typeStr, [formal.typeStr])
                assert ("tensor(float)" in kinds) == (letter != "-"), (name, formal.name)
                assert ("tensor(float16)" in kinds and letter != "-") == letter.isupper(), (name, formal.name)
                if letter.isupper():
                    assert ("tensor(bfloat16)" in kinds) == (letter in bfloat), (name, formal.name)
