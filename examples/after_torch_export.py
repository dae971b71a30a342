"""Exports a PyTorch model at the exporter's own opset, and brings it to the opset of an older runtime."""

import torch

import onnx_migrate

model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 4), torch.nn.GELU()).eval()
program = torch.onnx.export(model, (torch.randn(2, 8),), dynamo=True)

migration = onnx_migrate.migrate(
    program.model_proto, opset=13
)  # refuses, or proves that the numbers are the same
migration.save("model_opset13.onnx")
