"""The order in which a migration runs passes: those of the core, and those of the features that the options ask for."""

from __future__ import annotations

from collections.abc import Iterator

from onnx_migrate.core_options import CoreOptions
from onnx_migrate.declared import declared
from onnx_migrate.engine.features import Phase, Placed, passes_in
from onnx_migrate.engine.pass_infra import Pass, installed_passes

from .cleanup import Cleanup
from .declared_shapes import DeclaredShapes
from .input_dims import OpenDims
from .opset_passes import lowering, raising

__all__ = ["default_pipeline"]

_FOR_HEADER = (Phase.PART, Phase.IR_VERSION, Phase.USER)
"""The phases of a migration that asks for no other graph: the part that the user wants does not change."""


def default_pipeline(options: CoreOptions) -> list[Pass]:
    """Return the passes that these options ask for, and those of other distributions before the simplifier.

    Raises UsageError for an opset that does not exist, and for an opset together with targets, which determine it.
    """
    phases = _FOR_HEADER if _changes_header_alone(options) else tuple(Phase)
    placed = [placed_pass for placed_pass in _of_core(options) if placed_pass[0] in phases] + passes_in(
        options, phases
    )
    return [placed_pass for phase in phases for at, placed_pass in placed if at is phase]


def _of_core(options: CoreOptions) -> Iterator[Placed]:
    """Yield the passes of the core, which every migration runs if it changes the graph."""
    yield from raising(options)
    yield Phase.DECLARE, DeclaredShapes()
    yield Phase.DECLARE, OpenDims()
    yield from lowering(options)
    yield Phase.CLEAN, Cleanup()
    yield from ((Phase.USER, installed) for installed in installed_passes())


def _changes_header_alone(options: CoreOptions) -> bool:
    """Return whether nothing but the IR version is to change."""
    graph = (option.name for option in declared(type(options)) if option.changes_graph)
    return options.of_feature("ir_version") is not None and not any(map(options.differs, graph))
