"""Graphs folded into few boxes, in an order in which each box reads only those before it."""

from __future__ import annotations

import pytest

from onnx_migrate.report.body_view import ViewedNode
from onnx_migrate.report.html.folding import Fold, folded, scope_of


def chain(names: list[str], changed: tuple[int, ...] = ()) -> tuple[ViewedNode, ...]:
    return tuple(
        ViewedNode(name, "Relu", (place - 1,) if place else (), place if place in changed else None)
        for place, name in enumerate(names)
    )


SCOPED = [f"/model/layers.{n // 10}/block.{n // 5 % 2}/Relu_{n}" for n in range(200)]
PLAIN = [f"Relu.{n}" for n in range(200)]
ONE_SCOPE = [f"/model/Relu_{n}" for n in range(200)]
EACH_ITS_OWN = [f"/s{n}/Relu" for n in range(200)]
NAMES = {
    "scoped": SCOPED,
    "plain": PLAIN,
    "one scope": ONE_SCOPE,
    "each its own": EACH_ITS_OWN,
    "none": [""] * 200,
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("changed", [(), (3, 77), tuple(range(0, 200, 2)), tuple(range(200))], ids=len)
@pytest.mark.parametrize("most", [20, 40, 150, 200])
def test_boxes_are_few_in_order_and_hold_every_node_once(
    names: list[str], changed: tuple[int, ...], most: int
) -> None:
    nodes = chain(names, changed)
    folds = folded(nodes, range(200), most)

    assert len(folds) <= most
    assert [place for fold in folds for place in fold.members] == list(range(200)), (
        "each reads those before it"
    )
    assert all(len(fold.members) == 1 or fold.label for fold in folds)
    assert max(len(fold.members) for fold in folds) < 200
    if 0 < len(changed) <= most // 2 and len(changed) <= 40:
        assert all(Fold((place,)) in folds for place in changed), "in place"


def test_scopes_are_boxes_as_deep_as_there_is_room() -> None:
    nodes = chain(SCOPED)
    assert [fold.label for fold in folded(nodes, range(200), 25)][:2] == ["model/layers.0", "model/layers.1"]
    assert [fold.label for fold in folded(nodes, range(200), 45)][:2] == [
        "layers.0/block.0",
        "layers.0/block.1",
    ]
    assert all(len(fold.members) == 1 for fold in folded(nodes, range(200), 200))


def test_runs_without_scopes_are_named_by_their_operators_and_those_across_scopes_by_both_ends() -> None:
    assert folded(chain(PLAIN), range(200), 20)[0].label == "Relu"
    assert folded(chain(EACH_ITS_OWN), range(200), 20)[0].label == "s0 … s10"


def test_the_scope_of_a_name() -> None:
    assert scope_of("/model/conv1/Conv") == ("model", "conv1")
    assert scope_of("model/conv1/Conv:0") == ("model", "conv1", "Conv")
    assert scope_of("Conv_1") == scope_of("") == ()


def test_layers_that_the_exporter_recorded_fold_nodes_whose_names_have_no_scope() -> None:
    nodes = tuple(
        ViewedNode(
            f"node_Relu_{place}", "Relu", (place - 1,) if place else (), layer=("net", f"block.{place // 20}")
        )
        for place in range(400)
    )
    folds = folded(nodes, range(400), 50)

    assert [fold.label for fold in folds] == [f"net/block.{block}" for block in range(20)]


def test_a_node_that_a_pass_added_belongs_to_the_layer_before_it() -> None:
    nodes = tuple(
        ViewedNode(f"n{place}", "Relu", layer=() if place % 20 == 7 else ("net", f"block.{place // 20}"))
        for place in range(400)
    )

    assert [len(fold.members) for fold in folded(nodes, range(400), 50)] == [20] * 20
