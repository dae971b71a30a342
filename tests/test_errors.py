"""The text of errors, and which exceptions become them."""

from __future__ import annotations

import errno
import pickle

import pytest

from onnx_migrate.advice import Advice
from onnx_migrate.errors import (
    CannotMigrate,
    InvalidModel,
    LoadError,
    MigrateError,
    PassError,
    SaveError,
    UsageError,
    VerificationFailed,
    Where,
    saving,
)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (Where(node="conv1"), "'conv1'"),
        (Where("graph", "conv1", "Conv"), "'conv1' (Conv)"),
        (Where("graph", "up", "Resize", 10, 11), "'up' (Resize-10 → 11)"),
        (Where("function com.acme:Block", "up", "Resize", 10), "'up' (Resize-10) in function com.acme:Block"),
    ],
)
def test_a_place_is_name_operator_versions_and_scope(where: Where, text: str) -> None:
    assert str(where) == text


def test_the_text_of_an_error_does_not_repeat_its_hint() -> None:
    where = Where("graph", "up", "Resize", 10, 11)
    error = CannotMigrate("no scales", where=where, hint="add them")

    assert str(error) == "'up' (Resize-10 → 11): no scales"
    assert error.hint == "not tried: add them"
    assert error.with_hint == "'up' (Resize-10 → 11): no scales (not tried: add them)"
    assert CannotMigrate("no scales").with_hint == "no scales"


@pytest.mark.parametrize("kind", [UsageError, LoadError, SaveError])
def test_a_hint_that_corrects_an_argument_needs_no_trial(kind: type[MigrateError]) -> None:
    error = kind("no such axis", hint="count axes from 0")

    assert (error.hint, error.hint_tried) == ("count axes from 0", True)


@pytest.mark.parametrize("kind", [MigrateError, CannotMigrate, InvalidModel, VerificationFailed, PassError])
def test_a_hint_that_promises_a_result_is_marked(kind: type[MigrateError]) -> None:
    error = kind("no equal", hint="export it again")

    assert (error.hint, error.hint_tried) == ("not tried: export it again", False)


def test_what_was_tried_stands_in_front_of_the_mark() -> None:
    hint = (Advice("export it again"), Advice("opset 13 works", tried=True), Advice("set axes"))
    error = CannotMigrate("no equal", hint=hint)

    assert (error.hint, error.hint_tried) == ("opset 13 works; not tried: export it again; set axes", False)
    error.advise(hint[1])
    assert (error.hint, error.hint_tried) == ("opset 13 works", True)
    error.advise("")
    assert (error.hint, error.hint_tried) == ("", True)


def test_a_traceback_shows_the_hint_as_it_is_now() -> None:
    error = UsageError("no opset", hint="give one")
    error.__notes__.append("of the caller")
    error.advise(Advice("opset 13 works", tried=True))

    assert error.__notes__ == ["of the caller", "Hint: opset 13 works"]


def test_a_code_has_a_default_for_each_kind() -> None:
    assert (LoadError("x").code, UsageError("x").code, LoadError("x", code="empty").code) == (
        "not-onnx",
        "usage",
        "empty",
    )


def test_an_error_pickles_with_all_it_says() -> None:
    error = CannotMigrate(
        "no scales", code="no-scales", where=Where(node="up"), hint=Advice("add them", options={"opset": 13})
    )

    again = pickle.loads(pickle.dumps(error))

    assert again.advice == error.advice
    assert (type(again), again.code, again.where, again.hint, str(again)) == (
        CannotMigrate,
        "no-scales",
        Where(node="up"),
        "not tried: add them",
        str(error),
    )


def test_a_usage_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no such axis"):
        raise UsageError("no such axis")


def test_an_error_of_the_system_names_the_path() -> None:
    with pytest.raises(SaveError) as caught, saving("out.onnx"):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert caught.value.with_hint == "out.onnx: cannot be written: No space left on device"


def test_a_closed_pipe_is_not_an_error_of_writing() -> None:
    with pytest.raises(BrokenPipeError), saving("-"):
        raise BrokenPipeError
