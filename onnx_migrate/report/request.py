"""The options of a migration, in a form that can repeat it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from onnx_migrate._version import __version__
from onnx_migrate.declared import declared
from onnx_migrate.model.interface import Port
from onnx_migrate.model.model import Model
from onnx_migrate.options import Options
from onnx_migrate.rewrite.change_log import Note
from onnx_migrate.rewrite.operator_counts import nodes_by_operator

if TYPE_CHECKING:
    from onnx_migrate.standard.targets import OperatorKnowledge, Target, Targets

__all__ = ["Request", "settled_notes", "tool_versions", "with_caps"]

_WITHOUT_OUTPUT = frozenset(("--in-place", "--check", "--dry-run"))
"""Flags of the command line that need no OUTPUT."""

_DECLARED = {item.name: item for item in declared(Options) if item.reported}


@dataclass(frozen=True)
class Request:
    """The options that differ from their defaults, and the targets; for a saved result also its path and the flags of saving."""

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The options by their names in `onnx_migrate.migrate`, as JSON's types."""
    targets: Targets | None = None
    repeatable: bool = True
    """Whether the options can be written as text: a pass that is an object of the caller's, or an array, cannot."""
    output: str = ""
    saving: tuple[str, ...] = ()
    """Flags of the command line that say how the result was saved."""

    @classmethod
    def of(cls, asked: Options) -> Request:
        """Return the request for these options of a migration. Raises UsageError for an unknown runtime."""
        stated = {entry.name: getattr(asked, entry.name) for entry in _DECLARED.values()}
        # The options accept the old spelling with booleans.
        if isinstance(asked.verify, bool):
            stated["verify"] = "auto" if asked.verify else "off"
        # This is the default, which some requests replace.
        if asked.opset == "17+" and not replace(asked, opset=None).keeps_opset:
            stated["opset"] = None
        if asked.targets is not None:
            # The command line takes texts, and no objects.
            stated["runtime"] = asked.targets.requests
        options = {
            name: _plain(value)
            for name, value in stated.items()
            if not _same(value, _DECLARED[name].default) and not _empty(value)
        }
        repeatable = asked.pipeline is None and all(_is_json(stated[name]) for name in options)
        return cls(options, asked.targets, repeatable)

    @property
    def call(self) -> str:
        """The library call for this request."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"migrate(…{', ' if options else ''}{options})"

    def operators_known(self, model: Model) -> tuple[OperatorKnowledge, ...]:
        """Return for each target how we know that it supports the operators of a result."""
        if not self.targets:
            return ()
        from onnx_migrate.facts.node_form import node_forms
        from onnx_migrate.standard.targets import operator_knowledge

        node_counts = nodes_by_operator(model.proto)
        # Forms take long, and few targets need them.
        forms = cache(lambda: tuple(node_forms(model)))
        return tuple(operator_knowledge(target, node_counts, forms) for target in self.targets)

    def command(self, model: str, ports: Iterable[Port] = ()) -> str | None:
        """Return the command line that does the same to `model` again; None if there is none.

        `ports` are the model's inputs and outputs, whose ranks the command line needs for axes given by number. The command
        line names the release of an installed runtime, so that it does the same elsewhere.
        """
        if not self.repeatable:
            return None
        words = ["onnx-migrate", _name(model)]
        # Some ways of saving need no OUTPUT.
        if self.output or not _WITHOUT_OUTPUT.intersection(self.saving):
            words.append(self.output or "OUTPUT")
        shapes = {port.name: port.shape for port in ports}
        for name, value in self.options.items():
            option_words = _words(name, value, shapes, self.targets)
            if option_words is None:
                return None
            words += option_words
        return shlex.join([*words, *self.saving])


def settled_notes(notes: Iterable[Note], known: Iterable[OperatorKnowledge]) -> Iterator[Note]:
    """Yield notes, and recompute those on unknown operators for the final model: the simplifier runs after that pass."""
    warning_by_runtime = {knowledge.runtime: knowledge.warning for knowledge in known if knowledge.unknown}
    for note in notes:
        runtime = note.message.partition(":")[0]
        if note.code != "operators-not-known":
            yield note
        elif runtime in warning_by_runtime:
            yield replace(note, message=warning_by_runtime[runtime])


def with_caps(target: Target, name: str) -> str:
    """Return the name of a target, and the newest opset and IR version that it supports."""
    takes = [f"opsets up to {target.opset}"] if target.opset is not None else []
    takes += [f"IR versions up to {target.ir_version}"] if target.ir_version is not None else []
    return f"{name}{': ' if takes else ''}{', '.join(takes)}"


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    versions = [("onnx-migrate", __version__)]
    for name in ("onnx", "onnxruntime", "onnxsim", "numpy"):
        try:
            versions.append((name, version(name)))
        except PackageNotFoundError:  # noqa: PERF203
            from onnx_migrate.standard.targets.read import shipped
            from onnx_migrate.standard.targets.releases import installed

            others = shipped(name).packages if name == "onnxruntime" else ()  # such as onnxruntime-gpu
            versions.append((name, installed(others) or ""))
    return tuple(versions)


def tool_versions() -> dict[str, str]:
    """Return the versions of this package and of the packages that results depend on, "" for a missing one."""
    return dict(_versions())


def _words(
    name: str, value: Any, shapes: Mapping[str, Sequence[int | str | None] | None], targets: Targets | None
) -> list[str] | None:
    """Return an option as words of the command line, None if they cannot express it."""
    option = _DECLARED[name]
    if not option.flags:
        return None
    first = option.flags[0]
    if name == "runtime" and targets is not None:
        # The command names the release that was installed.
        value = [target.pinned for target in targets]
    if option.negated:
        return [first] if value is False else None
    if value in (False, "off") and option.off:
        return [f"--no-{name}"]
    if value is True:
        return [first]
    if option.off or "flag_value" in option.click:
        return [f"{first}={value}"]
    value = option.words(value, shapes)
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    return [word for text in values for word in (first, str(text))]


def _name(model: str) -> str:
    if model == "<stdin>":
        return "-"
    return "MODEL" if model.startswith("<") else model


def _is_json(value: Any) -> bool:
    """Whether a value is of JSON's types, a path, or a collection of these. A command line cannot express other objects."""
    if isinstance(value, Mapping):
        return all(map(_is_json, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_json, value))
    return value is None or isinstance(value, (str, bool, int, float, os.PathLike))


def _empty(value: Any) -> bool:
    return isinstance(value, (tuple, list, set, frozenset, dict)) and not value


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def _plain(value: Any) -> Any:
    """Return a value as JSON's types; objects by their names, arrays by type and shape."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Mapping):
        return {str(key): _plain(element) for key, element in value.items()}
    if isinstance(value, (set, frozenset)):
        # A set has no order of its own, and the report must be reproducible.
        return sorted(map(_plain, value))
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "names"):
        return list(value.names)
    if isinstance(value, Iterable):
        return [_plain(element) for element in value]
    return str(getattr(value, "name", None) or getattr(value, "__name__", None) or type(value).__name__)
