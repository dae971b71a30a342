"""Groups of nodes that a search tries, and the movers between nodes that stay."""

from __future__ import annotations

from itertools import chain

import numpy as np
from onnx_migrate.passes.precision.candidates import (
    as_group,
    computing,
    groups_by_bytes,
    groups_by_kind,
    parts_of,
)
from onnx_migrate.passes.precision.island_steps import islands_of, movers_between

from onnx_migrate.facts.typed_graph import Frame, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.verify.precision.groups import MOST_GROUPS
from tests.harness import model

W = "float[4,4] w = {" + ", ".join(f"{value:.4f}" for value in np.linspace(-1, 1, 16)) + "}"


def frames(text: str) -> list[Frame]:
    proto = model(text)
    return frames_of(proto, TypeTable(proto))


CHAIN = frames(f"""17 (float[4,4] x, bool c) => (float[4,4] y) <{W}> {{
    a = MatMul(x, w)  s = Softmax(a)  t = Transpose(s)  b = MatMul(t, w)  e = Exp(b)
    f = If (c) <then_branch = p () => (float[4,4] q) {{ q = Exp(e) }}, else_branch = r () => (float[4,4] u) {{ u = Neg(e) }}>
    y = Add(f, w) }}""")


def names(groups: list[list[object]]) -> list[list[str]]:
    return [[step.node.output[0] for step in group] for group in groups]  # type: ignore[attr-defined]


def test_what_computes_is_grouped_by_kind_and_products_along_the_graph() -> None:
    steps = computing(CHAIN[0].steps)
    groups = groups_by_kind(steps)

    assert names([steps]) == [["a", "s", "b", "e", "q", "y"]]
    assert names(groups) == [["s"], ["e", "q"], ["y"], ["a"], ["b"]]
    assert [as_group(group).products for group in groups] == [0, 0, 0, 1, 1]


def test_no_more_groups_than_a_session_switches() -> None:
    links = " ".join(f"a{at + 1} = MatMul(a{at}, w)  b{at + 1} = Exp(a{at})" for at in range(70))
    steps = computing(frames(f"17 (float[4,4] a0) => (float[4,4] a70) <{W}> {{ {links} }}")[0].steps)
    groups = groups_by_kind(steps)

    assert len(groups) <= MOST_GROUPS
    assert sorted(chain(*names(groups))) == sorted(names([steps])[0])
    finer = parts_of(groups[:1], 8)
    assert len(finer) == 8
    assert [*chain(*names(finer))] == names(groups[:1])[0]


def test_weights_are_grouped_by_their_bytes() -> None:
    assert names(groups_by_bytes(computing(CHAIN[0].steps))) == [["a"], ["b"], ["y"]]


def test_a_mover_between_nodes_that_stay_stays() -> None:
    by_name = {step.node.output[0]: step for step in CHAIN[0].steps}

    def between(*kept: str) -> list[str]:
        return [name for _, name in movers_between(CHAIN, islands_of(by_name[name] for name in kept))]

    assert between("s", "b") == ["t"]
    assert between("s") == between("b") == []
