"""Options from `onnx-migrate.toml`, or from `[tool.onnx-migrate]` in pyproject.toml, with overrides for some files."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click
from click.core import ParameterSource

from onnx_migrate.cli.options.config_values import line_of, options_of
from onnx_migrate.safe_open import read_at_most

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["config_flags", "config_option", "config_remark", "configured", "find_own_passes"]

Command = TypeVar("Command", bound=Callable[..., Any])

_META = "onnx_migrate.config"
_OF_ALL = {"jobs", "fail_fast", "timeout", "memory_limit"}
"""Parameters of a whole batch, which an override cannot set for some of its models."""


_LARGEST = 1 << 20
"""The most bytes of a config file."""


@dataclass(frozen=True)
class _Config:
    """The options of a config file by parameter name, and overrides of them by file pattern."""

    path: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[tuple[tuple[str, ...], Mapping[str, Any]], ...] = ()

    def names(self, parameter: str) -> list[str]:
        """Return the values of an option that may be given several times, in all parts of the file."""
        every = (self.options, *(options for _, options in self.overrides))
        return [name for options in every for name in options.get(parameter, ())]

    @property
    def code(self) -> dict[str, list[str]]:
        """The modules and libraries in the file whose import or load runs their own code, by key."""
        keys = {"pass": "passes", "adapters": "adapters", "ort-library": "ort_library"}
        return {key: names for key, parameter in keys.items() if (names := self.names(parameter))}

    @property
    def programs(self) -> list[str]:
        """The runtimes in folders that the file names: proving in one runs the Python that lies there."""
        return [name for name in self.names("run_in") if "@" in name]


def _current() -> _Config | None:
    """Return the config file of the command that runs, if it has one."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_META) if context else None


def _load(context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    path = _find() if given is None else None if given == "none" else Path(given)
    if path is not None:
        config = _read(path, context)
        context.default_map = {**(context.default_map or {}), **config.options}
        context.meta[_META] = config
    return given


def _check_trust(context: click.Context, _option: click.Parameter, trusted: bool) -> bool:
    """Refuse a file that was found by search and names passes, steps, libraries or runtimes. Raises click.UsageError."""
    config: _Config | None = context.meta.get(_META)
    # A file that the user named is trusted; one found by search may be another person's.
    if config is None or context.params.get("config") is not None or trusted:
        return trusted
    named = [f"{key} = {', '.join(names)}" for key, names in config.code.items()]
    named += [f"run-in = {', '.join(config.programs)}"] if config.programs else []
    if named:
        raise click.UsageError(
            f"{config.path} was found by search and names code to run ({'; '.join(named)}); if you trust it, add"
            f" --trust-config or --config {config.path}, else --config none"
        )
    return trusted


def config_option(command: Command) -> Command:
    """Add `--config` and `--trust-config` to a command."""
    for option in (
        click.option(
            "--trust-config", is_flag=True, callback=_check_trust, expose_value=False,
            help="Trust a configuration file that was found by search: run the passes, adapters, libraries and runtimes that it "
            "names.",
        ),
        click.option(
            "--config", type=click.Path(), metavar="FILE", is_eager=True, callback=_load,
            help="Read options from this file. The default is onnx-migrate.toml, or [tool.onnx-migrate] in pyproject.toml, in "
            "this folder or the nearest parent that has one. Write none to read no file.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def find_own_passes(options: Mapping[str, Any]) -> None:
    """Let passes of the user's own be imported from the working folder, where a console script does not look."""
    config = _current()
    if options["passes"] or options["adapters"] or (config is not None and config.code):
        with contextlib.suppress(FileNotFoundError):  # somebody has deleted it
            sys.path.append(os.getcwd())


def _below(config: Path, model: str) -> str:
    """Return the path of a model relative to the folder of a config file, with / between its parts."""
    return os.path.relpath(os.path.abspath(model), config.parent.absolute()).replace(os.sep, "/")


def config_remark() -> str:
    """Return what to add to an error in an option, which may have come from a config file; "" without one."""
    config = _current()
    used = config is not None and (config.options or config.overrides)
    return f"; options are read from {config.path} too" if config is not None and used else ""


def config_flags() -> tuple[str, ...]:
    """Return the flags that keep a command which names all its options from reading the config file of this one."""
    return () if _current() is None else ("--config", "none")


def configured(options: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the options of the running command for `model`.

    The command line takes precedence over the overrides of the config file, and a later override over an earlier one.
    """
    context, config = click.get_current_context(silent=True), _current()
    if context is None or config is None or not config.overrides:
        return options
    from onnx_migrate.url import is_url

    # Patterns are relative to the config file.
    name = model if is_url(model) else _below(config.path, model)
    parameters = {parameter.name: parameter for parameter in context.command.params}
    result = dict(options)
    for patterns, override in config.overrides:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            continue
        for key, value in override.items():
            # The command line has the last word.
            if context.get_parameter_source(key) is not ParameterSource.COMMANDLINE:
                # The value is converted as if it came from the command line.
                result[key] = parameters[key].process_value(context, value)
    return result


def _find() -> Path | None:
    """Return the config file of the working folder or of its nearest parent that has one, else None."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # somebody has deleted it
        return None
    for folder in (here, *here.parents):
        own, project = folder / "onnx-migrate.toml", folder / "pyproject.toml"
        if own.is_file():
            return own
        if project.is_file() and b"onnx-migrate" in _content(project) and _table(project) is not None:
            return project
    return None


def _table(path: Path) -> Any:
    """Return the table of options in a file, None for a pyproject.toml without one. Raises click.UsageError."""
    try:
        whole = tomllib.loads(_content(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: not TOML: {error}") from error
    return whole if path.name != "pyproject.toml" else whole.get("tool", {}).get("onnx-migrate")


def _content(path: Path) -> bytes:
    """Return the content of a config file. Raises click.UsageError."""
    try:
        return read_at_most(path, _LARGEST)
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from error


def _read(path: Path, context: click.Context) -> _Config:
    table = _table(path)
    if not isinstance(table, dict):
        raise click.UsageError(f"{path} has no table [tool.onnx-migrate]")
    overrides = table.pop("override", [])
    if not isinstance(overrides, list) or not all(isinstance(entry, dict) for entry in overrides):
        raise click.UsageError(f"{path}: override must be an array of tables, written [[override]]")
    read_overrides = []
    for index, entry in enumerate(overrides):
        # The other keys of an override are options.
        files = entry.pop("files", None)
        patterns = [files] if isinstance(files, str) else files
        if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
            raise click.UsageError(
                f"{path}{line_of(path, 'files', index)}: an override needs a key files, with a pattern or a list of patterns"
            )
        options = options_of(entry, path, context, index)
        # These options concern the whole run, and not one model.
        if set(options) & _OF_ALL:
            raise click.UsageError(
                f"{path}: {', '.join(sorted(set(options) & _OF_ALL))} cannot be set in an override; set it for all files"
            )
        read_overrides.append((tuple(patterns), options))
    return _Config(path, options_of(table, path, context), tuple(read_overrides))
