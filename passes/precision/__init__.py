"""The pass that brings a model to another floating-point type: float16, bfloat16 or float32."""
