"""Converts the options of the command line to arguments of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import rich_click as click
from click.core import ParameterSource

from onnx_migrate.cli.options.config import config_remark
from onnx_migrate.declared import Declared, declared
from onnx_migrate.options import Options

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError

__all__ = ["CodedUsageError", "arguments", "bytes_of", "limits", "one_or_several"]


class CodedUsageError(click.UsageError):
    """A wrong value of an option that the library has a code for, which `onnx-migrate explain` explains."""

    def __init__(self, error: MigrateError) -> None:
        super().__init__(f"{error.with_hint}{config_remark()}")
        self.code = error.code


_DEFAULT_OPSET = "17+"


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `onnx_migrate.migrate`, all but the source. Raises click.UsageError."""
    options = {**options, "runtime": _runtime(options)}
    return {option.name: _argument(option, options) for option in declared(Options) if option.flags}


def _argument(item: Declared, options: dict[str, Any]) -> Any:
    """Return the argument that an option of the command line is; the library's default where none is given."""
    if item.name in _CONVERTED:
        return _CONVERTED[item.name](options)
    value = options[item.parameter]
    if item.negated:
        return not value
    return item.default if value in (None, ()) else value


def bytes_of(gigabytes: float | None) -> int | None:
    """Return --memory-limit in bytes, None if it was not given."""
    return None if gigabytes is None else int(gigabytes * 2**30)


def one_or_several(texts: tuple[str, ...]) -> str | tuple[str, ...] | None:
    """Return the value of an option that may be repeated: its only text, all texts, or None without any."""
    return texts[0] if len(texts) == 1 else texts or None


def limits(texts: tuple[str, ...]) -> float | str | tuple[str, ...] | None:
    """Return the limits of --rtol or --atol; a single one for every output is a number."""
    limit_texts = one_or_several(texts)
    return float(limit_texts) if isinstance(limit_texts, str) and ":" not in limit_texts else limit_texts


def _opset(options: dict[str, Any]) -> str | None:
    """Return the opset to reach; None if the user named none."""
    context = click.get_current_context(silent=True)
    chosen = context is None or context.get_parameter_source("opset") is not ParameterSource.DEFAULT
    if options.get("runtime") and not _on_command_line("opset"):
        return _ml_opset(options)  # an opset of the configuration file is for migrations without a runtime
    if not chosen and options["opset"] == _DEFAULT_OPSET:
        return None
    opset: str = options["opset"]
    return opset


def _runtime(options: dict[str, Any]) -> tuple[str, ...]:
    """Return what --for asks for; nothing if --opset overrides a configured one. Raises click.UsageError."""
    runtime = tuple(options.get("runtime", ()))
    if _on_command_line("opset") and not _on_command_line("runtime") and _ml_opset(options) is None:
        return ()
    if runtime:
        from onnx_migrate.standard.targets import resolve

        _check(resolve, runtime)
    return runtime


def _run_in(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the runtimes to prove the result in. Raises click.UsageError where one is not there."""
    texts = tuple(options["run_in"])
    if texts:
        from onnx_migrate.verify.other_runtimes.places import asked_for

        _check(asked_for, texts)
    return texts


def _to_onnx_ops(options: dict[str, Any]) -> bool | str | tuple[str, ...]:
    """Return the domains to write with ai.onnx: True for all that are known, False for none."""
    stated = options["to_onnx_ops"]
    names = (stated,) if isinstance(stated, (str, bool)) else tuple(stated or ())
    if "all" in names or True in names:
        return True
    chosen = tuple(name for name in names if isinstance(name, str))
    return chosen[0] if len(chosen) == 1 else chosen or False


def _check(understand: Callable[[tuple[str, ...]], object], texts: tuple[str, ...]) -> None:
    """Raise click.UsageError where the library does not understand the values of an option."""
    from onnx_migrate.errors import UsageError

    try:
        understand(texts)
    except UsageError as error:
        raise CodedUsageError(error) from error


def _ml_opset(options: dict[str, Any]) -> str | None:
    """Return the opset asked for if it is that of other domains than ai.onnx only, which --for does not determine."""
    opset: str = options["opset"]
    domains = [part.strip().rpartition("=")[0] for part in opset.split(",")]
    return None if {"", "ai.onnx"}.intersection(domains) else opset


def _simplify(options: dict[str, Any]) -> bool | Literal["require"]:
    chosen = _unless_turned_off("simplify", "no", options)
    if _only_checks(options):
        return False  # a model that only onnxsim would change needs no migration
    return "require" if chosen == "require" else chosen != "no"


def _only_checks(options: dict[str, Any]) -> bool:
    """Return whether --check was given and no target or simplification, on the command line or in the configuration."""
    context = click.get_current_context(silent=True)
    if context is None or not context.params.get("check"):
        return False
    if options.get("runtime") or options.get("ir_version") is not None:
        return False
    chosen = {context.get_parameter_source(name) for name in ("opset", "simplify")}
    return chosen == {ParameterSource.DEFAULT} and options["opset"] == _DEFAULT_OPSET


def _unless_turned_off(name: str, off: str, options: dict[str, Any]) -> str:
    """Return the value of an option, `off` for its flag --no-NAME. Raises click.UsageError where both contradict each other."""
    chosen: str = options[name]
    if options[f"no_{name}"] and chosen == "require" and _on_command_line(name, default=True):
        raise click.UsageError(f"--no-{name} and --{name}=require contradict each other")
    return off if options[f"no_{name}"] else chosen


def _on_command_line(option: str, *, default: bool = False) -> bool:
    """Return whether an option was given on the command line; `default` when no command is running."""
    context = click.get_current_context(silent=True)
    if context is None:
        return default
    return context.get_parameter_source(option) is ParameterSource.COMMANDLINE


_CONVERTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "opset": _opset,
    "simplify": _simplify,
    "verify": lambda options: _unless_turned_off("verify", "off", options),
    "memory_limit": lambda options: bytes_of(options["memory_limit"]),
    "run_in": _run_in,
    "to_onnx_ops": _to_onnx_ops,
    "input_data": lambda options: one_or_several(options["input_data"]),
    "rtol": lambda options: limits(options["rtol"]),
    "atol": lambda options: limits(options["atol"]),
}
"""The options whose values are not those of the library."""
