"""The values of a configuration file, checked as those of the command line; errors name the file and the line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import rich_click as click

from onnx_migrate.cli.options.former_names import current_key
from onnx_migrate.declared import Declared, declared
from onnx_migrate.messages import did_you_mean
from onnx_migrate.options import Options

__all__ = ["line_of", "options_of"]

_DECLARED = {item.parameter: item for item in declared(Options) if item.flags}

_OF_FILES = {*_DECLARED, "save_as_external_data", "jobs", "fail_fast", "scheduler"}
"""Parameters that a config file can set: not those of one call, such as paths, and not what turns off one of these."""

_ONLY_OF_BATCH = ("jobs", "fail-fast")
"""Keys that other commands pass over, so that one file serves them all."""


def options_of(
    table: Mapping[str, Any], path: Path, context: click.Context, override: int | None = None
) -> dict[str, Any]:
    """Return the options of a table by parameter name, as click takes them; `override` counts the overrides.

    Raises click.UsageError for an unknown key, and for a value that the option does not take.
    """
    parameters = {
        name.lstrip("-"): parameter
        for parameter in context.command.params
        # Only options of a migration may stand in a config file.
        if isinstance(parameter, click.Option) and parameter.name in _OF_FILES
        for name in parameter.opts
        if name.startswith("--")
    }
    values = {}
    for key, value in table.items():
        name = current_key(key)
        parameter = parameters.get(name)
        # One config file serves migrate and batch.
        if parameter is None and name in _ONLY_OF_BATCH:
            continue
        try:
            if parameter is None:
                raise click.UsageError(
                    _no_table(key, path) if isinstance(value, dict) else _unknown(name, parameters)
                )
            if parameter.name in values:
                raise click.UsageError(f"{key} and {name} name the same option; keep only {name}")
            values[str(parameter.name)] = _value(name, value, parameter, path, context)
        except click.UsageError as error:
            raise click.UsageError(f"{path}{line_of(path, key, override)}: {error.message}") from error
    return values


def line_of(path: Path, key: str, override: int | None = None) -> str:
    """Return the line in which a key is set, as in ", line 3"; "" if it is not found."""
    table, inside = -1, path.name != "pyproject.toml"
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        head = re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line)
        if head:
            name = head[2].replace('"', "").removeprefix("tool.onnx-migrate").removeprefix(".")
            table += head[1] == "[[" and name == "override"
            inside = name in ("", "override")
        elif (
            inside
            and override == (None if table < 0 else table)
            and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line)
        ):
            return f", line {number}"
    return ""


def _unknown(key: str, known: Mapping[str, Any]) -> str:
    meant = did_you_mean(key, known) or f"known are {', '.join(sorted(known))}"
    return f"unknown option {key}; {meant}"


def _no_table(key: str, path: Path) -> str:
    location = "under [tool.onnx-migrate]" if path.name == "pyproject.toml" else "at the top of the file"
    return f"there is no table [{key}]; options stand {location}"


def _value(key: str, value: Any, parameter: click.Option, path: Path, context: click.Context) -> Any:
    """Return the value of an option as click takes it. Raises click.UsageError."""
    value = _as_on_command_line(key, value, path, _DECLARED.get(str(parameter.name)))
    # A flag has no value other than true and false.
    if parameter.is_flag != isinstance(value, bool) or isinstance(value, dict):
        raise click.UsageError(
            f"{key} must be {'true or false' if parameter.is_flag else 'a text or number'}, not {value!r}"
        )
    if isinstance(value, list) and not parameter.multiple:
        raise click.UsageError(f"{key} takes one value, not a list")
    texts = [str(element) for element in (value if isinstance(value, list) else [value])]
    # click converts a text only when it parses the command line, so a wrong value is found here.
    if value is not None and not parameter.is_flag:
        try:
            for element in texts:
                parameter.type.convert(element, parameter, context)
        except click.BadParameter as error:
            raise click.UsageError(f"{key}: {error.message}") from error
    return texts if parameter.multiple else value


def _as_on_command_line(key: str, value: Any, path: Path, item: Declared | None) -> Any:
    """Return what the command line would be given for a value: words for true and false, paths from the working folder."""
    if isinstance(value, bool):
        if item is not None and item.off:
            # Options with a word for off take that word.
            return item.click["default"] if value else item.off
        if item is not None and "flag_value" in item.click:
            return item.click["flag_value"] if value else None
        return value
    # The command line takes axes by number as JSON.
    if isinstance(value, dict) and key == "dynamic":
        return [json.dumps(value)]
    if isinstance(value, (dict, list)) and item is not None and key not in _RELATIVE:
        return item.words(value, {})
    if key not in _RELATIVE:
        return value
    entries = value if isinstance(value, list) else [value]
    # Paths are relative to the config file.
    return [_RELATIVE[key](item, path.parent) if isinstance(item, str) else item for item in entries]


def _runtime_at(name: str, folder: Path) -> str:
    """Return a value of `run-in`, with the folder of the runtime."""
    runtime, at_sign, folder_text = name.partition("@")
    return f"{runtime}@{folder / Path(folder_text).expanduser()}" if at_sign else name


def _inputs_at(text: str, folder: Path) -> str:
    """Return a value of `input-data`: a path, NAME=PATH, or a function of a module or file."""
    name, equals, path_text = text.rpartition("=")
    is_module = ":" in path_text and ".py" not in path_text and not (folder / path_text).exists()
    # A function of a module has a colon before its name.
    return text if is_module else f"{name}{equals}{folder / Path(path_text).expanduser()}"


_RELATIVE: Mapping[str, Callable[[str, Path], str]] = {
    "run-in": _runtime_at,
    "input-data": _inputs_at,
    "for": lambda name, folder: str(folder / name) if ".toml" in name else name,
    "ort-library": lambda name, folder: str(folder / Path(name).expanduser()),
}
"""Options that may be given several times and name what is relative to the folder of the config file."""
