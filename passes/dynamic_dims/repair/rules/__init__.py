"""The repair rules, one file for each kind of constant; importing them enters them into the table."""

from __future__ import annotations

from ..rule_table import apply_rule
from . import broadcast, constant_lengths, gather_scatter, images, reshape, slice_split

__all__ = [
    "apply_rule",
    "broadcast",
    "constant_lengths",
    "gather_scatter",
    "images",
    "reshape",
    "slice_split",
]
