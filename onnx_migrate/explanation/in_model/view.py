"""A model as the questions see it: its nodes with their place and opset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.explanation.operator_facts import canonical
from onnx_migrate.model.graphs import Body, bodies, called, function_key, initializer_names, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.spec.opsets import imported, onnx_opset
from onnx_migrate.spec.schema import is_onnx, signature_at

__all__ = ["Finding", "ModelView", "Place"]


@dataclass(frozen=True)
class Place:
    """A node, the body that it is in, and the version of its domain that the body imports."""

    node: onnx.NodeProto
    body: Body
    where: Where


@dataclass(frozen=True)
class Finding:
    """The answer to one question: whether the model would raise the error, None if that cannot be told; and the nodes."""

    raises: bool | None
    reason: str
    places: tuple[Where, ...] = ()


@dataclass(frozen=True)
class ModelView:
    """A model, of which only the structure is read."""

    model: Model

    @property
    def proto(self) -> onnx.ModelProto:
        """The structure."""
        return self.model.proto

    @property
    def opset(self) -> int | None:
        """The opset of ai.onnx that the model imports."""
        return onnx_opset(self.proto.opset_import, ir_version=self.proto.ir_version)

    def version_of(self, domain: str) -> int | None:
        """Return the version of a domain that the model imports, None if it does not import it."""
        return self.opset if is_onnx(domain) else imported(self.proto.opset_import, domain)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All nodes but calls of local functions."""
        return tuple(self._places())

    def _places(self) -> Iterator[Place]:
        functions = {function_key(function) for function in self.proto.functions}
        for located in bodies(self.proto):
            imports = located.owner.opset_import
            own = onnx_opset(imports, ir_version=self.proto.ir_version)
            for node in located.body.node:
                if functions and called(node) in functions:
                    continue
                opset = own if is_onnx(node.domain) else imported(imports, node.domain)
                form = signature_at(node.domain, node.op_type, opset or 0)
                version = form.since_version if form else None
                yield Place(
                    node, located.body, Where(located.path, node_label(node), node.op_type, version or opset)
                )

    def of(self, operators: tuple[str, ...]) -> list[Place]:
        """Return the nodes of operators, by names as texts write them; of all if none is named."""
        names = {(key[1] if (key := canonical(name)) else name).lower() for name in operators if name}
        return [place for place in self.places if not names or place.node.op_type.lower() in names]

    def having(self, operators: tuple[str, ...], holds: Callable[[Place], bool]) -> tuple[Where, ...]:
        """Return where the nodes of operators are for which something holds."""
        return tuple(place.where for place in self.of(operators) if holds(place))

    def constant(self, body: Body, name: str) -> bool:
        """Return whether a value is an initializer or the result of a Constant, of the body or the main graph."""
        known = self._constants.get(id(body))
        if known is None:
            known = {output for node in body.node if node.op_type == "Constant" for output in node.output}
            if isinstance(body, onnx.GraphProto):
                known |= initializer_names(body)
            self._constants[id(body)] = known
        return name in known or (body is not self.proto.graph and self.constant(self.proto.graph, name))

    @cached_property
    def _constants(self) -> dict[int, set[str]]:
        return {}
