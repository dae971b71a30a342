"""What a model is read from: objects of other libraries, pipes, and files, whose payloads stay there."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.errors import LoadError, UsageError
from onnx_migrate.files import inline
from onnx_migrate.files.loading import load
from onnx_migrate.files.reading import parse as parse_module
from onnx_migrate.files.reading.from_file import from_file
from onnx_migrate.files.reading.model_stream import read_model
from onnx_migrate.files.reading.sources import content_of
from onnx_migrate.files.wire.payload_references import split
from onnx_migrate.files.wire.protobuf import header
from onnx_migrate.model.weights import Weights
from tests.files.feature_models import model, plain, weight
from tests.files.refusals import refusal
from tests.support.skips import Elsewhere, import_or_skip, skip_if


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
    with pytest.raises(UsageError, match=r"of the type builtins.int, which is not a model\nHint: use a path"):
        load(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"reads as str, not as bytes(?s:.*)'rb'"):
        load(io.StringIO("x"))  # type: ignore[arg-type]


def test_what_holds_a_model_is_brought_to_a_path_a_buffer_or_a_proto(tmp_path: Path) -> None:
    proto = plain()
    data = proto.SerializeToString()

    assert content_of("a.onnx") == ("a.onnx", "a.onnx")
    assert content_of(tmp_path) == (tmp_path, str(tmp_path))
    assert content_of(proto)[0] is proto
    exported = Exported(proto)
    assert content_of(exported) == (exported, "<Exported>")
    assert content_of(io.BytesIO(data)) == (data, "<bytes>")


def test_a_graphsurgeon_graph_is_read_without_a_message(capfd: pytest.CaptureFixture[str]) -> None:
    """A Graph prints an error for an attribute that it does not have, as `model_proto` of other kinds."""
    gs = import_or_skip("onnx_graphsurgeon", Elsewhere.INSTALLED)
    graph = gs.import_onnx(plain())
    capfd.readouterr()
    assert content_of(graph) == (graph, "<Graph>")
    load(graph)
    printed = capfd.readouterr()
    assert "model_proto" not in printed.out + printed.err


ENDLESS = {
    "zeros": lambda count: bytes(count),
    "text": lambda count: (b"y\n" * count)[:count],
    "random": lambda count: np.random.default_rng(0).bytes(count),
    "gzip": lambda count: b"\x1f\x8b" + bytes(count - 2),
    "groups": lambda count: (b"\x0b\x0c" * count)[: count // 2 * 2 - 2] + b"\x0b\x14",
    "nested groups": lambda count: b"\x0b" * count,
    "field 0": lambda count: b"\x08\x08" + bytes(count - 2),
}


@pytest.mark.parametrize("size", [3, 70_000, 1 << 22])
@pytest.mark.parametrize("step", [1 << 20, 5000])
def test_a_model_is_read_whole(size: int, step: int) -> None:
    data = model([weight("w", 1, size), weight("v")]).SerializeToString()

    file = io.BytesIO(data)
    assert read_model(lambda _: file.read(step), "x") == data


@pytest.mark.long
@pytest.mark.parametrize("case", ENDLESS)
def test_what_is_no_model_ends_the_reading(case: str) -> None:
    count = 0

    def read(wanted: int) -> bytes:
        nonlocal count
        count += wanted
        assert count < 1 << 24
        return bytes(ENDLESS[case](wanted))

    with pytest.raises(LoadError, match="not a"):
        load(bytes(read_model(read, "x")))


def test_a_model_with_a_group_is_read_whole() -> None:
    data = b"\xa3\x06" + header(1, 1 << 20) + bytes(1 << 20) + b"\xa4\x06" + plain().SerializeToString()
    file = io.BytesIO(data)

    assert read_model(lambda _: file.read(5000), "x") == data
    assert load(data).proto.graph.name == plain().graph.name


def endless(start: bytes, block: bytes) -> Callable[[int], bytes]:
    rest = [start]
    return lambda _: rest.pop() if rest else block


@pytest.mark.parametrize("field", [header(7, 1 << 60), header(20, 1 << 62)])
def test_a_model_that_is_too_large_for_the_memory_is_refused(field: bytes) -> None:
    start = plain().SerializeToString() + field

    with pytest.raises(LoadError, match="more than 16,777,216 bytes") as caught:
        read_model(endless(start, bytes(1 << 20)), "<stdin>", 1 << 24)
    assert caught.value.code == "cannot-read"


@pytest.mark.parametrize("seed", range(200))
def test_random_bytes_are_read_no_further_than_the_limit(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    count = 0

    def read(wanted: int) -> bytes:
        nonlocal count
        count += wanted
        assert count < 1 << 26
        return numbers.bytes(wanted)

    with pytest.raises(LoadError, match=r"not a|too much for the memory"):
        load(bytes(read_model(read, "x", 1 << 25)))


@skip_if(not os.path.isdir("/dev/fd"), "the system has no paths of descriptors", Elsewhere.LINUX)
def test_a_model_is_loaded_from_an_open_pipe() -> None:
    reader, writer = os.pipe()
    data = model([weight("w")]).SerializeToString()
    os.write(writer, data)
    os.close(writer)

    loaded = load(f"/dev/fd/{reader}")
    os.close(reader)
    assert loaded.name == f"/dev/fd/{reader}"
    assert loaded.proto.graph.name == model([]).graph.name


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.onnx").code == "no-such-file"
    assert refusal(tmp_path / "none" / "none.onnx").code == "no-such-file"
    assert refusal(tmp_path).code == "is-directory"
    (tmp_path / "net.onnx").touch()
    assert "net.onnx" in refusal(tmp_path).hint
    assert refusal(tmp_path / "net.onnx").code == "empty"
    assert refusal(b"").code == "empty"
    assert refusal("nul\0").code == "cannot-read"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").code == "cannot-read"
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop").code == "cannot-read"


@pytest.mark.parametrize("size", [5000, 20 << 20])
@pytest.mark.parametrize("how", ["cut", "written"])
def test_a_model_that_is_changed_while_it_is_read_is_refused(
    how: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(model([weight("w", 1, size // 4)]).SerializeToString())
    untouched = split

    def changed(*args: Any) -> bytes:
        os.truncate(path, 4000) if how == "cut" else os.utime(path, ns=(1, 1))
        return untouched(*args)

    monkeypatch.setattr(parse_module, "split", changed)
    assert refusal(path).code == "source-changed"


@skip_if(os.geteuid() != 0, "needs root to become somebody else", Elsewhere.ROOT)
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(plain().SerializeToString())
    path.chmod(0)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    os.seteuid(65534)
    try:
        error = refusal(path)
    finally:
        os.seteuid(0)
    assert error.code == "cannot-read"
    assert "Permission denied" in str(error)


def test_payloads_of_a_file_are_entered_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    proto = model([weight("w")])
    path.write_bytes(proto.SerializeToString())
    weights = Weights(tmp_path, source=path)

    found = from_file(path, "a model", weights)

    (tensor,) = found.graph.initializer
    assert not tensor.HasField("raw_data")
    assert bytes(weights.payload(tensor).read()) == proto.graph.initializer[0].raw_data
