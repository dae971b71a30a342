"""Numbers of releases: how they compare, and which one is installed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

__all__ = ["installed", "is_later", "is_number", "key", "plain"]


def is_number(release: str) -> bool:
    """Return whether a release is of numbers and dots, as in "8.6.1"."""
    return re.fullmatch(r"\d+(\.\d+)*", release) is not None


def key(release: str) -> tuple[int, ...]:
    """Return a key that orders releases; 10 and 10.0 are the same. "" is before all."""
    numbers = [int(part) for part in release.split(".")] if release else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def is_later(release: str, newest: str) -> bool:
    """Return whether a release is later than `newest`, to as many numbers as that has: 1.31.1 is no later than 1.31."""
    size = newest.count(".") + 1
    return key(".".join(release.split(".")[:size])) > key(newest)


def plain(text: str) -> str:
    """Return a name as names are compared: in lower case, without spaces, dots and dashes."""
    return re.sub(r"[\s._-]+", "", text.lower())


def installed(packages: Iterable[str]) -> str | None:
    """Return the numbers of the release of the first distribution that is installed, None if none is."""
    for package in packages:
        try:
            numbers = re.match(r"\d+(?:\.\d+)*", version(package))
        except PackageNotFoundError:
            continue
        if numbers:
            return numbers[0]
    return None
