"""Fixed shapes for every value, and shape arithmetic as constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx_migrate.core_options import DIMS, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed

__all__ = ["FEATURE", "StaticOptions"]


@dataclass(frozen=True, kw_only=True)
class StaticOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    static: bool = option(
        False, "--static", keeps_opset=False, changes_graph=True, panel=DIMS, is_flag=True,
        help="Give every tensor a fixed shape. Give a size for each dynamic dimension with --fix-shape or --input-data. Shape "
        "computations become constants. Nodes whose output size depends on the data are an error. See docs/static.md.",
        text="""give every tensor a fixed shape. `fix_shape` or `input_data` gives a size for each dynamic dimension, and shape
        computations become constants. Nodes whose output size depends on the data are an error, code `open-size`
        (docs/static.md).""",
    )
    # fmt: on


def build(options: StaticOptions) -> Iterator[Placed]:
    """Yield the pass that gives every value a fixed shape, if the user asks for it, or a target needs it.

    It also folds shape arithmetic if integers become int32. Otherwise ONNX Runtime 1.32 refuses an int32 Range whose limit it
    infers from sizes, since it treats that limit as int64.
    """
    rows = [target.row for target in options.targets or ()]
    judged = options.static or any(row.static for row in rows)
    narrow = any(row.falls_back or row.integer == "int32" for row in rows)
    if judged or options.of_feature("int32") or narrow:
        from .static_shapes import StaticShapes

        yield Phase.STATIC, StaticShapes(lenient=not options.static or options.best_effort, judged=judged)


FEATURE = Feature(
    "static_shapes",
    build,
    phases=(Phase.STATIC,),
    options=StaticOptions,
    modules=("static_shapes",),
)
