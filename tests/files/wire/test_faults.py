"""Finds what protobuf does not name in a serialised model: messages that are nested too deep, and names that are not UTF-8."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.errors import LoadError
from onnx_migrate.files import load
from onnx_migrate.files.wire.faults import bad_text, is_too_deep
from tests.campaigns.hostile import shape
from tests.files.feature_models import weight
from tests.verify.harness import net


def test_what_protobuf_reads_is_not_too_deep() -> None:
    data = shape.branches_31_deep().SerializeToString()
    assert not is_too_deep(data)
    assert load(data).proto.graph.node


@pytest.mark.parametrize("make", [shape.branches_33_deep, shape.branches_5000_deep, shape.types_in_types])
def test_what_it_does_not_read_for_its_depth_is(make: object) -> None:
    assert callable(make)
    data = make()
    assert is_too_deep(data)
    with pytest.raises(LoadError) as caught:
        load(data)
    assert caught.value.code == "too-deep"


def test_damaged_messages_are_passed_over() -> None:
    assert not is_too_deep(b"\x3a\x05\x0a\x07")


BAD = b"a\xff"


def model(old: bytes) -> onnx.ModelProto:
    """Return a model in which the name "XX" stands in every kind of place, of which one is made bad."""
    proto = net("(float[XX] x) => (float[XX] y) { y = LeakyRelu <alpha = 0.5> (x) }")
    proto.graph.name = "g"
    proto.doc_string = "doc é"
    data = proto.SerializeToString()
    assert data.count(old) == 1
    return onnx.ModelProto.FromString(data.replace(old, BAD + b"b" * (len(old) - len(BAD))))


@pytest.mark.parametrize(
    ("old", "field"),
    [(b"LeakyRelu", "NodeProto.op_type"), (b"alpha", "AttributeProto.name")],
)
def test_a_name_that_is_not_utf8_is_refused_by_its_field(old: bytes, field: str) -> None:
    proto = model(old)
    found = bad_text(proto, proto.SerializeToString())
    assert found is not None
    assert found[0] == field
    for source in (proto, proto.SerializeToString()):
        with pytest.raises(LoadError, match=field) as caught:
            files.load(source)
        assert caught.value.code == "not-utf8"


def test_prose_that_is_not_utf8_is_kept() -> None:
    proto = model("doc é".encode())
    assert bad_text(proto, proto.SerializeToString()) is None
    assert files.inline(files.load(proto)).SerializeToString() == proto.SerializeToString()


@pytest.mark.parametrize("change", [
    lambda proto: setattr(proto.graph.node[0].attribute.add(name="s", type=3), "s", BAD),
    lambda proto: proto.graph.initializer.append(weight("w")),
    lambda proto: proto.graph.initializer.add(name="t", data_type=8, dims=[1]).string_data.append(BAD),
])  # fmt: skip
def test_bytes_that_are_no_text_may_be_anything(change: Callable[[onnx.ModelProto], object]) -> None:
    proto = net("(float[2] x) => (float[2] y) { y = Relu (x) }")
    change(proto)
    assert bad_text(proto, proto.SerializeToString()) is None
