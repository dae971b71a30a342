"""The form of each Resize, and the meaning that its exporter intended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from onnx_migrate.core_options import OPERATORS, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed

if TYPE_CHECKING:
    from onnx_migrate.engine.pass_infra import Pass

__all__ = ["FEATURE", "ResizeOptions"]


@dataclass(frozen=True, kw_only=True)
class ResizeOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    resize_form: Literal["auto", "scales", "sizes"] | None = option(
        None, "--resize-form", changes_graph=True, panel=OPERATORS, type=("auto", "scales", "sizes"),
        help="Write each Resize with scales or with sizes if the result is the same. The default, auto, writes sizes where a "
        "model with scales would not load. With --for the default can differ.",
        text="""write each Resize with "scales" or with "sizes" wherever that is exact. "auto" is the default, unless a `runtime`
        sets another. It writes sizes where onnx infers another length from the scales than runtimes compute, because such a
        model does not load.""",
    )
    resize_intent: bool = option(
        False, "--resize-intent", changes_graph=True, panel=OPERATORS, is_flag=True,
        help="Make each Resize compute what the PyTorch model computed. Up to opset 10 the exporter could not write that. This "
        "also undoes errors of onnx's version converter. It changes the model's numbers. See docs/resize.md.",
        text="""make each Resize compute what the exporting framework did, if the file is known to say something else. This
        changes the model's numbers: the part before is compared with the original, and the result with the model after this
        rewriting.""",
    )
    # fmt: on


def build(options: ResizeOptions) -> Iterator[Placed]:
    """Yield the pass for Resizes that PyTorch could not write, if opsets change, and the pass that chooses their form."""
    from ..target_opsets import target_opsets
    from .resize_form import ResizeForm as FormPass

    if options.resize_intent or "ai.onnx" in target_opsets(options):
        yield Phase.FORM, _exporter_intent(options)
    form = options.resize_form
    if form is None:
        form = options.targets.resize_form if options.targets else "auto"
    yield Phase.FORM, FormPass(form=form, dynamic=options.of_feature("dynamic"))


def _exporter_intent(options: ResizeOptions) -> Pass:
    """Return the pass for Resizes that PyTorch could not write: it restores them, or warns about them.

    Some runtimes compute PyTorch's meaning from the original file. If all runtimes do, the pass writes that meaning into the
    result. Otherwise the result computes exactly what the file says, and there is a warning.
    """
    from .resize_intent import IntentNote, ResizeIntent

    targets, dynamic = options.targets, options.of_feature("dynamic")
    like = targets.resize_intent if targets is not None else ()
    if options.resize_intent:
        return ResizeIntent(dynamic=dynamic)
    if targets is not None and len(like) == len(targets):
        return ResizeIntent(dynamic=dynamic, like=str(targets))
    return IntentNote(dynamic=dynamic, like=" and ".join(map(str, like)))


FEATURE = Feature(
    "resize",
    build,
    phases=(Phase.FORM,),
    options=ResizeOptions,
    modules=("resize_form", "resize_intent"),
)
