"""How onnx is asked for one node in another process, and what is remembered of an inference that took too much."""
