"""The abstract domain: what is known of a value, as one concrete possibility for each sample assignment.

`dims` has the axes and the assignments, `value` the values, also those that no node computes, `node_inference` the transfer
function of one node, and `runtime_substitutes` what stands for operators that onnx does not know.
"""

from __future__ import annotations

from .dims import Assignments, Dim, Dims, Sizes, merged_axis
from .value import Array, Value

__all__ = ["Array", "Assignments", "Dim", "Dims", "Sizes", "Value", "merged_axis"]
