"""The options that every migration has with any set of installed features, and the panels of `--help`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from onnx_migrate.cached import cached_property
from onnx_migrate.declared import Shapes, declared, option
from onnx_migrate.errors import UsageError

if TYPE_CHECKING:
    from onnx_migrate.engine.pass_infra import Pass
    from onnx_migrate.engine.pipeline import Pipeline
    from onnx_migrate.process import CancelToken, Limits
    from onnx_migrate.process.progress import ProgressListener
    from onnx_migrate.standard.targets import Lower, Targets
    from onnx_migrate.verify import InputData
    from onnx_migrate.verify.settings import Libraries
    from onnx_migrate.verify.tolerances import OutputLimits

__all__ = [
    "DIMS",
    "OPERATORS",
    "PARTS",
    "REACH",
    "REWRITING",
    "RUNNING",
    "VERIFICATION",
    "CoreOptions",
    "Opset",
    "Policy",
    "policy_of",
    "share_of",
]

Opset = int | str | Mapping[str, int | str]
"""An ai.onnx opset, "17+" for 17 or the model's own opset if that is newer, or "latest"; or one of these for each domain.

For several domains write {"ai.onnx": 17, "ai.onnx.ml": 3} or "17,ai.onnx.ml=3".
"""

Policy = Literal["require", "auto", "off"]
"""Whether a result must be verified, may be unverified, or is not verified at all."""

REACH, DIMS, PARTS = "Opset, runtime and precision", "Shapes and fixed inputs", "Parts of a model"
OPERATORS, REWRITING = "How operators are written", "Simplification and passes"
VERIFICATION, RUNNING = "Verification", "Limits and configuration"
"""The panels of `--help` that show these options."""


def _opset_words(value: Any, _shapes: Shapes) -> Any:
    """Return what `--opset` takes, as "ai.onnx=17,ai.onnx.ml=3"."""
    if not isinstance(value, dict):
        return value
    return ",".join(f"{domain or 'ai.onnx'}={opset}" for domain, opset in value.items())


def _limit_words(value: Any, _shapes: Shapes) -> Any:
    """Return what `--rtol` and `--atol` take, as "logits:0.001"."""
    return [f"{output}:{limit}" for output, limit in value.items()] if isinstance(value, dict) else value


_Options = TypeVar("_Options", bound="CoreOptions")


@dataclass(frozen=True, kw_only=True)
class CoreOptions:
    """The options of the core. Those of a feature are declared in the module `feature` of its folder."""

    # fmt: off
    opset: Opset | None = option(
        None, "--opset", "--target-opset", changes_graph=True,
        panel=REACH, cls="joined", type="opset", multiple=True, default=("17+",),
        show_default=True, metavar="N",
        help="The ai.onnx opset of the result: a number, keep, or latest. The value 17+ means 17, or the model's own opset if "
        "that is newer. Options such as --dynamic-batch, --fix-shape, --precision and --to-onnx-ops keep the model's opset, "
        "unless you give --opset too. For other domains write ai.onnx.ml=N, or com.example=N with --adapters.",
        text="""the ai.onnx opset of the result. "17+" means 17, or the model's own opset if that is newer. "keep" keeps the
        model's opset, and "latest" is the newest that the installed onnx knows. A mapping, or a text like "17,ai.onnx.ml=3",
        gives one for each of ai.onnx, ai.onnx.ml and custom domains (`adapters`). Other domains keep theirs. The default is
        "17+". It is "keep" if you ask for something else, such as `dynamic_batch`, `fix_shape`, `precision` or `ir_version`.""",
        words=_opset_words,
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
    verify: bool | Policy = option(
        "auto", "--verify", panel=VERIFICATION, type=("require", "auto", "off"), default="auto", show_default=True, off="off",
        help="Run the original and the result, and compare every output. Nothing is written if they differ. If they cannot be "
        "compared, auto writes the unsimplified result and reports it as unverified; require makes it an error.",
        text="""run the original and the result on the same inputs and compare all outputs; with `dynamic`, run the result at
        other sizes too. If they cannot be compared, "auto" returns an unverified result, which is not simplified, and the
        report says why; with "require" the migration fails. "off" compares nothing. True is "auto", False is "off".""",
    )
    require_valid: bool = option(
        False, "--require-valid", former=("strict",), panel=REWRITING, is_flag=True,
        help="Stop with an error if the model is not valid ONNX. By default onnx-migrate repairs a model that ONNX Runtime "
        "loads, to match what ONNX Runtime does, and the report says how.",
        text="""make a model that is not valid ONNX an error, even if ONNX Runtime loads it. By default onnx-migrate repairs
        such a model to match what ONNX Runtime does, with notes of the code `mended`.""",
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
    keep_ir: bool = option(
        False, "--keep-ir", panel=REACH, is_flag=True,
        help="Keep the IR version if the opset is lowered. By default it is lowered too.",
        text="keep the IR version if the opset is lowered; by default it is lowered too.",
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
        words=lambda data, _: data if isinstance(data, (str, list)) else None,
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
        words=lambda value, _: ",".join(map(str, value)) if isinstance(value, list) else value,
    )
    std: str | float | Sequence[float] | None = option(
        None, "--std", panel=VERIFICATION, metavar="NUMBERS",
        help="The standard deviation of pixels from 0 to 1, for images. With 1/255 the pixels stay from 0 to 255.",
        text="""the standard deviation of pixels from 0 to 1, for images. With "1/255" the pixels stay from 0 to 255.""",
        words=lambda value, _: ",".join(map(str, value)) if isinstance(value, list) else value,
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
        words=_limit_words,
    )
    atol: OutputLimits = option(
        None, "--atol", panel=VERIFICATION, type="tolerance", multiple=True, metavar="[OUTPUT:]FLOAT",
        help="The largest absolute difference allowed, in every output or in OUTPUT. Repeat it for more outputs. The default "
        "depends on the values.",
        text="""the largest absolute difference allowed: a number for every output, {"logits": 1e-3} for some, or several texts
        like "logits:1e-3".""",
        words=_limit_words,
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
        words=lambda limit, _: repr(limit / 2**30),
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
        text="""a function that onnx-migrate calls in this thread at the start of each stage and of each run of the verification.
        An exception that it raises ends the child processes and the migration, and reaches you.""",
        reported=False,
    )
    cancel: CancelToken | None = option(
        None,
        text="""a threading.Event, or any object with `is_set`. Setting it ends the child processes and raises Cancelled. This
        takes a tenth of a second while a child process runs; otherwise it happens at the next stage or run.""",
        reported=False,
    )
    # fmt: on

    def __post_init__(self) -> None:
        """Raise UsageError for a text, such as "no", as the value of an option that is on or off: every text would be true."""
        for item in declared(type(self)):
            value = getattr(self, item.name)
            if item.type == "bool" and value not in (True, False):
                raise UsageError(f"{item.name}={value!r} is not known", hint="it is True or False")

    @cached_property
    def targets(self) -> Targets | None:
        """The runtimes that the result is for. Raises UsageError."""
        runtime = self.of_feature("runtime")
        if runtime is None:
            return None
        from onnx_migrate.standard.targets import resolve

        return resolve(runtime)

    @property
    def keeps_opset(self) -> bool:
        """Whether each model keeps its opset: the caller named no opset and no runtime, and asks for another change."""
        # A runtime determines the opset.
        if self.opset is not None or self.of_feature("runtime") is not None:
            return False
        wishes = [option.keeps_opset for option in declared(type(self)) if self.differs(option.name)]
        return True in wishes and False not in wishes

    @property
    def limits(self) -> Limits:
        """Return the time and memory that a child process may use."""
        from onnx_migrate.process import Limits

        return Limits.of(self.timeout, self.memory_limit)

    @classmethod
    def of_installed(cls: type[_Options], **options: Any) -> _Options:
        """Return options without those that turn off what is not installed."""
        names = {option.name for option in declared(cls)}
        return cls(**{name: value for name, value in options.items() if value or name in names})

    def of_feature(self, name: str) -> Any:
        """Return the value of an option of another feature, None if that feature is not installed."""
        return getattr(self, name, None)

    def differs(self, name: str) -> bool:
        """Return whether the caller gave an option another value than its default."""
        default = next(option.default for option in declared(type(self)) if option.name == name)
        return bool(getattr(self, name) != default)


def policy_of(verify: bool | str) -> Policy:
    """Return the policy that the argument `verify` of `migrate` means. Raises UsageError for another value."""
    policies: dict[bool | str, Policy] = {
        True: "auto", False: "off", "require": "require", "auto": "auto", "off": "off"
    }  # fmt: skip
    if verify not in policies:
        raise UsageError(
            f"verify={verify!r} is not known",
            hint='it is "require", "auto", "off", True (auto) or False (off)',
        )
    return policies[verify]


def share_of(value: float | str) -> float:
    """Return a share that is a number, or a text as "1%" or "0.01". Raises UsageError unless it is above 0 and below 1."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if 0 < share < 1:
        return share
    raise UsageError(
        f"{value!r} is no share above 0 and below 1", hint="write 1% or 0.01 for an error of one percent"
    )
