"""The note that tells of an option says how far apart its result is, once that was measured."""

from __future__ import annotations

import onnx

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.alternative import Alternative, tell_distance
from onnx_migrate.rewrite.change_log import ChangeLog


def test_the_distance_is_added_to_the_note_and_to_no_other() -> None:
    log = ChangeLog()
    log.note("one", "first", "before it")
    log.note("one", "second", "it computes otherwise", severity="warning")
    alternative = Alternative(Model(onnx.ModelProto()), log.notes[-1], "--otherwise")
    log.note("one", "third", "after it")

    tell_distance(log, alternative, "'y' differs by 1 of 2")

    assert [note.message for note in log.notes] == [
        "before it",
        "it computes otherwise. With --otherwise, 'y' differs by 1 of 2",
        "after it",
    ]
    assert log.notes[1].severity == "warning"
