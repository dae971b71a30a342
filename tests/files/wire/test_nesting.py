import pytest

from onnx_migrate.errors import LoadError
from onnx_migrate.files import load
from onnx_migrate.files.wire.nesting import is_too_deep
from tests.hostile import shape


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
