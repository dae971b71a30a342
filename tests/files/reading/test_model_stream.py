"""A model from a pipe is read whole, and what is none, or has no end, is read no further than that shows."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

import numpy as np
import pytest

from onnx_migrate.errors import LoadError
from onnx_migrate.files.load import load
from onnx_migrate.files.reading.model_stream import read_model
from onnx_migrate.files.wire.protobuf import header
from tests.files.feature_models import model, plain, weight

ENDLESS = {
    "zeros": lambda count: bytes(count),
    "text": lambda count: (b"y\n" * count)[:count],
    "random": lambda count: np.random.default_rng(0).bytes(count),
    "gzip": lambda count: b"\x1f\x8b" + bytes(count - 2),
    "groups": lambda count: (b"\x0b\x0c" * count)[: count // 2 * 2 - 2] + b"\x0b\x14",
    "nested groups": lambda count: b"\x0b" * count,
    "field 0": lambda count: b"\x08\x08" + bytes(count - 2),
}


@pytest.mark.parametrize("size", [3, 70_000, 1 << 22])
@pytest.mark.parametrize("step", [1 << 20, 5000])
def test_a_model_is_read_whole(size: int, step: int) -> None:
    data = model([weight("w", 1, size), weight("v")]).SerializeToString()

    file = io.BytesIO(data)
    assert read_model(lambda _: file.read(step), "x") == data


@pytest.mark.parametrize("case", ENDLESS)
def test_what_is_no_model_ends_the_reading(case: str) -> None:
    count = 0

    def read(wanted: int) -> bytes:
        nonlocal count
        count += wanted
        assert count < 1 << 24
        return bytes(ENDLESS[case](wanted))

    with pytest.raises(LoadError, match="not a"):
        load(bytes(read_model(read, "x")))


def test_a_model_with_a_group_is_read_whole() -> None:
    data = b"\xa3\x06" + header(1, 1 << 20) + bytes(1 << 20) + b"\xa4\x06" + plain().SerializeToString()
    file = io.BytesIO(data)

    assert read_model(lambda _: file.read(5000), "x") == data
    assert load(data).proto.graph.name == plain().graph.name


def endless(start: bytes, block: bytes) -> Callable[[int], bytes]:
    rest = [start]
    return lambda _: rest.pop() if rest else block


@pytest.mark.parametrize("field", [header(7, 1 << 60), header(20, 1 << 62)])
def test_a_model_that_is_too_large_for_the_memory_is_refused(field: bytes) -> None:
    start = plain().SerializeToString() + field

    with pytest.raises(LoadError, match="more than 16,777,216 bytes") as caught:
        read_model(endless(start, bytes(1 << 20)), "<stdin>", 1 << 24)
    assert caught.value.code == "cannot-read"


@pytest.mark.parametrize("seed", range(200))
def test_random_bytes_are_read_no_further_than_the_limit(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    count = 0

    def read(wanted: int) -> bytes:
        nonlocal count
        count += wanted
        assert count < 1 << 26
        return numbers.bytes(wanted)

    with pytest.raises(LoadError, match=r"not a|too much for the memory"):
        load(bytes(read_model(read, "x", 1 << 25)))


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="the system has no paths of descriptors")
def test_a_model_is_loaded_from_an_open_pipe() -> None:
    reader, writer = os.pipe()
    data = model([weight("w")]).SerializeToString()
    os.write(writer, data)
    os.close(writer)

    loaded = load(f"/dev/fd/{reader}")
    os.close(reader)
    assert loaded.name == f"/dev/fd/{reader}"
    assert loaded.proto.graph.name == model([]).graph.name
