"""Meanings are tried one after the other, the last first, and what was learnt is tried first."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.repair.hypotheses import Choices


def test_the_last_upstream_gives_way() -> None:
    choices = Choices()
    assert [choices.ask(place, place, 2) for place in "abc"] == [0, 0, 0]

    assert choices.reconsider({"a", "b"})

    choices.restart()
    assert [choices.ask(place, place, 2) for place in "abc"] == [0, 1, 0]
    assert choices.reconsider({"a", "b"})
    choices.restart()
    assert choices.ask("a", "a", 2) == 1
    assert not choices.reconsider({"x"})


def test_what_was_learnt_is_tried_first_at_the_next_of_its_pattern() -> None:
    choices = Choices()
    choices.ask("layer 1", "heads", 3)
    choices.reconsider({"layer 1"})
    choices.restart()

    assert choices.ask("layer 1", "heads", 3) == 1
    assert choices.ask("layer 2", "heads", 3) == 1


def test_it_ends() -> None:
    choices = Choices()
    tries = 0
    while True:
        choices.restart()
        for place in "abcd":
            choices.ask(place, "same", 3)
        tries += 1
        if not choices.reconsider(set("abcd")):
            break
    assert tries <= 3**4
