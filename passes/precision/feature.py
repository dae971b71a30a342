"""The floating-point type of weights and computations."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from onnx_migrate.core_options import REACH, CoreOptions, share_of
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed
from onnx_migrate.errors import UsageError

if TYPE_CHECKING:
    from onnx_migrate.engine.pass_infra import Pass

__all__ = ["FEATURE", "PrecisionOptions"]


@dataclass(frozen=True, kw_only=True)
class PrecisionOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    precision: Literal["fp16", "bf16", "fp32", "fp16-weights", "bf16-weights"] | None = option(
        None, "--precision", keeps_opset=True, changes_graph=True,
        panel=REACH, type=("fp16", "bf16", "fp32", "fp16-weights", "bf16-weights"),
        help="Convert weights and computations to this floating-point type; inputs and outputs keep their types. Nodes that "
        "would lose too much accuracy stay in float32, and the report lists them. With fp16-weights "
        "and bf16-weights only the weights are converted: the file has half the size, and every node computes in float32. "
        "See docs/precision.md.",
        text="""the floating-point type of weights and computations: "fp16", "bf16" or "fp32". Nodes that do not support the type,
        or would lose too much accuracy in it, keep their own. "fp16-weights" and "bf16-weights" convert the weights alone, and
        nodes compute in float32 (docs/precision.md).""",
    )
    precision_tolerance: float | str | None = option(
        None, "--precision-tolerance", panel=REACH, type="share", metavar="PERCENT",
        help="With --precision: the largest error that an output may have, as a share of its largest value: 1% or 0.01. By "
        "default the limit is 0.5% for fp16 and 2% for bf16, or twice the error of the original with rounded weights and inputs.",
        text="""with `precision`, the largest error that an output may have, as a share of its largest value: "1%" or
        0.01. The default is 0.5 % for float16 and 2 % for bfloat16, or twice the error of the original with rounded weights and
        inputs.""",
    )
    precision_io: bool = option(
        False, "--precision-io", panel=REACH, is_flag=True,
        help="With --precision: give floating-point inputs and outputs the type too.",
        text="with `precision`, give inputs and outputs the type too.",
    )
    keep_fp32: Collection[str] = option(
        (), "--keep-fp32", panel=REACH, multiple=True, metavar="OPERATOR|NODE",
        help="With --precision: keep these nodes in their type. Name an operator, such as Softmax, or nodes, such as '/head/*'. "
        "Repeat it for more.",
        text="""with `precision`, operators, or names of nodes as patterns of fnmatch ("/head/*"), that keep their type.""",
    )
    # fmt: on


def build(options: PrecisionOptions) -> Iterator[Placed]:
    """Yield the pass that changes the type, if the user asks for it or no runtime supports a narrow type.

    Older opsets and runtimes lack narrow types, so a model becomes float32 before it is converted for them.
    """
    if options.precision is None:
        _refuse_others(options)
        yield from _widening(options)
    else:
        yield (Phase.WIDEN if options.precision == "fp32" else Phase.NARROW), _precision(options)


def _refuse_others(options: PrecisionOptions) -> None:
    """Raise UsageError for options that need `precision`."""
    if options.precision_io or options.keep_fp32 or options.precision_tolerance is not None:
        raise UsageError(
            "--precision-io, --keep-fp32 and --precision-tolerance need --precision",
            hint="give --precision fp16, bf16 or fp32 too",
        )


def _precision(options: PrecisionOptions) -> Pass:
    """Return the pass that changes the type. It runs models, unless verification is off."""
    from onnx_migrate.verify import Settings
    from onnx_migrate.verify.settings import libraries_of

    from .precision import KINDS, Precision

    if options.precision not in KINDS:
        raise UsageError(
            f"precision={options.precision!r} is not known", hint=f"it is one of {', '.join(KINDS)}"
        )
    tolerance = options.precision_tolerance
    settings = Settings(
        options.input_data,
        seed=options.seed,
        limits=options.limits,
        isolated=options.isolated,
        libraries=libraries_of(options.ort_library),
        precision_tolerance=None if tolerance is None else share_of(tolerance),
    )
    if options.precision_io and options.precision.endswith("-weights"):
        raise UsageError(
            f"--precision-io gives inputs and outputs the type, and {options.precision} converts weights alone",
            hint="give --precision fp16 or bf16 with --precision-io, or leave --precision-io out",
        )
    return Precision(
        kind=options.precision,
        keep=tuple(options.keep_fp32),
        interface=options.precision_io,
        targets=options.targets,
        may_raise=options.targets is None and (options.opset is None or str(options.opset).endswith("+")),
        settings=None if options.verify in (False, "off") else settings,
    )


def _widening(options: PrecisionOptions) -> Iterator[Placed]:
    """Yield the pass that converts models of narrow types to float32, for runtimes that support no narrow type."""
    for target in options.targets or ():
        types = set(target.row.types)
        if "float" in types and not {"float16", "bfloat16"} & types:
            from .precision import Precision

            yield Phase.WIDEN, Precision(kind="fp32", interface=True, runtime=str(target))
            return


FEATURE = Feature(
    "precision",
    build,
    phases=(
        Phase.WIDEN,
        Phase.NARROW,
    ),
    options=PrecisionOptions,
    modules=("precision",),
    report="report",
)
