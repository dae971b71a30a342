"""The groups in which `--help` shows the options of a command, each with an example."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import EllipsisType
from typing import Any

import rich_click as click

from onnx_migrate.cached import cached_property
from onnx_migrate.cli.options.former_names import current_flags
from onnx_migrate.cli.options.short_help import short_help_option
from onnx_migrate.core_options import DIMS, OPERATORS, PARTS, REACH, REWRITING, RUNNING, VERIFICATION
from onnx_migrate.declared import declared
from onnx_migrate.docstrings import docstring
from onnx_migrate.options import Options

__all__ = [
    "Command", "OptionGroup", "arranged", "format_help_text", "groups_of", "in_panels", "keep_help", "long_help",
]  # fmt: skip

_STYLE = click.RichHelpConfiguration(
    theme="default-slim",
    options_table_column_types=["opt_all_metavar", "help"],
    options_table_help_sections=["help", "default"],
    append_metavars_help_string="{}",
    panel_inline_help_in_title=False,
    style_options_panel_help_style="",
)
"""Without frames, and with the value beside the option, so that 80 columns leave room for the help."""


@dataclass(frozen=True)
class OptionGroup:
    """Options that belong together, in their order: their names, with ... for those of a migration that declare this panel.

    `examples` has what follows `onnx-migrate`, by command.
    """

    title: str
    options: tuple[str | EllipsisType, ...]
    examples: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    """The only command that has the group; "" for all."""

    @cached_property
    def names(self) -> list[str]:
        """The long names of the options."""
        of_panel = [
            flag
            for option in declared(Options)
            if option.panel == self.title
            for flag in (option.flags[0], *([f"--no-{option.name}"] if option.off else []))
        ]
        return arranged(self.options, of_panel)


def arranged(order: Iterable[str | EllipsisType], names: Iterable[str]) -> list[str]:
    """Return names in an order, in which ... stands for those that it does not name."""
    listed = list(order)
    others = [name for name in names if name not in listed]
    return [name for entry in listed for name in (others if entry is ... else [entry])]


_GROUPS = (
    OptionGroup(
        "Failure",
        ("--check", "--check-exit", "--run-in", "--message", "--against", "--any-failure"),
        {"reduce": "reduce model.onnx --check 'python check.py {}'"},
        command="reduce",
    ),
    OptionGroup(
        REACH,
        (...,),
        {
            "migrate": "model.onnx out.onnx --for tensorrt==8.6",
            "batch": "batch models --out-dir out --opset 17",
            "inspect": "inspect model.onnx --for all",
        },
    ),
    OptionGroup(
        DIMS,
        (...,),
        {
            "migrate": "model.onnx out.onnx --dynamic x:N,3,H,W",
            "batch": "batch models --out-dir out --dynamic-batch",
        },
    ),
    OptionGroup(
        "Output",
        (
            "--output", "--out-dir", "--in-place", "--save-as-external-data", "--check", "--dry-run", "--diff", "--depfile",
            "--stat", "--strip-weights", "--html", "--open", "--format", "--junit", "--annotations", "--allow-unverified",
            "--json-lines", "--json", "--verbose", "--quiet",
        ),
        {
            "migrate": "model.onnx out.onnx --html report.html",
            "batch": "batch models --out-dir out --json-lines report.jsonl",
            "inspect": "inspect model.onnx --json",
            "explain": "explain Resize --json",
            "verify": "verify a.onnx b.onnx --json",
            "diff": "diff a.onnx b.onnx --stat",
            "reduce": "reduce model.onnx small.onnx --run-in openvino --strip-weights",
        },
    ),
    OptionGroup(
        VERIFICATION,
        ("--exact", "--cast", "--match-name", "--all-values", ..., "--run-in", "--ort-library"),
        {
            "migrate": "model.onnx out.onnx --verify=require --input-data images.npz",
            "batch": "batch models --out-dir out --run-in openvino",
            "verify": "verify a.onnx b.onnx --input-data images.npz --rtol 1e-3",
        },
    ),
    OptionGroup(
        OPERATORS,
        (...,),
        {
            "migrate": "model.onnx out.onnx --to-onnx-ops --opset keep",
            "batch": "batch models --out-dir out --resize-form=sizes",
        },
    ),
    OptionGroup(PARTS, (...,), {"migrate": "model.onnx out.onnx --extract-outputs scores,boxes"}),
    OptionGroup(
        REWRITING,
        (...,),
        {
            "migrate": "model.onnx out.onnx --no-simplify --skip-pass cleanup",
            "batch": "batch models --out-dir out --pass mypasses:quantise",
        },
    ),
    OptionGroup(
        RUNNING,
        (
            "--jobs", "--check-timeout", "--time-limit", "--resume", "--fail-fast", ..., "--scheduler", "--config",
            "--trust-config", "--version", "-h", "--help",
        ),
        {
            "migrate": "model.onnx out.onnx --timeout 60 --memory-limit 8",
            "inspect": "inspect model.onnx --for all --timeout 60",
            "batch": "batch models --out-dir out --resume --jobs 4",
        },
    ),
)  # fmt: skip


def format_help_text(command: click.Command, _context: click.Context, formatter: Any) -> None:
    """Write the help text paragraph by paragraph, with an empty line between, and after \\b line by line."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        marked = paragraph.startswith("\b\n")
        text = paragraph[2:] if marked else textwrap.fill(" ".join(paragraph.split()), formatter.width)
        formatter.write(f"{text}\n")


def keep_help(command: click.Command) -> None:
    """Give a command its help, where Python drops the docstring of its function, as with -OO."""
    if command.help is None and command.callback is not None:
        command.help = docstring(command.callback)


def long_help(option: click.Option | None) -> click.Option | None:
    """Return the option `--help` with what it does beside `-h`."""
    if option is not None:
        option.help = "Show all options, and exit."
    return option


class Command(click.RichCommand):
    """A command of onnx-migrate."""

    format_help_text = format_help_text  # type: ignore[assignment]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        keep_help(self)
        self.params.append(short_help_option())

    def get_help_option(self, ctx: Any) -> click.Option | None:
        """Return the option `--help`, which shows all options."""
        return long_help(super().get_help_option(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises click.UsageError, in words that say what may be given."""
        args = self._with_current_flags(ctx, args)
        self._check_values(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            original_message = message = error.format_message()
            # click's texts say little to somebody who does not know click.
            for words, meant in _WORDS.items():
                message = message.replace(words, meant)
            if message.startswith("Got unexpected extra argument"):
                message = f"{message.rstrip('.')}: {_too_many(ctx)}"
            if isinstance(error, click.NoSuchOption) and error.option_name in _INSTEAD:
                message = f"No such option '{error.option_name}': {_INSTEAD[error.option_name]}"
            if message == original_message:
                raise
            raise click.UsageError(message, ctx) from error

    def _with_current_flags(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the arguments with the current flag in place of each former one."""
        flags = {flag for option in self.get_params(ctx) for flag in option.opts}
        options = self.before_dashes(args)
        return [*current_flags(options, flags), *args[len(options) :]]

    @staticmethod
    def before_dashes(args: list[str]) -> list[str]:
        """Return the arguments before `--`; the ones after it are no options."""
        return args[: args.index("--")] if "--" in args else args

    def _check_values(self, ctx: click.Context, args: list[str]) -> None:
        """Raise click.UsageError for an option in place of another one's value: click would write a file of that name."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        named = {name for option in options for name in (*option.opts, *option.secondary_opts)}
        valued = {
            name
            for option in options
            # --int32 may have a value, and need not
            if not (option.is_flag or isinstance(option.flag_value, str))
            for name in option.opts
        }
        for argument, following in pairwise(self.before_dashes(args)):
            other = following.partition("=")[0].replace("_", "-")
            if argument.replace("_", "-") in valued and other in named and not ctx.resilient_parsing:
                raise click.UsageError(
                    f"Option '{argument}' requires a value, and {other} is an option (write {argument}={following} to mean it)",
                    ctx,
                )


_WORDS = {"a valid float range": "a number", "a valid integer range": "a whole number"}
"""Click's words for the values of options, and plain ones."""


_FIX = "--fix-shape INPUT:SIZES sets a shape (--fix-shape x:1,3,224,224), and --fix-shape NAME=SIZE sets one dimension"
_BATCH = "did you mean --dynamic-batch? It accepts any batch; --fix-shape x:1,3,224,224 sets a fixed one"
_DYNAMIC = "--dynamic INPUT:DIMS makes dimensions dynamic (--dynamic x:N,3,H,W), and --dynamic-batch the first of each input"
_RENAME = "onnx-migrate renames nothing; a function of your own can, with --pass MODULE:FUNCTION"
_EXTERNAL = "--save-as-external-data writes the weights to a file beside the model; over 2 GB that happens automatically"

_INSTEAD = {
    **dict.fromkeys(
        ("--input-shape", "--input-shapes", "--overwrite-input-shape", "--override-input-shapes", "--override-input-shape",
         "--shapes", "--input-dim", "--input-size", "--input-size-list", "--dim-param", "--dim-value"), _FIX),
    **dict.fromkeys(("--batch", "--batch-size", "--batchsize", "--any-batch", "--dynamic-batch-size"), _BATCH),
    **dict.fromkeys(("--dynamic-axes", "--dynamic-shapes", "--dynamic-dims", "--dynamic-input-shape"), _DYNAMIC),
    **dict.fromkeys(
        ("--rename", "--rename-inputs", "--rename-outputs"), _RENAME),
    **dict.fromkeys(
        ("--fp16", "--half", "--float16", "--convert-to-fp16", "--compress-to-fp16", "--dtype", "--bf16", "--data-type"),
        "--precision fp16, bf16 or fp32 converts weights and computations"),
    "--keep-io-types": "inputs and outputs keep their types; --precision-io converts them too",
    **dict.fromkeys(("--int8", "--quantize"),
                    "onnx-migrate quantises nothing; --quantized-form qdq or float rewrites quantised operators"),
    **dict.fromkeys(("--target", "--backend", "--runtime", "--platform", "--deploy-backend"), "write --for RUNTIME==VERSION"),
    **dict.fromkeys(("--opset-version", "--target-opset-version", "--onnx-opset", "--opversion"), "write --opset N"),
    **dict.fromkeys(("--external-data", "--save-external-data", "--large-model", "--use-external-data-format"), _EXTERNAL),
    **dict.fromkeys(
        ("--skip-optimization", "--skip-optimizations", "--no-optimize", "--no-optimization", "--no-constant-folding",
         "--skip-constant-folding", "--skip-shape-inference", "--skip-fuse-bn", "--no-large-tensor"),
        "--no-simplify turns the simplifier off"),
    **dict.fromkeys(("--fold-constants", "--constant-folding", "--toposort", "--cleanup", "--infer-shapes"),
                    "this happens automatically; onnx-migrate passes lists every pass"),
    **dict.fromkeys(("--op-block-list", "--node-block-list"), "--keep-fp32 OPERATOR|NODE keeps operators or nodes in float32"),
    **dict.fromkeys(("--test-input-shape", "--input-data-path", "--load-inputs"),
                    "--input-data PATH gives the inputs of the comparison"),
    **dict.fromkeys(("--skip-verify", "--no-check", "--skip-check"), "--no-verify turns the comparison off"),
    **dict.fromkeys(("--check-n", "--model-check"),
                    "onnx-migrate always runs and compares the result; --input-data PATH gives the inputs"),
    **dict.fromkeys(("--ir", "--target-ir"), "write --ir-version N"),
    **dict.fromkeys(("--input", "--model", "-i"), "MODEL needs no option: onnx-migrate model.onnx out.onnx"),
    **dict.fromkeys(("--overwrite", "--inplace", "-f", "--force"),
                    "--in-place replaces MODEL; an existing OUTPUT is always replaced"),
    **dict.fromkeys(("--disable", "--skip-fusion-patterns"), "--skip-pass NAME skips a pass"),
    **dict.fromkeys(("--debug", "--log-level"), "--verbose prints the long report"),
}  # fmt: skip
"""The answer to an option of another tool: its name here, or an option that does the same."""


def _too_many(ctx: click.Context) -> str:
    """Return what a command takes, and how to give it more."""
    argument_names = " and ".join(
        parameter.human_readable_name  # make_metavar takes other arguments before click 8.2
        for parameter in ctx.command.params
        if isinstance(parameter, click.Argument)
    )
    if ctx.command.name == "migrate":
        return (
            f"it takes {argument_names}. For many models use onnx-migrate batch. Options begin with --, "
            "and a release follows ==: --for tensorrt==8.6"
        )
    return f"it takes {argument_names or 'options only'}"


def groups_of(command: click.Command) -> Iterator[tuple[OptionGroup, list[click.Option]]]:
    """Return each group that has an option of the command, with these options in the group's order."""
    options = {
        name: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    }
    for group in _GROUPS:
        if group.command not in ("", command.name):
            continue
        # An option belongs to the first group that names it.
        options_of_group = [options.pop(name) for name in group.names if name in options]
        if options_of_group:
            yield group, options_of_group


def in_panels(command: Any) -> Any:
    """Show the options of a command in groups, in its help."""
    command.context_settings["rich_help_config"] = _STYLE
    for group, options in groups_of(command):
        example = group.examples.get(str(command.name))
        names = [max(option.opts, key=len) for option in options]
        names += ["--help"] if "--help" in group.options else []
        command.add_panel(
            click.RichOptionPanel(
                group.title, options=names, help=f"onnx-migrate {example}" if example else None
            )
        )
    return command
