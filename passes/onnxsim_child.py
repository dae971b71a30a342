"""Runs onnxsim on a file, in a child process; outside `simplify/`, whose modules the child does not need to import."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx

from onnx_migrate.model.graphs import all_nodes

__all__ = ["FOR_ANNOTATIONS", "IMPORTS_ALONE", "simplify_file"]

_THRESHOLDS = (1 << 20, 1 << 14, 1 << 10)
"""Size limits in bytes for each folded tensor; the first limit whose result stays within the budget wins."""

IMPORTS_ALONE = frozenset({"0.8.1"})
"""Releases of onnxsim whose package itself does nothing but import modules, 150 of them for other things than `simplify`."""

FOR_ANNOTATIONS = ("onnxsim.pruning",)
"""Modules whose types onnxsim's `simplify` imports only for annotations; this one has 52,000 lines."""

_KNOWN_OPSET = 15
"""An opset of ai.onnx that onnxsim has its own schemas of, in all releases that copy those of others from onnx."""


def simplify_file(source: str, result: str, allowed: int, fuse: bool, batch_norm: bool, alone: bool) -> int:
    """Simplify the model at `source`, write it to `result` and return its size in bytes.

    Without `fuse`, onnxsim only folds constants. Without `batch_norm`, it does not fuse BatchNormalization. Nothing is
    written if even the lowest limit for folded tensors leads to more than `allowed` bytes. `alone` says that nothing
    else in this process registers schemas, or uses onnxsim.
    """
    simplify = _onnxsim(alone=alone).simplify
    # Fewer folded tensors make a smaller file.
    for threshold in _THRESHOLDS:
        # onnxsim changes the model, so each try loads it again.
        model = onnx.load(source)
        simplified, _ = simplify(
            model,
            perform_optimization=fuse,
            skip_fuse_bn=not batch_norm,
            tensor_size_threshold=f"{threshold}B",
            **_schema_options(simplify, model, alone=alone),
        )
        size = simplified.ByteSize()
        if size <= allowed:
            break
    # The parent decides about a result that is too large.
    if size > allowed:
        return int(size)
    # protobuf cannot write more in one file.
    if size < onnx.checker.MAXIMUM_PROTOBUF:
        onnx.save(simplified, result)
    else:
        onnx.save(simplified, result, save_as_external_data=True, location=Path(result).name + ".data")
    return int(size)


def _onnxsim(*, alone: bool) -> Any:
    """Import onnxsim; `alone` skips imports that `simplify` does not need, which take five times as long as all others.

    The skipped imports are sympy and rich, which onnxsim uses for printing, and its own modules for other things. For a release
    that is not in `IMPORTS_ALONE`, this function skips only sympy.
    """
    modules: dict[str, Any] = sys.modules
    if not alone or "onnxsim" in modules:
        return import_module("onnxsim")
    spec = find_spec("onnxsim")
    skips_rich = spec is not None and version("onnxsim") in IMPORTS_ALONE
    hidden = {"sympy", "rich"} if skips_rich else {"sympy"}
    # A module that is loaded already stays.
    hidden -= modules.keys()
    modules.update(
        dict.fromkeys(hidden)
    )  # their import raises ModuleNotFoundError, as where they are not installed
    try:
        if spec is not None and skips_rich:
            package: Any = module_from_spec(spec)
            modules["onnxsim"] = package  # whose code is not run
            modules.update((name, _Annotations(name)) for name in FOR_ANNOTATIONS)
            package.simplify = import_module("onnxsim.onnx_simplifier").simplify
        return import_module("onnxsim")
    except BaseException:
        # A half-loaded package must not stay for the next import.
        modules.pop("onnxsim", None)
        raise
    finally:
        for name in hidden:
            del modules[name]


class _Annotations(ModuleType):
    """A module that provides only types for annotations."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


def _schema_options(
    simplify: Callable[..., object], model: onnx.ModelProto, *, alone: bool
) -> dict[str, bool]:
    """Return what keeps onnxsim from copying onnx's schemas, which are thousands, where it has them or needs none of them."""
    global _copied
    needs_none = (alone and _copied) or all(
        node.domain in ("", "ai.onnx") and onnx.defs.has(node.op_type, _KNOWN_OPSET, "")
        for node in all_nodes(model)
    )
    _copied = _copied or not needs_none
    needs_none = needs_none and "import_custom_schemas" in inspect.signature(simplify).parameters
    return {"import_custom_schemas": False} if needs_none else {}


_copied = False
