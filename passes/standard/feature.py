"""Operators of other domains, which standard ONNX operators replace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx_migrate.core_options import OPERATORS, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed

__all__ = ["FEATURE", "StandardOptions"]


@dataclass(frozen=True, kw_only=True)
class StandardOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    to_onnx_ops: bool | str | Sequence[str] = option(
        False, "--to-onnx-ops", former=("standard",), keeps_opset=True, changes_graph=True,
        panel=OPERATORS, multiple=True, is_flag=False, flag_value="all",
        metavar="[=DOMAIN]",
        help="Replace operators of com.microsoft and other known domains by standard ONNX operators. =DOMAIN limits it to one "
        "domain. With --for this happens automatically if the runtime lacks such an operator. See docs/standard.md.",
        text="""replace operators of other domains by standard ONNX operators: True for all known domains, "com.microsoft" or
        several names for these alone. With `runtime` this happens automatically if the runtime lacks such an operator
        (docs/standard.md).""",
    )
    # fmt: on


def build(options: StandardOptions) -> Iterator[Placed]:
    """Yield the pass that replaces operators of other domains, if the user asks for it."""
    request = options.to_onnx_ops
    if not request:
        return
    names = (request,) if isinstance(request, str) else () if request is True else tuple(request)
    domains = () if "all" in names else tuple(dict.fromkeys(names))
    from ..target_opsets import beside
    from .standard import Standard

    yield Phase.REWRITE, Standard(domains=domains, best_effort=options.best_effort, **beside(options))


FEATURE = Feature(
    "standard",
    build,
    phases=(Phase.REWRITE,),
    options=StandardOptions,
    modules=("standard",),
)
