"""Steps that replace operators of com.microsoft by operators of ai.onnx; imported only for models that must not have them."""
