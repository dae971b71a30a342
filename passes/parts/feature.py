"""Parts of a model: the part that computes some tensors, or the part after some, and the rest beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx_migrate.core_options import PARTS, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed
from onnx_migrate.errors import UsageError

__all__ = ["FEATURE", "PartOptions"]


@dataclass(frozen=True, kw_only=True)
class PartOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    extract_outputs: str | Sequence[str] = option(
        (), "--extract-outputs", former=("outputs",), keeps_opset=True, panel=PARTS, multiple=True, metavar="A,B",
        help="Keep only the part of the model that computes these tensors. They become the outputs. Repeat it for more. See "
        "docs/pipelines.md.",
        text="""tensors of the main graph that become the outputs: "a,b" or several names. The result is the part of the
        model that computes them (docs/pipelines.md).""",
    )
    extract_inputs: str | Sequence[str] = option(
        (), "--extract-inputs", former=("inputs",), keeps_opset=True, panel=PARTS, multiple=True, metavar="X,Y",
        help="Keep only the part of the model after these tensors. They become the inputs. Repeat it for more.",
        text="""tensors of the main graph that become inputs. The result is the part of the model after them; it keeps those
        inputs of the model that it still reads.""",
    )
    split: bool = option(
        False, "--split", former=("cut",), panel=PARTS, is_flag=True,
        help="Save the rest of the model, unconverted, as OUTPUT.rest.onnx. --extract-outputs says where the first part ends. "
        "With --for it ends before the first node that the runtime does not support.",
        text="""keep the rest of the model, unconverted, as `Migration.rest`. `extract_outputs` says where the first part ends.
        With `runtime` it ends before the first node that the runtime does not support.""",
    )
    # fmt: on


def build(options: PartOptions) -> Iterator[Placed]:
    """Yield the pass that extracts a part of the model, if the user asks for a part."""
    if options.split and not options.extract_outputs:
        raise UsageError(
            "--split needs to know where: nothing says which part is cut off",
            hint="name the last values of the first part with --extract-outputs, or a runtime with --for",
        )
    # The part before the inputs would be lost.
    if options.split and options.extract_inputs:
        raise UsageError(
            "--split writes all parts of the model, and --extract-inputs removes one",
            hint="use only one of the two",
        )
    if not (options.extract_outputs or options.extract_inputs):
        return
    from .cut import Cut

    outputs, inputs = (
        request if isinstance(request, str) else tuple(request)
        for request in (options.extract_outputs, options.extract_inputs)
    )
    yield Phase.PART, Cut(outputs=outputs, inputs=inputs, rest=options.split)


FEATURE = Feature(
    "parts",
    build,
    phases=(Phase.PART,),
    options=PartOptions,
    modules=("cut",),
    completes="onnx_migrate.splitting:with_cut",
)
