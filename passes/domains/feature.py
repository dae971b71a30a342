"""The operators of other domains than ai.onnx, each domain at an opset of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from onnx_migrate.core_options import CoreOptions
from onnx_migrate.engine.features import Feature, Phase, Placed

if TYPE_CHECKING:
    from .domain_opsets import CustomOpset

__all__ = ["FEATURE"]


def build(options: CoreOptions) -> Iterator[Placed]:
    """Yield the passes that bring ai.onnx.ml and custom domains to the opsets that the user or a runtime asks for."""
    from onnx_migrate.standard.schema import ML

    from ..target_opsets import beside, newer, target_opsets

    opsets = target_opsets(options)
    if ML in opsets:
        from .domain_opsets import MigrateMl

        opset, at_least = opsets[ML]
        migrate = MigrateMl(opset=opset, newer=newer(options, at_least), **beside(options))
        yield Phase.RAISE_DOMAINS, migrate
    custom = _custom(options, opsets)
    if custom:
        from .domain_opsets import MigrateDomains

        yield Phase.RAISE_DOMAINS, MigrateDomains(opsets=custom, **beside(options))
    if not options.lower:
        return
    ml = opsets.get(ML, (options.targets.ml if options.targets else None, False))
    if ml[0] is not None and not ml[1]:
        from .domain_opsets import LowerMl

        yield Phase.LOWER_DOMAINS, LowerMl(opset=ml[0], **beside(options))
    if any(custom_opset.newer == "lower" for custom_opset in custom.values()):
        from .domain_opsets import LowerDomains

        yield Phase.LOWER_DOMAINS, LowerDomains(opsets=custom, **beside(options))


def _custom(options: CoreOptions, opsets: dict[str, tuple[int, bool]]) -> dict[str, CustomOpset]:
    """Return the opsets of custom domains that the user asks for."""
    from onnx_migrate.standard.schema import ML

    from ..target_opsets import newer

    custom_opsets = {domain: value for domain, value in opsets.items() if domain not in ("ai.onnx", ML)}
    if not custom_opsets:
        return {}
    from .domain_opsets import CustomOpset

    return {
        domain: CustomOpset(opset, newer(options, at_least))
        for domain, (opset, at_least) in custom_opsets.items()
    }


FEATURE = Feature(
    "domains",
    build,
    phases=(
        Phase.RAISE_DOMAINS,
        Phase.LOWER_DOMAINS,
    ),
    modules=("domain_opsets",),
)
