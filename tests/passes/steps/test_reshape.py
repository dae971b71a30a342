"""Reshape, Flatten, Squeeze and Unsqueeze, up, down and for a target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_migrate.passes.steps.reshape import reshape

import onnx_migrate
from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.errors import CannotMigrate, MigrateError
from tests.harness import model, run
from tests.steps import check, check_down, lift, lower, refuses


def text(shape: list[int], allowzero: int, x: str = "2, 3, 4", dtype: str = "float") -> str:
    given = ", ".join(map(str, shape))
    return f"""14 ({dtype}[{x}] x) => ({dtype}[] y)
        <int64[{len(shape)}] s = {{{given}}}> {{ y = Reshape <allowzero = {allowzero}> (x, s) }}"""


@pytest.mark.parametrize("allowzero", [0, 1])
@pytest.mark.parametrize("shape", [[6, 4], [-1], [2, -1, 2]], ids=str)
def test_no_zero(shape: list[int], allowzero: int) -> None:
    check_down(text(shape, allowzero), 13, 12, 7, refused=None)
    assert {change.exactness.value for change in lower(text(shape, allowzero), 13)[1].changes} <= {"exact"}


def test_a_zero_that_keeps_a_length() -> None:
    check_down(text([0, -1], 0), 13, 7)


@pytest.mark.parametrize("shape", [[0, 5], [3, 0, 2], [0]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "float16"])
def test_a_zero_that_is_a_length(shape: list[int], dtype: str) -> None:
    kind = {"float": np.float32, "int64": np.int64, "bool": np.bool_, "float16": np.float16}[dtype]
    feeds = {"x": np.zeros((2, 0, 4), kind)}
    check_down(text(shape, 1, "2, 0, 4", dtype), 13, 12, 9, 7, feeds=feeds)


def test_a_zero_beside_a_minus_one_is_invalid() -> None:
    with pytest.raises(MigrateError, match="forbids"):
        lower(text([0, -1], 1), 13)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_one_length_at_run_time(batch: int) -> None:
    source = """14 (float[N, 6] x) => (float[] y) <int64[1] i = {0}, int64[2] r = {3, 2}>
        { s = Shape (x)  n = Gather (s, i)  t = Concat <axis = 0> (n, r)  y = Reshape <allowzero = 1> (x, t) }"""
    feeds = {"x": np.random.default_rng(0).random((batch, 6)).astype(np.float32)}
    check_down(source, 13, 11, feeds=feeds, variants=("plain", "if", "function"))
    assert {change.exactness.value for change in lower(source, 13)[1].changes} == {"exact"}


@pytest.mark.parametrize("size", [(2, 6), (0, 6), (2, 0)])
def test_a_shape_at_run_time(size: tuple[int, int]) -> None:
    source = "14 (float[N, M] x, int64[2] s) => (float[] y) { y = Reshape <allowzero = 1> (x, s) }"
    feeds = {"x": np.ones(size, np.float32), "s": np.array([3, 4] if all(size) else [5, 0])}
    check_down(source, 13, 9, 7, feeds=feeds, variants=("plain", "unranked", "if", "function"))
    assert {change.exactness.value for change in lower(source, 13)[1].changes} == {"assumed"}
    known = source.replace("[N, M]", "[2, 6]")
    assert {change.exactness.value for change in lower(known, 13)[1].changes} == {"exact"}


@pytest.mark.parametrize("size", [(2, 3), (0, 3), (0, 0)])
def test_lengths_that_stay_at_their_place(size: tuple[int, int]) -> None:
    source = """18 (float[N, M, 6] x) => (float[N, M, 3, 2] y) <int64[2] r = {3, 2}>
        { n = Shape <end = 1> (x)  m = Shape <start = 1, end = 2> (x)  t = Concat <axis = 0> (n, m, r)
          y = Reshape <allowzero = 1> (x, t) }"""
    feeds = {"x": np.random.default_rng(0).random((*size, 6)).astype(np.float32)}
    check_down(source, 13, 11, feeds=feeds, variants=("plain", "if"))
    assert {change.exactness.value for change in lower(source, 13)[1].changes} == {"exact"}


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", ["int64", "int32", "bool", "float"])
def test_flatten(axis: int, dtype: str) -> None:
    source = f"9 ({dtype}[2, 3, 4] x) => ({dtype}[] y) {{ y = Flatten <axis = {axis}> (x) }}"
    check_down(source, 8, 7)


def test_flatten_of_an_empty_tensor() -> None:
    source = "9 (int64[2, 0, 4] x) => (int64[] y) { y = Flatten (x) }"
    check_down(source, 8, variants=("plain",))


def test_an_input_that_is_known_to_be_empty() -> None:
    source = "14 (int64[0, 3, 4] x, int64[3] s) => (int64[] y) { y = Reshape <allowzero = 1> (x, s) }"
    feeds = {"x": np.zeros((0, 3, 4), np.int64), "s": np.array([3, 4, 0])}
    check_down(source, 13, 9, feeds=feeds, variants=("plain", "if", "function"))


@pytest.mark.parametrize(
    ("shape", "result"), [("6,4", (6, 4)), ("0,-1", (2, 12)), ("-1", (24,)), ("0,0,4", (2, 3, 4))]
)
def test_reshape(shape: str, result: tuple[int, ...]) -> None:
    dims = ",".join(map(str, result))
    source = f"""1 (float[2,3,4] x) => (float[{dims}] y)
        {{ y = Reshape <shape = [{shape}], consumed_inputs = [0]> (x) }}"""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check(source, to=7, feeds={"x": x}, expected=[x.reshape(result)])


def test_a_node_without_a_shape_is_refused() -> None:
    source = "1 (float[2] x) => (float[2] y) { y = Reshape (x) }"
    refuses("invalid-node", lift, source, 7)


@pytest.mark.parametrize("opset", [7, 13])
def test_a_zero_keeps_a_length_at_every_opset(opset: int) -> None:
    source = f"{opset} (float[2,3,4] x, int64[2] s) => (float[2,12] y) {{ y = Reshape (x, s) }}"
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check(source, to=14, feeds={"x": x, "s": np.array([0, -1])})


CHIP = """name = "chip"
[[release]]
opset = 17
source = "its manual"
[[operator]]
names = ["Reshape"]
attributes = { allowzero = [0] }
"""


def test_it_is_registered() -> None:
    found = decomposition_of("", "Reshape")
    assert found is not None
    assert found.adapt.__name__ == reshape.__name__


@pytest.mark.parametrize("opset", [14, 17])
@pytest.mark.parametrize(("shape", "length"), [("3, 2", 2), ("-1, 2", 2), ("6, 1", 2)])
def test_allowzero_is_left_out_where_no_0_can_be(opset: int, shape: str, length: int, tmp_path: Path) -> None:
    source = model(
        f"{opset} (float[2,3] x) => (float[a,b] y) <int64[{length}] s = {{{shape}}}> {{ y = Reshape <allowzero = 1> (x, s) }}"
    )
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    (chip := tmp_path / "chip.toml").write_text(CHIP)

    result = onnx_migrate.migrate(source, runtime=str(chip), simplify=False).model

    (node,) = [node for node in result.graph.node if node.op_type == "Reshape"]
    assert not node.attribute
    np.testing.assert_array_equal(run(result, feeds)[0], run(source, feeds)[0])


def test_a_target_without_reshape_is_told_so(tmp_path: Path) -> None:
    source = model("17 (float[2,3] x) => (float[a,b] y) <int64[2] s = {3, 2}> { y = Reshape (x, s) }")
    (chip := tmp_path / "chip.toml").write_text(
        CHIP.replace("attributes = { allowzero = [0] }", "lacking = true")
    )
    with pytest.raises(
        CannotMigrate, match="has no Reshape, and no other operators can replace it: no other"
    ):
        onnx_migrate.migrate(source, runtime=str(chip))


def text_squeeze(operator: str, shape: str, axes: list[int] | None) -> str:
    given = "" if axes is None else f"<int64[{len(axes)}] axes = {{{', '.join(map(str, axes))}}}>"
    return f"""13 (float[{shape}] x) => (float[] y) {given}
        {{ y = {operator} (x{"" if axes is None else ", axes"}) }}"""


@pytest.mark.parametrize("axes", [None, [], [0], [2], [-1], [0, -2]], ids=str)
def test_squeeze(axes: list[int] | None) -> None:
    shape = "1, 3, 1" if axes and -1 in axes else "1, 3, 1, 4"
    check_down(text_squeeze("Squeeze", shape, axes), 12, 11, 9, 7, refused=None)


@pytest.mark.parametrize("axes", [[0], [2], [-1], [0, -1], [1, 3], []], ids=str)
def test_unsqueeze(axes: list[int]) -> None:
    check_down(text_squeeze("Unsqueeze", "2, 3", axes), 12, 11)
    check_down(text_squeeze("Unsqueeze", "2, 3", axes), 9, 7, variants=("plain", "symbolic"))


def run_time(
    operator: str, axes: list[int], shape: list[int], dtype: str = "float"
) -> tuple[str, dict[str, np.ndarray]]:
    source = f"""13 ({dtype}{shape} x, int64[{len(axes)}] axes)
        => ({dtype}[] y) {{ y = {operator} (x, axes) }}"""
    kind = np.float32 if dtype == "float" else np.int64
    return source, {"x": np.arange(np.prod(shape)).reshape(shape).astype(kind), "axes": np.array(axes)}


@pytest.mark.parametrize("axes", [[0], [-1], [0, 2], [2, 0], [-1, -4]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_squeeze_at_run_time(axes: list[int], dtype: str) -> None:
    shape = [1, 3, 1] if axes == [-1] else [1, 3, 1, 4] if 2 in axes else [1, 3, 4, 1]
    source, feeds = run_time("Squeeze", axes, shape, dtype)
    check_down(source, 12, 11, feeds=feeds)


@pytest.mark.parametrize("axes", [[0], [-1], [1], [0, 2], [2, 0], [-1, -4]], ids=str)
@pytest.mark.parametrize("shape", [[2, 3], [4], []], ids=str)
def test_unsqueeze_at_run_time(axes: list[int], shape: list[int]) -> None:
    rank = len(shape) + len(axes)
    if not all(-rank <= axis < rank for axis in axes):
        return
    source, feeds = run_time("Unsqueeze", axes, shape)
    check_down(source, 12, 11, feeds=feeds)


def test_a_known_shape_is_exact_at_run_time() -> None:
    source, _ = run_time("Squeeze", [0], [1, 3])
    assert [change.exactness.value for change in lower(source, 12)[1].changes] == ["exact"]
    source = source.replace("float[1, 3]", "float[1, N]")
    assert [change.exactness.value for change in lower(source, 12)[1].changes] == ["assumed"]


@pytest.mark.parametrize(
    ("opset", "attributes", "shape"),
    [
        (7, "<axes = [0, 2]>", "3,1"),
        (11, "<axes = [-2, 0]>", "3,1"),
        (11, "<axes = [3]>", "1,3,1"),
        (7, "", "3"),
        (12, "<axes: ints = []>", "3"),
    ],
)
def test_squeeze_squeeze_up(opset: int, attributes: str, shape: str) -> None:
    source = f"{opset} (float[1,3,1,1] x) => (float[{shape}] y) {{ y = Squeeze {attributes} (x) }}"
    result = check(source, to=13)
    assert not result.graph.node[0].attribute
    assert len(result.graph.node[0].input) == (2 if "[" in attributes and "[]" not in attributes else 1)


@pytest.mark.parametrize(
    ("opset", "axes", "shape"), [(7, "0, 3", "1,2,3,1"), (7, "3, 0", "1,2,3,1"), (11, "-1, 1", "2,1,3,1")]
)
def test_unsqueeze_squeeze_up(opset: int, axes: str, shape: str) -> None:
    source = f"{opset} (float[2,3] x) => (float[{shape}] y) {{ y = Unsqueeze <axes = [{axes}]> (x) }}"
    check(source, to=13)


def test_axes_that_are_an_attribute_of_a_function() -> None:
    source = """12 (float[2] x) => (float[1,2,1] y, float[2] z)
        { y = local.Grow <places = [0, 2]> (x) z = local.Shrink <places = [2, 0]> (y) }
        <opset_import: ["": 12], domain: "local"> Grow <places> (a) => (b)
        { b = Unsqueeze <axes: ints = @places> (a) }
        <opset_import: ["": 12], domain: "local"> Shrink <places> (a) => (b)
        { b = Squeeze <axes: ints = @places> (a) }"""
    x = np.array([1, 2], np.float32)
    check(source, feeds={"x": x}, expected=[x[None, :, None], x], variants=["plain"])
