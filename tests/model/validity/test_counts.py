import onnx
import pytest

from onnx_migrate.errors import LoadError
from onnx_migrate.files import load
from onnx_migrate.model.validity.counts import require_size
from tests.support.small_model import small


def crowded(field: str, count: int) -> onnx.ModelProto:
    proto = small()
    owner = proto if field in ("functions", "metadata_props", "opset_import") else proto.graph
    repeated = getattr(owner, field)
    for _ in range(count):
        repeated.add()
    return proto


@pytest.mark.parametrize(
    ("field", "count", "text"),
    [
        ("functions", 50_001, "it has 50,001 functions, and at most 50,000 are handled"),
        ("opset_import", 1_001, "it has 1,002 opset imports, and at most 1,000"),
        ("input", 100_000, "it has 100,001 inputs, and at most 100,000"),
        ("output", 100_001, "it has 100,002 outputs"),
    ],
)
def test_more_than_any_model_has_is_refused(field: str, count: int, text: str) -> None:
    with pytest.raises(LoadError, match=text) as caught:
        load(crowded(field, count).SerializeToString())
    assert caught.value.code == "too-large"


def test_what_large_models_have_is_taken() -> None:
    require_size(crowded("node", 200_000), "model")
    require_size(crowded("initializer", 100_000), "model")


def test_a_node_of_more_values_than_any_has_is_refused() -> None:
    proto = small()
    node = proto.graph.node[0]
    node.output.extend(f"o{index}" for index in range(100_000 - len(node.output)))
    require_size(proto, "model")
    node.output.append("one")

    with pytest.raises(LoadError, match="100,001 inputs or outputs, and at most 100,000") as caught:
        require_size(proto, "model")
    assert caught.value.code == "too-large"
