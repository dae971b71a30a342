"""The options of a migration, each declared once: for the library, the command line, the configuration file and the report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from onnx_migrate.cached import cached_property
from onnx_migrate.declared import KeywordsOf, declared, option

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
    from onnx_migrate.verify.tolerances import OutputLimits

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
"""An ai.onnx opset, "17+" for 17 or the model's own opset if that is newer, or "latest"; or one of these for each domain.

For several domains write {"ai.onnx": 17, "ai.onnx.ml": 3} or "17,ai.onnx.ml=3".
"""

Precision = Literal["fp16", "bf16", "fp32", "fp16-weights", "bf16-weights"]

Policy = Literal["require", "auto", "off"]
"""Whether a result must be verified, may be unverified, or is not verified at all."""

REACH, DIMS, PARTS = "Opset, runtime and precision", "Shapes and fixed inputs", "Parts of a model"
OPERATORS, REWRITING = "How operators are written", "Simplification and passes"
VERIFICATION, RUNNING = "Verification", "Limits and configuration"
"""The panels of `--help` that show these options."""


_KEEPING_OPSET = (
    "ir_version", "dynamic", "dynamic_batch", "fix_shape", "fix_values", "precision", "int32", "to_onnx_ops",
    "extract_outputs", "extract_inputs",
)  # fmt: skip
"""Options that keep the model's opset unless the caller names one: who asks for a batch did not ask for another opset."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The keywords of `onnx_migrate.migrate`, in the order in which a report lists them.

    Declare a new option here, with its default, its text in `help(migrate)`, and its flag on the command line. The command
    line, the configuration file, the report and the pages of documentation read these declarations.
    """

    # fmt: off
    opset: Opset | None = option(
        None, "--opset", "--target-opset", panel=REACH, cls="joined", type="opset", multiple=True, default=("17+",),
        show_default=True, metavar="N",
        help="The ai.onnx opset of the result: a number, keep, or latest. The value 17+ means 17, or the model's own opset if "
        "that is newer. Options such as --dynamic-batch, --fix-shape, --precision and --to-onnx-ops keep the model's opset, "
        "unless you give --opset too. For other domains write ai.onnx.ml=N, or com.example=N with --adapters.",
        text="""the ai.onnx opset of the result. "17+" means 17, or the model's own opset if that is newer. "keep" keeps the
        model's opset, and "latest" is the newest that the installed onnx knows. A mapping, or a text like "17,ai.onnx.ml=3",
        gives one for each of ai.onnx, ai.onnx.ml and custom domains (`adapters`). Other domains keep theirs. The default is
        "17+". It is "keep" if you ask for something else, such as `dynamic_batch`, `fix_shape`, `precision` or `ir_version`.""",
    )
    runtime: str | Sequence[str] | Targets | None = option(
        None, "--for", panel=REACH, multiple=True, metavar="RUNTIME==VERSION", shell_complete="runtimes",
        help="Make a model that this release of a runtime can run: onnxruntime==1.14, tensorrt==8.6, opencv==4.8. Without "
        "==VERSION the installed release counts. Repeat it for several at once. You can also name a file of your own, such as "
        "./mychip.toml. See docs/runtimes.md.",
        text="""the runtimes that must run the result, such as "tensorrt==8.6" or "onnxruntime" for the installed release. The
        path of a file of your own ("./mychip.toml") and several of these work too. The opset is the newest that all of them
        support, unless `opset` names another. onnx-migrate also adapts IR version, forms and operators (docs/runtimes.md).""",
    )
    best_effort: bool = option(
        False, "--best-effort", panel=REACH, is_flag=True,
        help="With --for or --to-onnx-ops: convert everything that can be converted, list the rest, and exit with 1.",
        text="""with `runtime` or `to_onnx_ops`, return a result in which some nodes could not be converted; a warning of code
        `not-fitted` names each of them.""",
    )
    lower: Lower = option(
        True, "--no-lower", panel=REACH, is_flag=True,
        help="Stop with an error if the model's opset is newer than --opset, instead of converting it to the older opset.",
        text="""convert a model that is newer than `opset` to that older opset. "nearest" accepts the nearest opset that the
        model can reach; False makes it an error (code `downgrade`).""",
    )
    to_onnx_ops: bool | str | Sequence[str] = option(
        False, "--to-onnx-ops", former=("standard",), panel=OPERATORS, multiple=True, is_flag=False, flag_value="all",
        metavar="[=DOMAIN]",
        help="Replace operators of com.microsoft and other known domains by standard ONNX operators. =DOMAIN limits it to one "
        "domain. With --for this happens automatically if the runtime lacks such an operator. See docs/standard.md.",
        text="""replace operators of other domains by standard ONNX operators: True for all known domains, "com.microsoft" or
        several names for these alone. With `runtime` this happens automatically if the runtime lacks such an operator
        (docs/standard.md).""",
    )
    extract_outputs: str | Sequence[str] = option(
        (), "--extract-outputs", former=("outputs",), panel=PARTS, multiple=True, metavar="A,B",
        help="Keep only the part of the model that computes these tensors. They become the outputs. Repeat it for more. See "
        "docs/pipelines.md.",
        text="""tensors of the main graph that become the outputs: "a,b" or several names. The result is the part of the
        model that computes them (docs/pipelines.md).""",
    )
    extract_inputs: str | Sequence[str] = option(
        (), "--extract-inputs", former=("inputs",), panel=PARTS, multiple=True, metavar="X,Y",
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
    quantized_form: Literal["qdq", "float"] | None = option(
        None, "--quantized-form", former=("quantized",), panel=OPERATORS, type=("qdq", "float"),
        help="Rewrite quantised operators such as QLinearConv, MatMulInteger and QGemm. With qdq they become float operators "
        "between QuantizeLinear and DequantizeLinear. With float they become float operators with float weights, which changes "
        "the numbers.",
        text="""rewrite quantised operators (QLinearConv, MatMulInteger, and those of com.microsoft, for example).
        "qdq" writes float operators between QuantizeLinear and DequantizeLinear. "float" writes float operators with float
        weights. That changes the model's numbers, and the result is compared with the model after this rewriting.""",
    )
    dynamic: DynamicAxes | None = option(
        None, "--dynamic", panel=DIMS, multiple=True, metavar="INPUT:DIMS",
        help="Make dimensions of an input dynamic: x:N (first axis), x:N,3,H,W (all axes), x:...,H,W (last axes), or x:0=N,2=H. "
        "A number keeps an axis fixed; ? makes up a name. Repeat it for more inputs. JSON like torch.onnx's dynamic_axes works "
        "too. See docs/dynamic.md.",
        text="""dimensions to make dynamic: a mapping like `dynamic_axes` of torch.onnx, whole shapes,
        {"x": ["N", 3, "H", "W"]} or "x:N,3,H,W", or several such texts.""",
    )
    dynamic_batch: bool | str = option(
        False, "--dynamic-batch", panel=DIMS, is_flag=False, flag_value="N", metavar="[=NAME]",
        help="Make the batch axis of every input dynamic. Its name is N, or the NAME after =.",
        text="make the batch axis of every input dynamic; a text is its name, else it is N.",
    )
    fix_shape: FixedDims | None = option(
        None, "--fix-shape", former=("fix",), panel=DIMS, multiple=True, metavar="NAME=SIZE|INPUT:SIZES",
        help="Give dynamic dimensions fixed sizes, by name (N=1) or by input (x:1,3,224,224). Repeat it for more.",
        text='fixed sizes for dynamic dimensions: {"N": 1, "x": [1, 3, 224, 224]}, "N=1", "x:1,3,224,224", or several texts.',
    )
    fix_values: FixedValues | None = option(
        None, "--fix-value", panel=DIMS, multiple=True, metavar="INPUT=VALUE",
        help="Replace an input by a constant: sr=16000, use_cache_branch=false, sizes=[1,2] or mask=mask.npy. The input is "
        "removed. Repeat it for more. See docs/static.md.",
        text="""values of inputs, which become constants: {"sr": 16000, "use_cache_branch": False, "mask": array},
        "sr=16000", or several texts. These inputs are removed (docs/static.md).""",
    )
    static: bool = option(
        False, "--static", panel=DIMS, is_flag=True,
        help="Give every tensor a fixed shape. Give a size for each dynamic dimension with --fix-shape or --input-data. Shape "
        "computations become constants. Nodes whose output size depends on the data are an error. See docs/static.md.",
        text="""give every tensor a fixed shape. `fix_shape` or `input_data` gives a size for each dynamic dimension, and shape
        computations become constants. Nodes whose output size depends on the data are an error, code `open-size`
        (docs/static.md).""",
    )
    simplify: bool | Literal["auto", "require", "no"] = option(
        True, "--simplify", panel=REWRITING, type=("auto", "require", "no"), default="auto", show_default=True, off="no",
        help="Simplify with onnxsim. If that fails, auto saves the unsimplified model and prints a warning; require makes it an "
        "error.",
        text="""simplify with onnxsim. If that fails, the result is the unsimplified model and the report says so; with
        "require" the migration fails instead. With `runtime`, constants are folded and no nodes are fused.""",
    )
    verify: bool | Policy = option(
        "auto", "--verify", panel=VERIFICATION, type=("require", "auto", "off"), default="auto", show_default=True, off="off",
        help="Run the original and the result, and compare every output. Nothing is written if they differ. If they cannot be "
        "compared, auto writes the unsimplified result and reports it as unverified; require makes it an error.",
        text="""run the original and the result on the same inputs and compare all outputs; with `dynamic`, run the result at
        other sizes too. If they cannot be compared, "auto" returns an unverified result, which is not simplified, and the
        report says why; with "require" the migration fails. "off" compares nothing. True is "auto", False is "off".""",
    )
    precision: Precision | None = option(
        None, "--precision", panel=REACH, type=("fp16", "bf16", "fp32", "fp16-weights", "bf16-weights"),
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
    int32: bool | Literal["io", "require"] = option(
        False, "--int32", panel=REACH, is_flag=False, flag_value="yes", type=("yes", "io", "require"), metavar="[=io|require]",
        help="Use int32 instead of int64 where it cannot overflow. The rest stays int64 and is listed. =io converts the inputs "
        "and outputs too. =require makes a possible overflow an error. See docs/static.md.",
        text="""use int32 instead of int64 where it cannot overflow; the rest stays int64 and is listed. "io" converts inputs and
        outputs too. "require" makes a possible overflow an error, code `int32-overflow` (docs/static.md).""",
    )
    resize_form: ResizeForm | None = option(
        None, "--resize-form", panel=OPERATORS, type=("auto", "scales", "sizes"),
        help="Write each Resize with scales or with sizes if the result is the same. The default, auto, writes sizes where a "
        "model with scales would not load. With --for the default can differ.",
        text="""write each Resize with "scales" or with "sizes" wherever that is exact. "auto" is the default, unless a `runtime`
        sets another. It writes sizes where onnx infers another length from the scales than runtimes compute, because such a
        model does not load.""",
    )
    resize_intent: bool = option(
        False, "--resize-intent", panel=OPERATORS, is_flag=True,
        help="Make each Resize compute what the PyTorch model computed. Up to opset 10 the exporter could not write that. This "
        "also undoes errors of onnx's version converter. It changes the model's numbers. See docs/resize.md.",
        text="""make each Resize compute what the exporting framework did, if the file is known to say something else. This
        changes the model's numbers: the part before is compared with the original, and the result with the model after this
        rewriting.""",
    )
    require_valid: bool = option(
        False, "--require-valid", former=("strict",), panel=REWRITING, is_flag=True,
        help="Stop with an error if the model is not valid ONNX. By default onnx-migrate repairs a model that ONNX Runtime "
        "loads, to match what ONNX Runtime does, and the report says how.",
        text="""make a model that is not valid ONNX an error, even if ONNX Runtime loads it. By default onnx-migrate repairs
        such a model to match what ONNX Runtime does, with notes of the code `mended`.""",
    )
    control_flow: bool = option(
        True, "--no-control-flow", panel=OPERATORS, is_flag=True,
        help="Replace If, Loop, Scan, sequences and optionals by plain nodes. If: pick the branch, or compute both and select. "
        "Loop: unroll it if the number of rounds is known. Otherwise it is an error. See docs/control-flow.md.",
        text="""with False, replace If, Loop, Scan, sequences and optionals by plain nodes; a node that depends on the data is
        an error (docs/control-flow.md). With a `runtime` whose table says so, this happens automatically.""",
    )
    unroll_rnn: bool = option(
        False, "--unroll-rnn", panel=OPERATORS, is_flag=True,
        help="Replace LSTM, GRU and RNN of fixed sequence length by the MatMuls and activations of each time step.",
        text="replace LSTM, GRU and RNN of fixed sequence length by the MatMuls and activations of each time step.",
    )
    unroll_limit: int = option(
        2000, "--unroll-limit", panel=OPERATORS, type="count", default=2000, show_default=True, metavar="NODES",
        help="The most nodes that unrolling one Loop or LSTM may write. More is an error.",
        text="the most nodes that unrolling one Loop or LSTM may write.",
    )
    branch_limit: int = option(
        10_000_000, "--branch-limit", panel=OPERATORS, type="count", default=10_000_000, show_default=True,
        metavar="MULTIPLICATIONS",
        help="The most multiplications that both branches of an If may take if both are computed. More is an error.",
        text="the most multiplications that both branches of an If may take if both are computed.",
    )
    keep_resize_mode: Collection[str] = option(
        (), "--keep-resize-mode", former=("keep",), panel=OPERATORS, multiple=True, type=("tf_half_pixel_for_nn",),
        help="Keep this coordinate_transformation_mode of Resize. ONNX removed it in opset 13; ONNX Runtime still supports it.",
        text='modes of Resize that ONNX has removed and ONNX Runtime still supports: "tf_half_pixel_for_nn".',
    )
    keep_initializers_as_inputs: bool = option(
        False, "--keep-initializers-as-inputs", panel=REWRITING, is_flag=True,
        help="Keep initializers in the list of inputs, so that callers can override them.",
        text="keep initializers in the list of inputs, so that callers can override them.",
    )
    ir_version: int | None = option(
        None, "--ir-version", panel=REACH, type=int, metavar="N",
        help="The IR version of the result. The opset stays, unless you give --opset too. If only the header has to change, "
        "the graph is copied unchanged. See docs/ir-versions.md.",
        text="""the IR version of the result. Features that a lower IR version lacks are written in another form, or are an error
        (docs/ir-versions.md). If you ask for nothing else, no other pass runs.""",
    )
    keep_ir: bool = option(
        False, "--keep-ir", panel=REACH, is_flag=True,
        help="Keep the IR version if the opset is lowered. By default it is lowered too.",
        text="keep the IR version if the opset is lowered; by default it is lowered too.",
    )
    drop_training: bool = option(
        False, "--drop-training", panel=REACH, is_flag=True,
        help="Remove training information, which IR versions below 7 lack. Use it with --ir-version.",
        text="remove training information, which IR versions below 7 lack; use it with `ir_version`.",
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
        help="Import this module, which registers conversions of a custom domain; --opset com.example=2 then works. Installed "
        "packages need no such option. See docs/library.md.",
        text="""modules to import that register conversions of custom domains (`onnx_migrate.plugins`). Installed packages need no
        such option. `opset` may then name these domains.""",
    )
    skip_pass: str | Sequence[str] = option(
        (), "--skip-pass", former=("without",), panel=REWRITING, multiple=True, metavar="NAME", shell_complete="pass_names",
        help="Skip this pass, or several with commas between. onnx-migrate passes lists them.",
        text="names of passes to skip.",
    )
    pipeline: Pipeline | None = option(
        None, text="""passes to run instead of the default ones. Options of the default pipeline, such as `opset` and `dynamic`,
        then have no effect.""",
    )
    input_data: InputData | None = option(
        None, "--input-data", panel=VERIFICATION, multiple=True, metavar="[NAME=]PATH",
        help="Verify on these inputs: an .npz, .npy or Polygraphy JSON file, a folder of images, of .npy or of .pb files, or a "
        "function MODULE:FUNCTION. NAME is the input that an array or image is for; repeat the option for more inputs. See "
        "docs/inputs.md.",
        text="""inputs to verify on: arrays by input name, {"x": array}, a list of such dicts, or a function or iterator that
        yields them. The path of an .npz, .npy or JSON file, or of a folder of images, .npy or .pb files, works too. So does
        "NAME=PATH" for one input, or several of these (docs/inputs.md).""",
    )
    max_inputs: int = option(
        1000, "--max-inputs", panel=VERIFICATION, type="count", default=1000, show_default=True, metavar="N",
        help="The most sets of inputs to take of --input-data.",
        text="the most sets of inputs to take of `input_data`.",
    )
    mean: str | float | Sequence[float] | None = option(
        None, "--mean", panel=VERIFICATION, metavar="NUMBERS",
        help="The mean of pixels from 0 to 1, for images: one number, or one per channel as in 0.485,0.456,0.406. A float input "
        "gets (pixel / 255 - mean) / std.",
        text="""the mean of pixels from 0 to 1, for images: one number, or one for each channel. A float input gets
        (pixel / 255 - mean) / std, and a uint8 input the pixels unchanged.""",
    )
    std: str | float | Sequence[float] | None = option(
        None, "--std", panel=VERIFICATION, metavar="NUMBERS",
        help="The standard deviation of pixels from 0 to 1, for images. With 1/255 the pixels stay from 0 to 255.",
        text="""the standard deviation of pixels from 0 to 1, for images. With "1/255" the pixels stay from 0 to 255.""",
    )
    layout: Literal["nchw", "nhwc"] | None = option(
        None, "--layout", panel=VERIFICATION, type=("nchw", "nhwc"),
        help="The order of axes of an input for images. By default it follows from the axis with 1, 3 or 4 channels.",
        text="""the order of axes of an input for images. By default it follows from the axis with 1, 3 or 4 channels.""",
    )
    rtol: OutputLimits = option(
        None, "--rtol", panel=VERIFICATION, type="tolerance", multiple=True, metavar="[OUTPUT:]FLOAT",
        help="The largest relative difference allowed, in every output or in OUTPUT. Repeat it for more outputs. The default "
        "depends on the element type.",
        text="""the largest relative difference allowed: a number for every output, {"logits": 1e-2} for some, or several texts
        like "logits:1e-2".""",
    )
    atol: OutputLimits = option(
        None, "--atol", panel=VERIFICATION, type="tolerance", multiple=True, metavar="[OUTPUT:]FLOAT",
        help="The largest absolute difference allowed, in every output or in OUTPUT. Repeat it for more outputs. The default "
        "depends on the values.",
        text="""the largest absolute difference allowed: a number for every output, {"logits": 1e-3} for some, or several texts
        like "logits:1e-3".""",
    )
    seed: int = option(
        0, "--seed", panel=VERIFICATION, type=int, default=0, show_default=True, help="The seed of the random inputs.",
        text="the seed of the random inputs.",
    )
    timeout: float = option(
        600.0, "--timeout", panel=RUNNING, type="positive", default=600, show_default=True, metavar="SECONDS",
        help="The time limit for loading, converting and verifying the model. A download has the same limit of its own. "
        "Downloads faster than 1 MB/s are not cut off; a download that stalls for 30 s is.",
        text="""the seconds that the call may take, for all its stages (docs/library.md, "What a timeout covers"). A file from
        or to a URL has the same limit of its own. Downloads faster than 1 MB/s are not cut off.""",
    )
    memory_limit: int | None = option(
        None, "--memory-limit", panel=RUNNING, type="positive", metavar="GB",
        help="The memory limit of the simplifier, of the verification and, from 1 GB on, of this process. The default is three "
        "quarters of the machine's memory.",
        text="the bytes of memory that each of them may use; three quarters of the machine's memory by default.",
    )
    isolated: bool = option(
        True, text="run native code in child processes, so that a crash does not end this process.", reported=False,
    )
    ort_library: Libraries = option(
        (), "--ort-library", panel=VERIFICATION, multiple=True, type="path", metavar="FILE",
        help="Load this shared library of custom operators into ONNX Runtime, so that models with such operators can be "
        "verified. Repeat it for more.",
        text="""shared libraries of custom operators, which ONNX Runtime loads (RegisterCustomOps) in the process that runs the
        models, so that they can be verified. They are native code, which that process runs.""",
    )
    run_in: str | Sequence[str] = option(
        (), "--run-in", former=("prove_in",), panel=VERIFICATION, multiple=True, metavar="RUNTIME",
        shell_complete="evaluators",
        help="Run the original and the result in this runtime too: openvino, opencv, tract, mnn, ncnn, onnxruntime-web, rknn or "
        "onnxruntime. It is an error if the result does not run there, or is worse than the original. Write @FOLDER for a "
        "virtual environment: onnxruntime==1.9@FOLDER. Repeat it for more. See docs/proving.md.",
        text="""further runtimes that run the original and the result, if they are installed: "tract", or
        "onnxruntime==1.9@FOLDER", or several (docs/proving.md). The result must run in each. It must be right there, or as
        far from right as the original is.""",
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
    def keeps_opset(self) -> bool:
        """Whether each model keeps its opset: the caller named no opset and no runtime, and asks for another change."""
        defaults = {item.name: item.default for item in declared(Options)}
        asked = (name for name in _KEEPING_OPSET if getattr(self, name) != defaults[name])
        # With `static` a newer opset helps: onnx infers no shapes of some outputs in their older versions, as of Dropout-7.
        return self.opset is None and self.runtime is None and not self.static and any(asked)

    @property
    def limits(self) -> Limits:
        """Return the time and memory that a child process may use."""
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
    """Return the passes of a migration: the default ones or `pipeline`, with `passes`, without `skip_pass`. Raises UsageError."""
    from onnx_migrate.engine.pass_infra import default_passes
    from onnx_migrate.engine.pipeline import Pipeline

    pipeline = options.pipeline
    if pipeline is None:
        pipeline = Pipeline(tuple(default_passes(options)))
    last = next((item.name for item in pipeline if item.for_targets or item.optional), None)
    for item in options.passes:
        pipeline = pipeline.add(item, before=last)
    given = [options.skip_pass] if isinstance(options.skip_pass, str) else options.skip_pass
    return pipeline.without(*(name.strip() for names in given for name in names.split(",")))


@KeywordsOf(Options)
def default_pipeline(options: Options) -> Pipeline:
    """Return the passes `migrate` runs with these keywords, installed ones included, to list, reorder or extend."""
    return pipeline_of(options)
