"""The pass that leaves the part of a model between named values, before anything else is changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from onnx_migrate.engine.helping_passes import PartPass
from onnx_migrate.engine.obligations import Behind, Obligation, PassResult
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import fed_inputs, names_read, output_names, producers
from onnx_migrate.model.interface import Interface, Port
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Rest
from onnx_migrate.rewrite.part import cut, named_values, rest_behind
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify.inputs.user_inputs import Feeds
from onnx_migrate.verify.model_traits import dependents
from onnx_migrate.verify.prover import Prover

__all__ = ["Cut", "Part"]


@dataclass(frozen=True)
class Part(Obligation):
    """The model after the pass is a part of the model before it, which computes there bit for bit what the whole does.

    `rest` is the part behind it, if the user asked for that too.
    """

    changes_interface = True
    rest: Model | None = None

    def baseline(self, earlier: Model, after: Model) -> Model:
        """Return the part."""
        return after

    def feeds_after(self, feeds: Feeds, before: Model, after: Model) -> Feeds:
        """Return the inputs that the part reads of the whole's."""
        return feeds.of_part(before.proto, after.proto)

    def prove(self, prover: Prover, before: Model, after: Model, behind: Behind) -> Verdict:
        """Run the whole and its parts, and return the verdict with their proof.

        The result runs with the rest behind it too, unless a pass changed numbers or types on purpose.
        """
        from onnx_migrate.verify.parts import from_stand_in, prove_parts

        verdict, settings = behind.verdict, prover.settings
        # Other numbers cannot be compared bit by bit.
        joined = None if self.rest is None or verdict.compared_with or not verdict.verified else behind.result
        # Inputs of the part need not be inputs of the whole.
        if settings.feeds is not None and not settings.feeds.cover(before.proto):
            settings = replace(settings, input_data=None)
        parts = [after, *([] if self.rest is None else [self.rest])]
        start = prove_parts(prover, before, parts, settings, joined)
        doubt = "the part was not compared with the whole model"
        stand_in = "the part that was cut out stood in for the whole model"
        return from_stand_in(verdict, start, "the extracted part", stand_in, doubt)


@register_pass
@dataclass(frozen=True)
class Cut(PartPass):
    """Leave the nodes that compute the outputs from the inputs, with the weights that they read.

    The log has the rest as a fact. Raises as `rewrite.part.cut`.
    """

    name: ClassVar[str] = "cut"
    title: ClassVar[str] = "cutting the model"
    outputs: str | tuple[str, ...] = ()
    inputs: str | tuple[str, ...] = ()
    rest: bool = False
    """Whether the nodes after the outputs become a second part."""

    def output_names(self, model: Model) -> tuple[str, ...]:
        """Return the names that the user gave for the outputs of the part."""
        return named_values(self.outputs, model.proto) if self.outputs else ()

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Return the first part."""
        outputs, inputs = (named_values(request, model.proto) for request in (self.outputs, self.inputs))
        first = cut(model, outputs, inputs)
        rest = rest_behind(model, outputs) if self.rest else None
        if rest is not None:
            log.record_fact("", "", Rest(rest))
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
                    f" --extract-outputs {','.join((*outputs, *more))}",
                    subject="rest",
                )
        if model.proto.training_info:
            log.note(
                self.name,
                "cut",
                "training information was removed, because it describes the whole model",
                severity="warning",
            )
        return PassResult(first, Part(rest))


def _in_both(model: Model, first: Model, rest: Model) -> tuple[int, list[str]]:
    """Return how many nodes both parts compute from inputs, and at which values the rest could read their results."""
    reached = dependents(model.proto, {value.name for value in fed_inputs(model.proto.graph)})
    # Values that follow from constants alone cost nothing twice.
    in_first = producers(first.proto.graph).keys() & reached
    both = [node for node in rest.proto.graph.node if not in_first.isdisjoint(node.output)]
    computed_twice = {name for node in both for name in node.output}
    others = (node for node in rest.proto.graph.node if computed_twice.isdisjoint(node.output))
    read = (name for node in others for name in names_read(node))
    wanted = (name for name in (*read, *output_names(rest.proto.graph)) if name in computed_twice & reached)
    return len(both), list(dict.fromkeys(wanted))


def _described(part: Model) -> str:
    """Return the inputs and outputs of a part as text: "from x: float[1, 3] to y: float[1]"."""
    interface = Interface.of(part.proto)
    return f"from {_ports(interface.inputs)} to {_ports(interface.outputs)}"


def _ports(ports: tuple[Port, ...]) -> str:
    return listed(map(str, ports)) if ports else "no input"
