"""Types of values: in sub-graphs, in functions for each call, and of outputs of operators that onnx has removed."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from onnx_migrate.facts.value_types import TypeTable, ValueType
from tests.harness import model


def _known(body: str, opset: int = 9) -> ValueType:
    proto = model(f"""<ir_version: 4, opset_import: ["": {opset}]> g (float16[2,3,5,7] x) => (float16[A,B,C,D] y)
        {{ t = {body} (x)  u = Relu (t)  y = Neg (u) }}""")
    del proto.graph.output[:]
    before = proto.SerializeToString()
    found = TypeTable(proto).lookup(None, (), "u")
    assert proto.SerializeToString() == before
    return found


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("ImageScaler <bias = [1.0, 2.0, 3.0]>", (2, 3, 5, 7)),
        ("ScaledTanh <alpha = 1.0, beta = 2.0>", (2, 3, 5, 7)),
        ("Crop <border = [1, 2, 3, 0]>", (2, 3, 3, 3)),
        ("Crop <border = [0, 0, 0, 0]>", (2, 3, 5, 7)),
        ("Crop <border = [1, 2, 9, 9], scale = [2, 3]>", (2, 3, 2, 3)),
    ],
)
def test_inference_goes_on_after_a_removed_operator(body: str, shape: tuple[int, ...]) -> None:
    assert _known(body) == ValueType(TensorProto.FLOAT16, shape)


def test_inference_goes_on_after_the_experimental_form_of_a_standard_operator() -> None:
    assert _known("MeanVarianceNormalization <across_channels = 1>", 8).rank == 4


@pytest.mark.parametrize("body", ["Crop <border = [1]>", "Softermax"])
def test_types_after_an_unknown_operator_are_unknown(body: str) -> None:
    assert _known(body) == ValueType()


def test_removed_operators_are_replaced_in_functions_too() -> None:
    proto = model("""<ir_version: 8, opset_import: ["": 13, "local": 1]> g (float[2,3] x) => (y)
        { y = local.F (x) }
        <opset_import: ["": 9], domain: "local"> F (a) => (b) { t = Scale <scale = 2.0> (a)  b = Relu (t) }""")
    table = TypeTable(proto)
    assert table.lookup(("local", "F", ""), (), "b").shape == (2, 3)
    assert table.lookup(None, (), "y").shape == (2, 3)


def test_a_sub_graph_has_its_own_types_and_those_around_it() -> None:
    table = TypeTable(
        model("""<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2,N] x) => (float[A,B] y) {
            a = Transpose(x)
            y = If(c) <then_branch = t () => (float[C,D] p) { q = Concat <axis = 1> (a, a) p = Relu(q) },
                       else_branch = e () => (float[E,F] r) { r = Neg(x) }>
        }""")
    )

    inside = (1, "then_branch", 0)
    assert table.lookup(None, inside, "q") == ValueType(TensorProto.FLOAT, (None, 4), symbols=("N", ""))
    assert table.lookup(None, inside, "a") == ValueType(TensorProto.FLOAT, (None, 2), symbols=("N", ""))
    assert table.lookup(None, (), "q") == ValueType()
    assert table.lookup(None, (1, "else_branch", 0), "q") == ValueType()


def test_a_function_has_what_its_calls_have_in_common() -> None:
    table = TypeTable(
        model("""<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2,3] x, float[5,3] z) => (y, u) {
            y = f.Block <axis = 1> (x)  u = f.Block <axis = 1> (z)
        }
        <opset_import: ["": 17], domain: "f"> Block <axis> (a) => (b) { t = Softmax <axis: int = @axis> (a)  b = Neg(t) }
        """)
    )

    assert table.lookup(("f", "Block", ""), (), "t") == ValueType(TensorProto.FLOAT, (None, 3))


def test_a_call_in_a_branch_has_the_types_of_values_around_it() -> None:
    table = TypeTable(
        model("""<ir_version: 8, opset_import: ["": 17, "f": 1]> g (bool c, float[2,3] x) => (y) {
            y = If(c) <then_branch = t () => (p) { p = f.Block(x) }, else_branch = e () => (q) { q = Neg(x) }>
        }
        <opset_import: ["": 17], domain: "f"> Block (a) => (b) { b = Neg(a) }""")
    )

    assert table.lookup(("f", "Block", ""), (), "b") == ValueType(TensorProto.FLOAT, (2, 3))


def test_what_two_types_have_in_common() -> None:
    known = ValueType(TensorProto.FLOAT, (2, 3))

    assert known.meet(ValueType(TensorProto.FLOAT, (5, 3))) == ValueType(TensorProto.FLOAT, (None, 3))
    assert known.meet(ValueType(TensorProto.DOUBLE, (3,))) == ValueType()
    assert (known.rank, ValueType().rank, ValueType(1, ()).rank) == (2, None, 0)


def test_a_model_that_onnx_cannot_infer_has_no_known_types() -> None:
    proto = model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }""")
    proto.graph.node[1].domain = "not.imported"

    assert TypeTable(proto).lookup(None, (), "a") == ValueType()


def test_names_of_dims_that_two_calls_disagree_on_are_unknown() -> None:
    one = ValueType(TensorProto.FLOAT, (None, None), symbols=("N", "M"))
    other = ValueType(TensorProto.FLOAT, (None, 3), symbols=("N", ""))

    assert one.meet(other) == ValueType(TensorProto.FLOAT, (None, None), symbols=("N", ""))
    assert one.meet(ValueType(TensorProto.FLOAT, (2, 3))).symbols == ()


def test_the_type_of_a_sequence_is_known_as_text() -> None:
    table = TypeTable(
        model(
            """<ir_version: 8, opset_import: ["": 17]> g (seq(float[N]) x) => (int64 n) { n = SequenceLength(x) }"""
        )
    )

    assert table.lookup(None, (), "x") == ValueType(container="seq(tensor(float))")
