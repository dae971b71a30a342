"""An original whose groups of nodes compute in a narrow type or not, by inputs: one session stands for many results.

To load a result takes longer than to run it, and a search for the nodes that must keep their type tries many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import BodyKey
from onnx_migrate.model.names import Names
from onnx_migrate.verify.evaluators.interface import Runnable
from onnx_migrate.verify.evaluators.strict import is_exact, rounding

__all__ = ["switched"]


def switched(
    original: Runnable, result: Runnable, kind: int, groups: Sequence[Sequence[tuple[BodyKey, str]]]
) -> tuple[Runnable, list[str]]:
    """Return the original with values rounded as they are in `result`, and for each group of nodes an input that prevents it.

    The nodes of groups are named by their bodies and first outputs. What a node of a group reads and makes is not rounded while
    the group's input, a boolean, is true.
    """
    model = original.proto()
    frames, names = frames_of(model, TypeTable(model)), Names(model)
    narrow = {
        name
        for made in frames_of(result.model, TypeTable(result.model))
        for name, value in made.values.items()
        if value.dtype == kind or _widens(value, kind)
    }
    switches = [names.fresh(f"keep_{place}") for place in range(len(groups))]
    by_place = {place: switch for switch, group in zip(switches, groups, strict=True) for place in group}
    by_step = {
        step: by_place.get((frame.key, step.node.output[0])) for frame in frames for step in frame.steps
    }
    for frame in reversed(frames):  # a body is copied with those inside it
        _Rounding(frame, kind, narrow, names, by_step).write()
    for switch in switches:
        model.graph.input.append(onnx.helper.make_tensor_value_info(switch, TensorProto.BOOL, []))
    return original.with_structure(model), switches


def _widens(value: Value, kind: int) -> bool:
    """Return whether a Cast makes a value of one of a type, as an output that keeps its own."""
    given = value.maker.inputs[0] if value.maker is not None and value.maker.is_a("Cast") else None
    return given is not None and given.dtype == kind


class _Rounding:
    """Writes what rounds the values of one body."""

    def __init__(
        self, frame: Frame, kind: int, narrow: set[str], names: Names, switches: Mapping[Step, str | None]
    ) -> None:
        self._frame, self._kind, self._narrow = frame, kind, narrow
        self._names, self._switches = names, switches
        self._nodes: list[onnx.NodeProto] = []
        self._read: dict[tuple[Value, str | None], str] = {}

    def write(self) -> None:
        for step in self._frame.steps:
            computes = any(value is not None and value.name in self._narrow for value in step.outputs)
            for place, value in enumerate(step.inputs if computes else ()):
                if value is not None and self._is_rounded(value, step):
                    step.node.input[place] = self._rounded(value, self._switches[step])
            self._nodes.append(step.node)
            if is_exact(step) and not any(map(self._is_wide_constant, step.inputs)):
                continue
            for place, value in enumerate(step.outputs):
                if value is not None and value.dtype == TensorProto.FLOAT and value.name in self._narrow:
                    step.node.output[place] = wide = self._names.fresh(f"{value.name}_wide")
                    self._round(wide, value.name, self._switches[step])
        del self._frame.body.node[:]
        self._frame.body.node.extend(self._nodes)

    def _is_wide_constant(self, value: Value | None) -> bool:
        return value is not None and value.tensor is not None and value.name not in self._narrow

    def _is_rounded(self, value: Value, step: Step) -> bool:
        """Return whether a node that computes in the narrow type rounds what it reads, not being rounded where it is made."""
        if value.dtype != TensorProto.FLOAT:
            return False
        if value.tensor is not None:
            return value.name in self._narrow
        maker = value.maker
        return (
            maker is None
            or value.name not in self._narrow
            or self._switches[maker] not in (None, self._switches[step])
        )

    def _rounded(self, value: Value, switch: str | None) -> str:
        if (value, switch) not in self._read:
            self._read[value, switch] = self._names.fresh(f"{value.name}_read")
            self._round(value.name, self._read[value, switch], switch)
        return self._read[value, switch]

    def _round(self, source: str, target: str, switch: str | None) -> None:
        narrow = self._names.fresh(f"{target}_narrow")
        rounded = self._names.fresh(f"{target}_rounded") if switch else target
        casts = rounding(source, narrow, rounded, self._kind)
        if not switch:
            self._nodes += casts
            return
        # A Where of one boolean takes four times as long as two Casts (ONNX Runtime 1.32).
        kept = self._names.fresh(f"{target}_kept")
        same = onnx.helper.make_node("Identity", [source], [kept])
        self._nodes.append(
            onnx.helper.make_node(
                "If",
                [switch],
                [target],
                then_branch=_branch([same], kept),
                else_branch=_branch(casts, rounded),
            )
        )


def _branch(nodes: list[onnx.NodeProto], output: str) -> onnx.GraphProto:
    value = onnx.helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    return onnx.helper.make_graph(nodes, "branch", [], [value])
