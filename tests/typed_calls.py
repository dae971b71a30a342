"""Calls that mypy takes, and calls that it refuses: where it no longer does, it reports a comment that ignores nothing."""

import onnx
import onnx_ir
from typing_extensions import assert_type

from onnx_migrate import Migration, Report, Session, convert_version, default_pipeline, migrate

migrate("m.onnx", opset=17, runtime=["tract"], dynamic={"x": [0]}, verify="require").save("o")
migrate(source="m.onnx", passes=[print], cancel=None, pipeline=default_pipeline(fix_shape="N=1"))
migrate("m.onnx", opsett=17)  # type: ignore[call-arg]
migrate("m.onnx", verify="maybe")  # type: ignore[arg-type]
migrate("m.onnx", 17)  # type: ignore[call-arg]
migrate(17)  # type: ignore[arg-type]
convert_version(onnx.ModelProto(), 17, timeout=20).SerializeToString()
convert_version(onnx.ModelProto(), 17, timeout="20")  # type: ignore[call-overload]
convert_version(17, 17)  # type: ignore[call-overload]
assert_type(convert_version("m.onnx", 17), onnx.ModelProto)
assert_type(convert_version(onnx.ModelProto(), 17, report=True), tuple[onnx.ModelProto, Report])
assert_type(migrate("m.onnx"), Migration[onnx.ModelProto])
assert_type(migrate(b"").model, onnx.ModelProto)
assert_type(migrate(onnx.ModelProto(), extract_outputs="y").rest, onnx.ModelProto | None)
assert_type(Session().migrate("m.onnx", opset=17).model, onnx.ModelProto)


def _of_ir(model: onnx_ir.Model) -> None:
    assert_type(migrate(model), Migration[onnx_ir.Model])
    assert_type(migrate(model).model, onnx_ir.Model)
    assert_type(convert_version(model, 17), onnx_ir.Model)
    assert_type(Session().migrate(model), Migration[onnx_ir.Model])


default_pipeline(opset=1.5)  # type: ignore[arg-type]
