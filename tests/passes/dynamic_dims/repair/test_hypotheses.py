"""Options are tried one after the other, the last choice first."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.repair.hypotheses import Hypotheses, upstream_labels

from tests.harness import model
from tests.support.repairs import text


def test_backtracking_gives_up_the_last_choice_upstream() -> None:
    hypotheses = Hypotheses()
    assert [hypotheses.choose(label, label, 2) for label in "abc"] == [0, 0, 0]

    assert hypotheses.backtrack({"a", "b"})

    hypotheses.restart()
    assert [hypotheses.choose(label, label, 2) for label in "abc"] == [0, 1, 0]
    assert hypotheses.backtrack({"a", "b"})
    hypotheses.restart()
    assert hypotheses.choose("a", "a", 2) == 1
    assert not hypotheses.backtrack({"x"})


def test_the_option_that_backtracking_reached_is_tried_first_for_its_pattern() -> None:
    hypotheses = Hypotheses()
    hypotheses.choose("layer 1", "heads", 3)
    hypotheses.backtrack({"layer 1"})
    hypotheses.restart()

    assert hypotheses.choose("layer 1", "heads", 3) == 1
    assert hypotheses.choose("layer 2", "heads", 3) == 1


def test_the_search_ends() -> None:
    hypotheses = Hypotheses()
    tries = 0
    while True:
        hypotheses.restart()
        for label in "abcd":
            hypotheses.choose(label, "same", 3)
        tries += 1
        if not hypotheses.backtrack(set("abcd")):
            break
    assert tries <= 3**4


def test_labels_upstream_are_those_of_ancestors() -> None:
    source = model(text("float[4] x", "float[4] y", "a = Relu(x) b = Neg(x) y = Abs(a)"))

    labels = upstream_labels(source, "y", nested=False)

    assert [label in labels for label in ("a", "a[1]", "y", "b")] == [True, True, True, False]
    assert "b" in upstream_labels(source, "y", nested=True)
