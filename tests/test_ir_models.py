"""Models of onnx_ir: what is given is what comes back, with its tensor objects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from onnx_migrate import LoadError, UsageError, convert_version, migrate
from tests.support.skips import Elsewhere, import_or_skip
from tests.support.small_model import bytes_of

ir: Any = import_or_skip("onnx_ir", Elsewhere.INSTALLED)

TEXT = """<ir_version: 7, opset_import: ["": 11, "local": 1], producer_name: "me", model_version: 3, doc_string: "doc">
g (float[N,3] x) => (float[1,N,3] y) <float[3] w = {1,2,3}> {
    c = Constant<value = float[3] {4,5,6}> ()
    a = Add(x, w)
    b = local.Plus(a, c)
    y = Unsqueeze<axes=[0]>(b)
}
<opset_import: ["": 11], domain: "local"> Plus (p, q) => (r) { r = Add(p, q) }"""


def given() -> Any:
    """Return a model with a weight, a Constant and a function."""
    model = ir.from_proto(onnx.parser.parse_model(TEXT))
    model.metadata_props["k"] = "v"
    return model


def tensors(model: Any) -> dict[str, Any]:
    return {name: value.const_value for name, value in model.graph.initializers.items()}


def run(model: Any, **feed: Any) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


@pytest.mark.parametrize("target", [11, 17, 21])
def test_a_model_comes_back_as_what_it_was(target: int) -> None:
    model = given()
    before, held = bytes_of(ir.to_proto(model)), tensors(model)
    constant = next(node for node in model.graph if node.op_type == "Constant").attributes["value"].value

    result = convert_version(model, target)

    assert isinstance(result, ir.Model)
    assert result is not model
    assert result.opset_imports[""] == target
    assert tensors(result)["w"] is held["w"]
    kept = next(node for node in result.graph if node.op_type == "Constant" and node.outputs[0].name == "c")
    assert kept.attributes["value"].value is constant
    assert (result.producer_name, result.model_version, result.doc_string) == ("me", 3, "doc")
    assert dict(result.metadata_props) == {"k": "v"}
    assert list(result.functions) == list(model.functions)
    assert bytes_of(ir.to_proto(model)) == before
    assert tensors(model)["w"] is held["w"]
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    assert np.array_equal(run(result, x=x)[0], run(model, x=x)[0])


@pytest.mark.parametrize("target", [17, 23], ids=["metadata is lost", "metadata is kept"])
def test_a_tensor_with_metadata_stays_the_same_object(target: int) -> None:
    model = given()
    model.ir_version = 10
    held = tensors(model)["w"]
    held.metadata_props["k"] = "v"

    result = convert_version(model, target)

    assert tensors(result)["w"] is held


def test_in_place_the_model_itself_becomes_the_result() -> None:
    model = given()
    weight = tensors(model)["w"]

    result = convert_version(model, 17, in_place=True)

    assert result is model
    assert model.opset_imports[""] == 17
    assert model.ir_version == 8
    assert tensors(model)["w"] is weight
    assert bytes_of(ir.to_proto(model)) == bytes_of(ir.to_proto(convert_version(given(), 17)))
    proto = onnx.parser.parse_model(TEXT)
    assert convert_version(proto, 17, in_place=True) is proto
    assert proto.opset_import[0].version == 17


def with_large(tensor: Any) -> Any:
    model = given()
    value = ir.Value(name="big", const_value=tensor)
    model.graph.register_initializer(value)
    model.graph.append(ir.Node("", "Identity", [value], outputs=[ir.Value(name="out")]))
    return model


def test_a_lazy_tensor_is_not_evaluated() -> None:
    def evaluate() -> Any:
        raise AssertionError("the tensor was evaluated")

    for shape in ([3], [1 << 20, 1 << 10]):  # 4 GB
        lazy = ir.LazyTensor(evaluate, dtype=ir.DataType.FLOAT, shape=ir.Shape(shape), name="big")
        result = convert_version(with_large(lazy), 17)
        assert tensors(result)["big"] is lazy
        if len(shape) == 1:
            continue  # formulas ask for the values of small constants
        down = convert_version(result, 9)
        assert tensors(down)["big"] is lazy


def test_an_external_tensor_is_not_read(tmp_path: Path) -> None:
    external = ir.ExternalTensor(
        "gone.data",
        0,
        4 << 30,
        ir.DataType.FLOAT,
        shape=ir.Shape([1 << 20, 1 << 10]),
        name="big",
        base_dir=tmp_path,
    )

    result = convert_version(with_large(external), 17)

    assert tensors(result)["big"] is external


def test_a_value_that_an_adapter_needs_is_read() -> None:
    model = ir.from_proto(
        onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[1,2] y) <int64[1] axes = {0}>'
            " { y = Unsqueeze(x, axes) }"
        )
    )
    asked = []

    def evaluate() -> Any:
        asked.append(1)
        return ir.tensor(np.array([0], np.int64))

    model.graph.initializers["axes"].const_value = ir.LazyTensor(
        evaluate, dtype=ir.DataType.INT64, shape=ir.Shape([1]), name="axes"
    )
    result = convert_version(model, 11)

    assert asked
    (node,) = result.graph
    assert node.attributes["axes"].value == (0,)


def test_texts_and_sub_graphs_keep_their_tensors() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (bool c) => (string[2] y)'
        ' <string[2] s = {"a", "b"}> { y = If<then_branch = t () => (string[2] p) { p = Identity(s) },'
        ' else_branch = e () => (string[2] q) <string[2] u = {"c", "d"}> { q = Identity(u) }>(c) }'
    )
    model = ir.from_proto(proto)
    (node,) = model.graph
    inner = node.attributes["else_branch"].value.initializers["u"].const_value

    result = convert_version(model, 19)

    assert tensors(result)["s"] is tensors(model)["s"]
    (node,) = result.graph
    assert node.attributes["else_branch"].value.initializers["u"].const_value is inner


def test_migrate_gives_back_a_model_of_onnx_ir() -> None:
    model = given()
    weight = ir.tensor(np.ones((100, 100), np.float32), name="big")
    value = ir.Value(name="big", const_value=weight)
    model.graph.register_initializer(value)
    model.graph.append(ir.Node("", "Identity", [value], outputs=[ir.Value(name="out")]))
    model.graph.outputs.append(model.graph[-1].outputs[0])

    migration = migrate(model, opset=17, simplify=False, isolated=False)

    assert migration.report.verified
    assert isinstance(migration.model, ir.Model)
    assert tensors(migration.model)["big"] is weight
    assert migration.model.opset_imports[""] == 17


def test_what_onnx_ir_cannot_write_is_a_load_error() -> None:
    model = given()
    model.graph.initializers["w"].const_value = 3
    with pytest.raises(LoadError, match="onnx_ir cannot write this Model"):
        convert_version(model, 17)
    with pytest.raises(UsageError):
        convert_version(model.graph, 17)


def test_onnx_ir_is_imported_only_where_it_is_given() -> None:
    code = (
        "import sys, onnx, onnx_migrate\n"
        f"onnx_migrate.convert_version(onnx.parser.parse_model('''{TEXT}'''), 17)\n"
        "assert 'onnx_ir' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
