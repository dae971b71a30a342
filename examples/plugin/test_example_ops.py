"""Run with `pytest`, where the package is installed."""

import numpy as np
import onnx
import onnx.parser
import pytest

from onnx_migrate import CannotMigrate, migrate

MODEL = """<ir_version: 8, opset_import: ["": 12, "com.example": 1]>
g (float[2,3] x) => (float[2,3] y) {
    a = com.example.Swish <beta = 1.5> (x)
    b = com.example.Clamp <low = -1.0, high = 1.0> (a)
    y = Relu (b)
}"""


def model(text: str = MODEL) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def operators(proto: onnx.ModelProto) -> list[str]:
    return [f"{node.domain or 'ai.onnx'}.{node.op_type}" for node in proto.graph.node]


def imports(proto: onnx.ModelProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in proto.opset_import}


def test_models_are_brought_to_opset_2() -> None:
    result = migrate(model(), opset={"": 17, "com.example": 2}, simplify=False).model

    assert imports(result) == {"": 17, "com.example": 2}
    assert operators(result) == ["com.example.Swish", "ai.onnx.Clip", "ai.onnx.Relu"]
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in result.graph.initializer}
    swish, clip, _ = result.graph.node
    assert values[swish.input[1]] == np.float32(1.5)
    assert not swish.attribute
    assert [values[name] for name in clip.input[1:]] == [np.float32(-1), np.float32(1)]


def test_and_back_except_for_what_the_older_opset_cannot_say() -> None:
    only_swish = MODEL.replace("com.example.Clamp <low = -1.0, high = 1.0>", "Identity")
    newer = migrate(model(only_swish), opset="com.example=2", simplify=False).model
    back = migrate(newer, opset="com.example=1", simplify=False).model
    assert (imports(back)["com.example"], back.graph.node[0].attribute[0].f) == (1, 1.5)

    computed = only_swish.replace('"com.example": 1', '"com.example": 2').replace(
        "<beta = 1.5> (x)", "(x, x)"
    )
    with pytest.raises(CannotMigrate) as caught:
        migrate(model(computed), opset="com.example=1", simplify=False)
    assert caught.value.code == "needs-constant"


def test_a_model_that_nobody_asked_to_change_stays() -> None:
    assert imports(migrate(model(), simplify=False).model)["com.example"] == 1
