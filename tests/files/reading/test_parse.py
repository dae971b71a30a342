from __future__ import annotations

import gzip
import io
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from onnx_migrate.files.loading import load
from onnx_migrate.files.reading.parse import parse_bytes
from onnx_migrate.files.wire.protobuf import encode_varint, header
from onnx_migrate.model.weights import MEMORY, Weights
from tests.files.feature_models import model, plain, weight
from tests.files.refusals import refusal


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
    assert words in error.with_hint
    assert str(path) in str(error) if as_file else "<bytes>" in str(error)


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


def test_payloads_of_bytes_are_entered_and_not_copied() -> None:
    proto = model([weight("w")])
    data = bytearray(proto.SerializeToString())
    weights = Weights()

    found = parse_bytes(memoryview(data), "<bytes>", weights)
    at = data.find(proto.graph.initializer[0].raw_data)
    data[at] ^= 1

    assert bytes(weights.payload(found.graph.initializer[0]).read())[0] == data[at]
