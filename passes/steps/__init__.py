"""The steps of operators, one file for each family: to newer versions, to older ones, and where a target lacks the operator.

A file of steps imports what a plug-in imports, `onnx_migrate.plugins`, and for formulas `onnx_migrate.engine.steps.formula`.
"""
