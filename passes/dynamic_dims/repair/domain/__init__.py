"""The abstract domain: what is known of a value, as one concrete possibility for each sample assignment.

`values` has the axes, the assignments and the values, `node_inference` the transfer function of one node, and
`runtime_substitutes` what stands for operators that onnx does not know.
"""

from __future__ import annotations

from .values import SAMPLES, Array, Assignments, Dim, Dims, SampledValue, Sizes, fixed, merged_axis

__all__ = ["SAMPLES", "Array", "Assignments", "Dim", "Dims", "SampledValue", "Sizes", "fixed", "merged_axis"]
