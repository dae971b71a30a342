"""The ONNX standard and the runtimes that implement it: schemas, opsets, IR versions. Knows no model."""
