"""Constants of narrow types that only dequantisation reads come down widened; others are refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from onnx_migrate import convert_version
from onnx_migrate.engine.steps.widened_constants import widen_constants
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import VARIANTS, model, random_feeds, run
from tests.steps import check_down, lower
from tests.support.skips import Elsewhere, import_or_skip, skip

ml_dtypes = import_or_skip("ml_dtypes", Elsewhere.NEWEST)
if not hasattr(TensorProto, "INT2"):
    skip(f"onnx {onnx.__version__} has no 2-bit integers", Elsewhere.NEWEST, module=True)

T = TensorProto


def tensor(name: str, dtype: int, numbers: list[float], shape: list[int]) -> TensorProto:
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    return numpy_helper.from_array(np.array(numbers).astype(kind).reshape(shape), name)


def weight_only(
    dtype: int, opset: int, zero: bool = True, nodes: str = "", scale: str = "float[4] s", axis: int = 1
) -> onnx.ModelProto:
    """Return x · DequantizeLinear(weights of [3, 4] of a narrow type)."""
    inputs = f"{'moved' if nodes else 'w'}, s{', z' if zero else ''}"
    proto = model(f"""{opset} (float[2,3] x, {scale}) => (float[2,4] y)
        {{ {nodes} d = DequantizeLinear<axis = {axis}> ({inputs}) y = MatMul(x, d) }}""")
    signed = dtype in (T.INT4, T.INT2)
    low, high = {T.INT4: (-8, 7), T.UINT4: (0, 15), T.INT2: (-2, 1), T.UINT2: (0, 3)}.get(dtype, (-4, 4))
    numbers = [low + number % (high - low + 1) for number in range(12)]
    proto.graph.initializer.append(tensor("w", dtype, numbers, [3, 4]))
    if zero:
        proto.graph.initializer.append(tensor("z", dtype, [1, 0, -1 if signed else 1, 0], [4]))
    return proto


@pytest.mark.parametrize(("dtype", "opset"), [(T.INT4, 21), (T.UINT4, 21)])
@pytest.mark.parametrize("zero", [True, False])
def test_four_bits(dtype: int, opset: int, zero: bool) -> None:
    source = weight_only(dtype, opset, zero)
    check_down(source, 20, 17, 13, 11, specials=False, variants=("plain", "symbolic", "if", "function"))


@pytest.mark.parametrize("dtype", [T.INT2, T.UINT2])
def test_two_bits(dtype: int) -> None:
    proto = weight_only(dtype, 25)
    w, z = (numpy_helper.to_array(item).astype(np.float32) for item in proto.graph.initializer)
    feeds = random_feeds(proto)
    expected = [feeds["x"] @ ((w - z) * feeds["s"])]
    check_down(
        proto, 24, 17, 13, feeds=feeds, expected=expected, rtol=1e-5, atol=1e-5, variants=("plain", "if")
    )


@pytest.mark.parametrize(
    ("dtype", "opset"),
    [
        (T.FLOAT8E4M3FN, 19), (T.FLOAT8E4M3FNUZ, 19), (T.FLOAT8E5M2, 19), (T.FLOAT8E5M2FNUZ, 23), (T.FLOAT4E2M1, 23),
    ],
)  # fmt: skip
def test_floats(dtype: int, opset: int) -> None:
    proto = weight_only(dtype, opset, zero=False)
    feeds = random_feeds(proto)
    expected = [
        feeds["x"] @ (numpy_helper.to_array(proto.graph.initializer[0]).astype(np.float32) * feeds["s"])
    ]
    variants = ("plain", "if", "function")
    check_down(
        proto, opset - 1, 18, 13, 11, feeds=feeds, expected=expected, rtol=1e-5, atol=1e-5, variants=variants
    )


def test_scales_of_powers_of_two() -> None:
    proto = model("""24 (float[2,3] x) => (float[2,4] y)
        { d = DequantizeLinear<axis = 1, output_dtype = 1> (w, s) y = MatMul(x, d) }""")
    proto.graph.initializer.append(tensor("w", T.INT8, list(range(12)), [3, 4]))
    scale = tensor("s", T.FLOAT8E8M0, [0.5, 1, 2, 2**-100], [4])
    proto.graph.initializer.append(scale)
    feeds = random_feeds(proto)
    wide = np.arange(12, dtype=np.float32).reshape(3, 4) * numpy_helper.to_array(scale).astype(np.float32)
    check_down(
        proto,
        23,
        17,
        13,
        feeds=feeds,
        expected=[feeds["x"] @ wide],
        rtol=1e-5,
        atol=1e-5,
        variants=("plain", "if"),
    )


def test_through_movers_and_casts() -> None:
    nodes = "t = Transpose(w) r = Reshape(t, shape) moved = Transpose(r)"
    proto = weight_only(T.UINT4, 21, nodes=nodes)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([4, 3]), "shape"))
    check_down(proto, 20, 13, specials=False, variants=("plain", "if"))
    cast = model("21 (float[3,4] x) => (float[3,4] y) { c = Cast<to = 1> (w) y = Add(x, c) }")
    cast.graph.initializer.append(tensor("w", T.INT4, [number - 6 for number in range(12)], [3, 4]))
    check_down(cast, 20, 13, 9)


def test_by_block() -> None:
    proto = model("""21 (float[2,6] x, float[3,4] s) => (float[2,4] y)
        { d = DequantizeLinear<axis = 0, block_size = 2> (w, s, z) y = MatMul(x, d) }""")
    proto.graph.initializer.append(tensor("w", T.UINT4, [number % 16 for number in range(24)], [6, 4]))
    proto.graph.initializer.append(tensor("z", T.UINT4, [number % 5 for number in range(12)], [3, 4]))
    check_down(proto, 20, 17, 13, 11, specials=False, variants=("plain", "symbolic", "if"))


def test_a_constant_that_a_call_passes_to_a_function() -> None:
    proto = model("""21 (float[2,3] x) => (float[2,4] y)
        <float[4] s = {0.5, 1.0, 2.0, 0.25}> { d = local.Weights(w, s) y = MatMul(x, d) }
        <domain: "local", opset_import: ["": 21]> Weights (w, s) => (d) { d = DequantizeLinear<axis = 1> (w, s) }""")
    proto.graph.initializer.append(tensor("w", T.INT4, [number - 6 for number in range(12)], [3, 4]))
    check_down(proto, 20, 13, specials=False, variants=("plain", "if"))
    proto.functions[0].output.append("w")  # which is given out as it is
    proto.graph.node[0].output.append("same")
    assert refused(proto) == "no-such-type"


def test_only_types_that_the_target_lacks() -> None:
    for target, expected in ((21, T.INT4), (20, T.INT8)):
        proto = weight_only(T.INT4, 21)
        widen_constants(Model(proto), target, ChangeLog(), "lower_opset")
        assert [item.data_type for item in proto.graph.initializer] == [expected, expected]


def test_a_constant_of_another_domain_stays() -> None:
    proto = weight_only(T.INT4, 21, nodes="moved = own.Constant ()", zero=False)
    weights = proto.graph.initializer.pop()
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("value", weights))
    before = proto.SerializeToString()
    widen_constants(Model(proto), 20, ChangeLog(), "lower_opset")
    assert proto.SerializeToString() == before


def test_the_report_tells() -> None:
    result, log = lower(weight_only(T.INT4, 21), 20)
    assert [note.code for note in log.notes if note.code == "widened"] == ["widened"]
    assert [item.data_type for item in result.graph.initializer][:2] == [T.INT8, T.INT8]
    result, log = lower(weight_only(T.INT4, 25), 21)
    assert not [note for note in log.notes if note.code == "widened"]


def test_large_weights_are_written_with_the_model() -> None:
    proto = model(
        "21 (float[2,128] x, float s) => (float[2,128] y) { d = DequantizeLinear(w, s) y = MatMul(x, d) }"
    )
    proto.graph.initializer.append(
        tensor("w", T.INT4, [number % 16 - 8 for number in range(128 * 128)], [128, 128])
    )
    lowered = convert_version(proto, 13)
    assert lowered.graph.initializer[0].data_type == T.INT8
    feeds = random_feeds(proto)
    np.testing.assert_array_equal(run(lowered, feeds)[0], run(proto, feeds)[0])


def refused(proto: onnx.ModelProto) -> str:
    with pytest.raises(CannotMigrate) as caught:
        lower(proto, 20)
    return caught.value.code


def test_what_others_read_is_refused() -> None:
    proto = weight_only(T.INT4, 21)
    proto.graph.output.append(onnx.helper.make_tensor_value_info("w", T.INT4, [3, 4]))
    assert refused(proto) == "no-such-type"
    mixed = weight_only(T.INT4, 21)
    del mixed.graph.initializer[1:]
    mixed.graph.input.append(onnx.helper.make_tensor_value_info("z", T.INT4, [4]))
    assert refused(mixed) == "no-such-type"
    listed = weight_only(T.INT4, 21, zero=False)
    listed.graph.input.append(onnx.helper.make_tensor_value_info("w", T.INT4, [3, 4]))
    assert refused(listed) == "no-such-type"


def test_every_number_of_each_type_is_kept() -> None:
    for dtype, wide in ((ml_dtypes.float8_e5m2, np.float16), (ml_dtypes.float8_e4m3fn, np.float16),
                        (ml_dtypes.float8_e8m0fnu, np.float32)):  # fmt: skip
        numbers = np.arange(256, dtype=np.uint8).view(dtype)
        np.testing.assert_array_equal(numbers.astype(wide).astype(np.float64), numbers.astype(np.float64))
    assert VARIANTS
