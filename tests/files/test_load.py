from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import LoadError
from onnx_migrate.files import save
from onnx_migrate.files.load import load
from onnx_migrate.files.wire.protobuf import encode_varint, header
from onnx_migrate.model.weights import MEMORY
from tests.files.feature_models import model, plain, weight, with_external_data


def refusal(source: object) -> LoadError:
    with pytest.raises(LoadError) as caught:
        load(source)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


def zipped(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "x")
    return out.getvalue()


TEXT = '<ir_version: 8, opset_import: ["" : 17]>\nagraph (float[N] x) => (float[N] y)\n{ y = Relu(x) }\n'

NOT_ONNX: dict[str, tuple[bytes, str]] = {
    "html": (b"<!DOCTYPE html>\n<html><body>404</body></html>", "HTML"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "git lfs pull"),
    "gzip": (gzip.compress(plain().SerializeToString()), "gzip"),
    "zip": (zipped("model.onnx"), "zip archive"),
    "torch": (zipped("archive/data.pkl"), "PyTorch"),
    "pickle": (b"\x80\x02}q\x00.", "pickle"),
    "text": (TEXT.encode(), "text format"),
    "json": (b'{"irVersion": "8", "ir_version": 8}', "JSON"),
    "pbtxt": (b'ir_version: 8\nproducer_name: "x"\n', "protobuf text"),
    "words": (b"hello, world\n", "text"),
    "numpy": (b"\x93NUMPY\x01\x00v\x00{}", "NumPy"),
    "ort": (b"\x18\0\0\0ORTM" + bytes(50), ".ort"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(50), "Lite"),
    "tensor": (weight("x").SerializeToString(), "TensorProto"),
    "small tensor": (
        numpy_helper.from_array(np.ones((2, 3), np.float32), "x").SerializeToString(),
        "TensorProto",
    ),
    "zeros": (bytes(5000), "not a protobuf"),
    "random": (np.random.default_rng(1).bytes(5000), "not a protobuf"),
    "no graph": (onnx.ModelProto(ir_version=8, producer_name="p").SerializeToString(), "no graph"),
    "no ir_version": (onnx.ModelProto(graph=plain().graph).SerializeToString(), "ir_version is 0"),
    "graph not a message": (b"\x08\x08\x38\x01", "no graph"),
}


@pytest.mark.parametrize("case", NOT_ONNX)
@pytest.mark.parametrize("as_file", [True, False], ids=["file", "bytes"])
def test_a_file_that_is_not_a_model_is_refused_with_what_it_is(
    case: str, as_file: bool, tmp_path: Path
) -> None:
    data, words = NOT_ONNX[case]
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    error = refusal(path if as_file else data)
    assert error.code == "not-onnx"
    assert words in str(error)
    assert str(path) in str(error) if as_file else "<bytes>" in str(error)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
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


def test_a_file_cut_anywhere_is_reported_as_truncated(tmp_path: Path) -> None:
    data = plain().SerializeToString()
    path = tmp_path / "a.onnx"
    for length in (1, 3, 20, 100, 5000, len(data) - 1000, len(data) - 1):
        path.write_bytes(data[:length])
        error = refusal(path)
        assert error.code in ("truncated", "not-onnx"), length
        if length >= 100:
            assert error.code == "truncated"
            assert f"ends at byte {length}" in str(error)
    path.write_bytes(data[: len(data) // 2])
    graph_end = len(data) - plain().opset_import[0].ByteSize() - 2  # the opset import follows
    assert f"{graph_end - len(data) // 2} bytes are missing" in str(refusal(path))


def nest(depth: int) -> bytes:
    """An If in an If in an If … padded so that each level is looked into."""
    graph = b"\x12\x01g" + b"\x52" + encode_varint(5000) + bytes(5000)
    for _ in range(depth):
        attribute = header(6, len(graph)) + graph
        node = header(5, len(attribute)) + attribute
        graph = header(1, len(node)) + node
    return b"\x08\x08" + header(7, len(graph)) + graph


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nested too deep": lambda: nest(40),
    "nested 20,000 deep": lambda: nest(20_000),
    "eleven bytes of varint": lambda: b"\x08" + b"\xff" * 10 + b"\x01",
    "length of 2**63": lambda: b"\x08\x08\x3a" + encode_varint(2**63) + b"x",
    "length of 2**64 - 1": lambda: b"\x08\x08\x3a" + encode_varint(2**64 - 1) + bytes(9000),
    "field number 0": lambda: b"\x08\x08\x02\x00",
    "a group without end": lambda: b"\x08\x08\x0b" * 10_000,
    "a group's end alone": lambda: b"\x08\x08\x0c",
    "a lying inner length": lambda: (
        b"\x08\x08\x3a" + encode_varint(9000) + b"\x2a" + encode_varint(2**40) + bytes(9000)
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_malicious_input_is_refused_quickly(case: str) -> None:
    start = time.monotonic()
    refusal(HOSTILE[case]())
    assert time.monotonic() - start < 5


def test_nesting_that_protobuf_reads_is_read() -> None:
    assert load(nest(30)).proto == onnx.ModelProto.FromString(nest(30))


def test_repeated_singular_fields_merge_as_in_protobuf(tmp_path: Path) -> None:
    # The graph twice, and an attribute's tensor twice: large, then small.
    first, second = model([weight("w")]), model([weight("v", 1)])
    small = TensorProto(dims=[1], data_type=1, raw_data=b"abcd")
    attribute = onnx.AttributeProto(
        name="t", type=onnx.AttributeProto.TENSOR, t=weight("t")
    ).SerializeToString()
    attribute += header(5, small.ByteSize()) + small.SerializeToString()
    node = header(5, len(attribute)) + attribute
    graph = header(1, len(node)) + node
    data = first.SerializeToString() + second.SerializeToString() + header(7, len(graph)) + graph
    assert load(data).proto == onnx.ModelProto.FromString(data)


def test_a_location_reserved_for_memory_is_refused_in_a_file(tmp_path: Path) -> None:
    tensor = weight("w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=f"{MEMORY}0")
    data = model([tensor, weight("secret")]).SerializeToString()
    (tmp_path / "a.onnx").write_bytes(data)
    assert refusal(data).code == refusal(tmp_path / "a.onnx").code == "missing-data"


def external(tmp_path: Path, **entries: str) -> Path:
    """A model in a folder of its own, one tensor of 12,000 bytes in w.bin, its entries as given."""
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    with_external_data(model([weight("w")]), folder / "a.onnx", "w.bin")
    proto = onnx.load(folder / "a.onnx", load_external_data=False)
    (tensor,) = proto.graph.initializer
    kept = {entry.key: entry.value for entry in tensor.external_data} | entries
    del tensor.external_data[:]
    for key, value in kept.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "a.onnx").write_bytes(proto.SerializeToString())
    return folder / "a.onnx"


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "sub/../../secret", "link", "sub/link/secret"]
)
def test_external_data_outside_the_folder_is_refused(location: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(20_000))
    path = external(tmp_path, location=location)
    (path.parent / "sub").mkdir()
    (path.parent / "link").symlink_to(tmp_path / "secret")
    (path.parent / "sub" / "link").symlink_to(tmp_path)
    error = refusal(path)
    assert error.code == "outside-folder"
    assert "'w'" in str(error)
    assert location in str(error)


def test_a_reference_outside_the_folder_added_after_the_load_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(20_000))
    loaded = load(external(tmp_path))
    loaded.proto.graph.initializer[0].external_data[0].value = "../secret"
    with pytest.raises(LoadError, match="outside"):
        save(loaded, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ({"location": "none.bin"}, "missing-data"),
        ({"location": "."}, "missing-data"),
        ({"location": ""}, "missing-data"),
        ({"location": "w.bin\0"}, "missing-data"),
        ({"offset": "1"}, "missing-data"),
        ({"offset": str(2**63)}, "missing-data"),
        ({"offset": "-1"}, "bad-external-data"),
        ({"offset": "9" * 40}, "bad-external-data"),
        ({"length": "-1"}, "bad-external-data"),
        ({"length": "11999"}, "bad-external-data"),
        ({"length": "twelve"}, "bad-external-data"),
    ],
)
def test_broken_external_data_names_the_tensor(entries: dict[str, str], code: str, tmp_path: Path) -> None:
    error = refusal(external(tmp_path, **entries))
    assert error.code == code
    assert "'w'" in str(error)


def test_a_model_that_is_a_link_may_have_its_data_where_it_really_is(tmp_path: Path) -> None:
    # The layout of the Hugging Face cache: snapshots/x/model.onnx and .data are links into blobs.
    path = external(tmp_path)
    view = tmp_path / "snapshots"
    view.mkdir()
    (view / "a.onnx").symlink_to(path)
    (view / "w.bin").symlink_to(path.parent / "w.bin")
    model = load(view / "a.onnx")
    assert model.weights.array(model.proto.graph.initializer[0]).tobytes() == weight("w").raw_data


def test_a_link_to_a_model_with_its_weights_inside_is_read_where_it_really_is(tmp_path: Path) -> None:
    real, view = tmp_path / "blobs", tmp_path / "snapshots"
    real.mkdir()
    view.mkdir()
    onnx.save(model([weight("w")]), real / "1f.onnx")
    (view / "a.onnx").symlink_to(real / "1f.onnx")
    loaded = load(view / "a.onnx")
    assert (loaded.weights.folder, loaded.origin) == (real, (str(view / "a.onnx"),))
    assert loaded.weights.array(loaded.proto.graph.initializer[0]).tobytes() == weight("w").raw_data
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    key = "session.model_external_initializers_file_folder_path"
    options.add_session_config_entry(key, str(loaded.weights.folder))
    runtime.InferenceSession(loaded.proto.SerializeToString(), options)


def test_without_a_length_external_data_is_as_long_as_the_tensor(tmp_path: Path) -> None:
    path = external(tmp_path, length="", offset="")
    with (path.parent / "w.bin").open("ab") as file:
        file.write(b"more")
    loaded = load(path)
    assert loaded.weights.array(loaded.proto.graph.initializer[0]).tobytes() == weight("w").raw_data


def test_external_data_without_a_file_of_its_own(tmp_path: Path) -> None:
    path = external(tmp_path)
    assert "give the model's path" in refusal(path.read_bytes()).hint
    assert refusal(onnx.load(path, load_external_data=False)).code == "missing-data"


def test_weights_that_change_after_the_load_are_noticed(tmp_path: Path) -> None:
    path = external(tmp_path)
    loaded = load(path)
    (path.parent / "w.bin").write_bytes(bytes(12_000))
    with pytest.raises(LoadError, match="changed") as caught:
        save(loaded, tmp_path / "out.onnx")
    assert caught.value.code == "source-changed"
    assert not (tmp_path / "out.onnx").exists()


def test_raw_data_that_does_not_fit_the_dims_is_an_error_when_it_is_read() -> None:
    proto = model([weight("w")])
    proto.graph.initializer[0].dims[0] = 4000
    loaded = load(proto)
    with pytest.raises(LoadError, match="dims and type need 16000"):
        loaded.weights.array(loaded.proto.graph.initializer[0])


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.onnx"))
    path.write_bytes(plain().SerializeToString())
    save(load(path), tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == plain().SerializeToString()


MEASURE = """
import resource, sys, time
import onnx
from onnx_migrate.files import save
from onnx_migrate.files.load import load
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.monotonic()
model = load(sys.argv[1])
loaded = time.monotonic() - start
model.proto.producer_name = "changed"
save(model, sys.argv[2])
print(loaded, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024)
"""


def test_time_and_memory_do_not_grow_with_the_weights(tmp_path: Path) -> None:
    proto = model([weight(f"w{i}", i, 10_000_000) for i in range(5)])  # 200 MB
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, megabytes = map(float, output.split())
    assert seconds < 0.2
    assert megabytes < 20
    proto.producer_name = "changed"
    assert (tmp_path / "b.onnx").read_bytes() == proto.SerializeToString()
