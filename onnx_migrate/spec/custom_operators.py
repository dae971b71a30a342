"""Operators of custom domains, as plug-ins declare them; and the caches that a declaration, or a registered schema, empties."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, cache
from typing import Any, TypeVar

__all__ = ["declare_operator", "declared_operators", "forget_schemas", "schema_cache", "schema_generation"]

T = TypeVar("T")

_declared: dict[tuple[str, str], set[int]] = {}
_caches: list[_lru_cache_wrapper[Any]] = []
_generation = 0


def declare_operator(operator: str, *since_versions: int, domain: str) -> None:
    """Declare in which versions of its domain a custom operator was introduced and changed, where it has no schema.

    Its nodes may then have inputs, outputs and attributes of any number. An operator with a schema (onnx.defs.register_schema)
    needs no declaration, and is checked by that. Raises ValueError for ai.onnx and ai.onnx.ml, and without a version.
    """
    if domain in ("", "ai.onnx", "ai.onnx.ml"):
        raise ValueError(f"{operator} of {domain or 'ai.onnx'} is the standard's, and cannot be declared")
    if not since_versions or min(since_versions) < 1:
        raise ValueError(f"{operator} of {domain} needs the versions in which it was introduced and changed")
    _declared.setdefault((domain, operator), set()).update(since_versions)
    forget_schemas()


def declared_operators() -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the versions of each operator that was declared, by domain and name."""
    return {key: tuple(sorted(found)) for key, found in _declared.items()}


def schema_cache(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
    """Cache a function whose answers depend on the operators that are known; a decorator."""
    cached = cache(function)
    _caches.append(cached)
    return cached


def forget_schemas() -> None:
    """Drop all answers that depend on the operators that are known, as there are others now."""
    global _generation
    _generation += 1
    for cached in _caches:
        cached.cache_clear()


def schema_generation() -> int:
    """Return a number that is another one after each `forget_schemas`."""
    return _generation
