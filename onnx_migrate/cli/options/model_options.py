"""The options of a migration on the command line, made from their declarations, and the completions in shells."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import rich_click as click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from onnx_migrate.cli.options.panels import Command, arranged
from onnx_migrate.core_options import RUNNING, share_of
from onnx_migrate.declared import declared
from onnx_migrate.errors import UsageError
from onnx_migrate.options import Options

__all__ = ["DynamicBatchCommand", "codes", "comparison_options", "model_option", "model_options"]

F = TypeVar("F", bound=Callable[..., Any])


class _Opset(StringParamType):
    """An opset, or a domain and its opset, or several of these with commas between."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text. Raises click.BadParameter."""
        text = str(value)
        for part in text.split(","):
            number = part.strip().rpartition("=")[2].removeprefix("-")
            if number not in ("latest", "keep") and not number.removesuffix("+").isdecimal():
                self.fail(
                    f"{part.strip()!r} is not an opset (give a number, 17+ for 17 or newer, keep for the model's own, or "
                    "latest)",
                    param,
                    ctx,
                )
        return text


class _Tolerance(StringParamType):
    """A number that is 0 or more, and finite; or such a number for one output, as OUTPUT:NUMBER."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text. Raises click.BadParameter."""
        from onnx_migrate.verify.tolerances import limit_of

        text = str(value)
        try:
            limit_of("tolerance", text.rpartition(":")[2])
        except UsageError:
            self.fail(
                f"{value!r} is not a finite number of at least 0, or OUTPUT:NUMBER as in logits:1e-3.",
                param,
                ctx,
            )
        return text


class _Share(StringParamType):
    """A share above 0 and below 1, as 1% or 0.01."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text. Raises click.BadParameter."""
        try:
            share_of(value)
        except UsageError as error:
            self.fail(f"{error}.", param, ctx)
        return str(value)


class _Joined(click.Option):
    """An option that may be given several times, in a config file also as one text or number; its value is one text."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the values joined by commas."""
        return ",".join(super().process_value(ctx, (value,) if isinstance(value, (str, int)) else value))


def codes(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return what `onnx-migrate explain` knows by name: codes, steps, operators, runtimes and error texts."""
    from onnx_migrate.explanation import names

    return [name for name in names() if name.lower().startswith(typed.lower())]


def _evaluators(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the runtimes of `--run-in`."""
    from onnx_migrate.verify.evaluators.driver_facts import drivers

    return [name for name in drivers() if name.startswith(typed)]


def _pass_names(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the passes that `--skip-pass` can leave out."""
    from onnx_migrate.pipelines import pipeline_of

    return [
        model_pass.name
        for model_pass in pipeline_of(Options.of_installed(dynamic={}))
        if model_pass.name.startswith(typed)
    ]


def _runtimes(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[str] | list[CompletionItem]:
    """Return the runtimes of `--for`, their other names if those fit, and after == the releases at which their tables change."""
    from onnx_migrate.standard.targets import known_names, shipped
    from onnx_migrate.standard.targets.read import spellings

    # Only a path begins in this way, and the shell completes it.
    if typed.startswith((".", "/")):
        return [CompletionItem(typed, type="file")]
    name, equals_sign, _ = typed.partition("==")
    if not equals_sign:
        matching_names = [runtime_name for runtime_name in known_names() if runtime_name.startswith(typed)]
        # Other spellings come only if no name fits, so that a list stays short.
        return matching_names or sorted(
            runtime_name for runtime_name in spellings().values() if runtime_name.startswith(typed)
        )
    if name not in known_names():
        return []
    releases = [f"{name}=={row.since}" for row in shipped(name).releases if row.since]
    return [release for release in releases if release.startswith(typed)]


_NAMED: dict[str, dict[str, Any]] = {
    "cls": {"joined": _Joined},
    "type": {
        "opset": _Opset(),
        "path": click.Path(),
        "positive": click.FloatRange(min=0, min_open=True),
        "count": click.IntRange(min=1),
        "tolerance": _Tolerance(),
        "share": _Share(),
    },
    "shell_complete": {"evaluators": _evaluators, "pass_names": _pass_names, "runtimes": _runtimes},
}
"""Functions that declarations name, by the argument of click.option."""

_OFF = {"simplify": "Do not simplify", "verify": "Do not run or compare the models"}
"""The help of the flag --no-NAME of an option."""

_DECLARED = {item.name: item for item in declared(Options) if item.flags}


def model_option(name: str, *names: str, **changes: Any) -> Callable[[F], F]:
    """Return the decorator that gives an option to a command; `names` and `changes` are what is not as it is declared.

    It changes nothing if the feature of the option is not installed.
    """
    option = _DECLARED.get(name)
    if option is None:
        return lambda command: command
    settings = {**option.click, **changes}
    # The declaration names objects of click by a word, because the core does not import click.
    for argument, values_by_name in _NAMED.items():
        if isinstance(settings.get(argument), str):
            settings[argument] = values_by_name[settings[argument]]
    if isinstance(settings.get("type"), tuple):
        settings["type"] = click.Choice(settings["type"])

    def add(command: F) -> F:
        if option.off:
            same = f"{_OFF[name]} (the same as --{name}={option.off})."
            command = click.option(f"--no-{name}", is_flag=True, help=same)(command)
        return click.option(*(names or option.flags), option.parameter, **settings)(command)

    return add


_save_as_external_data = click.option(
    "--save-as-external-data", is_flag=True,
    help="Write the weights to OUTPUT.data even if the model is smaller than 2 GB.",
)  # fmt: skip

_COMPARISON = ("mean", "std", "layout", "rtol", "atol", "seed")
"""The options of images, tolerances and random inputs, in the order of --help and of completions."""

_ORDER = (
    "opset", "lower", "runtime", "ir_version", "keep_ir", "drop_training", ..., "input_data",
    "max_inputs", *_COMPARISON,
    "ort_library", "run_in", "save_as_external_data", "keep_initializers_as_inputs", "passes", "adapters", "skip_pass",
)  # fmt: skip
"""The order in which shells complete the options; ... stands for all others."""


def model_options(command: F) -> F:
    """Give a command all options of a migration, but those that say how it runs."""
    named = [name for name, option in _DECLARED.items() if option.panel != RUNNING]
    for name in reversed(arranged(_ORDER, named)):
        add = _save_as_external_data if name == "save_as_external_data" else model_option(name)
        command = add(command)
    return command


def comparison_options(command: F) -> F:
    """Give a command the options of images, tolerances and random inputs, for the models that it runs and compares."""
    for name in reversed(_COMPARISON):
        command = model_option(name)(command)
    return command


_BATCH, _TO_ONNX = "--dynamic-batch", "--to-onnx-ops"

_WITHOUT_VALUE = {_BATCH: "N", _TO_ONNX: "all"}
"""Options that may have a value behind `=`, with the one that they stand for without."""


class DynamicBatchCommand(Command):
    """A command that takes the value of such an option only after `=`; click would take the next argument, a model.

    `--to-onnx-ops` also takes the next argument if that is a domain it knows, and no file.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the default value to the option. Raises click.UsageError if the next argument looks like a name, and is no file."""
        args = self._with_current_flags(ctx, args)
        options = self.before_dashes(args)
        rest = args[len(options) :]
        options = _with_domains(options)
        for argument, following in pairwise(options):
            if (
                # click would take the next argument as the value.
                _long(argument) == _BATCH
                and following.isidentifier()
                and not os.path.exists(following)
                and not ctx.resilient_parsing
            ):
                raise click.UsageError(
                    f"{_BATCH} {following} is ambiguous; write {_BATCH}={following} for a name, ./{following} for a path",
                    ctx,
                )
        with_values = {name: f"{name}={value}" for name, value in _WITHOUT_VALUE.items()}
        named = [with_values.get(_long(argument), argument) for argument in options]
        return super().parse_args(ctx, named + rest)


def _with_domains(options: list[str]) -> list[str]:
    """Join `--to-onnx-ops` with the domain behind it."""
    if _TO_ONNX not in options[:-1]:
        return options
    from onnx_migrate.engine.steps.registry import foreign_domains

    joined: list[str] = []
    for argument in options:
        # click cannot tell an optional value from the next argument.
        after = bool(joined) and joined[-1] == _TO_ONNX
        if after and argument in foreign_domains() and not os.path.exists(argument):
            joined[-1] = f"{_TO_ONNX}={argument}"
        else:
            joined.append(argument)
    return joined


def _long(argument: str) -> str:
    return argument.replace("_", "-")
