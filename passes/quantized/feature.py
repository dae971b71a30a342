"""Quantised operators, written as pairs of QuantizeLinear and DequantizeLinear, or as floats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from onnx_migrate.core_options import OPERATORS, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed
from onnx_migrate.errors import UsageError

__all__ = ["FEATURE", "QuantizedOptions"]


@dataclass(frozen=True, kw_only=True)
class QuantizedOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    quantized_form: Literal["qdq", "float"] | None = option(
        None, "--quantized-form", former=("quantized",), changes_graph=True, panel=OPERATORS, type=("qdq", "float"),
        help="Rewrite quantised operators such as QLinearConv, MatMulInteger and QGemm. With qdq they become float operators "
        "between QuantizeLinear and DequantizeLinear. With float they become float operators with float weights, which changes "
        "the numbers.",
        text="""rewrite quantised operators (QLinearConv, MatMulInteger, and those of com.microsoft, for example).
        "qdq" writes float operators between QuantizeLinear and DequantizeLinear. "float" writes float operators with float
        weights. That changes the model's numbers, and the result is compared with the model after this rewriting.""",
    )
    # fmt: on


def build(options: QuantizedOptions) -> Iterator[Placed]:
    """Yield the passes that rewrite quantised operators, if the user asks for it."""
    if options.quantized_form is None:
        return
    if options.quantized_form not in ("qdq", "float"):
        raise UsageError(
            f"quantized_form={options.quantized_form!r} is not known", hint='it is "qdq" or "float"'
        )
    from ..target_opsets import beside
    from .dequantized import Dequantized
    from .quantized_as_pairs import QuantizedAsPairs

    yield Phase.REWRITE, QuantizedAsPairs(**beside(options))
    if options.quantized_form == "float":
        yield Phase.REWRITE, Dequantized()


FEATURE = Feature(
    "quantized",
    build,
    phases=(Phase.REWRITE,),
    options=QuantizedOptions,
    modules=("dequantized", "quantized_as_pairs", "quantized_pairs"),
)
