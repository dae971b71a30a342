"""Inputs that become constants: the values that they may have, and the proof that the original computes the same with these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

import onnx_migrate
from onnx_migrate.errors import MigrateError, UsageError, VerificationFailed
from onnx_migrate.model.fixed_values import arrays_of
from onnx_migrate.model.interface import Interface
from tests.harness import model, run

LOOP = """17 (int64 n, float[3] x, bool twice) => (float[3] y) {
  c = Constant<value = bool {1}>()
  l = Loop(n, c, x) <body = b (int64 i, bool d, float[3] a) => (bool e, float[3] s) {
    e = Identity(d)
    s = Sin(a)
  }>
  y = If(twice) <then_branch = t () => (float[3] p) { p = Add(l, l) }, else_branch = f () => (float[3] q) { q = Neg(l) }>
}"""
TYPES = "17 (bool[1] b, int8 i, float16 h, string s, float[N] v, int64[2,2] m, float[2] w) => (float[N] z) { z = Neg(v) }"


def read(request: Any) -> dict[str, Any]:
    return {
        name: (array.dtype.name, array.tolist()) for name, array in arrays_of(request, model(TYPES)).items()
    }


@pytest.mark.parametrize(
    ("given", "dtype", "expected"),
    [
        ("b=true", "bool", [True]),
        ("b=[false]", "bool", [False]),
        ("i=-128", "int8", -128),
        ("h=0.1", "float16", 0.0999755859375),
        ("s=a=b", "object", "a=b"),
        ("v=[1,2,3]", "float32", [1.0, 2.0, 3.0]),
        ("m=7", "int64", [[7, 7], [7, 7]]),
        ("m = [[1,2],[3,4]]", "int64", [[1, 2], [3, 4]]),
        ({"b": False}, "bool", [False]),
        ({"w": np.float64([1, 0.5])}, "float32", [1.0, 0.5]),
        ({"w": [float("inf"), 0]}, "float32", [float("inf"), 0.0]),
    ],
)
def test_what_a_value_is_read_as(given: Any, dtype: str, expected: Any) -> None:
    assert list(read(given).values()) == [(dtype, expected)]


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("w", "usage", "'w' is not an input and its value"),
        ("ww=1", "no-such-input", "did you mean w?"),
        ("N=1", "no-such-input", "--fix-shape N=SIZE sets a dim"),
        ("b=yes", "unfit-value", "cannot have the value 'yes'"),
        ("b=1", "unfit-value", "b: bool[1] cannot have the value 1"),
        ("i=true", "unfit-value", "i: int8[] cannot have the value true"),
        ("i=128", "unfit-value", "i: int8[] cannot have the value 128"),
        ("i=1.5", "unfit-value", "i: int8[] cannot have the value 1.5"),
        ("h=70000", "unfit-value", "h: float16[] cannot have the value"),
        ("i=[1]", "unfit-value", "of the shape [1]"),
        ("v=1", "unfit-value", "of the shape []"),
        ("w=[1,2,3]", "unfit-value", "w: float[2] cannot have a value of the shape [3]"),
        ("w=[[1],[2,3]]", "unfit-value", "w: float[2] cannot have the value"),
        ("w=none.npy", "unfit-value", "none.npy"),
        (["i=1", "i=2"], "unfit-value", "two values"),
    ],
)
@pytest.mark.filterwarnings("ignore:Creating an ndarray from ragged")
def test_a_value_that_does_not_fit_is_refused(given: Any, code: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(given)
    assert caught.value.code == code
    assert said in caught.value.with_hint


def test_an_array_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.npy"
    np.save(path, np.arange(4).reshape(2, 2))
    assert read(f"m={path}") == {"m": ("int64", [[0, 1], [2, 3]])}
    np.save(path, np.array([{}], dtype=object))
    with pytest.raises(UsageError, match="Object arrays"):
        read(f"m={path}")


@pytest.mark.parametrize("twice", [True, False])
def test_a_loop_and_an_if_follow_from_values(twice: bool) -> None:
    original, x = model(LOOP), np.float32([0.1, -2, 3])
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(original, control_flow=False)
    assert "--fix-value" in caught.value.with_hint
    migration = onnx_migrate.migrate(original, control_flow=False, fix_values={"n": 3, "twice": twice})
    assert [port.name for port in Interface.of(migration.model).inputs] == ["x"]
    assert {node.op_type for node in migration.model.graph.node} == {"Sin", "Add" if twice else "Neg"}
    expected = run(original, {"n": np.int64(3), "x": x, "twice": np.bool_(twice)})
    assert [a.tobytes() for a in run(migration.model, {"x": x})] == [a.tobytes() for a in expected]
    verdict = migration.report.verification
    assert verdict is not None
    assert verdict.verified
    assert verdict.compared_with == "the original with 'n' and 'twice' fixed"
    assert any(
        "with these values of 'n' and 'twice', the original computes bit for bit" in note
        for note in verdict.notes
    )


def test_the_original_is_fed_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    written = numpy_helper.from_array
    monkeypatch.setattr(numpy_helper, "from_array", lambda array, name: written(array + 1, name))
    with pytest.raises(VerificationFailed, match="does not compute what the whole does"):
        onnx_migrate.migrate(model(LOOP), fix_values={"n": 3})


def test_a_part_may_have_a_fixed_value() -> None:
    source = model("17 (float[2] x, float k) => (float[2] z) { y = Mul(x, k) z = Neg(y) }")
    migration = onnx_migrate.migrate(source, outputs="y", fix_values="k=2")
    found = run(migration.model, {"x": np.float32([1, 2])})
    assert found[0].tolist() == [2.0, 4.0]
    assert migration.report.verification is not None
    assert migration.report.verification.verified


def test_inputs_of_the_users_may_have_the_fixed_ones_or_not() -> None:
    x, source = np.float32([1, 2, 3]), model(LOOP)
    for data in ({"x": x, "twice": np.bool_(True)}, {"x": x, "twice": np.bool_(True), "n": np.int64(3)}):
        verdict = onnx_migrate.migrate(source, fix_values="n=3", input_data=data).report.verification
        assert verdict is not None
        assert verdict.verified
    with pytest.raises(UsageError, match="another value than the one that it is fixed to"):
        onnx_migrate.migrate(source, fix_values="n=4", input_data=data)


def test_a_dim_of_a_fixed_input_needs_no_size() -> None:
    source = model("17 (float[2] x, float[N] k) => (float[M] y) { y = Add(x, k) }")
    migration = onnx_migrate.migrate(source, static=True, fix_values={"k": np.float32([1, 2])})
    assert [port.shape for port in Interface.of(migration.model).outputs] == [(2,)]


def test_a_name_of_an_input_given_as_a_dim_says_so() -> None:
    with pytest.raises(UsageError) as caught:
        onnx_migrate.migrate(model(LOOP), fix="n=3")
    assert "--fix-value n=3 fixes the value of this input" in caught.value.with_hint


def test_the_command_line_and_the_report_have_it() -> None:
    report = onnx_migrate.migrate(model(LOOP), fix_values={"n": 3, "twice": True}).report
    assert "--fix-value n=3 --fix-value twice=true" in str(report.command)
    report = onnx_migrate.migrate(model(LOOP), fix_values={"x": np.zeros(3, np.float32)}).report
    assert report.command is None
