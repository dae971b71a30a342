"""The inputs to feed and the outputs of a model, and what counts as a change of them."""

from __future__ import annotations

import pytest
from onnx import TypeProto, helper

from onnx_migrate.errors import UsageError
from onnx_migrate.model.interface import Interface, Port, axis_of, port_named, tokens_of, unlist_initializers
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3] x, float[3] w) => (float[N,3] y, int64[1] k) <float[3] w = {1., 2., 3.}> { y = Add(x, w) k = Shape(w) }"""


def test_an_initializer_is_no_input() -> None:
    interface = Interface.of(model(TEXT))

    assert interface == Interface(
        (Port("x", "float", ("N", 3)),), (Port("y", "float", ("N", 3)), Port("k", "int64", (1,)))
    )
    assert str(interface.inputs[0]) == "x: float[N, 3]"


def test_listed_initializers_are_removed_from_the_inputs_alone() -> None:
    graph = model(TEXT).graph

    assert unlist_initializers(graph) == ["w"]
    assert [value.name for value in graph.input] == ["x"]
    assert [tensor.name for tensor in graph.initializer] == ["w"]
    assert unlist_initializers(graph) == []


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("(float[N,3] x", "(float[1,3] x", None),
        ("float[N,3] y, int64[1] k", "int64[1] k, float[N,3] y", "the outputs were y, k and became k, y"),
        ("(float[N,3] x", "(double[N,3] x", "input 'x' was float and became double"),
        ("(float[N,3] x, ", "(", "the inputs were x and became none"),
    ],
)
def test_names_types_and_order_count_and_dims_do_not(old: str, new: str, difference: str | None) -> None:
    before, after = Interface.of(model(TEXT)), Interface.of(model(TEXT.replace(old, new)))

    assert before.difference(after) == difference


def test_types_other_than_tensors() -> None:
    inner = helper.make_tensor_type_proto(1, [2])
    sequence = helper.make_optional_type_proto(helper.make_sequence_type_proto(inner))
    mapping = helper.make_map_type_proto(7, inner)

    assert Port.of(helper.make_value_info("a", sequence)) == Port("a", "optional(seq(float))", None)
    assert Port.of(helper.make_value_info("b", mapping)).kind == "map(int64, float)"
    assert Port.of(helper.make_value_info("c", TypeProto())).kind == "?"


def test_an_element_type_that_onnx_does_not_know_has_a_number() -> None:
    value = helper.make_tensor_value_info("x", 1, [2])
    value.type.tensor_type.elem_type = 99

    assert str(Port.of(value)) == "x: type 99[2]"


X, UNKNOWN = Port("Image", "float", (1, 3)), Port("z", "float", None)


def test_a_name_that_is_nearly_one_is_refused_with_that() -> None:
    ports = {"Image": X, "z": UNKNOWN}

    assert port_named("Image", ports) is X
    with pytest.raises(UsageError, match=r"no input or output 'image'\nHint: did you mean Image\?") as caught:
        port_named("image", ports)
    assert caught.value.code == "no-such-input"


def test_axes_are_counted_from_both_ends() -> None:
    assert [axis_of(axis, X) for axis in (0, 1, -1, -2)] == [0, 1, 1, 0]
    assert axis_of(5, UNKNOWN) == 5
    for axis, port, words in (
        (2, X, "has no axis 2"),
        (-1, UNKNOWN, "declares no shape"),
        (True, X, "is not an axis"),
        ("0", X, "is not an axis"),
    ):
        with pytest.raises(UsageError, match=words):
            axis_of(axis, port)


def test_brackets_around_all_axes_have_no_meaning() -> None:
    assert tokens_of("[N, 3,H]") == tokens_of("(N,3, H)") == tokens_of(" N,3,H") == ["N", "3", "H"]
    assert tokens_of("[N,3") == ["[N", "3"]
