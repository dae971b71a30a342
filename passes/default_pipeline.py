"""The order in which a migration runs the passes of this package.

Passes that few migrations need are imported on demand: importing all of them takes a tenth of a second.
"""

from __future__ import annotations

from onnx_migrate.engine.pass_infra import Pass, installed_passes, register_default_pipeline
from onnx_migrate.errors import UsageError
from onnx_migrate.options import Options, share_of
from onnx_migrate.options import ResizeForm as Form
from onnx_migrate.standard.schema import CONTROL_FLOW, RECURRENT, SEQUENCES
from onnx_migrate.verify import Settings
from onnx_migrate.verify.settings import libraries_of

from .cleanup import Cleanup
from .declared_shapes import DeclaredShapes
from .input_dims import FixDims, OpenDims
from .opset_passes import beside, lowerings, migrations
from .resize import IntentNote, ResizeForm, ResizeIntent

__all__ = ["default_pipeline"]


@register_default_pipeline
def default_pipeline(options: Options) -> list[Pass]:
    """Return the passes that these options ask for, and those of other distributions before the simplifier.

    Raises UsageError for an opset that does not exist, and for an opset together with targets, which determine it.
    """
    passes: list[Pass] = []
    simplified = _is_simplified(options.simplify)
    if options.drop_training and options.ir_version is None:
        raise UsageError(
            "--drop-training needs an IR version that has no training information, and --ir-version is missing",
            hint="add --ir-version N, in Python ir_version=N",
        )
    passes += _cut(options)
    if _asks_for_ir_version_alone(options):
        return [*passes, *_ir_version(options), *installed_passes()]
    if options.fix_values:
        from .fixed_values import FixValues

        passes.append(FixValues(values=options.fix_values))
    if options.fix_shape is not None or options.static:
        passes.append(
            FixDims(fix=options.fix_shape or {}, all_dims=options.static, input_data=options.input_data)
        )
    dynamic = options.dynamic is not None or bool(options.dynamic_batch)
    if not dynamic:
        passes += _known_branches(options)
    passes += migrations(options)
    if options.resize_intent or any(item.name == "migrate_opset" for item in passes):
        passes.append(_exporter_intent(options))
    passes += [
        ResizeForm(form=_resize_form(options), dynamic=options.dynamic),
        DeclaredShapes(),
        OpenDims(),
    ]
    if dynamic:
        from .dynamic_dims import DynamicDims

        batch = "N" if options.dynamic_batch is True else options.dynamic_batch or ""
        passes.append(DynamicDims(dynamic=options.dynamic or {}, batch=batch))
        passes += _known_branches(options)  # a condition may follow from a size that was fixed until now
    precision = _precision(options)
    # Older opsets and runtimes lack narrow types, so a model becomes float32 before it is converted for them.
    widening = precision if options.precision == "fp32" else _widening(options)
    passes += widening
    passes += [*lowerings(options), *_quantized(options), *_standard(options), *_ir_version(options)]
    passes += [Cleanup(), *installed_passes()]
    passes += [*_control_flow(options), *_static(options), *_rewrites_for(options)]
    passes += [] if options.precision == "fp32" else precision
    passes += _integers(options)
    if options.int32 == "io":
        from .integers import Int32Ports

        passes.append(Int32Ports(ports=True))
    if options.targets:
        from .targets import RuntimeLimits

        passes.append(RuntimeLimits(targets=options.targets, best_effort=options.best_effort))
    if simplified:
        always = options.ir_version is None  # with a new IR version alone, nothing else changes
        passes.append(_simplify(options, always=always))
    return passes


def _known_branches(options: Options) -> list[Pass]:
    """Return the pass that replaces Ifs of known conditions by their branches, for runtimes and for static models."""
    if not options.targets and not options.static and options.control_flow:
        return []
    from .control_flow.known_branches import KnownBranches

    return [KnownBranches()]


def _cut(options: Options) -> list[Pass]:
    """Return the pass that extracts a part of the model, if the user asks for a part."""
    if options.split and not options.extract_outputs:
        raise UsageError(
            "--split needs to know where: nothing says which part is cut off",
            hint="name the last values of the first part with --extract-outputs, or a runtime with --for",
        )
    if options.split and options.extract_inputs:
        raise UsageError(
            "--split writes all parts of the model, and --extract-inputs removes one",
            hint="use only one of the two",
        )
    if not (options.extract_outputs or options.extract_inputs):
        return []
    from .cut import Cut

    outputs, inputs = (
        asked if isinstance(asked, str) else tuple(asked)
        for asked in (options.extract_outputs, options.extract_inputs)
    )
    return [Cut(outputs=outputs, inputs=inputs, rest=options.split)]


def _is_simplified(simplify: bool | str) -> bool:
    """Return whether to simplify. Raises UsageError, since every text would be true."""
    known: dict[bool | str, bool] = {True: True, False: False, "auto": True, "require": True, "no": False}
    if not isinstance(simplify, (bool, str)) or simplify not in known:
        raise UsageError(
            f"simplify={simplify!r} is not known",
            hint='it is "require", "auto", "no", True (auto) or False (no)',
        )
    return known[simplify]


def _asks_for_ir_version_alone(options: Options) -> bool:
    """Return whether nothing but the IR version is to change."""
    values = (
        options.opset,
        options.runtime,
        options.dynamic,
        options.fix_shape,
        options.fix_values,
        options.quantized_form,
        options.precision,
    )
    wanted = (
        options.dynamic_batch,
        options.static,
        options.to_onnx_ops,
        options.int32,
        options.resize_intent,
        not options.control_flow,
        options.unroll_rnn,
    )
    return (
        options.ir_version is not None
        and all(option is None for option in values)
        and not any(wanted)
        and options.resize_form in (None, "auto")
    )


def _precision(options: Options) -> list[Pass]:
    """Return the pass that changes the floating-point type, if the user wants it. It runs models unless verification is off."""
    if options.precision is None:
        if options.precision_io or options.keep_fp32 or options.precision_tolerance is not None:
            raise UsageError(
                "--precision-io, --keep-fp32 and --precision-tolerance need --precision",
                hint="give --precision fp16, bf16 or fp32 too",
            )
        return []
    from .precision import KINDS, Precision

    if options.precision not in KINDS:
        raise UsageError(
            f"precision={options.precision!r} is not known", hint=f"it is one of {', '.join(KINDS)}"
        )
    settings = Settings(
        options.input_data,
        seed=options.seed,
        limits=options.limits,
        isolated=options.isolated,
        libraries=libraries_of(options.ort_library),
        precision_tolerance=None
        if options.precision_tolerance is None
        else share_of(options.precision_tolerance),
    )
    if options.precision_io and options.precision.endswith("-weights"):
        raise UsageError(
            f"--precision-io gives inputs and outputs the type, and {options.precision} converts weights alone",
            hint="give --precision fp16 or bf16 with --precision-io, or leave --precision-io out",
        )
    return [
        Precision(
            kind=options.precision,
            keep=tuple(options.keep_fp32),
            interface=options.precision_io,
            targets=options.targets,
            may_raise=options.targets is None and (options.opset is None or str(options.opset).endswith("+")),
            settings=None if options.verify in (False, "off") else settings,
        )
    ]


def _static(options: Options) -> list[Pass]:
    """Return the pass that gives every value a fixed shape, if the user asks for it, or a target needs it.

    It also folds shape arithmetic if integers become int32. Otherwise ONNX Runtime 1.32 refuses an int32 Range whose limit it
    infers from sizes, since it treats that limit as int64.
    """
    rows = [target.row for target in options.targets or ()]
    judged = options.static or any(row.static for row in rows)
    if not (judged or options.int32 or any(row.falls_back or row.integer == "int32" for row in rows)):
        return []
    from .static_shapes import StaticShapes

    return [StaticShapes(lenient=not options.static or options.best_effort, judged=judged)]


def _integers(options: Options) -> list[Pass]:
    """Return the pass that computes in int32, if the user asks for it, or a target computes in nothing wider."""
    if options.int32 not in (True, False, "yes", "io", "require"):
        raise UsageError(f"int32={options.int32!r} is not known", hint='it is True, "io" or "require"')
    narrow = any(target.row.integer == "int32" for target in options.targets or ())
    if not options.int32 and not narrow:
        return []
    from .integers import Int32

    return [
        Int32(
            ports=options.int32 == "io",
            required=options.int32 == "require",
            targets=options.targets,
            fixed_only=not options.int32,
        )
    ]


def _widening(options: Options) -> list[Pass]:
    """Return the pass that converts models of narrow types to float32, for runtimes that support no narrow type."""
    wide = [
        target
        for target in options.targets or ()
        if "float" in target.row.types and not {"float16", "bfloat16"} & set(target.row.types)
    ]
    if options.precision is not None or not wide:
        return []
    from .precision import Precision

    return [Precision(kind="fp32", interface=True, runtime=str(wide[0]))]


def _control_flow(options: Options) -> list[Pass]:
    """Return the pass that writes control flow, sequences and recurrent operators out, for those that are to go."""
    targets = options.targets
    wanted = frozenset() if options.control_flow else CONTROL_FLOW | SEQUENCES
    wanted |= RECURRENT if options.unroll_rnn else frozenset()
    wished: set[str] = set()
    for target in targets or ():
        wished.update(target.row.unrolled)
        wanted |= {name for name in CONTROL_FLOW | SEQUENCES | RECURRENT if not target.has("", name)}
        if target.row.falls_back:
            wished |= {name for name in CONTROL_FLOW | SEQUENCES if not target.rows_of("", name)}
    if not wanted | wished:
        return []
    from .control_flow import ControlFlow

    return [
        ControlFlow(
            wanted=wanted,
            wished=frozenset(wished - wanted),
            nodes=options.unroll_limit,
            extra=options.branch_limit,
            best_effort=options.best_effort,
            targets=targets,
        )
    ]


def _resize_form(options: Options) -> Form:
    """Return the form of Resize that the user asks for, or that the targets want."""
    if options.resize_form is not None:
        return options.resize_form
    return options.targets.resize_form if options.targets else "auto"


def _exporter_intent(options: Options) -> Pass:
    """Return the pass for Resizes that PyTorch could not write: it restores them, or warns about them.

    Some runtimes compute PyTorch's meaning from the original file. If all runtimes do, the pass writes that meaning into the
    result. Otherwise the result computes exactly what the file says, and there is a warning.
    """
    targets, dynamic = options.targets, options.dynamic
    like = targets.resize_intent if targets is not None else ()
    if options.resize_intent:
        return ResizeIntent(dynamic=dynamic)
    if targets is not None and len(like) == len(targets):
        return ResizeIntent(dynamic=dynamic, like=str(targets))
    return IntentNote(dynamic=dynamic, like=" and ".join(map(str, like)))


def _standard(options: Options) -> list[Pass]:
    """Return the pass that replaces operators of other domains, if the user asks for it."""
    asked = options.to_onnx_ops
    if not asked:
        return []
    names = (asked,) if isinstance(asked, str) else () if asked is True else tuple(asked)
    domains = () if "all" in names else tuple(dict.fromkeys(names))
    from .standard import Standard

    return [Standard(domains=domains, best_effort=options.best_effort, **beside(options))]


def _quantized(options: Options) -> list[Pass]:
    """Return the passes that write quantised operators as pairs, or as floats."""
    if options.quantized_form is None:
        return []
    if options.quantized_form not in ("qdq", "float"):
        raise UsageError(
            f"quantized_form={options.quantized_form!r} is not known", hint='it is "qdq" or "float"'
        )
    from .dequantized import Dequantized
    from .quantized_as_pairs import QuantizedAsPairs

    return [
        QuantizedAsPairs(**beside(options)),
        *([Dequantized()] if options.quantized_form == "float" else []),
    ]


def _rewrites_for(options: Options) -> list[Pass]:
    """Return the passes that rewrite nodes for runtimes; they run again after the simplifier."""
    targets, best_effort = options.targets, options.best_effort
    if not targets:
        return []
    from .targets import FitForms, FitOperators

    return [
        FitOperators(targets=targets, best_effort=best_effort),
        FitForms(targets=targets, best_effort=best_effort),
    ]


def _simplify(options: Options, *, always: bool) -> Pass:
    from .simplify import Simplify

    targets = options.targets
    return Simplify(
        limits=options.limits,
        isolated=options.isolated,
        always=always,
        fuse=targets is None and options.control_flow and not (options.static or options.int32),
        fuse_narrow=options.precision is not None,
        fittings=(*_rewrites_for(options), *_integers(options)),
        unlist=targets is not None and "initializers_as_inputs" in targets.write,
    )


def _ir_version(options: Options) -> list[Pass]:
    """Return the pass that sets the IR version, if the user asks for one."""
    if options.ir_version is None:
        return []
    from .ir_version import IrVersion

    unlist = not options.keep_initializers_as_inputs
    return [IrVersion(ir_version=options.ir_version, drop_training=options.drop_training, unlist=unlist)]
