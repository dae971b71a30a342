"""ONNX Runtime's own operators are run by what they mean: without quantised inputs, and with outputs that keep them in bounds."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, parser

import onnx_migrate
from onnx_migrate.verify.evaluators.quirks.kernel_meanings import ACCURACY_NOTE, SKIP_NOTE, write_as_meant
from onnx_migrate.verify.evaluators.quirks.quantized_meanings import ORDER_NOTE, STEP_NOTE
from tests.passes.contrib.level_2 import data, few_bits, gathers, scale, zero
from tests.passes.contrib.level_3 import multi_head
from tests.passes.contrib.one_node import Case, session, written
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import RUNTIME


def find(cases: object, label: str) -> Case:
    return next(case for case in cases if case.label == label)  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_product_that_quantises_its_input_is_compared_by_its_weights() -> None:
    case = find(few_bits(), "4-64-32-None-False-True")
    proto = case.model(21)
    proto.graph.node[0].attribute.append(helper.make_attribute("accuracy_level", 4))
    exact = session(case.model(21)).run(None, case.feeds)[0]
    quantised = session(proto).run(None, case.feeds)[0]
    assert np.abs(exact - quantised).max() > 1e-3 * np.abs(exact).max()
    meant = onnx.ModelProto.FromString(proto.SerializeToString())
    assert write_as_meant(meant) == (1, (ACCURACY_NOTE,))
    np.testing.assert_array_equal(session(meant).run(None, case.feeds)[0], exact)
    migration = onnx_migrate.migrate(proto, standard=True, opset=21)
    assert migration.report.verified
    assert "accuracy_level 0" in str(migration.report)


@pytest.mark.long
def test_an_attention_with_a_cache_gets_the_outputs_that_it_needs() -> None:
    case = find(multi_head(), "0-3-none-False-0")
    proto = case.model(17)
    del proto.graph.output[1:]
    del proto.graph.node[0].output[1:]
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    assert write_as_meant(copy) == (1, ())
    assert len(copy.graph.node[0].output) == 3
    assert write_as_meant(copy) == (0, ())
    assert onnx_migrate.migrate(proto, standard=True).report.verified


@pytest.mark.long
@pytest.mark.parametrize("channels_last", [0, 1])
def test_windows_of_dequantised_values_are_added_row_by_row(channels_last: int) -> None:
    """With equal scales a mean of four is half-way between two steps for every fourth window: the order of the sum decides."""
    given = {
        "x": data("uint8", 2, 8, 16, 16), "xs": scale(0.0235), "xz": zero("uint8", -128),
        "ys": scale(0.0235), "yz": zero("uint8", -128),
    }  # fmt: skip
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": channels_last}
    case = Case("QLinearAveragePool", given, attributes, ("xs", "xz", "ys", "yz"))
    proto = case.model(13)
    before = session(proto).run(None, case.feeds)[0]
    result = written(proto)
    assert (session(result).run(None, case.feeds)[0] != before).any()
    assert write_as_meant(result) == (1, (ORDER_NOTE,))
    onnx.checker.check_model(result)
    assert np.array_equal(session(result).run(None, case.feeds)[0], before)
    migration = onnx_migrate.migrate(proto, standard=True)
    assert migration.report.verified
    assert "adds columns first" in str(migration.report)


@pytest.mark.long
@skip_if(RUNTIME < (1, 22), "ONNX Runtime 1.21 normalises numbers with a large mean to NaN", Elsewhere.NEWEST)
@pytest.mark.parametrize("read", [False, True])
def test_a_normalised_sum_with_a_large_mean_is_compared_by_its_text(read: bool) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[3,256] x, float[3,256] s, float[256] b) => (float[3,256] y{", float[3,256] t" if read else ""})
        <float[256] g = {{{", ".join(["2"] * 256)}}}>
        {{ y, , , {"t" if read else ""} = com.microsoft.SkipLayerNormalization <epsilon = 0.00001> (x, s, g, , b) }}"""
    proto = parser.parse_model(text)
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    assert write_as_meant(copy) == (1, (SKIP_NOTE,))
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((3, 256)).astype("float32") for name in "xs"}
    feeds["b"] = np.full(256, 4000, "float32")
    kernel, meant, result = (session(item).run(None, feeds) for item in (proto, copy, written(proto)))
    assert np.abs(kernel[0] - meant[0]).max() > 1e-4
    assert all(np.array_equal(one, other) for one, other in zip(meant, result, strict=True))
    assert onnx_migrate.migrate(proto, standard=True).report.verified


@pytest.mark.long
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_number_between_two_steps_is_compared_with_optimisation(operator: str, dtype: str) -> None:
    """Half of the sums, or products, lie between two steps, and the zero point is odd."""
    every = np.arange(256).astype("uint8").view(dtype)
    names = ("a", "as", "az", "b", "bs", "bz", "ys", "yz")
    result = scale(0.5 if operator == "QLinearAdd" else 0.125)
    values = (
        every[:, None],
        scale(0.25),
        zero(dtype, 3),
        every[None],
        scale(0.25),
        zero(dtype, 3),
        result,
        zero(dtype, 7),
    )
    constants = [name for name in names if len(name) == 2]
    check_steps(Case(operator, dict(zip(names, values, strict=True)), constants=constants))


def check_steps(case: Case, *, fused: bool = True) -> None:
    """Hold that floats differ by a step, but not where the optimiser makes the operator of them again, and are verified."""
    proto = case.model(17)
    kernel = session(proto).run(None, case.feeds)[0].astype(int)
    forms = written(proto)
    steps = np.abs(session(forms).run(None, case.feeds)[0].astype(int) - kernel)
    assert steps.max() == 1
    if fused:
        assert np.array_equal(session(forms, optimised=True).run(None, case.feeds)[0], kernel)
    migration = onnx_migrate.migrate(proto, standard=True)
    assert migration.report.verified
    assert STEP_NOTE in migration.report.text(verbose=True)


@pytest.mark.long
@pytest.mark.parametrize("channels_last", [0, 1])
def test_a_mean_between_two_steps_is_compared_with_optimisation(channels_last: int) -> None:
    """With equal scales, every fourth mean of four is half-way between two steps."""
    given = {
        "x": data("uint8", *((2, 2, 2, 256) if channels_last else (2, 256, 2, 2))),
        "xs": scale(0.0235), "xz": zero("uint8", 3), "ys": scale(0.0235), "yz": zero("uint8", 3),
    }  # fmt: skip
    case = Case(
        "QLinearGlobalAveragePool",
        given,
        {"channels_last": channels_last},
        constants=["xs", "xz", "ys", "yz"],
    )
    check_steps(case, fused=not channels_last)


@skip_if(RUNTIME < (1, 23), "ONNX Runtime 1.22 has no GatherBlockQuantized of uint8", Elsewhere.NEWEST)
def test_indices_beyond_a_quantised_table_are_refused() -> None:
    """The kernel of ONNX Runtime 1.32 takes them, and so would inputs be compared that the model does not take."""
    case = find(gathers(), "4-False-1-0-True")
    proto = case.model(21)
    meant = onnx.ModelProto.FromString(proto.SerializeToString())
    assert write_as_meant(meant) == (1, ())
    run, given = session(meant), {"i": np.array([0, 6, -7])}
    np.testing.assert_array_equal(run.run(None, given)[0], session(proto).run(None, given)[0])
    with pytest.raises(Exception, match="out of data bounds"):
        run.run(None, {"i": np.array([0, 6, 7])})
