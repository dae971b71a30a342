"""What a run would take is found without a run: sizes, rounds of loops and multiplications, wherever the model hides them."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.facts.running_cost.estimate import estimate
from onnx_migrate.facts.running_cost.obstacles import why_not_run
from onnx_migrate.facts.running_cost.value_estimate import Dims
from tests.campaigns.hostile import growth, sizes
from tests.harness import model

GIGABYTE = 1 << 30


def refusal(
    given: onnx.ModelProto,
    memory: int | None,
    seconds: float | None = None,
    shapes: dict[str, Dims] | None = None,
) -> str:
    """Return why a run is not started, with what helps; "" if it is."""
    return str(why_not_run(given, memory, seconds, shapes, asked=shapes is not None) or "")


LOOP = (
    """<body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) { t = Add (s, s) l = Identity (k) }>"""
)


def text(nodes: str, constants: str = "", opset: int = 17, functions: str = "") -> onnx.ModelProto:
    """Return a model from x, float[4], to y."""
    return model(
        f'<ir_version: 9, opset_import: ["": {opset}, "f": 1]> g (float[4] x) => (y) <{constants}> {{ {nodes} }} {functions}'
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            growth.doubled_tensors(),
            "value 'd27' takes 2,147,483,648 bytes, and the memory limit is 1,073,741,824",
        ),
        (growth.doubled_shapes(), "'d27' takes 2,147,483,648 bytes"),
        (growth.doubled_shapes_in_a_function(), "value 'b' takes 2,147,483,648 bytes"),
        (growth.loop_of_a_million_million_turns(), "Loop 'y', whose nodes run 2,000,000,000,000 times,"),
        (growth.loops_in_loops(), "Loop 'y', whose nodes run 2,222,222,222,220 times,"),
        (growth.loop_without_an_end(), "has no end"),
        (sizes.constant_of_a_huge_shape(), "takes 4,000,000,000,000 bytes"),
        (sizes.constant_of_a_huge_shape_from_a_symbol(), "takes 4,000,000,000,000 bytes"),
    ],
)
def test_what_cannot_end_is_not_run(given: onnx.ModelProto, reason: str) -> None:
    assert reason in refusal(given, GIGABYTE)


COUNTED = {
    "Constant": "m = Constant <value_int: int = 1099511627776> () LOOP",
    "arithmetic": "m = Mul (n, n) LOOP",
    "power": "f = Cast <to = 1> (n) p = Pow (f, e) m = Cast <to = 7> (p) LOOP",
    "shift": """u = Cast <to = 13> (one) v = Cast <to = 13> (forty) w = BitShift <direction = "LEFT"> (u, v)
        m = Cast <to = 7> (w) LOOP""",
    "shape": "z = ConstantOfShape (big) h = Shape (z) m = ReduceProd <keepdims = 0> (h) LOOP",
    "shape of the input": "h = Shape (x) q = Mul (h, billion) m = Squeeze (q) LOOP",
    "identities": "d = Identity (billions) m = Identity (d) LOOP",
    "function": "m = f.Count (n) LOOP",
    "attribute of a function": "y = f.Run <n = 10000000000> (s)",
    "branch": """m = If (c) <then_branch = t () => (int64 p) { p = Identity (billions) },
        else_branch = e () => (int64 q) { q = Identity (n) }> LOOP""",
    "counter": """y = Loop ("", "", s) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
        t = Add (s, s) l = Less (i, billions) }>""",
    "count down": """m = Constant <value_int: int = 9223372036854775807> ()
        y, v = Loop (m, "", s, billions) <body = b (int64 i, bool k, float[2] s, int64 a) => (bool l, float[2] t, int64 c) {
        t = Add (s, s) c = Sub (a, one) l = Greater (c, zero) }>""",
    "scan": """b = Expand (s, rows) y, u = Scan <num_scan_inputs = 1,
        body = b (float[2] a, float[2] r) => (float[2] c, float[2] o) {
        c = Identity (a) o = Neg (r) }> (s, b)""",
}


@pytest.mark.parametrize("source", COUNTED)
def test_rounds_of_a_loop_are_counted_wherever_their_number_comes_from(source: str) -> None:
    constants = """int64 n = {1048576}, float e = {2}, int64 one = {1}, int64 zero = {0}, int64 forty = {40}, bool c = {1},
        int64[2] big = {65536, 65536}, int64 billion = {1000000000},
        int64 billions = {10000000000}, int64[2] rows = {200000000, 2},
        float[2] s = {1,1}"""
    loop = f'y = Loop (m, "", s) {LOOP}'
    functions = f"""
        <domain: "f", opset_import: ["": 17]> Count (a) => (b) {{ b = Mul (a, a) }}
        <domain: "f", opset_import: ["": 17]> Run <n> (s) => (y) {{ m = Constant <value_int: int = @n> () {loop} }}"""
    given = text(COUNTED[source].replace("LOOP", loop), constants, functions=functions)
    assert "in 2 runs, and" in refusal(given, 1 << 50, 20.0)


@pytest.mark.parametrize(
    ("operators", "bytes_"),
    [
        ("big = Expand (x, n)", 4 * 4 * 2**30),
        ("big = Tile (x, r)", 4 * 4 * 2**30),
        ("big = ConstantOfShape (m)", 4 * 2**40),
        ("big = Range (z, k, one)", 8 * 2**40),
        ("big = Pad (x, p)", 4 * (4 + 2**41)),
        ('big = Resize <mode = "nearest"> (w, "", "", sz)', 4 * 2**62),
        ('big = Resize <mode = "nearest"> (w, "", sc)', 4 * 2**42),
        ("i = Cast <to = 7> (x) big = OneHot (i, k, v)", 4 * 4 * 2**40),
        ("e = RandomNormal <shape = [1048576, 1048576]> () big = EyeLike (e)", 4 * 2**40),
        ("big = RandomUniform <shape = [1048576, 1048576]> ()", 4 * 2**40),
        ("big = ConvTranspose <strides = [1048576, 1048576]> (w, u)", 4 * (2**20 + 2) ** 2),
        ("big = ConvTranspose <output_shape = [1048576, 1048576]> (w, u)", 4 * 2**40),
        ("f = Expand (x, wide) g = Transpose (f) big = MatMul (f, g)", 4 * 2**56),
        ('f = Expand (x, wide) big = Einsum <equation = "ia,ja->ij"> (f, f)', 4 * 2**56),
        ("i = Cast <to = 7> (f) big = Gather (f, i)", 4 * 2**30 * 4 * 4),
        ("big = Conv <pads = [1048576, 1048576, 1048576, 1048576]> (w, u)", 4 * (2**21 + 1) ** 2),
        ("big = HannWindow (k)", 4 * 2**40),
        ("f = Expand (x, wide) g = Unsqueeze (f, axes) h = Sub (f, g) big = Abs (h)", 4 * 4 * 2**28 * 2**28),
        ("big = MaxUnpool <kernel_shape = [1, 1]> (w, iw, sz)", 4 * 2**62),
    ],
)  # fmt: skip
def test_sizes_that_the_model_chooses_are_counted(operators: str, bytes_: int) -> None:
    constants = """int64[2] n = {1073741824, 1}, int64[1] r = {1073741824}, int64[2] m = {1048576, 1048576}, int64 z = {0},
        int64 k = {1099511627776}, int64 one = {1}, int64[2] p = {1099511627776, 1099511627776}, float[1,1,2,2] w = {1,1,1,1},
        int64[1,1,2,2] iw = {0,1,2,3}, int64[4] sz = {1,1,2147483648,2147483648}, float[4] sc = {1,1,1048576,1048576},
        float[2] v = {0,1}, float[1,1,2,2] u = {1,1,1,1}, int64[2] wide = {268435456, 4},
        int64[1] axes = {1}"""
    if "(f" in operators and "f =" not in operators:
        operators = f"f = Expand (x, n) {operators}"
    found = estimate(text(f"{operators} y = Neg (x)", constants))
    assert found.tally.value.bytes == bytes_, found.tally.value


@pytest.mark.parametrize(
    ("state", "update", "most"),
    [
        ("float[1] s = {1}", "t = Concat <axis = 0> (s, s)", "value 't' takes 8,589,934,592 bytes"),
        ("float[1] s = {1}", "t = Tile (s, two)", "value 't' takes 8,589,934,592 bytes"),
        ("float[1] s = {1}", "t = Pad (s, pads)", "value 't' takes 8,000,000,004 bytes"),
        ("int64[1] s = {2}", "t = Mul (s, two) u = ConstantOfShape (t)", "value 'u' takes 8,589,934,592 bytes"),
        ("int64[1] s = {2}", "t = Mul (s, s) u = ConstantOfShape (t)", "bytes, and the memory limit"),
        ("float[1,1,1,1] s = {1}", 't = Resize <mode = "nearest"> (s, "", sc)', "value 't' takes 17,179,869,184 bytes"),
    ],
)  # fmt: skip
def test_values_that_grow_in_a_loop_are_followed(state: str, update: str, most: str) -> None:
    kind = state.split("[")[0] + "[" + ",".join("abcd"[: state.count(",") + 1]) + "]"
    body = f"(int64 i, bool k, {kind} s) => (bool l, {kind} t) {{ {update} l = Identity (k) }}"
    constants = f"""int64 m = {{10000}}, int64[1] two = {{2}}, int64[2] pads = {{0, 2000000000}},
        float[4] sc = {{1,1,2,2}}, {state}"""
    given = text(f'big = Loop (m, "", s) <body = b {body}> y = Neg (x)', constants)
    assert most in refusal(given, 4 * GIGABYTE)


def test_rounds_that_add_a_row_are_continued() -> None:
    """The sum of all copies is 4 · 8 · 10^12 / 2 bytes."""
    body = "(int64 i, bool k, float[a] s) => (bool l, float[a] t) { t = Concat <axis = 0> (s, one) l = Identity (k) }"
    given = text(
        f'big = Loop (m, "", s) <body = b {body}> y = Neg (x)',
        "int64 m = {1000000}, float[1] one = {1}, float[1] s = {1}",
    )
    work = estimate(given).tally.work
    assert work.runs == 2 * 10**6 + 2
    assert abs(work.written / 2e12 - 1) < 0.01


def test_texts_that_grow_in_a_loop_are_followed() -> None:
    body = (
        "(int64 i, bool k, string[1] s) => (bool l, string[1] t) { t = StringConcat (s, s) l = Identity (k) }"
    )
    given = model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (string[1] x) => (y) <int64 m = {{60}}> {{
        y = Loop (m, "", x) <body = b {body}> }}"""
    )
    assert "value 't' takes" in refusal(given, GIGABYTE)


def test_sequences_that_grow_in_a_loop_are_followed() -> None:
    body = """(int64 i, bool k, seq(float[a]) s) => (bool l, seq(float[a]) t) { t = SequenceInsert (s, x) l = Identity (k) }"""
    given = text(
        f'q = SequenceEmpty () r = Loop (m, "", q) <body = b {body}> y = SequenceAt (r, z)',
        "int64 m = {100000000}, int64 z = {0}",
    )
    assert "value 't' takes" in refusal(given, GIGABYTE)


@pytest.mark.parametrize(
    ("node", "operator"),
    [
        ("b = MatMul (a, a)", "MatMul"),
        ('b = Einsum <equation = "ij,jk->ik"> (a, a)', "Einsum"),
        ("b = Gemm (a, a)", "Gemm"),
        ("b = Conv (c, w)", "Conv"),
        ("b = ConvTranspose (c, v)", "ConvTranspose"),
        ("b = MaxPool <kernel_shape = [256, 256]> (c)", "MaxPool"),
        ("b, h = RNN <hidden_size = 4096> (d, e, g)", "RNN"),
    ],
)
def test_multiplications_that_no_input_changes_are_counted(node: str, operator: str) -> None:
    sizes = {
        "a": "8192, 8192",
        "c": "1, 64, 512, 512",
        "w": "256, 64, 7, 7",
        "v": "64, 240, 7, 7",
        "d": "16384, 1, 64",
        "e": "1, 4096, 64",
        "g": "1, 4096, 4096",
    }
    wanted = [name for name in sizes if f" {name}," in node.replace("(", " ").replace(")", ",")]
    constants = ", ".join(
        f"int64[{sizes[name].count(',') + 1}] n{name} = {{{sizes[name]}}}" for name in wanted
    )
    filled = " ".join(f"{name} = ConstantOfShape (n{name})" for name in wanted)
    given = text(f"{filled} {node} y = ReduceMax <keepdims = 0> (b)", constants)
    assert f"multiplications depend on no input, most of them in {operator} 'b'" in refusal(given, 1 << 40)


@pytest.mark.parametrize(
    "text_",
    [
        # The condition follows from the data.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y)
           <int64 m = {9223372036854775807}, bool c = {1}, float z = {9}> {
             y = Loop (m, c, x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) n = ReduceSum <keepdims = 0> (t) l = Less (n, z) }> }""",
        # The number of turns is small.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y) <int64 m = {1000}, bool c = {1}> {
             y = Loop (m, c, x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) l = Identity (k) }> }""",
        # The number of turns is the caller's.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x, int64 m) => (float[2] y) {
             y = Loop (m, , x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) l = Identity (k) }> }""",
        # A loop that is never entered.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y) <int64 m = {1000000000000}, bool c = {0}> {
             y = Loop (m, c, x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) l = Identity (k) }> }""",
        # The counter ends it, long before the trip count does.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y)
           <int64 m = {9223372036854775807}, int64 n = {5000}> {
             y = Loop (m, "", x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) l = Less (i, n) }> }""",
        # A branch that is not taken.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (y) <bool c = {0}, int64[1] n = {10000000000}> {
             y = If (c) <then_branch = t () => (a) { a = ConstantOfShape (n) }, else_branch = e () => (b) { b = Relu (x) }> }""",
        # How many there are depends on the data.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (y) {
             i = NonZero (x) s = Shape (i) y = ConstantOfShape (s) }""",
        # An image in full size, with 64 channels.
        """<ir_version: 8, opset_import: ["": 16]> g (float[1,3,2048,2048] x) => (y) <int64[4] n = {64,3,3,3}> {
             w = ConstantOfShape (n) c = Conv <pads = [1,1,1,1]> (x, w) y = ReduceMean <keepdims = 0> (c) }""",
    ],
)  # fmt: skip
def test_what_may_end_is_run(text_: str) -> None:
    assert not refusal(model(text_), 4 * GIGABYTE, 60.0)


@pytest.mark.parametrize("shape", ["4", "N", "1"])
def test_a_small_file_that_makes_a_huge_value_is_not_run_though_it_fits(shape: str) -> None:
    given = model(
        f"""<ir_version: 8, opset_import: ["": 16]> g (float[{shape}] x) => (y) <int64[1] n = {{300000000}}> {{
        b = ConstantOfShape (n) s = ReduceSum <keepdims = 0> (b) y = Add (x, s) }}"""
    )
    reason = refusal(given, 1 << 40)
    assert "value 'b' takes 1,200,000,000 bytes, and the file has" in reason
    assert "--input-data runs it all the same" in reason
    assert not refusal(given, 1 << 40, 600.0, {"x": (4,)})


def test_sizes_of_given_inputs_count() -> None:
    given = model(
        """<ir_version: 8, opset_import: ["": 16]> g (float[N, N] x) => (y) { y = MatMul (x, x) }"""
    )
    assert not refusal(given, GIGABYTE, 10.0)
    assert not refusal(given, GIGABYTE, 10.0, {"x": (512, 512)})
    assert "value 'y' takes" in refusal(given, GIGABYTE, 10.0, {"x": (20_000, 20_000)})
    assert "MatMul 'y' takes at least 80.0 s in 2 runs, and the time limit is 10 s" in refusal(
        given, 1 << 40, 10.0, {"x": (20_000, 20_000)}
    )


def with_outputs(count: int) -> onnx.ModelProto:
    """Each output has 100 MB."""
    names = [f"y{number}" for number in range(count)]
    outputs = ", ".join(f"float[25000000] {name}" for name in names)
    nodes = " ".join(f"{name} = Relu (x)" for name in names)
    return model(
        f'<ir_version: 8, opset_import: ["": 16]> g (float[25000000] x) => ({outputs}) {{ {nodes} }}'
    )


def test_outputs_of_all_runs_must_fit_together() -> None:
    assert "its outputs take 300,000,000 bytes" in refusal(with_outputs(3), GIGABYTE)
    assert not refusal(with_outputs(2), GIGABYTE)


def test_a_function_is_walked_once_for_all_equal_calls() -> None:
    """Each of 40 functions calls the next one twice: 2^39 Relus."""
    given = model(
        """<ir_version: 8, opset_import: ["": 13, "f": 1]> g (float[2] x) => (float[2] y) { y = f.F0 (x) }"""
    )
    given.functions.extend(growth.doubling(40))
    assert estimate(given).tally.work.runs == 2**39
