"""A sparse initializer is an initializer everywhere: it need not be fed, has a type, and is dropped once unread."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.engine.pass_infra import as_pass
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.errors import PassError
from onnx_migrate.facts.value_types import TypeTable, ValueType
from onnx_migrate.files import inline, load
from onnx_migrate.inspection import inspect
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.verify.compare.model_precision import coarsest_eps
from onnx_migrate.verify.dynamic.fault_localization import constant_text
from onnx_migrate.verify.evaluators import Runnable, without_static_shapes

DENSE = np.array([[0, 2, 0], [0, 0, 3]], np.float32)


def sparse(name: str, dense: np.ndarray[Any, Any]) -> onnx.SparseTensorProto:
    places = np.flatnonzero(dense)
    values = numpy_helper.from_array(dense.ravel()[places], name)
    return helper.make_sparse_tensor(
        values, numpy_helper.from_array(places, f"{name} places"), list(dense.shape)
    )


def net(*, listed: bool = False, opset: int = 9) -> onnx.ModelProto:
    """Return y = Softmax(x + w), with a sparse w that is `listed` as an input or not."""
    x, w, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xwy")
    nodes = [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [x, w] if listed else [x], [y], sparse_initializer=[sparse("w", DENSE)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)


def run(proto: onnx.ModelProto) -> np.ndarray[Any, Any]:
    feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    result: np.ndarray[Any, Any] = ort.InferenceSession(proto.SerializeToString()).run(None, feed)[0]
    return result


@pytest.mark.parametrize("listed", [False, True])
def test_a_model_is_migrated_and_verified_without_feeding_it(listed: bool) -> None:
    source = net(listed=listed)

    migration = onnx_migrate.migrate(source, opset=17, simplify=False)

    result = migration.model
    assert [value.name for value in result.graph.input] == ["x"]
    assert [item.values.name for item in result.graph.sparse_initializer] == ["w"]
    np.testing.assert_array_equal(run(source), run(result))


def test_its_type_and_shape_are_those_of_the_dense_tensor() -> None:
    assert TypeTable(net()).lookup(None, (), "w") == ValueType(TensorProto.FLOAT, (2, 3))


def test_the_cleanup_drops_one_that_nothing_reads() -> None:
    source = net()
    source.graph.sparse_initializer.append(sparse("idle", DENSE))

    result = make_pass("cleanup").run(Model(source), ChangeLog()).proto

    assert [item.values.name for item in result.graph.sparse_initializer] == ["w"]


def test_one_that_lost_its_last_reader_is_removed() -> None:
    source = net()
    source.graph.node[0].input[1] = "x"

    assert remove_dead_values(source, {"w"}) == ["w"]
    assert not source.graph.sparse_initializer


def test_simplify_refuses_one_that_a_caller_may_override() -> None:
    with pytest.raises(PassError, match="'w'"):
        make_pass("simplify", isolated=False).run(load(net(listed=True, opset=17)), ChangeLog())


def test_a_graphsurgeon_pass_may_see_one_that_is_listed_as_an_input() -> None:
    def nothing(graph: gs.Graph) -> None:
        """Change nothing."""

    ran = Pipeline((as_pass(nothing),)).run(load(net(listed=True, opset=17)), ChangeLog())
    result = inline(ran.model)

    assert Interface.of(result) == Interface.of(net())
    np.testing.assert_array_equal(run(result), run(net(opset=17)))


def test_its_dims_are_neither_named_nor_opened() -> None:
    source = net(listed=True)
    source.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "?"

    named = make_pass("open_dims").run(Model(model(source)), ChangeLog()).proto
    opened = without_static_shapes(Runnable(structure=source.SerializeToString())).proto()

    for result in (named, opened):
        dims = [(dim.dim_param, dim.dim_value) for dim in result.graph.input[1].type.tensor_type.shape.dim]
        assert dims == [("?", 0), ("", 3)]


def model(source: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(source)
    return copy


def test_the_tolerance_of_a_comparison_follows_its_type() -> None:
    source = net()
    source.graph.sparse_initializer.append(sparse("half", DENSE.astype(np.float16)))

    assert coarsest_eps(net()) == 2.0**-23
    assert coarsest_eps(source) == 2.0**-10


def test_messages_show_it_by_type_and_shape() -> None:
    assert constant_text(net(), "w") == "float[2, 3]"


def test_an_inspection_counts_it_with_the_bytes_of_values_and_places() -> None:
    inspection = inspect(net())

    assert (inspection.weights, inspection.weight_bytes) == (1, 2 * 4 + 2 * 8)
