"""The pass that leaves the part of a model between named values, before anything else is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.interface import Interface, Port
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.part import Parts, cut, named_values, rest_behind

__all__ = ["Cut"]


@register_pass
@dataclass(frozen=True)
class Cut(Pass):
    """Leave the nodes that compute the outputs from the inputs, with the weights that they read.

    The log has both parts as a fact, for the proof that they compute bit for bit what the whole does there. Raises as
    `rewrite.part.cut`.
    """

    name: ClassVar[str] = "cut"
    narrows: ClassVar[bool] = True
    cuts: ClassVar[bool] = True
    outputs: str | tuple[str, ...] = ()
    inputs: str | tuple[str, ...] = ()
    rest: bool = False
    """Whether what is behind the outputs becomes a second part."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return the first part."""
        outputs, inputs = (named_values(asked, model.proto) for asked in (self.outputs, self.inputs))
        first = cut(model, outputs, inputs)
        rest = rest_behind(model, outputs) if self.rest else None
        log.record_fact("", "", Parts(first.copy(), rest))
        all_nodes = len(model.proto.graph.node)
        log.note(
            self.name,
            "cut",
            f"{_described(first)}: {count_of(len(first.proto.graph.node), 'node')} of {all_nodes}",
        )
        if rest is not None:
            log.note(
                self.name,
                "cut",
                f"the rest, {_described(rest)}: {count_of(len(rest.proto.graph.node), 'node')}",
                subject="rest",
            )
        if model.proto.training_info:
            log.note(
                self.name,
                "cut",
                "training information was left out, as it is of the whole model",
                severity="warning",
            )
        return first


def _described(part: Model) -> str:
    """Return the inputs and outputs of a part, as in "from x: float[1, 3] to y: float[1]"."""
    interface = Interface.of(part.proto)
    return f"from {_ports(interface.inputs)} to {_ports(interface.outputs)}"


def _ports(ports: tuple[Port, ...]) -> str:
    return listed(map(str, ports)) if ports else "no input"
