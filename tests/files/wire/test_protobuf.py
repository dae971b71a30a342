from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onnx_migrate.errors import LoadError
from onnx_migrate.files import inline, load
from onnx_migrate.files.wire.protobuf import MODEL, TENSOR, Kind, encoded, fields, header, varint
from tests.files.feature_models import FEATURES


def test_the_field_numbers_are_those_of_onnx() -> None:
    """Each field through which onnx's own descriptors lead from a model to a tensor is followed, no other."""
    seen: dict[str, Kind] = {}

    def leads(descriptor: object, path: tuple[str, ...] = ()) -> bool:
        name = descriptor.full_name  # type: ignore[attr-defined]
        if name == "onnx.TensorProto":
            return True
        inner = [f.message_type for f in descriptor.fields if f.message_type]  # type: ignore[attr-defined]
        return name not in path and any(leads(kind, (*path, name)) for kind in inner)

    def compare(descriptor: object, kind: Kind) -> None:
        name = descriptor.full_name  # type: ignore[attr-defined]
        if name in seen:
            assert seen[name] is kind
            return
        seen[name] = kind
        if name == "onnx.TensorProto":
            assert kind is TENSOR
            return
        found = {f.number: f for f in descriptor.fields if f.message_type and leads(f.message_type)}  # type: ignore[attr-defined]
        assert set(found) == set(kind.children), name
        for number, field in found.items():
            child, repeated = kind.children[number]
            # protobuf says it by `is_repeated` of late, and by `label`, with a warning, before.
            told = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
            assert repeated == told
            compare(field.message_type, child)

    compare(onnx.ModelProto.DESCRIPTOR, MODEL)
    assert len(seen) == 8


@given(st.integers(0, 2**64 - 1))
def test_varints_round_trip(value: int) -> None:
    assert varint(encoded(value), 0, 10) == (value, len(encoded(value)))
    assert fields(header(7, 3) + b"abc", 0, 5)[0][:4] == (7, 2, 0, 2)


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
