from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onnx_migrate.errors import LoadError
from onnx_migrate.files import inline, load
from onnx_migrate.files.wire.protobuf import decode_varint, encode_varint, header, parse_fields
from tests.files.feature_models import FEATURES


@given(st.integers(0, 2**64 - 1))
def test_varints_round_trip(value: int) -> None:
    assert decode_varint(encode_varint(value), 0, 10) == (value, len(encode_varint(value)))
    assert parse_fields(header(7, 3) + b"abc", 0, 5)[0][:4] == (7, 2, 0, 2)


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
        assert code in ("missing-data", "bad-external-data")


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
