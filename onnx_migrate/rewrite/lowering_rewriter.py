"""The editing API of downward steps: a Rewriter that knows computed constants, and the types of the nodes it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx
from onnx import helper

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.errors import Where
from onnx_migrate.facts.node_inference import record_outputs
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.value_facts import ValueFacts
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.messages import count_of
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.schema import is_onnx

if TYPE_CHECKING:
    import numpy as np

__all__ = ["LoweringRewriter"]


class LoweringRewriter(Rewriter):
    """Edits one node for a downward step. Nodes are written in the form of opset `version`, that below the step.

    Types and shapes of written values are inferred as soon as they are written, and constants among them are computed.
    """

    def __init__(
        self,
        node: onnx.NodeProto,
        scope: Scope,
        version: int,
        target: int,
        where: Where,
        values: ValueFacts,
    ) -> None:
        super().__init__(node, scope, version, target, where)
        self._values = values
        self.of_onnx = is_onnx(node.domain)
        """Whether `version` is an opset of ai.onnx, and not of the domain that is lowered."""
        self._casts_after: list[tuple[str, str, int]] = []
        self.used_at_run_time: list[tuple[str, str]] = []
        """Inputs that would better be constants, with a description of each; see `use_at_run_time`."""

    # What is known of values

    def known(self, value: str) -> np.ndarray[Any, Any] | None:
        """Return the array of a value that is a constant of the model or follows from its constants and static dims.

        None for a value that is computed at run time. An initializer that a caller can override is no constant.
        """
        inferred_value = self._values.value(value) if value else None
        return self.constant_value(value) if inferred_value is None and value else inferred_value

    def partly_known(self, value: str) -> list[int | None] | None:
        """Return the elements of a vector of integers, None for each that is computed at run time.

        None if not even the number of elements is known.
        """
        partial_value = self._values.partial(value) if value else None
        if partial_value is None or partial_value.values.ndim != 1:
            # The value may be a constant although no partial value was followed.
            array = self.known(value)
            return None if array is None or array.ndim != 1 else [int(element) for element in array]
        return [
            int(element) if is_known else None
            for element, is_known in zip(partial_value.values, partial_value.known, strict=True)
        ]

    def producer(self, value: str) -> onnx.NodeProto | None:
        """Return the node that produces a value, None for inputs and initializers, and where a step has moved it."""
        node = self._values.producer(value)
        return node if node is not None and value in node.output else None

    def is_made_here(self, value: str) -> bool:
        """Return whether a node of this body, not of one around it, produces a value of the model."""
        return self._values.producers.is_made_in(self.scope, value)

    def readers(self, value: str) -> list[onnx.NodeProto]:
        """Return the nodes of this body that read a value of the model. Those that come later have their own form yet."""
        return self._values.producers.readers(self.scope, value)

    def elements(self, value: str) -> tuple[str, ...] | None:
        """Return the values that a sequence or optional holds, if its node was dissolved."""
        return self._values.elements(value)

    def dissolve(self, elements: Sequence[str]) -> None:
        """Drop the node, whose output is a sequence or optional that holds `elements`; its readers take these."""
        self._values.record_elements(self.output(0), tuple(elements))
        self.remove()

    def need_constant(self, given: int | str, what: str) -> np.ndarray[Any, Any]:
        """Return the array of an input, by index, or of a value, or refuse with code `needs-constant`; `what` is as "axes"."""
        value = self.input(given) if isinstance(given, int) else given
        array = self.known(value) if value else None
        if array is None:
            self.refuse(
                f"its {what} ({value!r}) must be a constant below opset {self.version + 1}, and {value!r} is computed"
                " at run time or can be set by the caller",
                code="needs-constant",
                hint=f"make {value!r} an initializer that is not a graph input",
            )
        return array

    def need_number(self, index: int, what: str) -> Any:
        """Return the one element of input `index`, or refuse: as `need_constant`, and with `invalid-node` for another count."""
        array = self.need_constant(index, what)
        if array.size != 1:
            self.refuse(
                f"its {what} ({self.input(index)!r}) has {count_of(array.size, 'element')}, and needs one",
                code="invalid-node",
            )
        return array.item()

    def use_at_run_time(self, index: int, what: str) -> str:
        """Return the name of input `index`, which is computed at run time and would better be a constant.

        If a later step refuses a node that reads this input, the refusal names the input; `what` describes it.
        """
        self.used_at_run_time.append((self.input(index), what))
        return self.input(index)

    def need_static(self, value: str) -> tuple[int, ...]:
        """Return a value's shape if all its dims are fixed, or refuse with code `needs-shape`."""
        shape = self.shape(value)
        if shape is None or any(size is None for size in shape):
            self.refuse(
                f"the shape of {value!r} must be fixed below opset {self.version + 1}, and it is"
                f" {'unknown' if shape is None else list(shape)}",
                code="needs-shape",
                hint=FIX_DIMS,
            )
        return tuple(size for size in shape if size is not None)

    # Edits

    def cast_around(self, inputs: Sequence[int], outputs: Sequence[int], wide: int, narrow: int) -> None:
        """Cast inputs to element type `wide`, and outputs, which the node then computes in `wide`, back to `narrow`.

        The Casts of the outputs are written after all other nodes, by `finish`.
        """
        casted: dict[str, str] = {}
        for index in inputs:
            name = self.input(index)
            if name:
                # One Cast serves an input that the node reads twice.
                if name not in casted:
                    casted[name] = self.before("Cast", [name], hint="wide", to=wide)
                self.node.input[index] = casted[name]
        for index in outputs:
            name = self.output(index)
            if name:
                raw = self.detach_output(index, "wide")
                self.scope.record_type(raw, ValueType(wide, self.shape(name)))
                self._casts_after.append((raw, name, narrow))

    def finish(self) -> None:
        """Write the postponed Casts, and infer the types of the node's new outputs and of those written after it."""
        # The Casts back come last, because they read what the node writes.
        for raw, name, narrow in self._casts_after:
            self.after("Cast", [raw], [name], to=narrow)
        for written_node in (*(() if self.removed else (self.node,)), *self.following):
            self._record(written_node)
        if not self.removed:
            self._values.add(self.node)

    def _node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str,
        attributes: dict[str, Any],
    ) -> onnx.NodeProto:
        node = super()._node(operator, inputs, outputs, domain, attributes)
        self._record(node)
        self._values.add(node)
        return node

    def _record(self, node: onnx.NodeProto) -> None:
        if is_onnx(node.domain) == self.of_onnx:
            record_outputs(self.scope, node, self.version)

    def numpy_type(self, value: str) -> np.dtype[Any]:
        """Return the NumPy dtype of a value's element type, or refuse with code `needs-type`."""
        return helper.tensor_dtype_to_np_dtype(self.need_dtype(value))
