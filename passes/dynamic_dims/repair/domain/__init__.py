"""The abstract domain: the knowledge about a value, as one concrete possibility for each sample assignment.

`values` has the axes, the assignments and the values. `node_inference` has the transfer function of one node.
`runtime_substitutes` has standard nodes that replace operators unknown to onnx during inference.
"""

from __future__ import annotations

from .values import SAMPLES, Array, Assignments, Dim, Dims, SampledValue, Sizes, fixed, merged_axis

__all__ = ["SAMPLES", "Array", "Assignments", "Dim", "Dims", "SampledValue", "Sizes", "fixed", "merged_axis"]
