"""Numbers with their nouns or units, and lists of names, for messages."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["count_of", "listed", "size_text"]

_IRREGULAR = {"axis": "axes", "index": "indices"}


def count_of(number: int, noun: str) -> str:
    """Return a number and its noun, as in "1 node", "2 nodes" and "3 axes"; before "of" where there is one."""
    if number == 1:
        return f"{number} {noun}"
    head, of, rest = noun.partition(" of ")
    return f"{number} {_IRREGULAR.get(head, f'{head}s')}{of}{rest}"


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence, as in "N, H and W"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def size_text(size: int) -> str:
    """Return a number of bytes, in MB from a million on and in GB from a billion on."""
    if size >= 2**63:  # of a tensor whose dims are not valid
        return "more than 2^63 B"
    if size < 10**6:
        return f"{size:,} B"
    return f"{size / 10**6:,.1f} MB" if size < 10**9 else f"{size / 10**9:,.1f} GB"
