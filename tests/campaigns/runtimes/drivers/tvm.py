"""Apache TVM on the CPU: the importer of Relax, and what its compiler makes of it with LLVM.

It has the form of the drivers of onnx_migrate, and is here because --run-in does not have TVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def version() -> str:
    """Return the name of the runtime and its version."""
    return f"TVM {tvm.__version__}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Import a model for inputs of the shapes of `example`, which are in its order, and compile it."""
    shapes = {name: list(value.shape) for name, value in example.items()}
    module = relax.transform.DecomposeOpsForInference()(from_onnx(onnx.load(path), shape_dict=shapes))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())

    def run(feed: dict[str, Any]) -> list[Any]:
        found = machine["main"](*(tvm.runtime.tensor(np.array(feed[name], order="C")) for name in example))
        return [_array(value) for value in (found if len(outputs) > 1 else [found])]

    return run


def _array(value: Any) -> Any:
    """Return a tensor, or a shape, which it keeps as such, as an array."""
    return value.numpy() if hasattr(value, "numpy") else np.array(list(value), np.int64)
