"""The IR version of a model, and the features that older ones lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx_migrate.core_options import REACH, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed
from onnx_migrate.errors import UsageError

__all__ = ["FEATURE", "IrVersionOptions"]


@dataclass(frozen=True, kw_only=True)
class IrVersionOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    ir_version: int | None = option(
        None, "--ir-version", keeps_opset=True, panel=REACH, type=int, metavar="N",
        help="The IR version of the result. The opset stays, unless you give --opset too. If only the header has to change, "
        "the graph is copied unchanged. See docs/ir-versions.md.",
        text="""the IR version of the result. Features that a lower IR version lacks are written in another form, or are an error
        (docs/ir-versions.md). If you ask for nothing else, no other pass runs.""",
    )
    drop_training: bool = option(
        False, "--drop-training", panel=REACH, is_flag=True,
        help="Remove training information, which IR versions below 7 lack. Use it with --ir-version.",
        text="remove training information, which IR versions below 7 lack; use it with `ir_version`.",
    )
    # fmt: on


def build(options: IrVersionOptions) -> Iterator[Placed]:
    """Yield the pass that sets the IR version, if the user asks for one."""
    if options.ir_version is None:
        if options.drop_training:
            raise UsageError(
                "--drop-training needs an IR version that has no training information, and --ir-version is missing",
                hint="add --ir-version N, in Python ir_version=N",
            )
        return
    from .ir_version import IrVersion

    unlist = not options.keep_initializers_as_inputs
    yield (
        Phase.IR_VERSION,
        IrVersion(ir_version=options.ir_version, drop_training=options.drop_training, unlist=unlist),
    )


FEATURE = Feature(
    "ir_version",
    build,
    phases=(Phase.IR_VERSION,),
    options=IrVersionOptions,
    modules=("ir_version",),
)
