"""int32 instead of int64, where nothing overflows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from onnx_migrate.core_options import REACH, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed
from onnx_migrate.errors import UsageError

__all__ = ["FEATURE", "IntegerOptions"]


@dataclass(frozen=True, kw_only=True)
class IntegerOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    int32: bool | Literal["io", "require"] = option(
        False, "--int32", keeps_opset=True, changes_graph=True,
        panel=REACH, is_flag=False, flag_value="yes", type=("yes", "io", "require"), metavar="[=io|require]",
        help="Use int32 instead of int64 where it cannot overflow. The rest stays int64 and is listed. =io converts the inputs "
        "and outputs too. =require makes a possible overflow an error. See docs/static.md.",
        text="""use int32 instead of int64 where it cannot overflow; the rest stays int64 and is listed. "io" converts inputs and
        outputs too. "require" makes a possible overflow an error, code `int32-overflow` (docs/static.md).""",
    )
    # fmt: on


def build(options: IntegerOptions) -> Iterator[Placed]:
    """Yield the passes that compute in int32, if the user asks for it, or a target computes in nothing wider."""
    if options.int32 not in (True, False, "yes", "io", "require"):
        raise UsageError(f"int32={options.int32!r} is not known", hint='it is True, "io" or "require"')
    narrow = any(target.row.integer == "int32" for target in options.targets or ())
    if not options.int32 and not narrow:
        return
    from .int32 import Int32, Int32Ports

    yield (
        Phase.INTEGERS,
        Int32(
            ports=options.int32 == "io",
            required=options.int32 == "require",
            targets=options.targets,
            fixed_only=not options.int32,
        ),
    )
    if options.int32 == "io":
        yield Phase.PORTS, Int32Ports(ports=True)


FEATURE = Feature(
    "integers",
    build,
    phases=(
        Phase.INTEGERS,
        Phase.PORTS,
    ),
    options=IntegerOptions,
    modules=("int32",),
)
