"""The options of a migration, each declared once: for the library, the command line, the configuration file and the report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from onnx_migrate.cached import cached_property
from onnx_migrate.declared import KeywordsOf, option

if TYPE_CHECKING:
    from onnx_migrate.engine.pass_infra import Pass
    from onnx_migrate.engine.pipeline import Pipeline
    from onnx_migrate.model.dims.fixed_sizes import FixedDims
    from onnx_migrate.model.dims.requests import DynamicAxes
    from onnx_migrate.model.fixed_values import FixedValues
    from onnx_migrate.process import CancelToken, Limits
    from onnx_migrate.process.progress import ProgressListener
    from onnx_migrate.standard.targets import Lower, Targets
    from onnx_migrate.verify import InputData
    from onnx_migrate.verify.settings import Libraries

__all__ = [
    "Opset",
    "Options",
    "Policy",
    "Precision",
    "ResizeForm",
    "default_pipeline",
    "pipeline_of",
    "policy_of",
    "share_of",
]

ResizeForm = Literal["auto", "scales", "sizes"]

Opset = int | str | Mapping[str, int | str]
"""An ai.onnx opset, "17+" for 17 or the model's own where that is newer, or "latest"; or one of these for each domain:
{"ai.onnx": 17, "ai.onnx.ml": 3} or "17,ai.onnx.ml=3"."""

Precision = Literal["fp16", "bf16", "fp32", "fp16-weights", "bf16-weights"]

Policy = Literal["require", "auto", "off"]
"""Whether a result must be verified, may be unverified, or is not verified at all."""

REACH, DIMS, VERIFICATION = "What to reach", "Dynamic and fixed dims", "Verification"
REWRITING, RUNNING = "How the model is rewritten", "How it runs"
"""The panels of `--help` that show these options."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a migration is asked for: the keywords of `onnx_migrate.migrate`, in the order in which a report lists them.

    A new option is declared here, with its default, what `help(migrate)` says of it, and how the command line asks for it. The
    command line, the configuration file, the report and the pages of documentation take it from here.
    """

    # fmt: off
    opset: Opset | None = option(
        None, "--opset", "--target-opset", panel=REACH, cls="joined", type="opset", multiple=True, default=("17+",),
        show_default=True, metavar="N",
        help="The ai.onnx opset to reach: a number, or latest; 17+ is 17, or the model's own opset if that is higher. "
        "A model of a newer opset is brought down to a number. "
        "The domain ai.onnx.ml, or one of your own (--adapters), stays as it is unless --opset ai.onnx.ml=N is given too, or "
        "alone.",
        text="""the ai.onnx opset to reach; "17+", the default, is 17, or the model's own where that is newer; "latest" is the
        newest that the installed onnx knows. A mapping, or a text like "17,ai.onnx.ml=3", says one for each of
        ai.onnx, ai.onnx.ml and custom domains (`adapters`); what it does not name stays. With `ir_version` the default is
        that the opset stays.""",
    )
    runtime: str | Sequence[str] | Targets | None = option(
        None, "--for", panel=REACH, multiple=True, metavar="RUNTIME==VERSION", shell_complete="runtimes",
        help="Make a model that this release of a runtime takes: onnxruntime==1.14, tensorrt==8.6, opencv==4.8. Repeat it "
        "for several at once. Without ==VERSION: the installed release. A file of your own, ./mychip.toml, is a target too. "
        "See docs/runtimes.md.",
        text="""what the result has to run in: "tensorrt==8.6", "onnxruntime" for the installed release, the path of a file of
        your own ("./mychip.toml"), or several of these. The opset is the newest that all of them take, unless `opset` names
        another that they take; IR version, forms and operators become those that all of them take (docs/runtimes.md).""",
    )
    best_effort: bool = option(
        False, "--best-effort", panel=REACH, is_flag=True,
        help="Where the runtime of --for does not take all of the model, or --standard cannot write all of it, write what can be "
        "done, list the rest, and exit with 1.",
        text="""where a `runtime` does not take all of the model, or `standard` cannot write all of it, return what can be
        done; a warning of code `not-fitted` names each thing that is left.""",
    )
    lower: Lower = option(
        True, "--no-lower", panel=REACH, is_flag=True,
        help="Refuse a model of a newer opset instead of bringing it down.",
        text="""bring a model that is newer than `opset` down to it; with "nearest" to the nearest opset that it can reach,
        with False refuse it (code `downgrade`).""",
    )
    standard: bool | str | Sequence[str] = option(
        False, "--standard", panel=REACH, multiple=True, is_flag=False, flag_value="all", metavar="[=DOMAIN]",
        help="Write operators of ONNX Runtime's own (com.microsoft) with those of ai.onnx, and so those of every domain that "
        "is known, or of the DOMAIN after =. For a runtime of --for that lacks such an operator this is done anyway. See "
        "docs/standard.md.",
        text="""write operators of other domains with those of ai.onnx: True for all domains that are known, "com.microsoft" or
        several names for these alone. For a `runtime` that lacks such an operator this is done anyway (docs/standard.md).""",
    )
    outputs: str | Sequence[str] = option(
        (), "--outputs", panel=REACH, multiple=True, metavar="A,B",
        help="Take the part of the model that computes these values, which become its outputs. Repeat it for more. "
        "See docs/pipelines.md.",
        text="""values of the main graph, which become the outputs: the rest of the model is left out; "a,b" or several
        names (docs/pipelines.md).""",
    )
    inputs: str | Sequence[str] = option(
        (), "--inputs", panel=REACH, multiple=True, metavar="X,Y",
        help="Take the part of the model behind these values, which become its inputs. Repeat it for more.",
        text="""values of the main graph, which become inputs: what computes them is left out. Inputs of the model that are
        needed besides stay.""",
    )
    cut: bool = option(
        False, "--cut", panel=REACH, is_flag=True,
        help="Write what is behind the outputs as a second model, OUTPUT's name with .rest.onnx, which is not migrated. "
        "With --for and without --outputs: cut before the first node that the runtime does not take.",
        text="""make what is behind the `outputs` a second model, `Migration.rest`, which is not migrated. With a `runtime` and
        without `outputs`, the model is cut before the first node that the runtime does not take.""",
    )
    quantized: Literal["qdq", "float"] | None = option(
        None, "--quantized", panel=REWRITING, type=("qdq", "float"),
        help="Write quantised operators (QLinearConv, MatMulInteger, QGemm) as float operators between QuantizeLinear and "
        "DequantizeLinear (qdq), or without these, with dequantised weights (float), which changes the model's numbers.",
        text="""write quantised operators (QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger, and those of com.microsoft) as
        float operators between QuantizeLinear and DequantizeLinear, "qdq"; or "float", without these and with dequantised
        weights: the model's numbers change, and the result is compared with the model after this rewriting.""",
    )
    dynamic: DynamicAxes | None = option(
        None, "--dynamic", panel=DIMS, multiple=True, metavar="INPUT:DIMS",
        help="Make dims of an input dynamic: x:N (its first axis), x:N,3,H,W (all), x:...,H,W (the last), x:0=N,2=H (by "
        "axis), or JSON as torch.onnx's dynamic_axes. A number keeps an axis, ? makes up a name. Repeat it for more inputs; "
        "the dims of outputs follow.",
        text="""axes to make dynamic, as torch.onnx takes `dynamic_axes`, or whole shapes, {"x": ["N", 3, "H", "W"]} or
        "x:N,3,H,W", or several such texts.""",
    )
    dynamic_batch: bool | str = option(
        False, "--dynamic-batch", panel=DIMS, is_flag=False, flag_value="N", metavar="[=NAME]",
        help="Make the batch axis of every input dynamic, named N or the NAME after =.",
        text="make the batch axis of every input dynamic; a text is the symbol, else it is N.",
    )
    fix: FixedDims | None = option(
        None, "--fix", panel=DIMS, multiple=True, metavar="NAME=SIZE|INPUT:SIZES",
        help="Set dynamic dims to numbers, by name as in N=1, or by input as in x:1,3,224,224. Repeat it for more.",
        text='sizes for dynamic dims: {"N": 1, "x": [1, 3, 224, 224]}, "N=1", "x:1,3,224,224", or several texts.',
    )
    fix_values: FixedValues | None = option(
        None, "--fix-value", panel=DIMS, multiple=True, metavar="INPUT=VALUE",
        help="Make an input a constant, as in sr=16000, use_cache_branch=false, sizes=[1,2] or mask=mask.npy; the result has "
        "this input no more. Repeat it for more. See docs/static.md.",
        text="""values of inputs, which become constants and are inputs no more: {"sr": 16000, "use_cache_branch": False,
        "mask": array}, "sr=16000", or several texts (docs/static.md).""",
    )
    static: bool = option(
        False, "--static", panel=DIMS, is_flag=True,
        help="Give every value a fixed shape: open dims of inputs need a size (--fix, or --input-data), shape arithmetic is "
        "folded, and a node whose output has a size that depends on data is refused by name. See docs/static.md.",
        text="""give every value a fixed shape: `fix` or `input_data` has a size for each open dim, shape arithmetic is folded,
        and nodes whose outputs have sizes that depend on data are refused, code `open-size` (docs/static.md).""",
    )
    simplify: bool | Literal["auto", "require", "no"] = option(
        True, "--simplify", panel=REWRITING, type=("auto", "require", "no"), default="auto", show_default=True, off="no",
        help="Simplify with onnxsim. If that fails, auto saves the model without it and warns; require makes it an "
        "error.",
        text="""run onnxsim. If it fails, the result is the unsimplified model and the report says so; with
        "require" the migration fails instead. For a `runtime`, constants are folded and no nodes fused.""",
    )
    verify: bool | Policy = option(
        "auto", "--verify", panel=VERIFICATION, type=("require", "auto", "off"), default="auto", show_default=True, off="off",
        help="Run the original and the result and compare every output; write nothing if they differ. Where that cannot be "
        "done, auto writes the result without simplification and says that it is unverified; require makes it an error.",
        text="""run the original and the result on the same inputs and compare all outputs; with `dynamic`, run the
        result at other sizes too. Where that cannot be done, "auto" returns an unverified result, which is not
        simplified, and the report says why; with "require" the migration fails. "off" compares nothing. True is
        "auto", False is "off".""",
    )
    precision: Precision | None = option(
        None, "--precision", panel=REACH, type=("fp16", "bf16", "fp32", "fp16-weights", "bf16-weights"),
        help="Convert weights and computations to this floating-point type; inputs and outputs keep their types. Nodes that "
        "would lose too much accuracy stay in float32, and the report lists them. fp16-weights and bf16-weights convert the "
        "weights alone: the file has half the size, and every node computes in float32. See docs/precision.md.",
        text="""the floating-point type of weights and computations: "fp16", "bf16" or "fp32". Nodes that do not support the type,
        or would lose too much accuracy in it, keep their own. "fp16-weights" and "bf16-weights" convert the weights alone, and
        nodes compute in float32 (docs/precision.md).""",
    )
    precision_tolerance: float | str | None = option(
        None, "--precision-tolerance", panel=REACH, type="share", metavar="PERCENT",
        help="With --precision: the largest error that an output may have, as a share of its largest value: 1% or 0.01. By "
        "default the limit is 0.5% for fp16 and 2% for bf16, or twice the error of the original with rounded weights and inputs.",
        text="""with `precision`, the largest error that an output may have, as a share of its largest value: "1%" or 0.01; by
        default 0.5 % for float16 and 2 % for bfloat16, or twice the error of the original with rounded weights and inputs.""",
    )
    precision_io: bool = option(
        False, "--precision-io", panel=REACH, is_flag=True,
        help="With --precision: give floating-point inputs and outputs the type too.",
        text="with `precision`, give inputs and outputs the type too.",
    )
    keep_fp32: Collection[str] = option(
        (), "--keep-fp32", panel=REACH, multiple=True, metavar="OPERATOR|NODE",
        help="With --precision: leave the type of these nodes as it is; an operator, as Softmax, or names of nodes, as "
        "'/head/*'. Repeat it for more.",
        text="""with `precision`, operators, or names of nodes as patterns of fnmatch ("/head/*"), that keep their type.""",
    )
    int32: bool | Literal["io", "require"] = option(
        False, "--int32", panel=REACH, is_flag=False, flag_value="yes", type=("yes", "io", "require"), metavar="[=io|require]",
        help="Compute in int32 what is int64, where ranges prove that nothing overflows; what may overflow is named and left. "
        "With =io inputs and outputs become int32 too; with =require what may overflow is an error. See docs/static.md.",
        text="""compute in int32 what is int64, where ranges prove that nothing overflows; "io" for inputs and outputs too, and
        "require" refuses what may overflow, code `int32-overflow` (docs/static.md).""",
    )
    resize_form: ResizeForm | None = option(
        None, "--resize-form", panel=REWRITING, type=("auto", "scales", "sizes"),
        help="Write each Resize with scales or with sizes, where that computes the same. auto, the default unless --for "
        "sets another, writes sizes where a model with scales would not load.",
        text="""write each Resize with "scales" or with "sizes" wherever that is exact; "auto", the default
        unless a `runtime` wants another, writes sizes where onnx infers another length from the scales than runtimes
        compute, so that the model would not load.""",
    )
    resize_intent: bool = option(
        False, "--resize-intent", panel=REWRITING, is_flag=True,
        help="Let each Resize compute what the PyTorch model computed, where the exporter could not express it up to "
        "opset 10, and undo errors of onnx's version converter. This changes the model's numbers.",
        text="""rewrite each Resize to compute what the exporting framework did, where the file is known to say
        something else. The model's numbers change: the part before is compared with the original, and the result
        with the model after this rewriting.""",
    )
    strict: bool = option(
        False, "--strict", panel=REWRITING, is_flag=True,
        help="Refuse a model that is not valid by the standard, also where ONNX Runtime loads it; by default such a model is "
        "mended as ONNX Runtime reads it, and the report says how.",
        text="""refuse a model that is not valid by the standard, also where ONNX Runtime loads it; else it is mended as that
        reads it, with notes of the code `mended`.""",
    )
    control_flow: bool = option(
        True, "--no-control-flow", panel=REWRITING, is_flag=True,
        help="Write If, Loop, Scan, sequences and optionals with plain nodes: the branch of a condition that follows from "
        "constants and fixed dims (--fix), or both branches and Where; the rounds of a Loop whose number is known. What "
        "depends on data is refused. See docs/control-flow.md.",
        text="""with False, write If, Loop, Scan, sequences and optionals with plain nodes, or refuse what depends on data
        (docs/control-flow.md). For a `runtime` whose table says so this is done anyway.""",
    )
    unroll_rnn: bool = option(
        False, "--unroll-rnn", panel=REWRITING, is_flag=True,
        help="Write LSTM, GRU and RNN of known sequence lengths as MatMuls and activations of each step.",
        text="write LSTM, GRU and RNN of known sequence lengths as MatMuls and activations of each step.",
    )
    unroll_limit: int = option(
        2000, "--unroll-limit", panel=REWRITING, type="count", default=2000, show_default=True, metavar="NODES",
        help="Refuse to write more nodes than this for one node, of a Loop or LSTM that is unrolled.",
        text="the most nodes that are written for one node, of a Loop or LSTM that is unrolled.",
    )
    branch_limit: int = option(
        10_000_000, "--branch-limit", panel=REWRITING, type="count", default=10_000_000, show_default=True,
        metavar="MULTIPLICATIONS",
        help="Refuse to compute both branches of an If that take more multiplications than this.",
        text="the most multiplications that both branches of an If may take, where both are computed.",
    )
    keep: Collection[str] = option(
        (), "--keep", panel=REWRITING, multiple=True, type=("tf_half_pixel_for_nn",),
        help="Keep this value of coordinate_transformation_mode, which ONNX removed in opset 13 and ONNX Runtime still "
        "supports.",
        text='attribute values that the standard has removed and ONNX Runtime still accepts: "tf_half_pixel_for_nn".',
    )
    keep_initializers_as_inputs: bool = option(
        False, "--keep-initializers-as-inputs", panel=REWRITING, is_flag=True,
        help="Do not remove initializers from the list of inputs, so that callers can override them.",
        text="leave initializers in the graph's inputs, where callers can override them.",
    )
    ir_version: int | None = option(
        None, "--ir-version", panel=REACH, type=int, metavar="N",
        help="Give the result this IR version; what a lower one does not have is written in another form, or refused. "
        "Without --opset the opset stays. Where the header alone has to change, the rest is copied: nothing is simplified or "
        "run.",
        text="""the IR version of the result. What a lower one than the model's does not have is written in another
        form, or refused (docs/ir-versions.md). Where nothing else is asked for, no other pass runs.""",
    )
    keep_ir: bool = option(
        False, "--keep-ir", panel=REACH, is_flag=True,
        help="Leave the IR version of a model whose opset is lowered as it is; by default it is lowered too.",
        text="leave the IR version as it is where the opset is lowered; else it is lowered with it.",
    )
    drop_training: bool = option(
        False, "--drop-training", panel=REACH, is_flag=True,
        help="Remove training information, which IR versions below 7 do not have, for such an --ir-version.",
        text="remove training information, which IR versions below 7 do not have, for such an `ir_version`.",
    )
    passes: Sequence[Pass | Callable[..., Any] | str] = option(
        (), "--pass", panel=REWRITING, multiple=True, metavar="NAME",
        help="Run your own pass before simplify: MODULE:FUNCTION, a function of an onnx.ModelProto or of an "
        "onnx_graphsurgeon.Graph, or the name of an installed pass.",
        text="""more passes, to run before simplify: functions of a ModelProto or a graphsurgeon Graph,
        "module:function", or passes.""",
    )
    adapters: Sequence[str] = option(
        (), "--adapters", panel=REWRITING, multiple=True, metavar="MODULE",
        help="Import this module, which registers steps for operators of a custom domain, so that --opset can name it, as in "
        "--opset com.example=2. Installed packages need no such option. See docs/library.md.",
        text="""modules to import that register steps for operators of custom domains (`onnx_migrate.plugins`), besides those
        that are imported already and those of installed packages; `opset` may then name these domains.""",
    )
    without: str | Sequence[str] = option(
        (), "--without", panel=REWRITING, multiple=True, metavar="NAME", shell_complete="pass_names",
        help="Leave this pass out, or several with commas between; onnx-migrate passes lists them.",
        text="names of passes to leave out.",
    )
    pipeline: Pipeline | None = option(
        None, text="""passes to run instead of the default ones. Options of the default pipeline, as `opset` and `dynamic`,
        then have no effect.""",
    )
    input_data: InputData | None = option(
        None, "--input-data", panel=VERIFICATION, type="path", metavar="PATH",
        help="Verify on these inputs: an .npz file with one array per input name, or a folder of input_*.pb files.",
        text="""inputs to verify on: arrays by input name, {"x": array}, a list of such dicts, the path of an .npz by input
        name, or a folder of input_*.pb.""",
    )
    rtol: float | None = option(
        None, "--rtol", panel=VERIFICATION, type="tolerance", metavar="FLOAT",
        help="Largest relative difference allowed; by default derived from the element type.",
        text="largest relative difference allowed.",
    )
    atol: float | None = option(
        None, "--atol", panel=VERIFICATION, type="tolerance", metavar="FLOAT",
        help="Largest absolute difference allowed; by default derived from the values.",
        text="largest absolute difference allowed.",
    )
    seed: int = option(
        0, "--seed", panel=VERIFICATION, type=int, default=0, show_default=True, help="Seed of the random inputs.",
        text="of the random inputs.",
    )
    timeout: float = option(
        600.0, "--timeout", panel=RUNNING, type="positive", default=600, show_default=True, metavar="SECONDS",
        help="Time limit of the model: all stages share it, from loading to the verification. A file from or to a URL has as "
        "much again, and more as long as it makes a megabyte a second; a download of which hardly anything comes for 30 s ends.",
        text="""seconds that the call may take, which all its stages share (docs/library.md, "What a timeout covers"). A file from
        or to a URL has as much again, and more as long as it makes a megabyte a second.""",
    )
    memory_limit: int | None = option(
        None, "--memory-limit", panel=RUNNING, type="positive", metavar="GB",
        help="Memory limit of the simplifier, of the verification, and, from 1 GB on, of this process; by default three "
        "quarters of the machine's memory.",
        text="bytes of memory that each of them may take; three quarters of the machine's by default.",
    )
    isolated: bool = option(
        True, text="run native code in child processes, so that a crash does not end this process.", reported=False,
    )
    ort_library: Libraries = option(
        (), "--ort-library", panel=VERIFICATION, multiple=True, type="path", metavar="FILE",
        help="Load this shared library with the kernels of custom operators into ONNX Runtime, in the process that runs the "
        "models, so that models with such operators are verified. Repeat it for more.",
        text="""shared libraries with kernels of custom operators, which ONNX Runtime loads (RegisterCustomOps) in the
        process that runs the models, so that they can be verified. They are native code, which that process runs.""",
    )
    prove_in: str | Sequence[str] = option(
        (), "--prove-in", panel=VERIFICATION, multiple=True, metavar="RUNTIME", shell_complete="evaluators",
        help="Run the original and the result in this runtime too, and fail if the result does not run there or computes "
        "worse than the original: openvino, opencv, tract, mnn, ncnn, onnxruntime-web, rknn, onnxruntime. @FOLDER says in "
        "which virtual environment it is: onnxruntime==1.9@FOLDER. Repeat it for more. See docs/proving.md.",
        text="""runtimes to run the original and the result in too, where they are installed: "tract", or
        "onnxruntime==1.9@FOLDER", or several (docs/proving.md). The result must run in each, and be right, or be as
        far off as the original is there.""",
    )
    progress: ProgressListener | None = option(
        None,
        text="""called, in this thread, as each stage begins and each run of the verification. What it raises ends the migration
        and is raised here; children are ended first.""",
        reported=False,
    )
    cancel: CancelToken | None = option(
        None,
        text="""a threading.Event, or anything with `is_set`. Once it is set, within a tenth of a second where a child runs and at
        the next stage or run otherwise, children are ended and Cancelled is raised.""",
        reported=False,
    )
    # fmt: on

    @cached_property
    def targets(self) -> Targets | None:
        """The runtimes that the result is for. Raises UsageError."""
        from onnx_migrate.standard.targets import resolve

        return None if self.runtime is None else resolve(self.runtime)

    @property
    def limits(self) -> Limits:
        """What a child process may use."""
        from onnx_migrate.process import Limits

        return Limits.of(self.timeout, self.memory_limit)


def share_of(value: float | str) -> float:
    """Return a share that is a number, or a text as "1%" or "0.01". Raises UsageError unless it is above 0 and below 1."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if 0 < share < 1:
        return share
    from onnx_migrate.errors import UsageError

    raise UsageError(
        f"{value!r} is no share above 0 and below 1", hint="write 1% or 0.01 for an error of one percent"
    )


def policy_of(verify: bool | str) -> Policy:
    """Return the policy that the argument `verify` of `migrate` means. Raises UsageError for another value."""
    policies: dict[bool | str, Policy] = {
        True: "auto", False: "off", "require": "require", "auto": "auto", "off": "off"
    }  # fmt: skip
    if verify not in policies:
        from onnx_migrate.errors import UsageError

        raise UsageError(
            f"verify={verify!r} is not known",
            hint='it is "require", "auto", "off", True (auto) or False (off)',
        )
    return policies[verify]


def pipeline_of(options: Options) -> Pipeline:
    """Return the passes of a migration: the default ones or `pipeline`, with `passes`, without `without`. Raises UsageError."""
    from onnx_migrate.engine.pass_infra import default_passes
    from onnx_migrate.engine.pipeline import Pipeline

    pipeline = options.pipeline
    if pipeline is None:
        pipeline = Pipeline(tuple(default_passes(options)))
    last = next((item.name for item in pipeline if item.for_targets or item.optional), None)
    for item in options.passes:
        pipeline = pipeline.add(item, before=last)
    given = [options.without] if isinstance(options.without, str) else options.without
    return pipeline.without(*(name.strip() for names in given for name in names.split(",")))


@KeywordsOf(Options)
def default_pipeline(options: Options) -> Pipeline:
    """Return the passes `migrate` runs with these keywords, installed ones included, to list, reorder or extend."""
    return pipeline_of(options)
