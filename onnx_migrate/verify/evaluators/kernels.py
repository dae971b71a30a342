"""Which operators ONNX Runtime has a kernel for, and which it computes by their function body instead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx

from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx

__all__ = ["computed_by_body"]

_OPEN = 2**31 - 1
"""The end of the versions of a kernel that is registered without one."""


def computed_by_body(model: onnx.ModelProto) -> frozenset[str]:
    """Return the standard operators of a model that ONNX Runtime loads although its CPU provider has no kernel for them.

    ONNX Runtime computes them by the function body of the standard, and rounds like the body's operators. The lookup of kernels
    is by version, like in KernelRegistry::VerifyKernelDef, and not by type. The result is empty if the installed ONNX Runtime
    does not list its kernels.
    """
    opset = onnx_opset(model.opset_import, ir_version=model.ir_version)
    if opset is None:
        return frozenset()
    versions, kernels = _versions(), _kernels()
    # A Constant needs no kernel: ONNX Runtime makes an initializer of it.
    used = {node.op_type for node in all_nodes(model) if is_onnx(node.domain)} - {"Constant"}
    return frozenset(
        operator
        # The installed ONNX Runtime may know fewer operators than the model uses.
        for operator in used & versions.keys()
        if (usable_versions := [version for version in versions[operator] if version <= opset])
        and not any(_takes(kernel, max(usable_versions)) for kernel in kernels.get(operator, ()))
    )


def _takes(kernel: tuple[int, int], version: int) -> bool:
    """Whether a kernel is of an operator's version. One without an end is only of the version that it begins with."""
    first, last = kernel
    return first == version or (last != _OPEN and first <= version <= last)


@cache
def _versions() -> Mapping[str, set[int]]:
    """Return the versions of the operators that ONNX Runtime knows; none if it does not list them or its kernels."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    versions_by_operator: dict[str, set[int]] = {}
    if hasattr(state, "get_all_operator_schema") and hasattr(state, "get_all_opkernel_def"):
        for schema in state.get_all_operator_schema():
            if is_onnx(schema.domain):
                versions_by_operator.setdefault(schema.name, set()).add(schema.since_version)
    return versions_by_operator


@cache
def _kernels() -> Mapping[str, set[tuple[int, int]]]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    kernel_ranges: dict[str, set[tuple[int, int]]] = {}
    for kernel in state.get_all_opkernel_def():
        if is_onnx(kernel.domain) and kernel.provider == "CPUExecutionProvider":
            kernel_ranges.setdefault(kernel.op_name, set()).add(kernel.version_range)
    return kernel_ranges
