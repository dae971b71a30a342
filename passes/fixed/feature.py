"""Fixed inputs: values that become constants, and sizes that dynamic dims get."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx_migrate.core_options import DIMS, CoreOptions
from onnx_migrate.declared import Shapes, option
from onnx_migrate.engine.features import Feature, Phase, Placed

if TYPE_CHECKING:
    from onnx_migrate.model.dims.fixed_sizes import FixedDims
    from onnx_migrate.model.fixed_values import FixedValues

__all__ = ["FEATURE", "FixedOptions"]


def _shape_words(value: Any, _shapes: Shapes) -> Any:
    """Return what `--fix-shape` takes: "N=1" for a dim, "x:1,3" for all axes of an input, "x:0=1" for some by their number."""
    if not isinstance(value, dict):
        return value
    return [
        f"{name}={sizes}" if isinstance(sizes, (int, str)) else f"{name}:{','.join(_sizes(sizes))}"
        for name, sizes in value.items()
    ]


def _sizes(sizes: Any) -> Iterator[str]:
    by_axis = isinstance(sizes, Mapping) or None in sizes
    numbered_sizes = sizes.items() if isinstance(sizes, Mapping) else enumerate(sizes)
    yield from (
        f"{axis}={size}" if by_axis else str(size) for axis, size in numbered_sizes if size is not None
    )


def _value_words(value: Any, _shapes: Shapes) -> Any:
    """Return what `--fix-value` takes, as "sr=16000"."""
    if not isinstance(value, dict):
        return value
    return [
        f"{name}={fixed if isinstance(fixed, str) else json.dumps(fixed)}" for name, fixed in value.items()
    ]


@dataclass(frozen=True, kw_only=True)
class FixedOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    fix_shape: FixedDims | None = option(
        None, "--fix-shape", former=("fix",), keeps_opset=True, changes_graph=True,
        panel=DIMS, multiple=True, metavar="NAME=SIZE|INPUT:SIZES",
        help="Give dynamic dimensions fixed sizes, by name (N=1) or by input (x:1,3,224,224). Repeat it for more.",
        text='fixed sizes for dynamic dimensions: {"N": 1, "x": [1, 3, 224, 224]}, "N=1", "x:1,3,224,224", or several texts.',
        words=_shape_words,
    )
    fix_values: FixedValues | None = option(
        None, "--fix-value", keeps_opset=True, changes_graph=True, panel=DIMS, multiple=True, metavar="INPUT=VALUE",
        help="Replace an input by a constant: sr=16000, use_cache_branch=false, sizes=[1,2] or mask=mask.npy. The input is "
        "removed. Repeat it for more. See docs/static.md.",
        text="""values of inputs, which become constants: {"sr": 16000, "use_cache_branch": False, "mask": array},
        "sr=16000", or several texts. These inputs are removed (docs/static.md).""",
        words=_value_words,
    )
    # fmt: on


def build(options: FixedOptions) -> Iterator[Placed]:
    """Yield the passes that fix values and dims, if the user gives some, or asks for a static model."""
    if options.fix_values:
        from .fixed_values import FixValues

        yield Phase.FIX, FixValues(values=options.fix_values)
    static = bool(options.of_feature("static"))
    if options.fix_shape is not None or static:
        from .fixed_dims import FixDims

        yield Phase.FIX, FixDims(fix=options.fix_shape or {}, all_dims=static, input_data=options.input_data)


FEATURE = Feature(
    "fixed",
    build,
    phases=(Phase.FIX,),
    options=FixedOptions,
    modules=("fixed_dims", "fixed_values"),
)
