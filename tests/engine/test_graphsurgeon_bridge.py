"""The bridge to users' functions: what they get, what survives graphsurgeon, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine.graphsurgeon_bridge import run_on_graph, run_on_proto
from onnx_migrate.errors import PassError
from onnx_migrate.files import inline, load
from tests.engine.passes import TEXT, double_weights, skip_identity
from tests.harness import model, random_feeds, run, same


def through_graph(source: onnx.ModelProto, function: Any = skip_identity) -> onnx.ModelProto:
    return inline(run_on_graph(load(source), function))


def test_the_fields_that_graphsurgeon_drops_are_restored() -> None:
    source = model(TEXT)
    source.metadata_props.add(key="k", value="v")
    source.graph.node[0].doc_string = "why"
    source.graph.input[0].type.denotation = "IMAGE"

    result = through_graph(source)

    assert [node.op_type for node in result.graph.node] == ["Mul", "Relu"]
    same(run(source, random_feeds(source)), run(result, random_feeds(source)), "pass")
    for name in (
        "producer_name",
        "model_version",
        "doc_string",
        "metadata_props",
        "ir_version",
        "opset_import",
    ):
        assert getattr(result, name) == getattr(source, name), name
    assert result.graph.node[0].doc_string == "why"
    assert result.graph.input == source.graph.input
    assert result.graph.output == source.graph.output


def test_a_function_of_a_proto_gets_all_weights_and_the_source_stays_unchanged() -> None:
    source = model(TEXT)
    big = np.arange(3 * 4096, dtype=np.float32).reshape(3, 4096)
    source.graph.initializer.append(numpy_helper.from_array(big, "big"))

    result = inline(run_on_proto(load(source), double_weights))

    kept = {tensor.name: numpy_helper.to_array(tensor) for tensor in result.graph.initializer}
    np.testing.assert_array_equal(kept["big"], big * 2)
    np.testing.assert_array_equal(kept["w"], [4.0])
    assert numpy_helper.to_array(source.graph.initializer[0]) == [2.0]


def test_overridable_initializers_survive() -> None:
    source = model(TEXT)
    source.graph.input.append(helper.make_tensor_value_info("w", 1, [1]))

    result = through_graph(source)

    assert [value.name for value in result.graph.input] == ["x", "w"]
    assert [tensor.name for tensor in result.graph.initializer] == ["w"]


def test_a_changed_shape_is_taken_and_an_unchanged_one_keeps_its_denotations() -> None:
    source = model(TEXT)
    source.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"

    def widen(graph: Any) -> None:
        graph.outputs[0].shape = ["other", 4]

    result = through_graph(source, widen)

    assert result.graph.input[0].type.tensor_type.shape.dim[0].denotation == "DATA_BATCH"
    assert result.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "other"


@pytest.mark.parametrize(
    ("feature", "reason"),
    [("sequence", "'s' is of type sequence"), ("sparse", "attribute 'sparse_value' is a sparse tensor")],
)
def test_what_graphsurgeon_cannot_represent_is_refused(feature: str, reason: str) -> None:
    source = model(TEXT)
    if feature == "sequence":
        source.graph.node.append(helper.make_node("SequenceConstruct", ["y"], ["s"]))
        source.graph.output.append(helper.make_tensor_sequence_value_info("s", 1, None))
    else:
        values = numpy_helper.from_array(np.ones(1, np.float32), "v")
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, np.int64), "i"), [4])
        source.graph.node.append(helper.make_node("Constant", [], ["sp"], sparse_value=sparse))

    with pytest.raises(PassError, match=reason) as caught:
        through_graph(source)

    assert caught.value.code == "surgeon-cannot-hold"


def test_a_function_that_returns_something_else_is_refused() -> None:
    with pytest.raises(PassError, match="must return a Graph or None; it returned int"):
        through_graph(model(TEXT), lambda graph: 1)
    with pytest.raises(PassError, match="must return a ModelProto or None; it returned bytes"):
        run_on_proto(load(model(TEXT)), onnx.ModelProto.SerializeToString)  # type: ignore[arg-type]
