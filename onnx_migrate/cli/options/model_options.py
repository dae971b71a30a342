"""The options that say what happens to a model, shared by the commands for one model and for many."""

from __future__ import annotations

from typing import Any

import rich_click as click

from onnx_migrate.cli.options.comparison_options import tolerance_options
from onnx_migrate.cli.options.completion import pass_names, runtimes

__all__ = ["model_options"]


class _Joined(click.Option):
    """An option to be given once or more, in a config file also as one text or number; its values become one text."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the values with commas between them."""
        return ",".join(super().process_value(ctx, (value,) if isinstance(value, (str, int)) else value))


_OPTIONS = (
    click.option(
        "--opset", "--target-opset", cls=_Joined, multiple=True, default=("17+",), show_default=True, metavar="N",
        help="The ai.onnx opset to reach: a number, or latest; 17+ is 17, or the model's own where that is newer. "
        "ai.onnx.ml stays as it is unless ai.onnx.ml=N is given, beside that or alone.",
    ),
    click.option(
        "--for", "runtime", metavar="RUNTIME==VERSION", shell_complete=runtimes,
        help="Reach the newest opset that a release runs, and write each Resize in a form it knows: onnxruntime==1.14, "
        "tensorrt==8.6, openvino==2023.1, opencv==4.8. A name alone is the installed one. See docs/runtimes.md.",
    ),
    click.option(
        "--dynamic", multiple=True, metavar="INPUT:DIMS",
        help="Make dims dynamic, as in x:N,3,H,W: a number keeps its axis, a name makes it dynamic, ? makes a "
        "name. Repeat it for more inputs; outputs follow by themselves.",
    ),
    click.option(
        "--dynamic-batch", is_flag=False, flag_value="N", metavar="[=NAME]",
        help="Make the batch of every input dynamic, under the name N or, after =, another.",
    ),
    click.option(
        "--fix", multiple=True, metavar="NAME=SIZE|INPUT:SIZES",
        help="Make open dims numbers, as in N=1 or x:1,3,224,224. Repeat it for more.",
    ),
    click.option(
        "--simplify", type=click.Choice(["auto", "require", "no"]), default="auto", show_default=True,
        help="Simplify with onnxsim. auto keeps the unsimplified model when that fails and says so; "
        "require fails.",
    ),
    click.option("--no-simplify", is_flag=True, help="The same as --simplify=no."),
    click.option(
        "--verify/--no-verify", default=True, show_default=True,
        help="Run the original and the result and compare every output; write nothing if they differ.",
    ),
    click.option(
        "--resize-form", type=click.Choice(["auto", "scales", "sizes"]),
        help="Write each Resize by scales or by sizes wherever that is exact; auto, the default unless --for says "
        "otherwise, writes sizes where scales do not load.",
    ),
    click.option(
        "--resize-intent", is_flag=True,
        help="Let each Resize compute what PyTorch meant where its exporter up to opset 10 could not say it, and mend "
        "what onnx's version converter damaged. The numbers change.",
    ),
    click.option(
        "--keep", multiple=True, type=click.Choice(["tf_half_pixel_for_nn"]),
        help="Leave a word that the standard has dropped; ONNX Runtime still knows it.",
    ),
    click.option(
        "--input-data", type=click.Path(), metavar="PATH",
        help="Verify on these inputs: an .npz by input name, or a folder of input_*.pb.",
    ),
    tolerance_options,
    click.option(
        "--save-as-external-data", is_flag=True, help="Write the weights to OUTPUT.data, below 2 GB too."
    ),
    click.option("--keep-initializers-as-inputs", is_flag=True, help="Leave initializers listed as inputs."),
    click.option(
        "--pass", "extra", multiple=True, metavar="NAME",
        help="Run a pass of your own before simplify: MODULE:FUNCTION.",
    ),
    click.option(
        "--without", multiple=True, metavar="NAME", shell_complete=pass_names,
        help="Leave a pass out; onnx-migrate passes lists them.",
    ),
)  # fmt: skip


def model_options(command: Any) -> Any:
    """Add the options to a command, in the order that its help shows."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
