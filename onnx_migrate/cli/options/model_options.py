"""The options that say what happens to a model, shared by the commands for one model and for many."""

from __future__ import annotations

from typing import Any

import rich_click as click
from click.types import StringParamType

from onnx_migrate.cli.options.comparison_options import library_option, tolerance_options
from onnx_migrate.cli.options.completion import evaluators, pass_names, runtimes

__all__ = ["model_options"]


class _Opset(StringParamType):
    """An opset, or a domain and its opset, or several of these with commas between."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text. Raises click.BadParameter."""
        text = str(value)
        for part in text.split(","):
            number = part.strip().rpartition("=")[2].removeprefix("-")
            if number != "latest" and not number.removesuffix("+").isdecimal():
                self.fail(
                    f"{part.strip()!r} is not an opset (give a number, 17+ for 17 or newer, 1+ to keep the model's own, or "
                    "latest)",
                    param,
                    ctx,
                )
        return text


class _Joined(click.Option):
    """An option that may be given several times, in a config file also as one text or number; its value is one text."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the values joined by commas."""
        return ",".join(super().process_value(ctx, (value,) if isinstance(value, (str, int)) else value))


_OPTIONS = (
    click.option(
        "--opset", "--target-opset", cls=_Joined, type=_Opset(), multiple=True, default=("17+",), show_default=True, metavar="N",
        help="The ai.onnx opset to reach: a number, or latest; 17+ is 17, or the model's own opset if that is higher. "
        "A model of a newer opset is brought down to a number. "
        "The domain ai.onnx.ml, or one of your own (--adapters), stays as it is unless --opset ai.onnx.ml=N is given too, or "
        "alone.",
    ),
    click.option(
        "--no-lower", is_flag=True, help="Refuse a model of a newer opset instead of bringing it down.",
    ),
    click.option(
        "--for", "runtime", multiple=True, metavar="RUNTIME==VERSION", shell_complete=runtimes,
        help="Make a model that this release of a runtime takes: onnxruntime==1.14, tensorrt==8.6, opencv==4.8. Repeat it for "
        "several at once. Without ==VERSION: the installed release. A file of your own, ./mychip.toml, is a target too. "
        "See docs/runtimes.md.",
    ),
    click.option(
        "--ir-version", type=int, metavar="N",
        help="Give the result this IR version; what a lower one does not have is written in another form, or refused. "
        "Without --opset the opset stays. Where the header alone has to change, the rest is copied: nothing is simplified or "
        "run.",
    ),
    click.option(
        "--keep-ir", is_flag=True,
        help="Leave the IR version of a model whose opset is lowered as it is; by default it is lowered too.",
    ),
    click.option(
        "--drop-training", is_flag=True,
        help="Remove training information, which IR versions below 7 do not have, for such an --ir-version.",
    ),
    click.option(
        "--dynamic", multiple=True, metavar="INPUT:DIMS",
        help="Make dims of an input dynamic: x:N (its first axis), x:N,3,H,W (all), x:...,H,W (the last), x:0=N,2=H (by axis), "
        "or JSON as torch.onnx's dynamic_axes. A number keeps an axis, ? makes up a name. Repeat it for more inputs; the dims of "
        "outputs follow.",
    ),
    click.option(
        "--dynamic-batch", is_flag=False, flag_value="N", metavar="[=NAME]",
        help="Make the batch axis of every input dynamic, named N or the NAME after =.",
    ),
    click.option(
        "--fix", multiple=True, metavar="NAME=SIZE|INPUT:SIZES",
        help="Set dynamic dims to numbers, by name as in N=1, or by input as in x:1,3,224,224. Repeat it for more.",
    ),
    click.option(
        "--simplify", type=click.Choice(["auto", "require", "no"]), default="auto", show_default=True,
        help="Simplify with onnxsim. If that fails, auto saves the model without it and warns; require makes it an "
        "error.",
    ),
    click.option("--no-simplify", is_flag=True, help="The same as --simplify=no."),
    click.option(
        "--verify", type=click.Choice(["require", "auto", "off"]), default="auto", show_default=True,
        help="Run the original and the result and compare every output; write nothing if they differ. Where that cannot be "
        "done, auto writes the result without simplification and says that it is unverified; require makes it an error.",
    ),
    click.option("--no-verify", is_flag=True, help="The same as --verify=off."),
    click.option(
        "--resize-form", type=click.Choice(["auto", "scales", "sizes"]),
        help="Write each Resize with scales or with sizes, where that computes the same. auto, the default unless --for "
        "sets another, writes sizes where a model with scales would not load.",
    ),
    click.option(
        "--resize-intent", is_flag=True,
        help="Let each Resize compute what the PyTorch model computed, where the exporter could not express it up to "
        "opset 10, and undo errors of onnx's version converter. This changes the model's numbers.",
    ),
    click.option(
        "--keep", multiple=True, type=click.Choice(["tf_half_pixel_for_nn"]),
        help="Keep this value of coordinate_transformation_mode, which ONNX removed in opset 13 and ONNX Runtime still "
        "supports.",
    ),
    click.option(
        "--input-data", type=click.Path(), metavar="PATH",
        help="Verify on these inputs: an .npz file with one array per input name, or a folder of input_*.pb files.",
    ),
    tolerance_options,
    library_option,
    click.option(
        "--prove-in", multiple=True, metavar="RUNTIME", shell_complete=evaluators,
        help="Run the original and the result in this runtime too, and fail if the result does not run there or computes "
        "worse than the original: openvino, opencv, tract, mnn, ncnn, onnxruntime-web, rknn, onnxruntime. @FOLDER says in which "
        "virtual environment it is: onnxruntime==1.9@FOLDER. Repeat it for more. See docs/proving.md.",
    ),
    click.option(
        "--save-as-external-data", is_flag=True,
        help="Write the weights to OUTPUT.data even if the model is smaller than 2 GB.",
    ),
    click.option(
        "--keep-initializers-as-inputs", is_flag=True,
        help="Do not remove initializers from the list of inputs, so that callers can override them.",
    ),
    click.option(
        "--pass", "extra", multiple=True, metavar="NAME",
        help="Run your own pass before simplify: MODULE:FUNCTION, a function of an onnx.ModelProto or of an "
        "onnx_graphsurgeon.Graph.",
    ),
    click.option(
        "--adapters", multiple=True, metavar="MODULE",
        help="Import this module, which registers steps for operators of a custom domain, so that --opset can name it, as in "
        "--opset com.example=2. Installed packages need no such option. See docs/library.md.",
    ),
    click.option(
        "--without", multiple=True, metavar="NAME", shell_complete=pass_names,
        help="Leave this pass out; onnx-migrate passes lists them.",
    ),
)  # fmt: skip


def model_options(command: Any) -> Any:
    """Add the options to a command, in the order that its help shows."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
