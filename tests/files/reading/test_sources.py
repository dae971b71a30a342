from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.files import inline
from onnx_migrate.files.load import load
from onnx_migrate.files.reading.sources import content_of
from tests.files.feature_models import plain


class Exported:
    """As torch.onnx.ONNXProgram."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.model_proto = proto


@pytest.mark.parametrize(
    "kind", ["bytearray", "memoryview", "BytesIO", "file", "pathlib", "exported", "Graph"]
)
def test_a_model_is_read_from_whatever_holds_it(kind: str, tmp_path: Path) -> None:
    import onnx_graphsurgeon as gs

    proto = plain()
    data = proto.SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    written = io.BytesIO()
    written.write(data)  # as an exporter leaves it: at the end
    with path.open("rb") as file:
        sources = {
            "bytearray": bytearray(data), "memoryview": memoryview(data), "BytesIO": written, "file": file,
            "pathlib": path, "exported": Exported(proto), "Graph": gs.import_onnx(proto),
        }  # fmt: skip
        loaded = load(sources[kind])

    whole = inline(loaded)
    assert [node.op_type for node in whole.graph.node] == [node.op_type for node in proto.graph.node]
    assert [numpy_helper.to_array(item).tobytes() for item in whole.graph.initializer] == [
        numpy_helper.to_array(item).tobytes() for item in proto.graph.initializer
    ]
    assert proto.SerializeToString() == data


def test_a_graph_that_was_made_by_hand_gets_an_ir_version_of_its_opset() -> None:
    import onnx_graphsurgeon as gs

    x, y = gs.Variable("x", np.float32, (2,)), gs.Variable("y", np.float32, (2,))
    graph = gs.Graph([gs.Node("Relu", inputs=[x], outputs=[y])], [x], [y], opset=11)

    assert load(graph).proto.ir_version == 6


def test_what_is_no_model_is_misuse() -> None:
    with pytest.raises(UsageError, match=r"of the type builtins.int, which is not a model \(give a path"):
        load(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"reads as str, not as bytes.*'rb'"):
        load(io.StringIO("x"))  # type: ignore[arg-type]


def test_what_holds_a_model_is_brought_to_a_path_a_buffer_or_a_proto(tmp_path: Path) -> None:
    proto = plain()
    data = proto.SerializeToString()

    assert content_of("a.onnx") == ("a.onnx", "a.onnx")
    assert content_of(tmp_path) == (tmp_path, str(tmp_path))
    assert content_of(proto)[0] is proto
    assert content_of(Exported(proto)) == (proto, "<Exported>")
    assert content_of(io.BytesIO(data)) == (data, "<bytes>")
