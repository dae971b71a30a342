"""ONNX Runtime computes with the files that were checked, or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files import load
from onnx_migrate.verify.evaluators import Runnable, external_data, open_model
from onnx_migrate.verify.evaluators.external_data import open_external_data
from onnx_migrate.verify.evaluators.reference import LOADERS as REFERENCE
from tests.support.skips import Elsewhere, import_or_skip, skip_if
from tests.verify.harness import net

ORT = "onnxruntime:off"
RIGHT, CANARY = np.full(2000, 2.0, np.float32), np.full(2000, 7.0, np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in m.onnx, its weight in w.bin; the canary in a file outside the folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    proto = net("(float[2000] x) => (float[2000] y) { y = Mul(x, w) }", w=RIGHT)
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (folder / "w.bin").write_bytes(RIGHT.tobytes())
    (tmp_path / "canary").write_bytes(CANARY.tobytes())
    onnx.save(proto, folder / "m.onnx")
    return folder


def runnable(folder: Path) -> Runnable:
    model = load(folder / "m.onnx")
    return Runnable(structure=model.proto.SerializeToString(), weights=model.weights)


def factor(model: Runnable, configuration: str = ORT) -> float:
    found = open_model(model, configuration).run({"x": np.ones(2000, np.float32)})["y"]
    assert (found == found[0]).all()
    return float(found[0])


def swap(folder: Path) -> None:
    (folder / "w.bin").unlink()
    (folder / "w.bin").symlink_to(folder.parent / "canary")


@pytest.mark.parametrize("configuration", [ORT, *REFERENCE])
def test_the_weights_are_read(configuration: str, folder: Path) -> None:
    assert factor(runnable(folder), configuration) == 2


@pytest.mark.parametrize("configuration", [ORT, *REFERENCE])
def test_a_file_that_was_swapped_since_the_load_is_refused(configuration: str, folder: Path) -> None:
    model = runnable(folder)
    swap(folder)

    with pytest.raises(LoadError, match="has changed since"):
        factor(model, configuration)


@skip_if(not Path("/proc/self/fd").exists(), "the system has no paths of descriptors", Elsewhere.LINUX)
def test_a_file_that_is_swapped_before_the_runtime_opens_it_is_not_read(folder: Path) -> None:
    import onnxruntime

    with open_external_data(runnable(folder)) as (structure, base):
        swap(folder)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(base))
        session = None
        with contextlib.suppress(Exception):  # newer releases do not find a file without a name
            session = onnxruntime.InferenceSession(structure, options, providers=["CPUExecutionProvider"])
    assert session is None or (session.run(None, {"x": np.ones(2000, np.float32)})[0] == 2).all()


def test_a_name_that_is_gone_says_nothing_of_the_model(folder: Path) -> None:
    with pytest.raises(LoadError) as caught, open_external_data(runnable(folder)):
        raise RuntimeError(
            "Failed to get the weakly canonical path: /proc/self/fd/6 - No such file or directory"
        )
    assert caught.value.code == "source-changed"
    with pytest.raises(RuntimeError, match="shape"), open_external_data(runnable(folder)):
        raise RuntimeError("shape mismatch")


def test_without_paths_of_descriptors_a_swap_is_found_afterwards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_data, "_DESCRIPTORS", "no/such/folder")
    model = runnable(folder)

    with open_external_data(model) as (structure, base):
        assert (structure, base) == (model.structure, str(folder))
    assert factor(model) == 2
    with pytest.raises(LoadError, match="has changed since"), open_external_data(model):
        swap(folder)


def test_only_the_entry_that_was_checked_counts(folder: Path) -> None:
    proto = onnx.load(folder / "m.onnx", load_external_data=False)
    entries = proto.graph.initializer[0].external_data
    del entries[:]
    entries.add(key="location", value=str(folder.parent / "canary"))
    entries.add(key="location", value="w.bin")
    (folder / "m.onnx").write_bytes(proto.SerializeToString())

    with open_external_data(runnable(folder)) as (structure, base):
        assert isinstance(structure, bytes)
        (tensor,) = onnx.ModelProto.FromString(structure).graph.initializer
        (location,) = (entry.value for entry in tensor.external_data if entry.key == "location")
        assert os.path.samefile(f"{base}{location}", folder / "w.bin")


def test_weights_in_a_sub_graph_are_read(folder: Path) -> None:
    proto = net(
        "(bool c, float[2000] x) => (float[2000] y) { y = If (c) <then_branch = yes () => (float[2000] p) "
        "{ p = Mul (x, w) }, else_branch = no () => (float[2000] q) { q = Relu (x) }> }"
    )
    weight = onnx.load(folder / "m.onnx", load_external_data=False).graph.initializer[0]
    branch = next(item.g for item in proto.graph.node[0].attribute if item.name == "then_branch")
    branch.initializer.append(weight)
    onnx.save(proto, folder / "m.onnx")
    feeds = {"c": np.array(True), "x": np.ones(2000, np.float32)}

    assert (open_model(runnable(folder), ORT).run(feeds)["y"] == 2).all()


def test_more_files_than_may_be_open_at_first(folder: Path) -> None:
    resource = import_or_skip("resource", Elsewhere.LINUX)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 60
    text = "".join(f" y{i + 1} = Mul(y{i}, w{i})" for i in range(count))
    proto = net(f"(float[2000] y0) => (float[2000] y{count}) {{{text} }}")
    for i in range(count):
        tensor = proto.graph.initializer.add(name=f"w{i}", data_type=1, dims=[2000])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"w{i}.bin")
        (folder / f"w{i}.bin").write_bytes(np.full(2000, 2 if i < 9 else 1, np.float32).tobytes())
    onnx.save(proto, folder / "m.onnx")
    model = runnable(folder)
    others = [os.open(folder / "m.onnx", os.O_RDONLY) for _ in range(200)]
    used = max(map(int, os.listdir("/proc/self/fd"))) + 1 if os.path.isdir("/proc/self/fd") else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, limits[1]))
    try:
        found = open_model(model, ORT).run({"y0": np.ones(2000, np.float32)})[f"y{count}"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for other in others:
            os.close(other)
    assert (found == 512).all()
