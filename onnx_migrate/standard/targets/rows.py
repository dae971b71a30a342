"""The rows of a runtime's table as values: its releases, the operators they support, and the operators they compute wrongly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, Literal, cast

from onnx_migrate.standard.schema import CONTROL_FLOW, SEQUENCES
from onnx_migrate.standard.targets.releases import is_number, key
from onnx_migrate.standard.toml_rows import WrongRow, toml_key

__all__ = [
    "FORMS",
    "PREDICATES",
    "Bundle",
    "FaultRow",
    "KernelRow",
    "Knowledge",
    "Lower",
    "MeasuredRows",
    "OperatorSupport",
    "Range",
    "ReleaseRow",
    "Table",
    "Value",
    "Values",
]

Lower = Literal[True, False, "nearest"]
"""Whether onnx-migrate converts a model that is newer than the requested opset to that older opset.

With True it does, or fails. With False it refuses such a model. With "nearest" it may stop at a newer opset, the oldest
one that the model can reach.
"""

Value = str | int | float | tuple[str | int | float, ...]
"""A value of an attribute; a list is a tuple."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; None for either means no limit. A list is inside if each of its numbers is."""

    low: float | None
    high: float | None

    def __contains__(self, value: object) -> bool:
        if isinstance(value, tuple):
            return all(element in self for element in value)
        if not isinstance(value, (int, float)):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"up to {self.high}" if self.low is None else f"of at least {self.low}"
        return f"of {self.low} to {self.high}"


Values = tuple[Value, ...] | Range
"""The values of an attribute that a runtime supports."""

FORMS = (
    "bias_last",
    "lowercase_labels",
    "kernel_shape",
    "explicit_pads",
    "non_negative_axes",
    "default_attributes",
    "default_axes",
    "split_lengths",
    "initializers_as_inputs",
    "constant_scales",
    "quantized_constants",
    "softmax_written_out",
    "gelu_halved_first",
    "gelu_halved_last",
    "channels_apart",
    "gates_apart",
    "global_pools",
    "vectors_apart",
    "no_inner_symbols",
    "pairs_for_scales",
    "standard_ranks",
    "summed_shapes",
    "zero_points",
    "dequantizers_apart",
    "squeezed_axes",
    "int8_zero_points",
    "true_shapes",
    "true_inner_shapes",
)
"""The forms of nodes that `write` of a release may ask for."""

PREDICATES = (
    "pads_only_at_end",
    "enlarges",
    "rounds_lengths",
    "samples_by_lengths",
    "picks_otherwise",
    "has_more_indices_than_data",
    "has_more_than_four_axes",
    "has_zero_points_by_column",
    "is_of_float16",
    "loses_leading_axes",
    "branches_of_unknown_rank",
    "spreads_channels",
    "has_a_batch",
    "tiles_after_others",
    "pads_all_but_the_last",
    "pads_no_image",
    "is_cut_off",
    "begins_in_padding",
    "divides_among_threads",
    "keeps_many_axes",
    "reduces_many_axes",
    "reduces_many_axes_before_others",
    "has_computed_k",
    "squeezes_open_dims",
)
"""The names that `when` of a fault may have. Each names a condition on a node that attribute values cannot express."""

_TYPES = (
    "float32", "float16", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bool", "string", "complex64", "complex128", "int4", "uint4", "int2", "uint2", "float8e4m3fn", "float8e4m3fnuz",
    "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "float6e2m3", "float6e3m2",
)  # fmt: skip

_STANDARD = {"float32": "float", "float64": "double"}
"""How ONNX names the types that everyone else names otherwise."""


def _element_types() -> Any:
    return toml_key(
        known=_TYPES, default=(), read=lambda names: tuple(_STANDARD.get(name, name) for name in names)
    )


def _number(release: str) -> str:
    if release and not is_number(release):
        raise WrongRow(f" must be a release such as '8.6', not {release!r}")
    return release


def _name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise WrongRow(f" must be of lower case letters, digits, - and _, not {name!r}")
    return name


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _attributes(given: Mapping[str, Any]) -> dict[str, Values]:
    return {name: _values(values, name) for name, values in given.items()}


def _values(given: Any, name: str) -> Values:
    if isinstance(given, dict):
        if (
            not given
            or not given.keys() <= {"min", "max"}
            # `type`, because `isinstance` would take a TOML boolean for an int.
            or not all(type(bound) in (int, float) for bound in given.values())
        ):
            raise WrongRow(
                f".{name} is not a range: {given!r}", "a range is { min = 1, max = 2 }, or one of the two"
            )
        return Range(given.get("min"), given.get("max"))
    if not isinstance(given, list) or not given:
        raise WrongRow(f".{name} must be a list of values or a range, not {given!r}")
    return tuple(_value(bound, name) for bound in given)


def _value(item: Any, name: str) -> Value:
    if isinstance(item, list):
        return tuple(cast("str | int | float", _value(part, name)) for part in item)
    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        raise WrongRow(f".{name} has the value {item!r}", "values are texts, numbers and lists of them")
    return item


@dataclass(frozen=True)
class ReleaseRow:
    """A release of a runtime, and all later ones before the next row."""

    since: str = toml_key(name="from", default="", label="from ", read=_number)
    """The first release; "" if the runtime has no releases."""
    names: tuple[str, ...] = ()
    """Other names of the first release."""
    opset: int | None = None
    """The newest opset that the runtime supports; None if no limit is known."""
    oldest: int | None = None
    """The oldest opset that the runtime supports; None if no limit is known."""
    ir_version: int | None = toml_key(name="ir", default=None)
    """The newest IR version that it loads; None if none is known that it does not load."""
    ml: int | None = None
    """The newest opset of ai.onnx.ml that the runtime supports; None if no limit is known."""
    measured: bool = False
    """Whether a test or the survey of this project ran it; else the row was only read."""
    source: str = ""
    note: str = ""
    """A note for the users of this release; `inspect` and a migration print it."""
    resize_form: Literal["auto", "scales", "sizes"] = "auto"
    """The inputs of Resize that the runtime supports: "scales", "sizes", or those that the pass `resize_form` chooses."""
    resize_axes: bool = True
    """Whether it supports the attribute `axes` of Resize, which came with opset 18."""
    resize_intent: bool = False
    """Whether it computes half_pixel for a linear Upsample or Resize of PyTorch's up to opset 10, which say asymmetric."""
    write: frozenset[str] = toml_key(of=tuple[str, ...], known=FORMS, default=frozenset(), read=frozenset)
    """The forms that it wants, of `FORMS`."""
    functions: bool = True
    """Whether the runtime supports local functions; if not, onnx-migrate replaces calls by the functions' bodies."""
    types: tuple[str, ...] = _element_types()
    """The element types of inputs, outputs and computed values, and of constants that are floats; () is all."""
    input_types: tuple[str, ...] = _element_types()
    """The element types that the runtime supports for the model's inputs; () means all."""
    output_types: tuple[str, ...] = _element_types()
    """The element types that the runtime supports for the model's outputs; () means all."""
    static: bool = False
    """Whether all dims of the model's inputs must be numbers."""
    inputs_first: bool = False
    """Whether the runtime mistakes initializers for inputs if the model lists them before its inputs."""
    integer: Literal["int64", "int32"] = "int64"
    """The widest type of integers that it computes in; "int32" brings models there, as far as ranges prove that they fit."""
    control_flow: bool = True
    """Whether the runtime supports If, Loop and Scan."""
    sequences: bool = True
    """Whether the runtime supports sequences and optionals."""
    falls_back: bool = False
    """Whether the CPU runs the operators that the runtime lacks.

    If so, onnx-migrate replaces unlisted control flow and sequence operators by plain nodes where it can. It also folds
    shape arithmetic if the inputs have fixed dims.
    """
    unrolled: tuple[str, ...] = toml_key(known=tuple(sorted(CONTROL_FLOW | SEQUENCES)), default=())
    """Operators of control flow and sequences that the runtime supports only in part.

    onnx-migrate replaces them by plain nodes if it can replace all of them in the model.
    """
    rank: int | None = None
    """The largest number of axes of a value."""

    @property
    def without(self) -> frozenset[str]:
        """The operators that `control_flow` and `sequences` say it lacks."""
        return (frozenset() if self.control_flow else CONTROL_FLOW) | (
            frozenset() if self.sequences else SEQUENCES
        )

    def __post_init__(self) -> None:
        if self.opset is not None and self.oldest is not None and self.opset < self.oldest:
            raise WrongRow(f"opset {self.opset} is older than oldest {self.oldest}")


@dataclass(frozen=True)
class OperatorSupport:
    """Operators that a runtime supports from one release on, or lacks, and the limits of that support."""

    names: tuple[str, ...] = toml_key(label="")
    domain: str = toml_key(default="", read=_domain)
    since: str = toml_key(name="from", default="", read=_number)
    """The first release that the row holds for, "" for all."""
    until: str = toml_key(default="", read=_number)
    """The first release that it holds for no longer, "" for none."""
    newest: int | None = None
    """The newest version (since_version) of the operators that the runtime supports."""
    oldest: int | None = None
    """The oldest version of the operators that the runtime supports."""
    attributes: Mapping[str, Values] = toml_key(default_factory=dict, hash=False, read=_attributes)
    """The supported values of attributes; an attribute that a node does not have counts as the schema's default."""
    types: tuple[str, ...] = _element_types()
    """The element types of the first input that the runtime supports, as `type_name` of `standard.element_types` writes them.

    () means all.
    """
    rank: int | None = None
    """The largest number of axes of the inputs and outputs."""
    constant_inputs: tuple[str, ...] = ()
    """The inputs that must be constants, by their names in the schema."""
    lacking: bool = False
    """Whether the row says that the operators are missing."""
    measured: bool = False
    source: str = ""
    """"" is that of the release's row."""

    def __post_init__(self) -> None:
        more = (self.newest, self.oldest, self.attributes, self.types, self.rank, self.constant_inputs)
        if self.lacking and any(more):
            raise WrongRow("a row with lacking says nothing else of its operators")

    @property
    def limits(self) -> bool:
        """Whether the row limits which nodes of its operators the runtime supports."""
        return bool(self.attributes or self.types or self.rank)


@dataclass(frozen=True)
class MeasuredRows:
    """The rows of a file that a program wrote, and that lies beside the table of a runtime."""

    operators: tuple[OperatorSupport, ...] = toml_key(name="operator", default=())

    def __post_init__(self) -> None:
        for at, row in enumerate(self.operators, 1):
            if not row.measured:
                raise WrongRow(f"[[operator]] {at} must have measured = true")


class Knowledge(str, Enum):
    """How well we know that a release of a runtime supports an operator, if no row says that it is missing."""

    MEASURED = "measured"
    READ = "read"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class FaultRow:
    """Operators that releases load and compute wrongly."""

    names: tuple[str, ...] = toml_key(label="")
    text: str = toml_key()
    """A description of the wrong result; it follows the names of node and runtime."""
    help: str = ""
    """What to do about it."""
    domain: str = toml_key(default="", read=_domain)
    since: str = toml_key(name="from", default="", read=_number)
    until: str = toml_key(default="", read=_number)
    opset: int | None = None
    """The first opset of a model that is computed wrongly."""
    attributes: Mapping[str, Values] = toml_key(default_factory=dict, hash=False, read=_attributes)
    """The attribute values that lead to the wrong result."""
    elements: int | None = None
    """The smallest number of elements of the first input that leads to the wrong result."""
    when: str = toml_key(known=("", *PREDICATES), default="")
    """The name of a further condition, one of `PREDICATES`."""
    by_values: bool = False
    """Whether only some values lead to the wrong result, so that a model alone does not show it."""
    source: str = ""


@dataclass(frozen=True)
class KernelRow:
    """Operators that releases have, without kernels for some element types."""

    names: tuple[str, ...] = toml_key(label="")
    lacks: tuple[str, ...] = _element_types()
    """The element types without a kernel, as `standard.element_types.type_name` writes them."""
    domain: str = toml_key(default="", read=_domain)
    since: str = toml_key(name="from", default="", read=_number)
    until: str = toml_key(default="", read=_number)
    attributes: Mapping[str, Values] = toml_key(default_factory=dict, hash=False, read=_attributes)
    """The attribute values for which the release has no kernel."""
    axes: int | None = None
    """The smallest number of axes of an input for which the release has no kernel; None means any number."""
    measured: bool = False
    source: str = ""


@dataclass(frozen=True)
class Bundle:
    """A product whose releases contain releases of a runtime, as JetPack has TensorRT."""

    names: tuple[str, ...]
    title: str = toml_key(like="names")
    releases: Mapping[str, str] = toml_key(hash=False)
    """The release of the runtime by that of the product, oldest first."""
    default: str = ""
    """The release of the product if the user names none; "" if the user must name one."""

    def __post_init__(self) -> None:
        for release, own in self.releases.items():
            if not isinstance(own, str) or not is_number(own):
                raise WrongRow(f"releases must give a release such as '8.6' for {release!r}, not {own!r}")
        if not self.releases:
            raise WrongRow("the key releases is missing")
        if self.default and self.default not in self.releases:
            raise WrongRow(f"default {self.default!r} is none of its releases")


@dataclass(frozen=True)
class Table:
    """All that is known of a runtime."""

    name: str = toml_key(read=_name)
    title: str = toml_key(like="name")
    releases: tuple[ReleaseRow, ...] = toml_key(name="release", default=())
    """Oldest first."""
    operators: tuple[OperatorSupport, ...] = toml_key(name="operator", default=())
    faults: tuple[FaultRow, ...] = toml_key(name="fault", default=())
    kernels: tuple[KernelRow, ...] = toml_key(name="kernel", default=())
    built_from: str = ""
    """The runtime from whose source this one is built; both number their releases alike.

    This runtime gets the rows of that one, beginning at the release in its own single row. Rows that we measured on
    that runtime count as read here.
    """
    aliases: tuple[str, ...] = ()
    bundles: tuple[Bundle, ...] = toml_key(name="bundle", default=())
    packages: tuple[str, ...] = ()
    """The distributions whose version is the installed release."""
    prefix: str = ""
    """Text before a release in the version of the runtime's other package: ncnn's 1.0.20261020 is pnnx's 20261020."""
    newer: Literal["refused", "tried"] = "refused"
    """Whether the runtime refuses or tries models of newer opsets than it supports."""
    extent: Literal["listed", "any", "unknown"] = toml_key(name="operators", default="unknown")
    """The status of an operator without a row: missing ("listed"), supported ("any"), or not known."""
    custom_operators: bool = False
    """Whether an operator that neither ONNX nor ONNX Runtime defines may be a plugin, so that it does not count as missing.

    If the table has no list of operators, this also says whether the runtime supports operators of other domains.
    """
    later_types: bool = False
    """Whether the runtime supports later versions of an operator that differ from its newest listed one only in element types."""
    newest: str = toml_key(default="", read=_number)
    """The newest release that the rows were checked against."""
    default: str = toml_key(default="", read=_number)
    """The release if the user names none and none is installed; "" if the user must name one."""
    notes: tuple[str, ...] = ()
    file: str = ""
    """The source of the table: the name of a shipped table, or the path that the user gave."""
    digest: str = ""
    """The SHA-256 of the file."""

    @property
    def listed(self) -> bool:
        """Whether an operator without a row is missing."""
        return self.extent == "listed"

    def covers(self, domain: str) -> bool:
        """Return whether it is known of an operator of this domain without a row whether it is there."""
        standard = domain in ("", "ai.onnx", "ai.onnx.ml")
        return self.listed or (self.extent == "any" and (standard or self.custom_operators))

    def __post_init__(self) -> None:
        if not self.releases:
            raise WrongRow("there is no [[release]]", "give at least one; without `from` it holds for all")
        # A release is looked up by bisection, so the rows need an order.
        for at, (earlier, other) in enumerate(pairwise(self.releases), 2):
            if not earlier.since or not other.since or key(earlier.since) >= key(other.since):
                raise WrongRow(
                    f"[[release]] {at}: of several rows each needs `from`, and the oldest comes first"
                )
