"""Calls that mypy takes, and calls that it refuses: where it no longer does, it reports a comment that ignores nothing."""

import onnx

from onnx_migrate import convert_version, default_pipeline, migrate

migrate("m.onnx", opset=17, runtime=["tract"], dynamic={"x": [0]}, verify="require").save("o")
migrate(source="m.onnx", passes=[print], cancel=None, pipeline=default_pipeline(fix_shape="N=1"))
migrate("m.onnx", opsett=17)  # type: ignore[call-arg]
migrate("m.onnx", verify="maybe")  # type: ignore[arg-type]
migrate("m.onnx", 17)  # type: ignore[call-arg]
migrate(17)  # type: ignore[arg-type]
convert_version(onnx.ModelProto(), 17, timeout=20).SerializeToString()
convert_version(onnx.ModelProto(), 17, timeout="20")  # type: ignore[arg-type]
default_pipeline(opset=1.5)  # type: ignore[arg-type]
