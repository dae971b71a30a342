"""The pass that simplifies a model with onnxsim, and keeps large weights out of onnxsim's sight."""
