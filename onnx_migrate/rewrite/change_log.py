"""The log of a migration, which reports show: the nodes that passes changed, and notes on the model as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import onnx
from onnx import AttributeProto, TensorProto, helper

from onnx_migrate.cached import cached_property
from onnx_migrate.errors import Where
from onnx_migrate.model.model import Model

if TYPE_CHECKING:
    from onnx_migrate.verdicts import Distance

__all__ = ["Aside", "Attempt", "Change", "ChangeLog", "Exactness", "Note", "Rest"]

Fact = TypeVar("Fact")


class Exactness(str, Enum):
    """How the numbers of the new form compare with the old: equal bit for bit, rounded differently, or equal under a
    stated assumption."""

    EXACT = "exact"
    EQUIVALENT = "equivalent"
    ASSUMED = "assumed"


class _Nodes(NamedTuple):
    """The fields of a `Change`: a named tuple, since a migration creates one for each node."""

    pass_name: str
    where: Where
    serialised_before: bytes
    version_before: int
    serialised_after: bytes | None
    version_after: int
    emitted: tuple[str, ...]
    reason: str
    exactness: Exactness = Exactness.EXACT
    opset: int = 0
    """The opset of the nodes after the pass, which gives the versions of helper nodes; 0 if there are none."""
    serialised_helpers: tuple[bytes, ...] = ()
    serialised_constants: tuple[bytes, ...] = ()


class Change(_Nodes):
    """One node, before and after a pass.

    `version_*` are the since_versions of the operator's schema, `emitted` the operators of the helper nodes written beside
    the node. The log keeps nodes serialised, which takes a tenth of the memory of message objects. `serialised_after`
    is None if other nodes replaced the node, even if one of these has its name and place. `serialised_helpers` are the
    helper nodes in the result, `serialised_constants` the constants that all these nodes read (see `constant_summaries`).
    """

    @cached_property
    def before(self) -> onnx.NodeProto:
        """Return the node before the pass."""
        return onnx.NodeProto.FromString(self.serialised_before)

    @cached_property
    def after(self) -> onnx.NodeProto | None:
        """The node after the pass, None when other nodes replaced it."""
        return None if self.serialised_after is None else onnx.NodeProto.FromString(self.serialised_after)

    @property
    def operators(self) -> str:
        """The operator before and after, as in "Clip-6 → Clip-13", or once if it is the same."""
        before = f"{self.before.op_type}-{self.version_before}"
        if self.after is None:
            return f"{before} → {' + '.join(dict.fromkeys(self.emitted)) or 'removed'}"
        after = f"{self.after.op_type}-{self.version_after}"
        return before if before == after else f"{before} → {after}"

    @property
    def helpers(self) -> tuple[onnx.NodeProto, ...]:
        """The helper nodes before and after the node, or instead of it, in order."""
        return tuple(map(onnx.NodeProto.FromString, self.serialised_helpers))

    @property
    def constants(self) -> tuple[TensorProto, ...]:
        """The constants that the nodes read: name, type and shape, and the values of small ones."""
        return tuple(map(TensorProto.FromString, self.serialised_constants))

    @property
    def attributes(self) -> tuple[dict[str, str], dict[str, str]]:
        """The attributes that differ, by name and as short text, before and after."""
        old, new = self._attributes
        same = old.items() & new.items()
        return dict(sorted(old.items() - same)), dict(sorted(new.items() - same))

    @property
    def kept_attributes(self) -> dict[str, str]:
        """The attributes that the pass left unchanged, by name and as short text."""
        old, new = self._attributes
        return {name: value for name, value in old.items() if new.get(name) == value}

    @cached_property
    def _attributes(self) -> tuple[dict[str, str], dict[str, str]]:
        return attribute_texts(self.before), {} if self.after is None else attribute_texts(self.after)


@dataclass(frozen=True)
class Note:
    """A remark on the model or a pass: initializers removed from the inputs, a shape corrected, a pass left out.

    `code` is a stable slug, `severity` one of "info" and "warning".
    """

    pass_name: str
    code: str
    message: str
    subject: str = ""
    severity: str = "info"


@dataclass
class ChangeLog:
    """Collects, in order, the changes of the passes of one migration."""

    changes: list[Change] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    facts: dict[tuple[type, str, str], Any] = field(default_factory=dict)
    """Facts that a pass records about a node for later passes, by type of the fact, path of the scope, and first output.

    A report shows the facts on the whole model that features declare (`onnx_migrate.reported`). Passes decide by facts only,
    never by the text of a change or note."""

    def record_fact(self, scope: str, output: str, fact: object) -> None:
        """Record `fact` of the node in `scope` with this first output; it replaces an earlier one of its type."""
        self.facts[type(fact), scope, output] = fact

    def fact(self, kind: type[Fact], scope: str, output: str) -> Fact | None:
        """Return the fact of type `kind` that was recorded of a node, else None."""
        return self.facts.get((kind, scope, output))

    def facts_of(self, kind: type[Fact]) -> list[Fact]:
        """Return the facts of type `kind`, of all nodes."""
        return [fact for (type_, _, _), fact in self.facts.items() if type_ is kind]

    def note(
        self,
        pass_name: str,
        code: str,
        message: str,
        *,
        subject: str = "",
        severity: str = "info",
        once: bool = False,
    ) -> None:
        """Add a `Note`; with `once`, unless an earlier one has its code and message, as of a pass that runs again."""
        if once and any((note.code, note.message) == (code, message) for note in self.notes):
            return
        self.notes.append(Note(pass_name, code, message, subject, severity))

    def trial(self) -> Attempt:
        """Return a mark at the end of the log; a failed attempt rolls back to it."""
        return Attempt(self, len(self.changes), len(self.notes), dict(self.facts))


@dataclass(frozen=True)
class Attempt:
    """The log of an attempt: everything that was logged since `ChangeLog.trial`.

    As a context manager it rolls back when an exception leaves the block. An attempt that fails later, or
    without an exception, calls `roll_back`.
    """

    log: ChangeLog
    first_change: int
    first_note: int
    facts: dict[tuple[type, str, str], Any]
    """The facts that were recorded before the attempt."""

    @property
    def changes(self) -> list[Change]:
        """The changes of the attempt."""
        return self.log.changes[self.first_change :]

    def roll_back(self) -> None:
        """Remove from the log everything that the attempt added."""
        del self.log.changes[self.first_change :], self.log.notes[self.first_note :]
        self.log.facts = dict(self.facts)

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None:
            self.roll_back()


def attribute_texts(node: onnx.NodeProto) -> dict[str, str]:
    """Return a node's attributes by name and as short text, sorted by name."""
    texts = {attribute.name: attribute_text(attribute) for attribute in node.attribute}
    return dict(sorted(texts.items()))


def attribute_text(attribute: AttributeProto) -> str:
    """Return an attribute's value as short text; a sub-graph or a tensor by its kind and shape."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    kind = attribute.type
    if kind == AttributeProto.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == AttributeProto.TENSOR:
        # A tensor's numbers would be too long for a line.
        return f"{_name(TensorProto.DataType, attribute.t.data_type)}{list(attribute.t.dims)}"
    if kind in (AttributeProto.INT, AttributeProto.FLOAT):
        return (
            f"{helper.get_attribute_value(attribute):g}" if kind == AttributeProto.FLOAT else str(attribute.i)
        )
    if kind in (AttributeProto.INTS, AttributeProto.FLOATS):
        values = helper.get_attribute_value(attribute)
        shown = ", ".join(f"{value:g}" for value in values[:16])
        return f"[{shown}{', …' if len(values) > 16 else ''}]"
    return f"<{_name(AttributeProto.AttributeType, kind).lower()}>"


def _name(kinds: Any, number: int) -> str:
    """Return the name of a number of an enumeration; the number itself if a broken model has an unknown one."""
    return str(kinds.Name(number)) if number in kinds.values() else str(number)


@dataclass(frozen=True)
class Rest:
    """A fact about the whole model: the part after the migrated part, which the caller gets too."""

    model: Model


@dataclass(frozen=True)
class Aside:
    """A fact about the whole model: another model. The verifier measures the distance between it and the original.

    The verifier calls `tell` with the distance, which decides nothing.
    """

    model: Model
    tell: Callable[[Distance], None]
