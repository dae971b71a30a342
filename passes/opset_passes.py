"""The passes that bring ai.onnx to the opset that a migration asks for."""

from __future__ import annotations

from collections.abc import Iterator

from onnx_migrate.core_options import CoreOptions
from onnx_migrate.engine.features import Phase, Placed
from onnx_migrate.engine.opset_bounds import OpsetBounds
from onnx_migrate.standard.schema import newest_opset

from .migrate_opset import MigrateOpset
from .target_opsets import newer, target_opsets

__all__ = ["lowering", "raising"]


def raising(options: CoreOptions) -> Iterator[Placed]:
    """Yield the pass that raises ai.onnx to the opset that the user or a runtime asks for."""
    opsets = target_opsets(options)
    if "ai.onnx" not in opsets:
        return
    opset, at_least = opsets["ai.onnx"]
    yield (
        Phase.RAISE,
        MigrateOpset(
            opset=opset,
            newer=newer(options, at_least),
            unlist=not options.keep_initializers_as_inputs,
            keep=frozenset(options.keep_resize_mode),
            bounds=_bounds(options),
            noted=options.keeps_opset and options.of_feature("ir_version") is None,
        ),
    )


def lowering(options: CoreOptions) -> Iterator[Placed]:
    """Yield the pass that lowers ai.onnx, which must see the symbols of dims."""
    opsets, bounds = target_opsets(options), _bounds(options)
    if not options.lower or "ai.onnx" not in opsets:
        return
    opset, at_least = opsets["ai.onnx"]
    # A model of a newer opset may keep it.
    if at_least and not bounds:
        return
    lower = options.targets.lower if options.targets and options.lower is True else options.lower
    if options.targets and options.best_effort and lower is True:
        lower = "nearest"
    from .lower_opset import LowerOpset

    yield (
        Phase.LOWER,
        LowerOpset(
            opset=newest_opset() if at_least else opset,
            nearest=lower == "nearest",
            keep_ir=options.keep_ir,
            bounds=bounds,
            write_out=options.targets is not None,
        ),
    )


def _bounds(options: CoreOptions) -> OpsetBounds | None:
    """Return the bounds by runtimes that lack newer or older versions of operators, or compute some versions wrongly."""
    targets = options.targets
    if targets is None:
        return None
    faults = any(fault.opset is not None for _, fault in targets.faults)
    if not (targets.bounds_versions or faults):
        return None
    from .targets.runtime_opsets import RuntimeOpsets

    return RuntimeOpsets(targets)
