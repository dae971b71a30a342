"""Whether a result runs right in the runtime that it is for: both models are run there, and compared with ONNX Runtime."""
