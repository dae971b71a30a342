"""Replaces operators of other domains by standard ONNX operators."""
