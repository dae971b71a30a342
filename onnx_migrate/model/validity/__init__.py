"""Whether a model is valid as the ONNX standard defines it: tensors, attributes, names, functions, types, IR features."""
