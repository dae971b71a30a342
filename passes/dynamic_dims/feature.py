"""Dynamic dims: a symbol for the batch, the height and width, or any other length of an input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx_migrate.core_options import DIMS, CoreOptions
from onnx_migrate.declared import Shapes, option
from onnx_migrate.engine.features import Feature, Phase, Placed

if TYPE_CHECKING:
    from onnx_migrate.model.dims.requests import DynamicAxes

__all__ = ["FEATURE", "DynamicDimOptions"]


def _words(value: Any, shapes: Shapes) -> Any:
    """Return what `--dynamic` takes, as "x:N,3,H,W"; None if the rank of an input is not known."""
    if not isinstance(value, dict):
        return value
    words = [_axes(name, axes, shapes.get(name)) for name, axes in value.items()]
    return None if None in words else words


def _axes(name: str, axes: Any, shape: Sequence[int | str | None] | None) -> str | None:
    """Return axes that torch.onnx's `dynamic_axes` names as text; None if the shape is not known."""
    if isinstance(axes, str):
        return f"{name}:{axes}"
    if shape is None or not all(isinstance(dim, int) or dim for dim in shape):
        return None
    dims = [str(dim) for dim in shape]
    if isinstance(axes, list) and not all(isinstance(entry, int) for entry in axes):
        if len(axes) != len(dims):
            return None
        axes = dict(enumerate(axes))
    for axis in axes:
        symbol = axes[axis] if isinstance(axes, dict) else "?"
        if symbol is not None:
            dims[int(axis)] = str(symbol)
    return f"{name}:{','.join(dims)}"


@dataclass(frozen=True, kw_only=True)
class DynamicDimOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    dynamic: DynamicAxes | None = option(
        None, "--dynamic", keeps_opset=True, changes_graph=True, panel=DIMS, multiple=True, metavar="INPUT:DIMS",
        help="Make dimensions of an input dynamic: x:N (first axis), x:N,3,H,W (all axes), x:...,H,W (last axes), or x:0=N,2=H. "
        "A number keeps an axis fixed; ? makes up a name. Repeat it for more inputs. JSON like torch.onnx's dynamic_axes works "
        "too. See docs/dynamic.md.",
        text="""dimensions to make dynamic: a mapping like `dynamic_axes` of torch.onnx, whole shapes,
        {"x": ["N", 3, "H", "W"]} or "x:N,3,H,W", or several such texts.""",
        words=_words,
    )
    dynamic_batch: bool | str = option(
        False, "--dynamic-batch", keeps_opset=True, changes_graph=True,
        panel=DIMS, is_flag=False, flag_value="N", metavar="[=NAME]",
        help="Make the batch axis of every input dynamic. Its name is N, or the NAME after =.",
        text="make the batch axis of every input dynamic; a text is its name, else it is N.",
    )
    # fmt: on


def build(options: DynamicDimOptions) -> Iterator[Placed]:
    """Yield the pass that makes dims dynamic, if the user asks for it."""
    if options.dynamic is None and not options.dynamic_batch:
        return
    from .dynamic_dims import DynamicDims

    batch = "N" if options.dynamic_batch is True else options.dynamic_batch or ""
    yield Phase.DIMS, DynamicDims(dynamic=options.dynamic or {}, batch=batch)


FEATURE = Feature(
    "dynamic_dims",
    build,
    phases=(Phase.DIMS,),
    options=DynamicDimOptions,
    modules=("dynamic_dims",),
    report="report",
)
