"""Replaces operators of com.microsoft by those of ai.onnx. Only migrations that remove com.microsoft import this package."""
