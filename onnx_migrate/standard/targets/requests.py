"""Turns the user's requests, such as "tensorrt==8.6" or "./mychip.toml", into targets."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from onnx_migrate.errors import UsageError
from onnx_migrate.standard.targets.combined import Targets
from onnx_migrate.standard.targets.read import read_table
from onnx_migrate.standard.targets.releases import installed, is_later, is_number, key, plain
from onnx_migrate.standard.targets.rows import Bundle, ReleaseRow, Table
from onnx_migrate.standard.targets.target import Target
from onnx_migrate.standard.targets.wording import understand

__all__ = ["resolve"]


def resolve(texts: str | Iterable[str] | Targets) -> Targets:
    """Return the targets for texts such as "onnxruntime==1.14", "tensorrt" and "./mychip.toml==2.0"; return targets unchanged.

    A request without a release means the installed package. Raises UsageError in these cases:

    - The runtime is unknown, or its release is older than its table.
    - The user must name a release, and did not.
    - The file is wrong.
    - No model can suit all targets.
    """
    if isinstance(texts, Targets):
        return texts
    requests = (texts,) if isinstance(texts, str) else tuple(texts)
    if not requests:
        raise UsageError("the name of the runtime is missing", hint="add one, for example onnxruntime==1.14")
    targets: dict[tuple[str, str, str], Target] = {}
    for text in requests:
        target = _target(text)
        # Two requests for one release count once.
        targets.setdefault((target.name, target.table.file, target.release), target)
    return Targets(tuple(targets.values()))


def _target(text: str) -> Target:
    path, release = _path(text)
    if path:
        return _at(read_table(path), release, text)
    meant = understand(text)
    if meant.product is not None:
        own, later = _bundled(meant.product, meant.release, text)
        target = _at(meant.table, own, text)
        return replace(target, later=target.later or later)
    return _at(meant.table, meant.release, text, guess=not meant.among_words)


def _path(text: str) -> tuple[str, str]:
    """Return the path and the release of a user's own target, "" and "" for a name."""
    path, _, release = text.rpartition("==")
    if path.strip().endswith(".toml"):
        return path.strip(), release.strip()
    own = text.strip()
    return (own, "") if own.endswith(".toml") or os.sep in own else ("", "")


def _at(table: Table, release: str, request: str, *, guess: bool = True) -> Target:
    """Return the target for a release of a runtime; "" is the installed one, unless that must not be guessed."""
    rows, release = table.releases, release.removeprefix(table.prefix)
    # A table without releases holds for all of them.
    if not rows[0].since:
        return Target(table, rows[0], release, release if is_number(release) else "", request)
    if not release:
        own = installed(table.packages) if guess else None
        if own or table.default:
            default_target = _at(table, own or table.default, request)
            return replace(default_target, installed=bool(own), assumed=not own)
        missing = (
            f"{table.title} is not installed, so its" if table.packages and guess else f"the {table.title}"
        )
        raise UsageError(
            f"{missing} release is needed",
            code="release-needed",
            hint=f"add it, for example {_example(table)}; known from {_span(table)}",
        )
    # A release may have names, such as those of a product, and these go before numbers.
    for row in rows:
        if plain(release) in map(plain, row.names):
            return Target(table, row, release, row.since, request)
    if not is_number(release):
        raise UsageError(
            f"{table.title} has no release {release!r}",
            code="no-such-release",
            hint=f"write it as in {_example(table)}; known from {_span(table)}",
        )
    index = bisect_right([key(row.since) for row in rows], key(release)) - 1
    if index < 0:
        raise UsageError(
            f"it is not known what {table.title} {release} takes: the first release known is {_label(rows[0])}",
            code="no-such-release",
            hint=f"known from {_span(table)}; for another, name the opset with --opset, or write a file of your own",
        )
    # The user gets a warning if the release is newer than the table.
    later = is_later(release, table.newest or rows[-1].since)
    return Target(table, rows[index], release, release, request, later)


def _bundled(bundle: Bundle, release: str, text: str) -> tuple[str, bool]:
    """Return the runtime's release in a release of a product, and whether that is newer than all known."""
    product_releases = list(bundle.releases)
    span = f"known are {', '.join(product_releases)}"
    release = release or bundle.default
    if not release:
        raise UsageError(
            f"the release of {bundle.title} is needed",
            code="release-needed",
            hint=f"add it, for example {bundle.names[0]}=={product_releases[-1]}; {span}",
        )
    for name, own in bundle.releases.items():
        if plain(name) == plain(release):
            return own, False
    # Only numbers have an order.
    numbers = sorted((name for name in product_releases if is_number(name)), key=key)
    index = bisect_right([key(name) for name in numbers], key(release)) if is_number(release) else 0
    if not index:
        raise UsageError(
            f"{text!r}: {bundle.title} {release} is not known", code="no-such-release", hint=span
        )
    return bundle.releases[numbers[index - 1]], is_later(release, numbers[-1])


def _example(table: Table) -> str:
    own = table.file if table.file.endswith(".toml") and os.sep in table.file else table.name
    return f"{own}=={table.releases[-1].since}"


def _span(table: Table) -> str:
    first, last = _label(table.releases[0]), table.newest or _label(table.releases[-1])
    return first if first == last else f"{first} to {last}"


def _label(row: ReleaseRow) -> str:
    """Return how the first release of a row is called, by its name if it has one."""
    return f"{row.since} ({row.names[0]})" if row.names else row.since
