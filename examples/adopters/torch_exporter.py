"""PyTorch's exporter with onnx-migrate in place of onnxscript's converter, which has no way down for most models.

torch/onnx/_internal/exporter/_core.py calls `onnxscript_apis.convert_version(program.model, opset_version)`, and then
optimises the model with rules that write forms of opset 18 (a Split with num_outputs, a Gemm of two inputs) whatever its
opset is. So it is optimised before the conversion here, and `optimize=False` leaves the second time out.
"""

import numpy as np
import onnx_ir
import onnxruntime
import torch
from torch.onnx._internal._lazy_import import onnxscript_apis

import onnx_migrate


def convert_version(model: onnx_ir.Model, target_version: int) -> onnx_ir.Model:
    """Change the model that was given, as the function that this one replaces does; its tensors stay as they are."""
    onnxscript_apis.optimize(model)
    return onnx_migrate.convert_version(model, target_version, in_place=True)


onnxscript_apis.convert_version = convert_version

net = torch.nn.Sequential(
    torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.GELU(approximate="tanh")
).eval()
x = torch.randn(2, 8)
program = torch.onnx.export(net, (x,), dynamo=True, opset_version=11, optimize=False)

session = onnxruntime.InferenceSession(
    program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
)
(y,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
np.testing.assert_allclose(y, net(x).detach().numpy(), rtol=1e-4, atol=1e-5)
print("opset", program.model.opset_imports[""])
