"""What a table of a runtime says, as values: its releases, their operators, and what they compute wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "FORMS",
    "PREDICATES",
    "Bundle",
    "FaultRow",
    "Lower",
    "OperatorRow",
    "ReleaseRow",
    "Table",
    "Value",
]

Lower = Literal[True, False, "nearest"]
"""Whether a model that is newer than the opset asked for is brought down to it, or refused, or brought as near as it can."""

Value = str | int | float | tuple[str | int | float, ...]
"""A value of an attribute; a list is a tuple."""

FORMS = (
    "kernel_shape",
    "non_negative_axes",
    "default_attributes",
    "split_lengths",
    "initializers_as_inputs",
    "constant_scales",
)
"""What `write` of a release may ask for."""

PREDICATES = ("pads_only_at_end",)
"""What `when` of a fault may name: conditions on a node that attributes alone do not express."""


@dataclass(frozen=True)
class ReleaseRow:
    """A release of a runtime, and all later ones before the next row."""

    since: str = ""
    """The first release, "" where the runtime has no releases."""
    names: tuple[str, ...] = ()
    """Other names of the first release."""
    opset: int | None = None
    """The newest opset that it takes; None if no cap is known."""
    oldest: int | None = None
    """The oldest opset that it takes; None if no bound is known."""
    ir_version: int | None = None
    """The newest IR version that it loads; None if none is known that it does not load."""
    measured: bool = False
    """Whether a test or the survey of this project ran it; else the row was only read."""
    source: str = ""
    resize_form: Literal["auto", "scales", "sizes"] = "auto"
    """The inputs of Resize that it takes: "scales", "sizes", or those that the pass `resize_form` chooses."""
    resize_axes: bool = True
    """Whether it supports the attribute `axes` of Resize, which came with opset 18."""
    resize_intent: bool = False
    """Whether it computes half_pixel for a linear Upsample or Resize of PyTorch's up to opset 10, which say asymmetric."""
    write: frozenset[str] = frozenset()
    """The forms that it wants, of `FORMS`."""
    functions: bool = True
    """Whether it takes local functions; else their calls must be replaced by their bodies."""


@dataclass(frozen=True)
class OperatorRow:
    """Operators that a runtime has from one release on, or has not, and what it takes of them."""

    names: tuple[str, ...]
    domain: str = ""
    since: str = ""
    """The first release that the row holds for, "" for all."""
    until: str = ""
    """The first release that it holds for no longer, "" for none."""
    newest: int | None = None
    """The newest version (since_version) of the operators that is taken."""
    attributes: Mapping[str, tuple[Value, ...]] = field(default_factory=dict, hash=False)
    """The values taken of attributes; an attribute that a node does not have counts as the schema's default."""
    types: tuple[str, ...] = ()
    """The element types of the first input that are taken, as `spec.element_types.type_name` writes them; () is all."""
    lacking: bool = False
    """Whether the row says that the operators are missing."""
    measured: bool = False
    source: str = ""
    """"" is that of the release's row."""


@dataclass(frozen=True)
class FaultRow:
    """An operator that releases load and compute wrongly."""

    operator: str
    text: str
    """What is computed wrongly; it follows the names of node and runtime."""
    help: str = ""
    """What to do about it."""
    domain: str = ""
    since: str = ""
    until: str = ""
    opset: int | None = None
    """The first opset of a model that is computed wrongly."""
    attributes: Mapping[str, tuple[Value, ...]] = field(default_factory=dict, hash=False)
    """The values of attributes with which it is computed wrongly."""
    when: str = ""
    """The name of a further condition, one of `PREDICATES`."""
    source: str = ""


@dataclass(frozen=True)
class Bundle:
    """A product whose releases contain releases of a runtime, as JetPack has TensorRT."""

    names: tuple[str, ...]
    title: str
    releases: Mapping[str, str] = field(hash=False)
    """The release of the runtime by that of the product, oldest first."""
    default: str = ""
    """The release of the product that is meant where none is named, "" if it must be named."""


@dataclass(frozen=True)
class Table:
    """All that is known of a runtime."""

    name: str
    title: str
    releases: tuple[ReleaseRow, ...]
    """Oldest first."""
    operators: tuple[OperatorRow, ...] = ()
    faults: tuple[FaultRow, ...] = ()
    aliases: tuple[str, ...] = ()
    bundles: tuple[Bundle, ...] = ()
    packages: tuple[str, ...] = ()
    """The distributions whose version is the installed release."""
    newer: Literal["refused", "tried"] = "refused"
    """What the runtime does with models of newer opsets than it takes."""
    listed: bool = False
    """Whether an operator without a row is missing."""
    custom_operators: bool = False
    """Whether an operator that neither ONNX nor ONNX Runtime defines may be a plugin, so that it is not missing."""
    newest: str = ""
    """The newest release that the rows were checked against."""
    default: str = ""
    """The release that is meant where none is named and none is installed, "" if it must be named."""
    notes: tuple[str, ...] = ()
    file: str = ""
    """Where it was read from: the name of a shipped table, or the path that the user gave."""
    digest: str = ""
    """The SHA-256 of the file."""
