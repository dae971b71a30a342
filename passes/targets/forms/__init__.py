"""The forms of nodes that importers want: one function per form, which edits a node and says what it could not write."""

from __future__ import annotations

from .axes import OPERATORS_WITH_AXES, count_axes_from_the_front
from .explicit_arguments import (
    OPERATORS_WITH_KERNELS,
    OPERATORS_WITH_SCALES,
    read_scales_from_constants,
    write_default_attributes,
    write_kernel_shape,
    write_split_lengths,
)

__all__ = [
    "OPERATORS_WITH_AXES",
    "OPERATORS_WITH_KERNELS",
    "OPERATORS_WITH_SCALES",
    "count_axes_from_the_front",
    "read_scales_from_constants",
    "write_default_attributes",
    "write_kernel_shape",
    "write_split_lengths",
]
