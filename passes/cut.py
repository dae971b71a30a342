"""The pass that leaves the part of a model between named values, before anything else is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import fed_inputs, names_read, output_names, producers
from onnx_migrate.model.interface import Interface, Port
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.part import Parts, cut, named_values, rest_behind
from onnx_migrate.verify.model_traits import dependents

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
            both, more = _in_both(model, first, rest)
            if both:
                log.note(
                    self.name,
                    "cut",
                    f"the rest computes {count_of(both, 'node')} of the first part again; it does not with"
                    f" --outputs {','.join((*outputs, *more))}",
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


def _in_both(model: Model, first: Model, rest: Model) -> tuple[int, list[str]]:
    """Return how many nodes both parts compute from inputs, and at which values the rest could read their results."""
    reached = dependents(model.proto, {value.name for value in fed_inputs(model.proto.graph)})
    in_first = producers(first.proto.graph).keys() & reached
    both = [node for node in rest.proto.graph.node if not in_first.isdisjoint(node.output)]
    made = {name for node in both for name in node.output}
    others = (node for node in rest.proto.graph.node if made.isdisjoint(node.output))
    read = (name for node in others for name in names_read(node))
    wanted = (name for name in (*read, *output_names(rest.proto.graph)) if name in made & reached)
    return len(both), list(dict.fromkeys(wanted))


def _described(part: Model) -> str:
    """Return the inputs and outputs of a part, as in "from x: float[1, 3] to y: float[1]"."""
    interface = Interface.of(part.proto)
    return f"from {_ports(interface.inputs)} to {_ports(interface.outputs)}"


def _ports(ports: tuple[Port, ...]) -> str:
    return listed(map(str, ports)) if ports else "no input"
