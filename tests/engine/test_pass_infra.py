"""Users' own passes, and the bridge they run behind."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine import pass_infra as passes_module
from onnx_migrate.engine.pass_infra import as_pass, installed_passes
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.errors import PassError, UsageError
from onnx_migrate.files import inline, load
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.engine.passes import TEXT, double_weights, skip_identity
from tests.harness import model, random_feeds, run, same


def apply(source: onnx.ModelProto, *items: Any) -> onnx.ModelProto:
    pipeline = Pipeline(tuple(as_pass(item) for item in items))
    return inline(pipeline.run(load(source), ChangeLog()).model)


def test_a_pass_of_a_graph() -> None:
    source = model(TEXT)
    source.metadata_props.add(key="k", value="v")
    source.graph.node[0].doc_string = "why"
    source.graph.input[0].type.denotation = "IMAGE"

    result = apply(source, skip_identity)

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


def test_a_pass_of_a_proto_sees_all_weights() -> None:
    source = model(TEXT)
    big = np.arange(3 * 4096, dtype=np.float32).reshape(3, 4096)
    source.graph.initializer.append(numpy_helper.from_array(big, "big"))

    result = apply(source, double_weights)

    kept = {tensor.name: numpy_helper.to_array(tensor) for tensor in result.graph.initializer}
    np.testing.assert_array_equal(kept["big"], big * 2)
    np.testing.assert_array_equal(kept["w"], [4.0])
    assert numpy_helper.to_array(source.graph.initializer[0]) == [2.0]


def test_overridable_initializers_survive_the_bridge() -> None:
    source = model(TEXT)
    source.graph.input.append(helper.make_tensor_value_info("w", 1, [1]))

    result = apply(source, skip_identity)

    assert [value.name for value in result.graph.input] == ["x", "w"]
    assert [tensor.name for tensor in result.graph.initializer] == ["w"]


@pytest.mark.parametrize("feature", ["sequence", "sparse"])
def test_what_graphsurgeon_cannot_hold_is_refused(feature: str) -> None:
    source = model(TEXT)
    if feature == "sequence":
        source.graph.node.append(helper.make_node("SequenceConstruct", ["y"], ["s"]))
        source.graph.output.append(helper.make_tensor_sequence_value_info("s", 1, None))
    else:
        values = numpy_helper.from_array(np.ones(1, np.float32), "v")
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, np.int64), "i"), [4])
        source.graph.node.append(helper.make_node("Constant", [], ["sp"], sparse_value=sparse))

    with pytest.raises(PassError) as caught:
        apply(source, skip_identity)

    assert caught.value.code == "surgeon-cannot-hold"


def test_a_pass_that_raises_is_named() -> None:
    def broken(proto: onnx.ModelProto) -> None:
        raise KeyError("gone")

    with pytest.raises(PassError, match="pass 'broken' raised KeyError") as caught:
        apply(model(TEXT), broken)

    assert isinstance(caught.value.__cause__, KeyError)


def test_a_pass_may_not_change_the_interface() -> None:
    def rename(proto: onnx.ModelProto) -> None:
        proto.graph.node[-1].output[0] = proto.graph.output[0].name = "other"

    with pytest.raises(PassError, match="outputs were y and became other") as caught:
        apply(model(TEXT), rename)

    assert caught.value.code == "interface-changed"


def test_a_pass_may_not_leave_an_illegal_node() -> None:
    def spoil(proto: onnx.ModelProto) -> None:
        proto.graph.node[-1].op_type = "Upsample"

    with pytest.raises(PassError, match="removed from the standard"):
        apply(model(TEXT), spoil)


def test_a_function_must_say_what_it_takes() -> None:
    def silent(thing):  # type: ignore[no-untyped-def]
        return thing

    with pytest.raises(UsageError, match="annotate its parameter"):
        as_pass(silent)


def test_entry_points_join_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("skipper", "tests.engine_passes_plugin:run", "onnx_migrate.passes")
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: skip_identity)
    monkeypatch.setattr(passes_module, "entry_points", lambda group: [point])

    assert [item.name for item in installed_passes()] == ["skipper"]
    assert len(apply(model(TEXT), "skipper").graph.node) == 2


def test_a_name_that_leads_nowhere() -> None:
    with pytest.raises(UsageError, match="cannot be loaded") as caught:
        as_pass("no.such.module:run")
    assert caught.value.code == "no-such-pass"
    with pytest.raises(UsageError, match="there is no pass 'nothing'"):
        as_pass("nothing")
