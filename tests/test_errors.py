"""The text of errors, and which exceptions become them."""

from __future__ import annotations

import errno
import pickle

import pytest

from onnx_migrate.errors import CannotMigrate, LoadError, SaveError, UsageError, Where, saving


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


def test_an_error_is_place_reason_and_hint() -> None:
    where = Where("graph", "up", "Resize", 10, 11)

    assert (
        str(CannotMigrate("no scales", where=where, hint="add them"))
        == "'up' (Resize-10 → 11): no scales (add them)"
    )
    assert str(CannotMigrate("no scales")) == "no scales"


def test_a_code_has_a_default_for_each_kind() -> None:
    assert (LoadError("x").code, UsageError("x").code, LoadError("x", code="empty").code) == (
        "not-onnx",
        "usage",
        "empty",
    )


def test_an_error_pickles_with_all_it_says() -> None:
    error = CannotMigrate("no scales", code="no-scales", where=Where(node="up"), hint="add them")

    again = pickle.loads(pickle.dumps(error))

    assert (type(again), again.code, again.where, again.hint, str(again)) == (
        CannotMigrate,
        "no-scales",
        Where(node="up"),
        "add them",
        str(error),
    )


def test_a_usage_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no such axis"):
        raise UsageError("no such axis")


def test_an_error_of_the_system_names_the_path() -> None:
    with pytest.raises(SaveError) as caught, saving("out.onnx"):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert str(caught.value) == "out.onnx: cannot be written: No space left on device"


def test_a_closed_pipe_is_not_an_error_of_writing() -> None:
    with pytest.raises(BrokenPipeError), saving("-"):
        raise BrokenPipeError
