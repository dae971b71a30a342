"""Types of values: in sub-graphs, in functions for each call, and of outputs of operators that onnx has removed."""

from __future__ import annotations

from typing import Any

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


F = TensorProto.FLOAT
HEAD = '<ir_version: 8, opset_import: ["": 17, "f": 1]> g '
INSIDE = (1, "then_branch", 0)
BLOCK = '<opset_import: ["": 17], domain: "f"> Block'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # removed operators are replaced in functions too
            """(float[2,3] x) => (y) { y = f.F (x) }
            <opset_import: ["": 9], domain: "f"> F (a) => (b) { t = Scale <scale = 2.0> (a)  b = Relu (t) }""",
            {(("f", "F", ""), (), "b"): ValueType(F, (2, 3)), (None, (), "y"): ValueType(F, (2, 3))},
        ),
        (  # a sub-graph has its own types and those around it
            """(bool c, float[2,N] x) => (float[A,B] y) {
                a = Transpose(x)
                y = If(c) <then_branch = t () => (float[C,D] p) { q = Concat <axis = 1> (a, a) p = Relu(q) },
                           else_branch = e () => (float[E,F] r) { r = Neg(x) }> }""",
            {
                (None, INSIDE, "q"): ValueType(F, (None, 4), symbols=("N", "")),
                (None, INSIDE, "a"): ValueType(F, (None, 2), symbols=("N", "")),
                (None, (), "q"): ValueType(),
                (None, (1, "else_branch", 0), "q"): ValueType(),
            },
        ),
        (  # a function has what its calls have in common
            """(float[2,3] x, float[5,3] z) => (y, u) { y = f.Block <axis = 1> (x)  u = f.Block <axis = 1> (z) }
            """ + BLOCK + """ <axis> (a) => (b) { t = Softmax <axis: int = @axis> (a)  b = Neg(t) }""",
            {(("f", "Block", ""), (), "t"): ValueType(F, (None, 3))},
        ),
        (  # a call in a branch has the types of values around it
            """(bool c, float[2,3] x) => (y) {
                y = If(c) <then_branch = t () => (p) { p = f.Block(x) }, else_branch = e () => (q) { q = Neg(x) }> }
            """ + BLOCK + """ (a) => (b) { b = Neg(a) }""",
            {(("f", "Block", ""), (), "b"): ValueType(F, (2, 3))},
        ),
        (  # the type of a sequence is known as text
            "(seq(float[N]) x) => (int64 n) { n = SequenceLength(x) }",
            {(None, (), "x"): ValueType(container="seq(tensor(float))")},
        ),
        (  # of a model that onnx cannot infer, nothing is known
            "(float[2] x) => (float[2] y) { a = Neg(x) y = missing.Relu(a) }",
            {(None, (), "a"): ValueType()},
        ),
    ],
    ids=["removed", "sub-graph", "function", "call in a branch", "sequence", "not inferred"],
)  # fmt: skip
def test_the_type_of_a_value_by_its_body(text: str, expected: dict[Any, ValueType]) -> None:
    table = TypeTable(model(HEAD + text))
    assert {key: table.lookup(*key) for key in expected} == expected


def test_what_two_types_have_in_common() -> None:
    known = ValueType(TensorProto.FLOAT, (2, 3))

    assert known.meet(ValueType(TensorProto.FLOAT, (5, 3))) == ValueType(TensorProto.FLOAT, (None, 3))
    assert known.meet(ValueType(TensorProto.DOUBLE, (3,))) == ValueType()
    assert (known.rank, ValueType().rank, ValueType(1, ()).rank) == (2, None, 0)


def test_names_of_dims_that_two_calls_disagree_on_are_unknown() -> None:
    one = ValueType(TensorProto.FLOAT, (None, None), symbols=("N", "M"))
    other = ValueType(TensorProto.FLOAT, (None, 3), symbols=("N", ""))

    assert one.meet(other) == ValueType(TensorProto.FLOAT, (None, None), symbols=("N", ""))
    assert one.meet(ValueType(TensorProto.FLOAT, (2, 3))).symbols == ()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("[N,6]", ValueType(F, (None, 6), symbols=("N", ""))),
        ("[M,6]", ValueType(F, (None, 6), symbols=("M", ""))),
        ("[N,M]", ValueType(F, (None, 6), symbols=("N", ""))),
        ("[4,6]", ValueType(F, (4, 6))),
        ("[4,7]", ValueType(F, (4, 7))),  # onnx believes a declaration that contradicts what it infers
        ("[6]", ValueType(F, (6,))),
    ],
)
def test_an_output_has_the_declared_dims_and_the_inferred_ones_where_none_are(
    declared: str, expected: ValueType
) -> None:
    table = TypeTable(model(HEAD + f"(float[N,2,3] x) => (float{declared} y) {{ y = Flatten(x) }}"))

    assert table.lookup(None, (), "y") == expected
    assert table.outputs is not None
    assert table.outputs.dims == {"y": ("N", 6)}


def test_what_reads_an_output_is_inferred_from_its_declaration() -> None:
    table = TypeTable(model(HEAD + "(float[N] x) => (int64[1,7] y, z) { y = NonZero(x) z = Transpose(y) }"))

    assert table.lookup(None, (), "z").shape == (7, 1)


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x) => (float[2] y) <float[2] a> { a = Neg(x) y = Neg(a) }",
        """(bool c, float[2] x) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) }, else_branch = e () => (float[2] q) { q = Abs(x) }> }""",
    ],
)
def test_outputs_that_a_declaration_inside_may_decide_are_not_known_from_the_inputs(text: str) -> None:
    table = TypeTable(model(HEAD + text))

    assert table.lookup(None, (), "y").shape == (2,)
    assert table.outputs is None
