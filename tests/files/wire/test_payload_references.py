"""Payloads are taken out of a serialised model and put back, and no other byte changes."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.files.wire.payload_references import ExternalLocation, assemble, rebuild, split, total_size
from onnx_migrate.files.wire.protobuf import MAX_DEPTH, Malformed, header
from onnx_migrate.model.payloads import BufferPayload, Payload
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import INLINE_LIMIT, mark_external
from tests.files.feature_models import FEATURES, UNKNOWN, model, plain, weight, with_one_tensor


def parts(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, tuple[bytes, str, bytes]]]:
    """Return the structure, and for each location its payload, field and extra fields."""
    data = proto.SerializeToString()
    kept: dict[str, tuple[bytes, str, bytes]] = {}

    def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
        kept[str(len(kept))] = data[offset : offset + length], field, extra_fields
        return str(len(kept) - 1), 0

    return onnx.ModelProto.FromString(split(data, keep)), kept


@pytest.mark.parametrize("feature", ["plain", "nested", "sparse", "functions", "training", "everywhere"])
def test_the_payload_of_each_tensor_is_where_its_reference_says(feature: str) -> None:
    proto = FEATURES[feature]()
    structure, kept = parts(proto)
    for own, reference in zip(tensors(proto), tensors(structure), strict=True):
        location = next(entry.value for entry in reference.external_data if entry.key == "location")
        assert kept[location][:2] == (own.raw_data, "raw_data")
        assert reference.data_location == TensorProto.EXTERNAL
        assert (reference.name, reference.dims, reference.data_type) == (own.name, own.dims, own.data_type)


def test_a_single_large_payload_is_found_in_every_field() -> None:
    for proto in with_one_tensor():
        structure, kept = parts(proto)
        assert [payload for payload, _, _ in kept.values()] == [weight("w").raw_data]
        assert structure.ByteSize() < 1000


@pytest.mark.parametrize(("count", "references"), [(INLINE_LIMIT // 4, 0), (INLINE_LIMIT // 4 + 1, 1)])
def test_only_payloads_over_the_limit_are_left_out(count: int, references: int) -> None:
    proto = model([weight("w", count=count)])
    structure, kept = parts(proto)

    assert len(kept) == references
    assert (structure == proto) == (references == 0)


def test_a_field_other_than_raw_data_is_named() -> None:
    for name, data_type in (("float_data", TensorProto.COMPLEX64), ("double_data", TensorProto.DOUBLE)):
        tensor = TensorProto(name="w", dims=[3000], data_type=data_type)
        getattr(tensor, name).extend([0.5] * 3000)
        _, kept = parts(model([tensor]))
        assert [(field, len(payload)) for payload, field, _ in kept.values()] == [
            (name, 3000 * (4 if name == "float_data" else 8))
        ]


def test_entries_that_stand_beside_the_data_are_kept_as_extra_fields() -> None:
    tensor = weight("w")
    tensor.external_data.add(key="location", value="stale.bin")
    tensor.data_location = TensorProto.DEFAULT
    _, kept = parts(model([tensor]))
    ((_, _, extra_fields),) = kept.values()
    extra = TensorProto.FromString(extra_fields)

    assert (extra.external_data, extra.HasField("data_location")) == (tensor.external_data, True)
    assert {field.name for field, _ in extra.ListFields()} == {"external_data", "data_location"}


def test_a_tensor_with_two_data_fields_stays() -> None:
    for name in sorted(DATA_FIELDS.keys() - {"raw_data"}):
        proto = plain()
        value = [b"x"] if name == "string_data" else [1]
        getattr(proto.graph.initializer[0], name).extend(value)
        structure, kept = parts(proto)
        assert len(kept) == 1, name
        assert structure.graph.initializer[0] == proto.graph.initializer[0]


def joined(pieces: object) -> bytes:
    assert isinstance(pieces, list)
    assert total_size(pieces) == sum(map(len, pieces))
    return b"".join(pieces)


def anywhere(start: int, end: int) -> bool:
    return True


@pytest.mark.parametrize("feature", FEATURES)
def test_each_tensor_is_offered_once_and_lengths_around_it_are_adapted(feature: str) -> None:
    proto = FEATURES[feature]()
    data = proto.SerializeToString()
    seen = []

    def renamed(start: int, end: int) -> list[bytes]:
        tensor = TensorProto.FromString(data[start:end])
        seen.append(tensor.SerializeToString())
        tensor.doc_string = "replaced " * 40
        return [tensor.SerializeToString()]

    got = onnx.ModelProto.FromString(joined(rebuild(data, 0, len(data), anywhere, renamed)))  # type: ignore[arg-type]
    assert sorted(seen) == sorted(tensor.SerializeToString() for tensor in tensors(proto))
    for tensor in tensors(proto):
        tensor.doc_string = "replaced " * 40
    assert got.SerializeToString() == proto.SerializeToString()


def test_nothing_replaced_is_none() -> None:
    data = plain().SerializeToString()

    assert rebuild(data, 0, len(data), anywhere, lambda start, end: None) is None
    assert (
        rebuild(data, 0, len(data), lambda start, end: False, lambda start, end: pytest.fail("not asked for"))
        is None
    )


def test_a_singular_message_that_occurs_twice_is_left_to_the_parser() -> None:
    """Protobuf merges the two, so that neither is the whole message."""
    first = plain().SerializeToString()
    twice = first + first

    assert rebuild(twice, 0, len(twice), anywhere, lambda start, end: [b""]) is None
    assert rebuild(first, 0, len(first), anywhere, lambda start, end: [b""]) is not None


def test_messages_nested_too_deep_are_refused() -> None:
    graph = b""
    for _ in range(MAX_DEPTH // 3 + 1):
        attribute = header(6, len(graph)) + graph
        node = header(5, len(attribute)) + attribute
        graph = header(1, len(node)) + node
    data = header(7, len(graph)) + graph

    with pytest.raises(Malformed, match="nested more than 100 deep"):
        rebuild(data, 0, len(data), anywhere, lambda start, end: None)


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
