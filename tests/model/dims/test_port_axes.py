"""Inputs, outputs and axes are found as users name them."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.model.dims.port_axes import axis_of, port_named, tokens_of
from onnx_migrate.model.interface import Port

X, UNKNOWN = Port("Image", "float", (1, 3)), Port("z", "float", None)


def test_a_name_that_is_nearly_one_is_refused_with_that() -> None:
    ports = {"Image": X, "z": UNKNOWN}

    assert port_named("Image", ports) is X
    with pytest.raises(UsageError, match=r"no input or output 'image'.*did you mean Image\?") as caught:
        port_named("image", ports)
    assert caught.value.code == "no-such-input"


def test_axes_are_counted_from_both_ends() -> None:
    assert [axis_of(axis, X) for axis in (0, 1, -1, -2)] == [0, 1, 1, 0]
    assert axis_of(5, UNKNOWN) == 5
    for axis, port, words in (
        (2, X, "has no axis 2"),
        (-1, UNKNOWN, "declares no shape"),
        (True, X, "is not an axis"),
        ("0", X, "is not an axis"),
    ):
        with pytest.raises(UsageError, match=words):
            axis_of(axis, port)


def test_brackets_around_all_axes_have_no_meaning() -> None:
    assert tokens_of("[N, 3,H]") == tokens_of("(N,3, H)") == tokens_of(" N,3,H") == ["N", "3", "H"]
    assert tokens_of("[N,3") == ["[N", "3"]
