"""Simplification with onnxsim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from onnx_migrate.core_options import REWRITING, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed, passes_in
from onnx_migrate.errors import UsageError

__all__ = ["FEATURE", "SimplifyOptions"]


@dataclass(frozen=True, kw_only=True)
class SimplifyOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    simplify: bool | Literal["auto", "require", "no"] = option(
        True, "--simplify", panel=REWRITING, type=("auto", "require", "no"), default="auto", show_default=True, off="no",
        help="Simplify with onnxsim. If that fails, auto saves the unsimplified model and prints a warning; require makes it an "
        "error.",
        text="""simplify with onnxsim. If that fails, the result is the unsimplified model and the report says so; with
        "require" the migration fails instead. With `runtime`, constants are folded and no nodes are fused.""",
    )
    # fmt: on


def build(options: SimplifyOptions) -> Iterator[Placed]:
    """Yield the pass that simplifies, unless the user turned it off. Raises UsageError, since every text would be true."""
    meanings: dict[bool | str, bool] = {True: True, False: False, "auto": True, "require": True, "no": False}
    if not isinstance(options.simplify, (bool, str)) or options.simplify not in meanings:
        raise UsageError(
            f"simplify={options.simplify!r} is not known",
            hint='it is "require", "auto", "no", True (auto) or False (no)',
        )
    if not meanings[options.simplify]:
        return
    from .simplify import Simplify

    targets, static, int32 = options.targets, options.of_feature("static"), options.of_feature("int32")
    plain_nodes = options.of_feature("control_flow") is False
    yield (
        Phase.SIMPLIFY,
        Simplify(
            limits=options.limits,
            isolated=options.isolated,
            always=options.of_feature("ir_version") is None,  # else nothing but the header may have to change
            fuse=targets is None and not (plain_nodes or static or int32),
            fuse_narrow=options.of_feature("precision") is not None,
            fittings=tuple(fitting for _, fitting in passes_in(options, (Phase.FIT, Phase.INTEGERS))),
            unlist=targets is not None and "initializers_as_inputs" in targets.write,
        ),
    )


FEATURE = Feature(
    "simplify",
    build,
    phases=(Phase.SIMPLIFY,),
    options=SimplifyOptions,
    modules=("simplify",),
    report="report",
)
