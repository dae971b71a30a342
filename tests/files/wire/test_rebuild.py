"""Tensors are replaced wherever they are, and no other byte changes."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.files.wire.payload_references import rebuild, total_size
from onnx_migrate.files.wire.protobuf import MAX_DEPTH, Malformed, header
from onnx_migrate.model.tensors import tensors
from tests.files.feature_models import FEATURES, plain


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
