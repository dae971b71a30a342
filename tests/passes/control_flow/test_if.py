"""If: a known condition takes its branch, others compute both where that cannot fail."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.support.plain_nodes import flattened, header, plain

BRANCHES = "<then_branch = t () => (float[2,3] z) { z = Exp (x) }, else_branch = e () => (float[2,3] w) { w = Neg (x) }>"


@pytest.mark.parametrize(("truth", "operator"), [(1, "Exp"), (0, "Neg")])
def test_a_constant_condition_takes_its_branch(truth: int, operator: str) -> None:
    found = plain(
        header("float[2,3] x", "float[2,3] y", constants=f"bool c = {{{truth}}}")
        + f"{{ y = If (c) {BRANCHES} }}"
    )
    assert found == {operator: 1}


def test_a_condition_that_follows_from_fixed_dims() -> None:
    nodes = f"{{ s = Shape (x) d = Gather (s, zero) c = Equal (d, two) y = If (c) {BRANCHES} }}"
    constants = "int64 zero = {0}, int64 two = {2}"
    assert plain(header("float[2,3] x", "float[2,3] y", constants=constants) + nodes)["Exp"] == 1
    with pytest.raises(CannotMigrate, match="computed at run time") as caught:
        flattened(header("float[N,3] x", "float[N,3] y", constants=constants) + nodes)
    assert caught.value.code == "control-flow"
    assert "--fix-shape" in caught.value.hint


@pytest.mark.parametrize("truth", [True, False])
def test_both_branches_and_a_choice(truth: bool) -> None:
    feeds = {"x": np.array([[0.0, -0.0, np.nan], [np.inf, -1, 2]], np.float32), "c": np.array(truth)}
    found = plain(header("float[2,3] x, bool c", "float[2,3] y") + f"{{ y = If (c) {BRANCHES} }}", feeds)
    assert found["Exp"] == found["Neg"] == 1
    assert found["Where"]


@pytest.mark.parametrize("truth", [True, False])
def test_a_condition_of_one_axis_and_a_scalar_result(truth: bool) -> None:
    branches = (
        "<then_branch = t () => (int64 z) { z = Neg (x) }, else_branch = e () => (int64 w) { w = Abs (x) }>"
    )
    feeds = {"x": np.array(5), "c": np.array([truth])}
    plain(header("int64 x, bool[1] c", "int64 y") + f"{{ y = If (c) {branches} }}", feeds)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("uint8", "uint8"),
        ("int8", "int64"),
        ("uint32", "int64"),
        ("float16", "float16"),
        ("bfloat16", "float"),
    ],
)
def test_types_without_a_kernel_of_where(name: str, taken: str) -> None:
    """ONNX Runtime 1.21 and onnxruntime-web 1.30 have one for float16, float32, float64, uint8, int32, int64 and texts alone."""
    number, wanted = map(onnx.TensorProto.DataType.Value, (name.upper(), taken.upper()))
    branches = (
        f"<then_branch = t () => ({name}[6] z) {{ z = Identity (a) }},"
        f" else_branch = e () => ({name}[6] w) {{ w = Concat <axis = 0> (q, p) }}>"
    )
    nodes = (
        f"{{ a = Cast <to = {number}> (x) p, q = Split (a, k) v = If (c) {branches} y = Cast <to = 1> (v) }}"
    )
    source = header("float[6] x, bool c", "float[6] y", constants="int64[2] k = {1, 5}") + nodes
    for truth in (True, False):
        plain(source, {"x": np.float32([-0.0, 0, 1, 2, 127, 5.5]), "c": np.array(truth)})
    result = onnx.shape_inference.infer_shapes(flattened(source)[0])
    types = {value.name: value.type.tensor_type.elem_type for value in result.graph.value_info}
    assert {types[node.output[0]] for node in result.graph.node if node.op_type == "Where"} == {wanted}


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ("z = Gather (x, i)", "may read out of range"),
        ("z = Cast <to = 7> (s)", "reads numbers from texts"),
        ("z = Div (i, j)", "may divide by 0"),
        ("z = Reshape (x, j)", "unknown dims"),
        ("z = RandomNormalLike (x)", "draws random numbers"),
        ("z = TopKLike (x)", "not known"),
    ],
)
def test_what_may_fail_in_the_branch_not_taken_is_refused(then: str, reason: str) -> None:
    inputs = "float[4] x, int64[2] i, int64[2] j, string[2] s, bool c"
    if "TopKLike" in then:
        then = "z, k = TopK (x, j)".replace("j", "one")
    nodes = f"""{{ one = Constant <value = int64[1] {{1}}> ()
      y = If (c) <then_branch = t () => (z) {{ {then} }}, else_branch = e () => (w) {{ w = Identity (x) }}> }}"""
    with pytest.raises(CannotMigrate, match=reason) as caught:
        flattened(header(inputs, "y", 11 if "(i, j)" in then or "(x, i)" in then else 17) + nodes)
    assert caught.value.where is not None
    assert caught.value.where.operator == "If"


@pytest.mark.parametrize(
    "then",
    ["z = Gather (x, i)", "z = Gather <axis = -1> (t, i) ", "z = GatherElements (x, i)", "z = GatherND (x, p)",
     "z = GatherND (x, o)", "z = Gather (x, n)", "u = Concat <axis = 0> (x, x) k = Add (i, i) z = Gather (u, k)",
     "d = Div (i, j) z = Cast <to = 1> (d)", "d = Mod (i, j) z = Cast <to = 1> (d)",
     "k = Cast <to = 6> (i) l = Cast <to = 6> (j) d = Mod <fmod = 1> (k, l) z = Cast <to = 1> (d)"],
)  # fmt: skip
def test_indices_and_divisors_of_a_branch_that_is_not_taken(then: str) -> None:
    """Where it is taken they are as they were; where it is not, the model runs with any."""
    nodes = f"""{{ t = Reshape (x, flat) p = Unsqueeze (i, last)
      y = If (c) <then_branch = t () => (float[A] z) {{ {then} }}, else_branch = e () => (float[B] w) {{ w = Exp (x) }}> }}"""
    constants = (
        "int64[1] flat = {-1}, int64[1] last = {1}, int64[4,1] o = {0, 3, -4, 1}, int64[4] n = {-1, 0, 3, -4}"
    )
    source = header("float[4] x, int64[4] i, int64[4] j, bool c", "float[C] y", constants=constants) + nodes
    x = np.array([1.5, -0.0, np.nan, -7], np.float32)
    inside = {"i": np.array([-4, 3, 0, -1]), "j": np.array([1, -1, 3, -2])}
    outside = {"i": np.array([-(2**40), 4, -5, 2**62]), "j": np.array([0, 0, -1, 0])}
    for truth, given in ((True, inside), (False, inside), (False, outside)):
        plain(source, {"x": x, "c": np.array(truth), **given})


def test_branches_of_two_shapes_are_refused() -> None:
    nodes = """{ y = If (c) <then_branch = t () => (float[1,3] z) { z = Unsqueeze (x, axes) },
      else_branch = e () => (float[3] w) { w = Neg (x) }> }"""
    with pytest.raises(CannotMigrate, match=r"\[1, 3\] in one branch and \[3\] in the other"):
        flattened(header("float[3] x, bool c", "y", constants="int64[1] axes = {0}") + nodes)


def test_expensive_branches_are_refused() -> None:
    source = header("float[2,3] x, bool c", "float[2,3] y") + f"{{ y = If (c) {BRANCHES} }}"
    with pytest.raises(CannotMigrate, match="12 multiplications, more than 11") as caught:
        flattened(source, extra=11)
    assert caught.value.code == "unroll-limit"
    _, log = flattened(source, extra=12)
    assert "12 multiplications" in log.notes[0].message


def test_an_if_inside_an_if() -> None:
    inner = """z = If (d) <then_branch = tt () => (float[2,3] p) { p = Relu (x) },
      else_branch = te () => (float[2,3] q) { q = Floor (x) }>"""
    nodes = f"""{{ y = If (c) <then_branch = t () => (float[2,3] z) {{ {inner} }},
      else_branch = e () => (float[2,3] w) {{ w = Neg (x) }}> }}"""
    for c, d in ((True, True), (True, False), (False, True)):
        feeds = {"x": np.array([[1.5, -1, 0]] * 2, np.float32), "c": np.array(c), "d": np.array(d)}
        assert plain(header("float[2,3] x, bool c, bool d", "float[2,3] y") + nodes, feeds)["Floor"] == 1
    constants = "bool d = {1}"
    source = header("float[2,3] x, bool c", "float[2,3] y", constants=constants) + nodes
    assert not plain(source, {"x": feeds["x"], "c": np.array(True)})["Floor"]


def test_a_branch_that_fails_at_these_sizes_is_left_out() -> None:
    """As of silero-vad for 8 kHz where 512 samples are given: the model runs for one value of the condition alone."""
    nodes = """{ y = If (c) <then_branch = t () => (z) { z = Neg (x) },
      else_branch = e () => (w) { p = Transpose (x) q = Squeeze (p, axes) w = If (d) <then_branch = tt () => (u) { u = Exp (q) },
        else_branch = te () => (v) { v = Identity (q) }> }> }"""
    source = header("float[2,3] x, bool c, bool d", "float[p,q] y", constants="int64[1] axes = {0}") + nodes
    feeds = {"x": np.ones((2, 3), np.float32), "c": np.array(True), "d": np.array(False)}
    assert plain(source, feeds) == {"Neg": 1}
    _, log = flattened(source)
    assert "else_branch fails at these sizes for all of them, as Squeeze" in log.notes[-1].message
    with pytest.raises(CannotMigrate, match="both branches fail at these sizes"):
        flattened(source.replace("z = Neg (x)", "z = Squeeze (x, axes)"))


def test_conditions_of_the_functions_of_pytorch_2_2() -> None:
    """A rank that is compared by CastLike, and an order of a norm by IsInf."""
    nodes = f"""{{ s = Shape (x) r = Size (s) k = CastLike (zero, r) c = Equal (r, k) l = CastLike (two, x) n = IsInf (l)
      y = If (n) {BRANCHES} o = If (c) <then_branch = t () => (v) {{ v = Unsqueeze (x, axes) }},
        else_branch = e () => (w) {{ w = Identity (x) }}> v = Neg (o) }}"""
    constants = "int64 zero = {0}, int64 two = {2}, int64[1] axes = {0}"
    found = plain(header("float[2,3] x", "float[2,3] y, float[2,3] v", constants=constants) + nodes)
    assert (found["If"], found["Exp"], found["Unsqueeze"]) == (0, 0, 0)


def test_every_refused_node_is_named() -> None:
    refused = (
        "<then_branch = t () => (z) { z = Gather (x, i) }, else_branch = e () => (w) { w = Identity (x) }>"
    )
    source = (
        header("float[4] x, int64[4] i, bool c", "y, v", 11)
        + f"{{ y = If (c) {refused} v = If (c) {refused} }}"
    )
    with pytest.raises(CannotMigrate, match=r"1 more node refused: 'v' \(If\)"):
        flattened(source)
