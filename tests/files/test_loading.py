from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from onnx_migrate.errors import LoadError
from onnx_migrate.files import save
from onnx_migrate.files.loading import load
from onnx_migrate.files.reading import from_file
from onnx_migrate.model.weights import Weights
from tests.files.feature_models import model, plain, weight, with_external_data
from tests.files.refusals import refusal
from tests.support.skips import Elsewhere, import_or_skip


def test_the_folder_of_the_data_is_the_one_that_the_model_was_opened_in(tmp_path: Path) -> None:
    path = external(tmp_path, location="w.bin")
    weights = Weights(path.parent, source=path)
    proto = from_file(path, "a", weights)
    path.parent.rename(tmp_path / "old")
    path.parent.mkdir()
    (path.parent / "w.bin").write_bytes(bytes(12_000))

    with pytest.raises(LoadError, match="its folder was replaced"):
        weights.payload(proto.graph.initializer[0])


def external(tmp_path: Path, **entries: str) -> Path:
    """A model in a folder of its own, one tensor of 12,000 bytes in w.bin that a node reads, its entries as given."""
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    reading = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    with_external_data(model([weight("w")], [reading]), folder / "a.onnx", "w.bin")
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
    runtime = import_or_skip("onnxruntime", Elsewhere.INSTALLED)
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
from onnx_migrate.files.loading import load
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
model = load(sys.argv[1])
loaded = time.process_time() - start
model.proto.producer_name = "changed"
save(model, sys.argv[2])
print(loaded, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024)
"""


@pytest.mark.long
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
