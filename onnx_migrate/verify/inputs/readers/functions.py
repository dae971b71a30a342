"""Calls a Python function of the user that yields sets of inputs: MODULE:FUNCTION, or FILE.py:FUNCTION."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import count_of
from onnx_migrate.verify.inputs.source import Part, Source

__all__ = ["is_function", "module_file", "read", "yielded"]

_DEFAULT = "load_data"
"""The function of a FILE.py without a name, as in Polygraphy's data loader scripts."""

_HINT = 'it yields dicts of arrays by input name, as in `yield {"x": array}`'


def is_function(text: str) -> bool:
    """Return whether a text has the form of a function: MODULE:FUNCTION, FILE.py:FUNCTION or FILE.py."""
    module, name = _split(text)
    is_file = module.endswith(".py")
    return name.isidentifier() and (is_file or all(part.isidentifier() for part in module.split(".")))


def module_file(text: str) -> Path | None:
    """Return the file of a function's module; None if it is not found without an import of its package."""
    module, _ = _split(text)
    if module.endswith(".py"):
        return Path(module)
    # To find a module inside a package, Python imports the package, which runs code of the user's.
    loaded = sys.modules.get(module)
    spec = (
        loaded.__spec__ if loaded is not None else None if "." in module else importlib.util.find_spec(module)
    )
    return Path(spec.origin) if spec is not None and spec.origin and spec.has_location else None


def read(source: Source) -> Part:
    """Return the feeds that the function yields. Raises UsageError if it cannot be called, or raises itself."""
    text = str(source.path)
    if source.name:
        raise UsageError(
            f"{text}: yields inputs by name", code="input-data", hint=f"leave {source.name}= out"
        )
    function = _function(text)
    return Part(source.keep(yielded(function, text), text))


def yielded(data: Callable[[], Any] | Iterable[Any], text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the sets of a function or an iterator. Raises UsageError for an error of theirs, and for another value."""
    count = 0
    try:
        values = iter(data() if callable(data) else data)
        while True:
            try:
                value = next(values)
            except StopIteration:
                break
            if not isinstance(value, Mapping):
                raise UsageError(
                    f"{text}: yields a {type(value).__name__}, and no dict of arrays",
                    code="input-data",
                    hint=_HINT,
                )
            yield value
            count += 1
    except UsageError:
        raise
    except Exception as error:  # whatever the user's code raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(
            f"{text}: raises after {count_of(count, 'set')} of inputs: {reason}", code="input-data"
        ) from error
    if not count:
        raise UsageError(f"{text}: yields no inputs", code="input-data", hint=_HINT)


def _split(text: str) -> tuple[str, str]:
    module, colon, name = text.rpartition(":")
    if colon and not name.endswith(".py"):
        return module, name
    return text, _DEFAULT if text.endswith(".py") else ""


def _function(text: str) -> Callable[[], Any]:
    """Return the function that a text names. Raises UsageError."""
    module, name = _split(text)
    try:
        loaded = _from_file(Path(module)) if module.endswith(".py") else _imported(module)
        function = getattr(loaded, name)
    except Exception as error:  # an import runs code of the user's
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(
            f"{text}: cannot be loaded: {reason}",
            code="input-data",
            hint="give MODULE:FUNCTION of a module that Python can import from the working folder or PYTHONPATH, or"
            " FILE.py:FUNCTION",
        ) from error
    if not callable(function):
        raise UsageError(f"{text}: {name} is a {type(function).__name__}, and no function", code="input-data")
    return function  # type: ignore[no-any-return]


def _from_file(path: Path) -> ModuleType:
    """Import a file as a module that nothing else finds. Raises the errors of the import."""
    spec = importlib.util.spec_from_file_location(f"onnx_migrate_inputs_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    with _searched(path.parent):  # a script finds the modules beside it, as it does with `python FILE.py`
        spec.loader.exec_module(module)
    return module


def _imported(name: str) -> ModuleType:
    """Import a module, also from the working folder, where a console script does not look. Raises the errors of the import."""
    with _searched(Path.cwd()):
        return importlib.import_module(name)


@contextmanager
def _searched(folder: Path) -> Iterator[None]:
    """Let imports of the block look in a folder too, last."""
    text = str(folder.resolve())
    added = text not in sys.path
    if added:
        # Modules of the user must not hide installed ones with the same name.
        sys.path.append(text)
    try:
        yield
    finally:
        if added and text in sys.path:
            sys.path.remove(text)
