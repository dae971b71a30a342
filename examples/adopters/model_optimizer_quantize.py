"""NVIDIA Model-Optimizer's quantize with onnx-migrate's converter, so that no node is restamped with an opset that it is not of.

modelopt/onnx/quantization/quantize.py calls `onnx.version_converter.convert_version`, and where that fails
writes the new number alone.
"""

import sys

import onnx
import onnx.version_converter
from modelopt.onnx.quantization import quantize

import onnx_migrate

onnx.version_converter.convert_version = onnx_migrate.convert_version

source, target = sys.argv[1:]
quantize(source, output_path=target, calibration_eps=["cpu"], high_precision_dtype="fp32")
print(
    "opset",
    next(entry.version for entry in onnx.load(target).opset_import if entry.domain in ("", "ai.onnx")),
)
