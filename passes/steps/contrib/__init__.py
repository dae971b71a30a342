<<<<<<< HEAD
"""Replaces operators of com.microsoft by those of ai.onnx. Only migrations that remove com.microsoft import this package."""
=======
"""Steps that replace operators of com.microsoft by operators of ai.onnx; imported only for models that must not have them."""
>>>>>>> words2
