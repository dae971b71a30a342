"""What follows from constants and known dims: values, parts of them, and the shapes that they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.facts.scope import scopes
from onnx_migrate.facts.shape_arithmetic import OPERATORS, PartialArray, compute, propagate
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import Weights
from tests.facts.test_shape_arithmetic import VALID
from tests.harness import model, run
from tests.steps import check_down


def of(body: str, shape: str = "2,3,5,7") -> tuple[onnx.ModelProto, ValueFacts]:
    text = f"""<ir_version: 8, opset_import: ["":15]>
g (float[{shape}] x) => (float[k] y)
<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] end = {{4}}, int64[2] pair = {{3, 2}},
 float[2] wanted = {{9., 4.}}, int64[2] minus = {{-7, 3}}> {{ {body} }}"""
    proto = onnx.parser.parse_model(text)
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    return proto, ValueFacts(scope, Producers())


@pytest.mark.parametrize(
    "body",
    [
        "n = Shape(x) y = Cast<to = 1>(n)",
        "n = Shape<start = 1>(x) y = Cast<to = 1>(n)",
        "n = Shape(x) m = Slice(n, two, end) f = Cast<to = 1>(m) y = Div(wanted, f)",
        "n = Shape(x) m = Gather(n, pair) q = Div(m, pair) y = Cast<to = 1>(q)",
        "q = Div(minus, pair) y = Cast<to = 1>(q)",
        "n = Shape(x) m = Slice(n, zero, two) c = Concat<axis = 0>(m, pair) y = Cast<to = 1>(c)",
        "f = Cast<to = 1>(minus) g = Mul(f, wanted) h = Floor(g) y = Ceil(h)",
        "a = Add(pair, minus) b = Sub(a, pair) c = Cast<to = 1>(b) d = Max(c, wanted) y = Min(d, wanted)",
        "s = ReduceMin<keepdims = 1>(wanted) l = Less(s, wanted) y = Cast<to = 1>(l)",
        "u = Unsqueeze(wanted, zero) y = Squeeze(u, zero)",
    ],
)
def test_equal_to_what_runs(body: str) -> None:
    proto, found = of(body)
    x = np.zeros((2, 3, 5, 7), np.float32)

    value = found.value("y")

    assert value is not None
    np.testing.assert_array_equal(value, run(proto, {"x": x})[0])


@pytest.mark.parametrize(
    ("body", "shape", "expected"),
    [
        (
            "n = Shape(x) m = Slice(n, two, end) y = Cast<to = 1>(m) k = Slice(n, zero, two)",
            "N,3,5,7",
            {"y": [5, 7], "k": [None, 3], "n": [None, 3, 5, 7]},
        ),
        # Min of a symbol is not known though it is equal at many sizes.
        (
            "n = Shape(x) m = Slice(n, zero, two) k = Min(m, pair) y = Cast<to = 1>(k)",
            "N,3,5,7",
            {"k": [None, 2], "y": [None, 2]},
        ),
        ("n = Shape(x) y = Cast<to = 1>(n)", "N,C,H,W", {"y": [None] * 4}),
        ("y = Exp(wanted)", "N,C,H,W", {"y": None}),
        ("y = Identity(x)", "N,C,H,W", {"y": None}),
    ],
)
def test_part_of_a_shape_is_known(
    body: str, shape: str, expected: dict[str, list[int | None] | None]
) -> None:
    _, found = of(body, shape)
    for name, elements in expected.items():
        part = found.partial(name)
        pairs = [] if part is None else zip(part.values.tolist(), part.known.tolist(), strict=True)
        assert (None if part is None else [value if known else None for value, known in pairs]) == elements
        whole = found.value(name)
        assert (None if whole is None else whole.tolist()) == (
            None if elements is None or None in elements else elements
        )


def test_an_inner_body_sees_the_outer_one_and_an_overridable_initializer_is_not_known() -> None:
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["":15]>
g (bool c, int64[2] given = {1, 2}) => (int64[k] y) <int64[2] pair = {3, 2}, int64[2] given = {1, 2}> {
  twice = Add(pair, pair)
  y = If (c) < then_branch = t () => (int64[k] p) { p = Mul(twice, pair) },
               else_branch = f () => (int64[k] q) { q = Mul(twice, given) } >
}""")
    outer = scopes(proto, Weights(), result_ir_version=8)[0]
    node = proto.graph.node[1]
    inner = [
        ValueFacts(outer.inner(node, 1, attribute.name, 0, attribute.g), Producers())
        for attribute in node.attribute
    ]

    assert inner[0].value("p").tolist() == [18, 8]
    assert inner[1].value("q") is None


@pytest.mark.parametrize(("operator", "given", "attributes"), VALID)
def test_known_elements_do_not_depend_on_the_others(
    operator: str, given: list[Any], attributes: dict[str, Any]
) -> None:
    """Each element that counts as known has its value whatever the elements that do not are."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        parts = [
            None if array is None else PartialArray(array, np.asarray(rng.random(array.shape) < 0.7))
            for array in given
        ]
        found = propagate(operator, attributes, parts)
        if found is None:
            continue
        for _ in range(5):
            others = [
                None if part is None else np.where(part.known, part.values, other(part.values, rng))
                for part in parts
            ]
            value = compute(operator, attributes, others)
            if value is not None:  # else these others make the node invalid
                assert value.shape == found.values.shape == found.known.shape
                np.testing.assert_array_equal(value[found.known], found.values[found.known])


def other(array: Any, rng: Any) -> Any:
    """Return an array with other small elements of the same type."""
    return rng.integers(1, 5, array.shape).astype(array.dtype)


def partial(values: list[int], known: list[bool]) -> PartialArray:
    return PartialArray(np.array(values), np.array(known))


@pytest.mark.parametrize(
    ("operator", "given", "attributes", "known"),
    [
        ("Gather", [[2, 0]], {}, [True, True]),
        ("Gather", [[-2]], {}, [False]),
        ("Slice", [[1], [3]], {}, [False, True]),
        ("Slice", [[-1], [-9], [0], [-1]], {}, [True, False, True]),
        ("Unsqueeze", [[0]], {}, [[True, False, True]]),
        ("Reshape", [[3, 1]], {}, [[True], [False], [True]]),
        ("Expand", [[2, 3]], {}, [[True, False, True]] * 2),
        ("Concat", [[9]], {"axis": 0}, [True, False, True, True]),
        ("Identity", [], {}, [True, False, True]),
        ("Transpose", [], {}, [True, False, True]),
        ("Cast", [], {"to": 1}, [True, False, True]),
        ("Add", [[1]], {}, [True, False, True]),
        ("Div", [[5, 0, 5]], {}, None),
        ("Max", [[1], [2], [3]], {}, [True, False, True]),
        ("ReduceMax", [], {}, None),
        ("Range", [[3], [1]], {}, None),
    ],
)
def test_the_mask(operator: str, given: list[list[int]], attributes: dict[str, Any], known: Any) -> None:
    first = partial([4, 6, 8], [True, False, True])

    found = propagate(operator, attributes, [first, *(PartialArray.of(np.array(item)) for item in given)])

    assert (None if found is None else found.known.tolist()) == known


def test_an_index_that_is_not_known_an_unknown_divisor_and_no_elements() -> None:
    first, index = PartialArray.of(np.array([4, 6, 8])), partial([1, 1], [True, False])
    quotient = propagate("Div", {}, [PartialArray.of(np.array([7, -7])), partial([0, 2], [False, True])])

    assert propagate("Gather", {}, [first, index]) is None
    assert propagate("Reshape", {}, [first, partial([3, 1], [True, False])]) is None
    assert quotient is not None  # an unknown divisor counts as no zero
    assert (quotient.known.tolist(), quotient.values[1]) == ([False, True], -3)
    assert PartialArray.of(np.zeros(0, np.int64)).complete is not None
    assert partial([1], [False]).complete is None


@pytest.mark.parametrize(
    "reshape",
    [
        "s = Shape (x)  y = Reshape (x, s)",
        "s = Shape (x)  t = Concat <axis = 0> (s, one)  y = Reshape (x, t)",
        "s = Shape (x)  y = Expand (r, s)",
        "s = Shape (x)  t = Gather (s, zero)  u = Concat <axis = 0> (t, minus)  y = Reshape (x, u)",
    ],
)
def test_a_rank_that_onnx_does_not_infer(reshape: str) -> None:
    source = f"""<ir_version: 7, opset_import: ["": 13]> graph (float[N, 3] x, float[3] r) => (float[] z)
        <int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[1] minus = {{-1}}> {{
        u0 = Identity (r)  {reshape}  w = Relu (y)  z = Softmax <axis = 0> (w) }}"""
    check_down(source, 12, variants=("plain", "symbolic", "if", "function"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s = Concat <axis = 0> (four, three)  y = Reshape (x, s)", (4, 3)),
        ("s = Concat <axis = 0> (zero, three)  y = Reshape (x, s)", (None, 3)),
        ("s = Concat <axis = 0> (fed, three)  y = Reshape (x, s)", (None, None)),
        (
            "t = Shape (x)  u = Gather (t, zero)  s = Concat <axis = 0> (u, three)  y = Reshape (x, s)",
            (None, 3),
        ),
        ("s = Concat <axis = 0> (fed, fed)  y = Reshape (x, s)", (None, None)),
        ("s = Concat <axis = 0> (four, three)  y = Expand (x, s)", (4, 3)),
        ("s = Concat <axis = 0> (four, one, one)  y = Expand (x, s)", (4, None, 3)),
        ("s = Concat <axis = 0> (zero, three)  y = ConstantOfShape (s)", (0, 3)),
        ("s = Cast <to = 7> (many)  y = Reshape (x, s)", None),
    ],
)
def test_what_is_known_of_a_shape_is_entered(body: str, expected: tuple[int | None, ...] | None) -> None:
    proto = model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[N,3] x, int64[1] fed, int32[M] many) => (float y)
        <int64[1] four = {{4}}, int64[1] three = {{3}}, int64[1] zero = {{0}}, int64[1] one = {{1}}> {{ {body} }}"""
    )
    del proto.graph.output[:]
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))
    scope.record_type(
        "y", ValueType(TensorProto.FLOAT, None)
    )  # what onnx's inference finds is out of question
    values = ValueFacts(scope, Producers(), followed=OPERATORS)

    values.find_all(13)

    assert scope.value_type("y").shape == expected
    assert scope.value_type("y").dtype == TensorProto.FLOAT


def test_nodes_of_other_domains_are_left_out() -> None:
    proto = model(
        """<ir_version: 8, opset_import: ["": 13, "custom": 1]> g (float[2,3] x) => (float y)
        <int64[2] s = {3, 2}> { y = custom.Reshape (x, s) }"""
    )
    del proto.graph.output[:]
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))

    ValueFacts(scope, Producers()).refine(proto.graph.node[0], 13)

    assert scope.value_type("y").shape is None


@pytest.mark.parametrize(
    ("attributes", "dtype"),
    [
        ("keys_int64s = [1, 2], values_floats = [0.5, 1.5]", TensorProto.FLOAT),
        ("keys_floats = [1.0, 2.0], values_int64s = [5, 6]", TensorProto.INT64),
        ("keys_int64s = [1, 2], values_strings = [\"a\", \"b\"]", TensorProto.STRING),
    ],
)  # fmt: skip
def test_what_a_label_encoder_gives_out(attributes: str, dtype: int) -> None:
    """onnx's inference is kept from it where its input is no input of the model: it would crash the process."""
    kind = TensorProto.INT64 if "keys_int64s" in attributes else TensorProto.FLOAT
    proto = model(f"""<ir_version: 7, opset_import: ["": 13, "ai.onnx.ml": 2]> graph (float[N, 3] x) => (y) {{
        c = Cast <to = {kind}> (x)  y = ai.onnx.ml.LabelEncoder <{attributes}> (c) }}""")
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=7)))
    values = ValueFacts(scope, Producers())
    values.find_all(13)
    assert (scope.value_type("y").dtype, scope.value_type("y").shape) == (dtype, (None, 3))


@pytest.mark.parametrize(
    ("data", "indices", "expected"),
    [
        ([5], [3], (1, 3)),
        ([2, 3, 5], [2, 2], (2, 3, 4)),
        ([2, 5], [], (2, 1)),
        (["N", 5], ["K"], (None, None)),
    ],
)
def test_the_sizes_of_extracted_features(
    data: list[Any], indices: list[Any], expected: tuple[Any, ...]
) -> None:
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, data),
        helper.make_tensor_value_info("i", TensorProto.INT64, indices),
    ]
    nodes = [helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))
    ValueFacts(scope, Producers()).find_all(17)
    assert scope.value_type("y").shape == expected
    if None not in expected:
        feeds = {"x": np.zeros(data, np.float32), "i": np.zeros(indices, np.int64)}
        assert run(proto, feeds)[0].shape == expected


def test_a_shape_of_more_axes_than_any_tensor_has_is_not_kept() -> None:
    """The length of the shape is 2^40: a list of that length would take all memory."""
    from onnx_migrate.migration import migrate
    from tests.campaigns.hostile.growth import doubled_shapes

    result = migrate(doubled_shapes(), simplify=False, verify="off")
    assert [note.code for note in result.report.notes].count("inference-limit") <= 1


def test_nodes_are_those_of_the_body_that_is_asked_about_though_others_are_gone() -> None:
    branch = "<then_branch = t () => (float[2] q) {{ q = {} (x) }}, else_branch = e () => (float[2] q) {{ q = {} (x) }}>"
    operators = ["Sin", "Cos", "Tan", "Exp", "Abs", "Neg", "Ceil", "Floor"]
    pairs = zip(operators[::2], operators[1::2], strict=True)
    ifs = " ".join(f"y{i} = If (c) {branch.format(*pair)}" for i, pair in enumerate(pairs))
    proto = model(f"17 (float[2] x, bool c) => (float[2] y0) {{ {ifs} }}")
    (scope,) = scopes(proto, Weights(), result_ir_version=8)
    known, found, readers = Producers(), [], []
    for index, node in enumerate(proto.graph.node):
        for attribute in node.attribute:
            inner = scope.inner(node, index, attribute.name, 0, attribute.g)
            maker = known.find(inner, "q")
            found.append(maker and maker.op_type)
            readers += [reader.op_type for reader in known.readers(inner, "x")]

    assert found == readers == operators
