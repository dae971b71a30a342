"""Several targets at once, and the support that they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from onnx_migrate.cached import cached_property
from onnx_migrate.errors import UsageError
from onnx_migrate.standard.targets.rows import FaultRow, Lower, OperatorSupport
from onnx_migrate.standard.targets.target import Target

__all__ = ["Targets"]


@dataclass(frozen=True)
class Targets:
    """The targets of a migration, at least one; each attribute describes the support that all of them share.

    Raises UsageError if no model can suit them all; the error names two targets that contradict each other.
    """

    members: tuple[Target, ...]

    def __post_init__(self) -> None:
        newest, oldest = self.newest_taker, self.oldest_taker
        if newest and oldest and (newest.opset or 0) < (oldest.oldest or 0):
            raise UsageError(
                f"no opset suits both: {newest} takes models up to opset {newest.opset}, and {oldest} from opset"
                f" {oldest.oldest} on",
                code="no-common-opset",
                hint="make a model for each",
            )
        forms = {member.row.resize_form: member for member in self.members}
        if "scales" in forms and "sizes" in forms:
            raise UsageError(
                f"no Resize suits both: {forms['scales']} takes scales, and {forms['sizes']} sizes",
                code="no-common-opset",
                hint="make a model for each",
            )

    def __iter__(self) -> Iterator[Target]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __str__(self) -> str:
        *others, last = map(str, self.members)
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def requests(self) -> tuple[str, ...]:
        """The texts in which the user asked for the targets."""
        return tuple(member.request for member in self.members)

    @property
    def newest_taker(self) -> Target | None:
        """The target whose newest supported opset is the oldest; None if no target has a known limit."""
        capped = [member for member in self.members if member.opset is not None]
        return min(capped, key=lambda member: member.opset or 0, default=None)

    @property
    def oldest_taker(self) -> Target | None:
        """The target whose oldest supported opset is the newest; None if no target has a known bound."""
        bound = [member for member in self.members if member.oldest is not None]
        return max(bound, key=lambda member: member.oldest or 0, default=None)

    @property
    def opset(self) -> int | None:
        """The newest opset that all targets support; None if no cap is known."""
        return self.newest_taker.opset if self.newest_taker else None

    @property
    def oldest(self) -> int | None:
        """The oldest opset that all targets support; None if no bound is known."""
        return self.oldest_taker.oldest if self.oldest_taker else None

    @property
    def ir_version(self) -> int | None:
        """The newest IR version that all load, None if none is known that one does not load."""
        return min((m.ir_version for m in self.members if m.ir_version is not None), default=None)

    @property
    def ml(self) -> int | None:
        """The newest opset of ai.onnx.ml that all targets support; None if no cap is known."""
        return min((m.row.ml for m in self.members if m.row.ml is not None), default=None)

    @property
    def lower(self) -> Lower:
        """Whether a newer model must be converted to the opset (True), or as near to it as possible ("nearest")."""
        strict = self.refusing if self.opset is not None else next((m for m in self if m.lower is True), None)
        return True if strict is not None and strict.opset == self.opset else "nearest"

    @property
    def refusing(self) -> Target | None:
        """The target that refuses models newer than the least opset; None if all targets try newer ones."""
        capped = [m for m in self.members if m.lower is True and m.opset is not None]
        return min(capped, key=lambda member: member.opset or 0, default=None)

    @property
    def resize_form(self) -> Literal["auto", "scales", "sizes"]:
        """The inputs of Resize that all targets support."""
        return next((m.row.resize_form for m in self.members if m.row.resize_form != "auto"), "auto")

    @property
    def resize_axes(self) -> bool:
        """Whether all support the attribute `axes` of Resize."""
        return all(member.row.resize_axes for member in self.members)

    @property
    def resize_intent(self) -> tuple[Target, ...]:
        """The targets that compute the result of the PyTorch model for its linear Resize up to opset 10."""
        return tuple(member for member in self.members if member.row.resize_intent)

    @cached_property
    def write(self) -> frozenset[str]:
        """The forms that one of them wants, of `FORMS`."""
        return frozenset().union(*(member.row.write for member in self.members))

    @property
    def without_functions(self) -> tuple[Target, ...]:
        """The targets that do not support local functions."""
        return tuple(member for member in self.members if not member.row.functions)

    def lacks(self, domain: str, operator: str) -> tuple[Target, ...]:
        """Return the targets that do not have an operator."""
        return tuple(member for member in self.members if not member.has(domain, operator))

    def unsure_of(self, domain: str, operator: str) -> tuple[Target, ...]:
        """Return the targets that may or may not support an operator of a domain outside the standard."""
        return tuple(
            member
            for member in self.members
            if not member.table.covers(domain) and not member.rows_of(domain, operator)
        )

    def newest_version(self, domain: str, operator: str) -> tuple[int, Target] | None:
        """Return the newest version of an operator that all targets support, and the target that sets it; None if unknown."""
        bounds = [(own, m) for m in self.members if (own := m.newest_version(domain, operator)) is not None]
        return min(bounds, key=itemgetter(0), default=None)

    def oldest_version(self, domain: str, operator: str) -> tuple[int, Target] | None:
        """Return the oldest version of an operator that all targets support, and the target that sets it; None if unknown."""
        bounds = [(own, m) for m in self.members if (own := m.oldest_version(domain, operator)) is not None]
        return max(bounds, key=itemgetter(0), default=None)

    @cached_property
    def bounds_versions(self) -> bool:
        """Whether a row, or a replacement in the standard, may limit the newest or the oldest version of some operator."""
        rows = (row for member in self.members for row in member.table.operators)
        return any(row.newest or row.oldest for row in rows) or any(
            member.table.listed for member in self.members
        )

    def limits(self, domain: str, operator: str) -> tuple[tuple[Target, OperatorSupport], ...]:
        """Return the rows on attribute values, element types and ranks of an operator, with their targets."""
        return tuple(
            (member, row) for member in self.members for row in member.rows_of(domain, operator) if row.limits
        )

    def constant_inputs(self, domain: str, operator: str) -> Mapping[str, Target]:
        """Return the inputs of an operator that must be constants, each with a target that wants it."""
        return {
            name: member
            for member in self.members
            for row in member.rows_of(domain, operator)
            for name in row.constant_inputs
        }

    @cached_property
    def wants_constants(self) -> frozenset[str]:
        """The operators with an input that must be a constant."""
        rows = (row for member in self.members for row in member.table.operators if row.constant_inputs)
        return frozenset(name for row in rows for name in row.names)

    @property
    def faults(self) -> tuple[tuple[Target, FaultRow], ...]:
        """The operators that one of the targets computes wrongly."""
        return tuple((member, fault) for member in self.members for fault in member.faults)
