"""`--quantized-form float`: integer operators as float ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnx_migrate
from tests.harness import model
from tests.passes.contrib.level_2 import few_bits
from tests.passes.contrib.one_node import Case, session
from tests.steps import operators


def test_floats_have_dequantised_weights_and_no_rounding() -> None:
    text = """13 (float[2,8] x) => (float[2,6] y)
        <float s = {0.05}, uint8 z = {128}, float ws = {0.02}, int8 wz = {0}, float t = {0.04}, uint8 tz = {120}> {
        q = QuantizeLinear (x, s, z) m = QLinearMatMul (q, s, z, w, ws, wz, t, tz) y = DequantizeLinear (m, t, tz) }"""
    rng = np.random.default_rng(
        0
    )  # of its own: the numbers of another test would depend on the order of tests
    weights = rng.integers(-16, 17, (8, 6)).astype(np.int8)
    listed = ", ".join(map(str, weights.reshape(-1)))
    text = text.replace("<float s", f"<int8[8,6] w = {{{listed}}}, float s")
    x = rng.standard_normal((2, 8)).astype(np.float32)
    for how in ("qdq", "float"):
        migration = onnx_migrate.migrate(model(text), quantized=how, simplify=False, opset=13)
        found = session(migration.model).run(None, {"x": x})[0]
        exact = x @ (weights * np.float32(0.02))
        if how == "float":
            assert not [name for name in operators(migration.model) if "uantize" in name]
            np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
        else:
            assert operators(migration.model).count("QuantizeLinear") == 2
            assert 1e-3 < np.abs(found - exact).max() < 0.3


@pytest.mark.parametrize(
    "moves",
    [
        "m = Transpose <perm = [0, 1, 3, 2]> (q)",
        "m = MaxPool <kernel_shape = [2, 2]> (q)",
        "a = Slice (q, one, four, axes) m = Reshape (a, flat)",
        'm = Resize <mode = "linear"> (q, , scales)',
    ],
)
@pytest.mark.parametrize("end", ["s, z", "t, w"], ids=["one scale", "two scales"])
def test_numbers_that_are_only_moved_between_a_pair_are_moved_as_floats(moves: str, end: str) -> None:
    text = f"""13 (float[1,2,4,6] x) => (float y)
        <float s = {{0.05}}, int8 z = {{3}}, float t = {{0.1}}, int8 w = {{-20}}, float[4] scales = {{1, 1, 2, 2}},
         int64[1] one = {{1}}, int64[1] four = {{4}}, int64[1] axes = {{3}}, int64[2] flat = {{2, -1}}> {{
        q = QuantizeLinear (x, s, z) {moves} y = DequantizeLinear (m, {end}) }}"""
    migration = onnx_migrate.migrate(model(text), quantized="float", simplify=False)
    assert migration.report.verified
    assert not [name for name in operators(migration.model) if "uantize" in name]
    x = np.random.default_rng(0).uniform(-3, 3, (1, 2, 4, 6)).astype(np.float32)
    before, after = (session(item).run(None, {"x": x})[0] for item in (model(text), migration.model))
    assert before.shape == after.shape
    steps = np.abs(before - after).max() / (0.05 if end.startswith("s") else 0.1)
    assert 0 < steps <= (1.5 if "Resize" in moves else 0.5) + 1e-5, (
        "Resize cuts the fractions of integers off"
    )


@pytest.mark.parametrize(
    ("shape", "between"),
    [("", "m = Pad (q, pads)"), ("[2]", "m = Transpose <perm = [0, 1, 3, 2]> (q)")],
    ids=["padded", "scales by channel"],
)
def test_pairs_around_other_operators_stay(shape: str, between: str) -> None:
    numbers = "{0.05, 0.1}" if shape else "{0.05}", "{3, 4}" if shape else "{3}"
    text = f"""13 (float[1,2,4,6] x) => (float y)
        <float{shape} s = {numbers[0]}, int8{shape} z = {numbers[1]}, int64[8] pads = {{0, 0, 1, 1, 0, 0, 1, 1}}> {{
        q = QuantizeLinear (x, s, z) {between} y = DequantizeLinear (m, s, z) }}"""
    migration = onnx_migrate.migrate(model(text), quantized="float", simplify=False)
    assert migration.report.verified
    assert operators(migration.model).count("QuantizeLinear") == 1


@pytest.mark.parametrize("columns", [False, True], ids=["one scale", "scales by column"])
def test_a_quantised_lstm_becomes_one_of_dequantised_weights(columns: bool) -> None:
    rng = np.random.default_rng(0)
    hidden, shape = 3, (2, 12) if columns else (2,)
    given: dict[str, Any] = {"x": rng.standard_normal((5, 2, 4)).astype("float32")}
    for name, size in (("w", 4), ("r", hidden)):
        given[name] = rng.integers(100, 156, (2, size, 4 * hidden)).astype("uint8")
    given |= {
        "b": rng.standard_normal((2, 8 * hidden)).astype("float32"),
        "n": None,
        "h": None,
        "c": None,
        "p": None,
    }
    for name in ("w", "r"):
        given[f"{name}s"] = rng.uniform(0.01, 0.02, shape).astype("float32")
        given[f"{name}z"] = np.full(shape, 128, "uint8")
    attributes = {"hidden_size": hidden, "direction": "bidirectional"}
    constants = [name for name in given if name != "x"]
    case = Case("DynamicQuantizeLSTM", given, attributes, constants, ("y", "h_end", "c_end"))
    migration = onnx_migrate.migrate(case.model(17), quantized="float", standard=True, simplify=False)
    assert migration.report.verified

    floats = []
    for name in ("w", "r"):
        scale, zero = (given[name + part].reshape(2, 1, -1) for part in "sz")
        floats.append(np.float32(given[name].astype(int) - zero.astype(int)) * scale)
    text = """17 (float[5,2,4] x, float[2,12,4] w, float[2,12,3] r, float[2,24] b)
        => (float[5,2,2,3] y, float[2,2,3] h, float[2,2,3] c) {
        y, h, c = LSTM <hidden_size = 3, direction = "bidirectional"> (x, w, r, b) }"""
    feeds = dict(
        zip("xwrb", (given["x"], *(item.transpose(0, 2, 1) for item in floats), given["b"]), strict=True)
    )
    before, after, quantised = (
        session(proto).run(None, feed)
        for proto, feed in ((model(text), feeds), (migration.model, case.feeds), (case.model(17), case.feeds))
    )
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert all(0 < np.abs(one - other).max() < 0.1 for one, other in zip(quantised, after, strict=True))


def test_weights_of_few_bits_become_floats_where_a_block_is_not_whole() -> None:
    case = next(case for case in few_bits() if case.label == "4-40-16-packed-False-True")
    migration = onnx_migrate.migrate(
        case.model(21), quantized="float", standard=True, opset=13, simplify=False
    )
    assert migration.report.verified
    assert "DequantizeLinear" not in operators(migration.model)
    found = session(migration.model).run(None, case.feeds)[0]
    np.testing.assert_allclose(found, session(case.model(21)).run(None, case.feeds)[0], rtol=1e-5, atol=1e-5)


def test_pairs_are_found_in_each_branch_though_all_use_one_name() -> None:
    pair, other = "q = QuantizeLinear (x, s, z)", "q = Cast<to = 3> (x)"
    ends = [pair, other, pair, other]
    ifs = " ".join(
        f"""y{i} = If (c) <then_branch = t () => (float[2] p) {{ {end}  p = DequantizeLinear (q, s, z) }},
        else_branch = e () => (float[2] p) {{ {end}  p = DequantizeLinear (q, s, z) }}>"""
        for i, end in enumerate(ends)
    )
    source = model(f"""13 (float[2] x, bool c) => (float[2] y)
        <float s = {{0.1}}, int8 z = {{0}}> {{ {ifs}  y = Sum (y0, y1, y2, y3) }}""")
    result = onnx_migrate.migrate(source, quantized="float", simplify=False, verify=False).model

    found = [
        [item.op_type for item in attribute.g.node]
        for node in result.graph.node
        for attribute in node.attribute
    ]
    kept = [["Identity"] if end is pair else ["Cast", "DequantizeLinear"] for end in ends]
    assert found == [branch for branch in kept for _ in range(2)]
