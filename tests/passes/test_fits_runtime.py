"""A model that a runtime would not load is refused."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.engine.passes import builtin_passes
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.change import ChangeLog


@pytest.mark.parametrize(("ir_version", "fits"), [(7, True), (8, True), (9, False)])
def test_the_ir_version_is_held_against_the_release(ir_version: int, fits: bool) -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float x) => (float y) { y = Relu (x) }'
    )
    proto.ir_version = ir_version
    model = files.load(proto)
    check = builtin_passes()["fits_runtime"](runtime="onnxruntime 1.14", ir_version=8)  # type: ignore[call-arg]

    if fits:
        assert check.run(model, ChangeLog()).proto.ir_version == ir_version
    else:
        with pytest.raises(CannotMigrate, match=r"onnxruntime 1\.14 takes up to 8") as error:
            check.run(model, ChangeLog())
        assert error.value.code == "runtime-ir"
