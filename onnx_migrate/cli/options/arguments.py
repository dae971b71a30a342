"""Converts the options of the command line to arguments of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import rich_click as click
from click.core import ParameterSource

from onnx_migrate.cli.options.config import config_remark
from onnx_migrate.cli.options.limit_options import bytes_of

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError

__all__ = ["CodedUsageError", "arguments", "saving_flags"]


class CodedUsageError(click.UsageError):
    """A wrong value of an option that the library has a code for, which `onnx-migrate explain` explains."""

    def __init__(self, error: MigrateError) -> None:
        super().__init__(f"{error}{config_remark()}")
        self.code = error.code


_DEFAULT_OPSET = "17+"


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `onnx_migrate.migrate`, all but the source. Raises click.UsageError."""
    runtime = _runtime(options)
    return {
        "opset": _ml_opset(options) if runtime else _opset(options),
        "runtime": runtime or None,
        "lower": not options["no_lower"],
        "dynamic": options["dynamic"] or None,
        "dynamic_batch": options["dynamic_batch"] or False,
        "fix": options["fix"] or None,
        "simplify": _simplify(options),
        "verify": _verify(options),
        "resize_form": options["resize_form"],
        "resize_intent": options["resize_intent"],
        "keep": options["keep"],
        "keep_initializers_as_inputs": options["keep_initializers_as_inputs"],
        "ir_version": options["ir_version"],
        "keep_ir": options["keep_ir"],
        "drop_training": options["drop_training"],
        "passes": options["extra"],
        "adapters": options["adapters"],
        "without": options["without"],
        "input_data": options["input_data"],
        "rtol": options["rtol"],
        "atol": options["atol"],
        "seed": options["seed"],
        "timeout": options["timeout"],
        "memory_limit": bytes_of(options["memory_limit"]),
        "ort_library": options["ort_library"],
        "prove_in": _prove_in(options),
    }


def saving_flags(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the flags that say how the result of one model is saved."""
    flags = ("save_as_external_data", "in_place", "check", "dry_run")
    return tuple(f"--{name.replace('_', '-')}" for name in flags if options[name])


def _opset(options: dict[str, Any]) -> str | None:
    """Return the opset to reach; None where only the IR version was asked for, so that the opset stays."""
    context = click.get_current_context(silent=True)
    chosen = context is None or context.get_parameter_source("opset") is not ParameterSource.DEFAULT
    if options["ir_version"] is not None and not chosen and options["opset"] == _DEFAULT_OPSET:
        return None
    opset: str = options["opset"]
    return opset


def _runtime(options: dict[str, Any]) -> tuple[str, ...]:
    """Return what --for asks for; nothing if --opset overrides a configured one. Raises click.UsageError."""
    runtime = tuple(options["runtime"])
    if runtime and _on_command_line("opset") and _ml_opset(options) is None:
        if _on_command_line("runtime"):
            raise click.UsageError(
                "--for determines the opset; leave --opset out, or give that of ai.onnx.ml or of a domain of your own only"
            )
        return ()
    if runtime:
        from onnx_migrate.errors import UsageError
        from onnx_migrate.spec.targets import resolve

        try:
            resolve(runtime)
        except UsageError as error:
            raise CodedUsageError(error) from error
    return runtime


def _prove_in(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the runtimes to prove the result in. Raises click.UsageError where one is not there."""
    texts = tuple(options["prove_in"])
    if texts:
        from onnx_migrate.errors import UsageError
        from onnx_migrate.verify.elsewhere import asked_for

        try:
            asked_for(texts)
        except UsageError as error:
            raise CodedUsageError(error) from error
    return texts


def _ml_opset(options: dict[str, Any]) -> str | None:
    """Return the opset asked for if it is that of other domains than ai.onnx only, which --for does not determine."""
    opset: str = options["opset"]
    domains = [part.strip().rpartition("=")[0] for part in opset.split(",")]
    return None if {"", "ai.onnx"}.intersection(domains) else opset


def _simplify(options: dict[str, Any]) -> bool | Literal["require"]:
    if (
        options["no_simplify"]
        and options["simplify"] == "require"
        and _on_command_line("simplify", default=True)
    ):
        raise click.UsageError("--no-simplify and --simplify=require contradict each other")
    if options["no_simplify"] or options["simplify"] == "no":
        return False
    return "require" if options["simplify"] == "require" else True


def _verify(options: dict[str, Any]) -> Literal["require", "auto", "off"]:
    if options["no_verify"] and options["verify"] == "require" and _on_command_line("verify", default=True):
        raise click.UsageError("--no-verify and --verify=require contradict each other")
    chosen: Literal["require", "auto", "off"] = "off" if options["no_verify"] else options["verify"]
    return chosen


def _on_command_line(option: str, *, default: bool = False) -> bool:
    """Return whether an option was given on the command line; `default` when no command is running."""
    context = click.get_current_context(silent=True)
    if context is None:
        return default
    return context.get_parameter_source(option) is ParameterSource.COMMANDLINE
