from __future__ import annotations

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onnx_migrate.errors import LoadError
from onnx_migrate.files import inline, load
from onnx_migrate.files.wire.protobuf import Malformed, decode_varint, encode_varint, header, parse_fields
from tests.files.feature_models import FEATURES


@given(st.integers(0, 2**64 - 1))
def test_varints_round_trip(value: int) -> None:
    assert decode_varint(encode_varint(value), 0, 10) == (value, len(encode_varint(value)))
    assert parse_fields(header(7, 3) + b"abc", 0, 5)[0][:4] == (7, 2, 0, 2)


def test_each_wire_type_is_skipped_by_its_length() -> None:
    parts = [
        b"\x08\x96\x01",  # field 1, varint
        b"\x11" + bytes(8),  # field 2, 64 bits
        b"\x1a\x03abc",  # field 3, length-delimited
        b"\x23\x08\x01\x2b\x2c\x24",  # field 4, a group with field 1 and an empty group of field 5 in it
        b"\x35" + bytes(4),  # field 6, 32 bits
    ]
    data = b"".join(parts)
    found = parse_fields(data, 0, len(data))

    assert [(field.number, field.wire_type) for field in found] == [(1, 0), (2, 1), (3, 2), (4, 3), (6, 5)]
    assert [data[field.start : field.end] for field in found] == parts
    assert data[found[2].value : found[2].end] == b"abc"


@pytest.mark.parametrize(
    ("data", "at", "missing"),
    [
        (b"\x08\x01\x1a\x05ab", 2, 3),  # three bytes of field 3 are missing
        (b"\x08\x01\x08\xff", 3, 1),  # the data ends within a varint
        (b"\x08" + b"\xff" * 10 + b"\x01", 1, 0),
        (b"\x08\x01\x0e", 2, 0),  # wire type 6 does not exist
        (b"\x08\x01\x02\x00", 2, 0),  # field number 0
        (b"\x08\x01\x23\x2c", 2, 0),  # a group closed by the end tag of another
        (b"\x08\x01\x0c", 2, 0),  # an end tag without a group
    ],
)
def test_malformed_bytes_are_located(data: bytes, at: int, missing: int) -> None:
    with pytest.raises(Malformed) as caught:
        parse_fields(data, 0, len(data))
    assert (caught.value.at, caught.value.missing) == (at, missing)
    assert caught.value.reason


SEEDS = [
    FEATURES[name]().SerializeToString() for name in ("plain", "nested", "sparse", "functions", "future")
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A model with some of its bytes outside the weights overwritten, cut out or put in."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    interesting = [at for at in range(len(data)) if at < 60 or at > len(data) - 60 or at % 12_000 < 60]
    for _ in range(draw(st.integers(1, 4))):
        at = min(draw(st.sampled_from(interesting)), len(data) - 1)
        kind = draw(st.integers(0, 2))
        piece = draw(st.binary(min_size=1, max_size=3))
        if kind == 0:
            data[at : at + len(piece)] = piece
        elif kind == 1:
            del data[at : at + len(piece)]
        else:
            data[at:at] = piece
    return bytes(data)


def agree(data: bytes) -> None:
    """What protobuf reads as a model with a graph is read the same; nothing else than LoadError is raised."""
    try:
        want = onnx.ModelProto.FromString(data)
    except DecodeError:
        want = None
    code, got = "", None
    try:
        got = inline(load(data))
    except LoadError as error:
        code = error.code
    if got is not None:
        assert want is None or got.SerializeToString() == want.SerializeToString()
    elif want is not None and want.HasField("graph") and want.ir_version > 0:
        assert code in ("missing-data", "bad-external-data", "not-utf8")


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(damaged())
def test_damaged_models_read_as_protobuf_reads_them(data: bytes) -> None:
    agree(data)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
@example(b"\x08\x08\x3a\x00")
@example(b"\x88\x80\x00\x08\x3a\x00")
@example(b"\x08\x08\x3a\x00\x0b\x13\x14\x0c")
def test_arbitrary_bytes_read_as_protobuf_reads_them(data: bytes) -> None:
    agree(data)
