"""Structure and payloads are put together as protobuf's own serialiser would write them."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.files.wire.payload_references import ExternalLocation, assemble
from onnx_migrate.model.payloads import BufferPayload, Payload
from onnx_migrate.model.weights import mark_external
from tests.files.feature_models import FEATURES, UNKNOWN, model, plain, weight


def reference(tensor: TensorProto, location: str = "w") -> TensorProto:
    """Return a tensor without its data, with a reference in its place."""
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.ClearField("raw_data")
    mark_external(copy, location, 0, len(tensor.raw_data))
    return copy


def payload(data: bytes, **fields: str) -> BufferPayload:
    return BufferPayload(memoryview(data), len(data), **fields)  # type: ignore[arg-type]


def content(pieces: list[bytes | Payload]) -> bytes:
    return b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in pieces)


def test_a_payload_is_at_its_place_between_lower_and_higher_fields_and_before_unknown_ones() -> None:
    tensor = weight("w")
    tensor.doc_string = "after raw_data"
    tensor.metadata_props.add(key="k", value="v")
    tensor.MergeFromString(UNKNOWN)
    pieces = assemble(model([reference(tensor)]), lambda found: payload(tensor.raw_data))

    assert content(pieces) == model([tensor]).SerializeToString()
    assert max(len(piece) for piece in pieces if isinstance(piece, bytes)) < 500


def test_extra_fields_are_between_the_data_and_the_metadata() -> None:
    tensor = weight("w")
    tensor.external_data.add(key="location", value="stale.bin")
    tensor.metadata_props.add(key="k", value="v")
    extra = TensorProto(external_data=tensor.external_data).SerializeToString()
    structure = TensorProto()
    structure.CopyFrom(tensor)
    structure.ClearField("external_data")
    pieces = assemble(
        model([reference(structure)]),
        lambda found: BufferPayload(memoryview(tensor.raw_data), 12_000, extra_fields=extra),
    )

    assert content(pieces) == model([tensor]).SerializeToString()


def test_a_payload_goes_back_to_the_field_it_came_from_while_the_type_allows() -> None:
    tensor = TensorProto(name="w", dims=[3000], data_type=TensorProto.FLOAT, float_data=[0.5] * 3000)
    data = b"\0\0\0\x3f" * 3000
    bare = TensorProto(name="w", dims=[3000], data_type=TensorProto.FLOAT)
    mark_external(bare, "w", 0, 12_000)
    assert content(assemble(model([bare]), lambda found: payload(data, field="float_data"))) == (
        model([tensor]).SerializeToString()
    )
    bare.data_type = TensorProto.INT32
    (got,) = onnx.ModelProto.FromString(
        content(assemble(model([bare]), lambda found: payload(data, field="float_data")))
    ).graph.initializer
    assert got.raw_data == data


def test_a_place_in_external_data_replaces_the_reference() -> None:
    pieces = assemble(model([reference(weight("w"))]), lambda found: ExternalLocation("b.data", 64, 12_000))
    (got,) = onnx.ModelProto.FromString(content(pieces)).graph.initializer

    assert {entry.key: entry.value for entry in got.external_data} == {
        "location": "b.data", "offset": "64", "length": "12000"
    }  # fmt: skip


def test_none_keeps_the_reference_and_only_references_are_asked_about() -> None:
    proto = model([reference(weight("w")), weight("v", 1), reference(weight("u"), "u")])
    asked: list[str] = []
    pieces = assemble(proto, lambda found: asked.append(found.name))

    assert asked == ["w", "u"]
    assert pieces == [proto.SerializeToString()]


def test_a_structure_without_references_is_its_own_bytes() -> None:
    proto = FEATURES["annotated"]()  # metadata that looks like a reference
    del proto.graph.initializer[:]
    assert assemble(proto, lambda tensor: pytest.fail("nothing to place")) == [proto.SerializeToString()]
    assert assemble(plain(), lambda tensor: pytest.fail("nothing to place")) == [plain().SerializeToString()]
