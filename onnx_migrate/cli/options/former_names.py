"""Names that options had before: command lines and configuration files may still use them; no help lists them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from onnx_migrate.declared import declared
from onnx_migrate.options import Options

__all__ = ["current_flags", "current_key"]

_FORMER = {flag: item.flags[0] for item in declared(Options) for flag in item.former_flags} | {
    "--in": "--run-in",  # of verify
    "--map": "--match-name",
}
"""The current flag of each former one."""


def current_flags(arguments: Iterable[str], flags: Collection[str]) -> list[str]:
    """Return arguments of a command that has these flags, with the current flag in place of each former one."""
    return [_current_flag(argument, flags) for argument in arguments]


def _current_flag(argument: str, flags: Collection[str]) -> str:
    name, equals, value = argument.partition("=")
    current = _FORMER.get(name.replace("_", "-"), "")
    return f"{current}{equals}{value}" if current in flags else argument


def current_key(key: str) -> str:
    """Return the current key of a configuration file for `key`, with dashes."""
    dashed = key.replace("_", "-")
    return _FORMER.get(f"--{dashed}", f"--{dashed}").removeprefix("--")
