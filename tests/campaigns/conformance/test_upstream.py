"""The tests of onnx's own converter, from its 1.22.0 wheel, run with our convert_version in its place.

They come out of the cached wheel and are not part of this project. What they ask otherwise is explained here, by name;
any other difference fails.
"""

from __future__ import annotations

import importlib
import unittest
import warnings
import zipfile
from pathlib import Path
from types import ModuleType, TracebackType

import onnx
import pytest
from onnx import version_converter

import onnx_migrate
from onnx_migrate.errors import MigrateError
from tests.campaigns.conformance.cases import Unavailable, wheel
from tests.harness import ONNX_NEWEST, SUPPORTED
from tests.support.skips import Elsewhere, import_or_skip, skip, skip_if

RELEASE = "1.22.0"
FILES = (
    "onnx/test/version_converter/automatic_conversion_test_base.py",
    "onnx/test/version_converter/automatic_downgrade_test.py",
    "onnx/test/version_converter/automatic_upgrade_test.py",
    "onnx/test/version_converter_test.py",
)

CONSTANT = "it looks for a Constant node; a constant that we write is an initializer of its graph"
LAYOUT = "it looks for `layout`; the default is not written out"
INVALID = "the checker refuses its model before the conversion too: an output without a shape"
WRONG_TYPE = "its model is not valid: an input has an element type that its operator does not take"
INVALID_TYPES = (
    "AffineGrid_2D", "AffineGrid_3D", "Col2Im_4D", "Col2Im_5D", "ConstantOfShape", "DFT", "GRU_3", "GatherND", "LSTM_3",
    "QLinearConv", "QLinearMatMul", "RNN_3", "StringConcat", "TfIdfVectorizer",
)  # fmt: skip
BELOW_7 = "it goes below opset 7, where ONNX Runtime runs too little for a result to be verified"
BELOW_7_TESTS = (
    "add_8_5", "averagepool_down", "backwards_compatible", "batch_normalization_8_5", "concat_5_3", "dropout_down", "gemm_down",
    "maxpool_down", "mul_8_5", "relu_7_5", "reshape_5_4_raw_data_initializer", "reshape_6_4", "sum_8_5",
)  # fmt: skip
NOT_REFUSED = "it wants a refusal, and ours computes the same by other nodes"
NOT_REFUSED_TESTS = (
    "dequantize_21_20_5_blocked_2d", "dequantize_21_20_6_blocked_3d",
    "quantize_21_20_5_blocked_2d", "quantize_21_20_6_blocked_3d",
    "scatter_16_15_bfloat16_fails_0_ScatterElements",
    "scatter_16_15_bfloat16_fails_1_ScatterND", "where_bfloat16_16_15_fails",
    *(f"scatter_16_15_reduction_add_mul_fails_{place}" for place in ("0_ScatterElements", "1_ScatterElements")),
    *(f"scatter_16_15_reduction_add_mul_fails_{place}" for place in ("2_ScatterND", "3_ScatterND")),
    *(f"scatter_18_17_reduction_max_min_fails_{place}" for place in ("0_ScatterElements", "1_ScatterElements")),
    *(f"scatter_18_17_reduction_max_min_fails_{place}" for place in ("2_ScatterND", "3_ScatterND")),
    "CausalConvWithState_downgrade_fails", "LinearAttention_downgrade_fails",
)  # fmt: skip
OVERRIDABLE = (
    "what must be a constant is a graph input with a default, so a caller can override it; ours refuses"
)
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
    "", "ReduceSumSquare",
)  # fmt: skip
"""By their numbers in the names of the tests; ReduceSum, number 8, takes axes that are computed from opset 13 on."""
LAYOUT_DOWN = "it looks for Casts to float32 and back, which change integers above 2**24; ours computes exactly by other nodes"
ROUNDS = "it computes 64-bit integers in float32, which rounds; ours refuses"
OTHER_AXIS = "its models are invalid: the scale fits axis 0, and the axis is 1"
OTHER_AXIS_TESTS = (
    "dequantize_21_20_1_per_axis_none_block_shape",
    "dequantize_21_20_2_per_axis_zero_block_shape",
    "quantize_21_20_1_per_axis_none_block_shape",
    "quantize_21_20_2_per_axis_zero_block_shape",
)

EXPLAINED = {
    **{f"test_{name}": WRONG_TYPE for name in INVALID_TYPES},
    "test_ops_tested": "the installed onnx has operators that the tests of 1.22.0 do not know",
    "test_axes_attr_to_input_12_13": CONSTANT,
    "test_if_subgraph_10_11": CONSTANT,
    "test_pad_10_11": CONSTANT,
    "test_pad_with_value_10_11": CONSTANT,
    "test_reshape_4_5_optional_shape": CONSTANT,
    "test_reshape_4_6": CONSTANT,
    "test_slice_9_10": CONSTANT,
    "test_split_12_13": CONSTANT,
    "test_upsample_8_9": CONSTANT,
    "test_gru_13_14": LAYOUT,
    "test_lstm_13_14": LAYOUT,
    "test_rnn_13_14": LAYOUT,
    "test_softmax_12_13": "it looks for Shape, Flatten, Softmax, Reshape in this order; Shape comes behind",
    "test_range_26_27_float_success": INVALID,
    "test_gemm_6_7_rejects_1d_A": f"{INVALID}; and it wants a Gemm of vectors refused, which was none before",
    "test_gemm_6_7_rejects_1d_input": f"{INVALID}; and it wants a Gemm of vectors refused, which was none before",
    **{f"test_{name}": BELOW_7 for name in BELOW_7_TESTS},
    **{f"test_{name}": NOT_REFUSED for name in NOT_REFUSED_TESTS},
    **{f"test_{name}_9_8": LAYOUT_DOWN for name in ("constant", "flatten", "greater", "less")},
    **{f"test_{name}_9_8": ROUNDS for name in ("gemm", "matmul", "prelu")},
    "test_softmax_13_12": "it looks for axis 2 where we write -1, the last of three axes",
    "test_range_27_26_low_precision_fails_0_float16": INVALID,
    "test_range_27_26_low_precision_fails_1_bfloat16": INVALID,
    "test_range_27_26_stash_type_removed": INVALID,
    **{f"test_reduce_ops_{number}_{name}": OVERRIDABLE for number, name in enumerate(REDUCTIONS) if name},
    "test_upsample_with_initializer_9_8": OVERRIDABLE,
    **{f"test_{name}": OTHER_AXIS for name in OTHER_AXIS_TESTS},
}
"""Why a test of theirs fails with ours."""

Caught = tuple[type[BaseException], BaseException, TracebackType]


class Failures(unittest.TestResult):
    """The exception that ended each failed test, by the test's name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, BaseException] = {}

    def addFailure(self, test: unittest.TestCase, err: Caught) -> None:  # type: ignore[override]  # noqa: N802
        self.found[test.id().rpartition(".")[2]] = err[1]

    addError = addFailure  # type: ignore[assignment]  # noqa: N815


def ours(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """Convert, and raise what theirs raises."""
    try:
        return onnx_migrate.convert_version(model, target)
    except MigrateError as error:
        raise RuntimeError(str(error)) from error


def theirs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    try:
        archive = zipfile.ZipFile(wheel(RELEASE))
    except Unavailable as error:
        skip(str(error), Elsewhere.ONLINE)
    with archive:
        for file in FILES:
            (folder / Path(file).name).write_bytes(archive.read(file))
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module(name)


@skip_if(ONNX_NEWEST < SUPPORTED, f"onnx {onnx.__version__} is older than these tests", Elsewhere.NEWEST)
@pytest.mark.parametrize(
    ("name", "count"),
    [("automatic_upgrade_test", 244), ("automatic_downgrade_test", 16), ("version_converter_test", 134)],
)
def test_their_tests_pass(name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_or_skip("parameterized", Elsewhere.INSTALLED)
    module = theirs(name, tmp_path, monkeypatch)
    monkeypatch.setattr(version_converter, "convert_version", ours)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    own = {test.id().rpartition(".")[2] for group in suite for test in group}  # type: ignore[union-attr]
    result = Failures()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite.run(result)

    failed = result.found
    assert result.testsRun == count
    unexplained = {test: repr(error) for test, error in failed.items() if test not in EXPLAINED}
    assert not unexplained, "\n".join(f"{name}: {error}" for name, error in unexplained.items())
    assert EXPLAINED.keys() & own == failed.keys(), "explained, and passes"
