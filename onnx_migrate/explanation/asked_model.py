"""The model and the error text's values that a question gets, and the form of its answer: would the model raise the error?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.errors import Where
from onnx_migrate.explanation.operator_facts import canonical
from onnx_migrate.inspection import LocatedNode, located_nodes
from onnx_migrate.model.graphs import Body, bodies, initializer_names
from onnx_migrate.model.model import Model
from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.schema import is_onnx

__all__ = ["Asked", "Finding"]


@dataclass(frozen=True)
class Finding:
    """The answer to one question: whether the model would raise the error, None if nobody can tell; and the nodes."""

    raises: bool | None
    reason: str
    places: tuple[Where, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A model, and the values of the error text that the question uses; "" for a value that the text does not contain."""

    model: Model
    given: Mapping[str, tuple[str, ...]]

    @property
    def proto(self) -> onnx.ModelProto:
        """Return the structure of the model."""
        return self.model.proto

    @property
    def opset(self) -> int | None:
        """The opset of ai.onnx that the model imports."""
        return onnx_opset(self.proto.opset_import, ir_version=self.proto.ir_version)

    @cached_property
    def nodes(self) -> tuple[LocatedNode, ...]:
        """All nodes but calls of local functions."""
        return tuple(node for node in located_nodes(self.proto) if not node.is_call)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that the text names."""
        return tuple(filter(None, self.given.get("op", ())))

    @property
    def domain(self) -> str:
        """The domain that the text names, "" for ai.onnx."""
        domain = self.text("domain")
        return "" if is_onnx(domain) else domain

    @property
    def imported(self) -> int | None:
        """The version of that domain that the model imports, None if it does not import it."""
        return self.opset if is_onnx(self.domain) else imported(self.proto.opset_import, self.domain)

    def text(self, name: str) -> str:
        """Return a value of the text, "" if it has none."""
        return next(iter(self.given.get(name, ())), "")

    def number(self, name: str) -> int | None:
        """Return a value of the text as a number, None if it is not a number."""
        text = self.text(name)
        return int(text) if text.isdigit() else None

    def of(self, operators: Iterable[str]) -> list[LocatedNode]:
        """Return the nodes of operators, which may be spelt as in error texts; all nodes if `operators` is empty."""
        names = {(key[1] if (key := canonical(name)) else name).lower() for name in operators}
        return [located for located in self.nodes if not names or located.node.op_type.lower() in names]

    def is_constant(self, body: object, name: str) -> bool:
        """Return whether a value is an initializer or the result of a Constant, of the body or the main graph."""
        graph = self.proto.graph
        return name in self._constants[id(body)] or name in self._constants[id(graph)]

    def initializer(self, body: object, name: str) -> onnx.TensorProto | None:
        """Return an initializer of the body or of the main graph, None if there is none of this name."""
        graphs = [graph for graph in (body, self.proto.graph) if isinstance(graph, onnx.GraphProto)]
        tensors = (tensor for graph in graphs for tensor in graph.initializer if tensor.name == name)
        return next(tensors, None)

    @cached_property
    def _constants(self) -> dict[int, set[str]]:
        by_body = {}
        for body in self._bodies:
            constant_outputs = {
                output for node in body.node if node.op_type == "Constant" for output in node.output
            }
            by_body[id(body)] = constant_outputs | (
                initializer_names(body) if isinstance(body, onnx.GraphProto) else set()
            )
        return by_body

    @cached_property
    def _bodies(self) -> list[Body]:
        """Return the bodies of the model. They are kept so that no new body gets the id of an old one."""
        return [located.body for located in bodies(self.proto)]
