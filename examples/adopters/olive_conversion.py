"""Olive's pass OnnxOpVersionConversion with onnx-migrate's converter: up and down, with the same tensors.

olive/passes/onnx/conversion.py calls `version_converter.convert_version(model_ir, target_opset, fallback=True)`, for its effect.
"""

import sys

import onnx
import onnx_ir
from olive.model import ONNXModelHandler
from olive.passes.olive_pass import create_pass_from_dict
from olive.passes.onnx import conversion

import onnx_migrate


class Converter:
    """What Olive takes for onnxscript's module."""

    @staticmethod
    def convert_version(model: onnx_ir.Model, target_version: int, fallback: bool | None = None) -> None:
        """Change the model that was given; a model that cannot be converted is an error, not left as it is."""
        onnx_migrate.convert_version(model, target_version, in_place=True)


conversion.version_converter = Converter

source, target, opset = sys.argv[1:]
changing = create_pass_from_dict(
    conversion.OnnxOpVersionConversion, {"target_opset": int(opset)}, disable_search=True
)
done = changing.run(ONNXModelHandler(source), target)
print("opset", onnx.load(done.model_path, load_external_data=False).opset_import[0].version)
