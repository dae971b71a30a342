"""What the operators of com.microsoft are in those of ai.onnx; imported for models that are to do without them."""
